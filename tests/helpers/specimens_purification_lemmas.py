"""The specimen of purification's lemmas: a table in which every constant is 1 or so, and nulls."""

from collections.abc import Callable, Mapping

import numpy as np
import polars as pl
from nulls import Null, Specimen

from advlab.papers.purification.experiments import lemmas, lemmas_linf
from advlab.papers.purification.experiments._parts import lemma_orders
from advlab.papers.purification.experiments._parts.growth_along_training import LEMMAS
from advlab.papers.purification.experiments._parts.robust_objective import LOG2

SEEDS, DIMENSIONS = 5, (96, 128, 192)
HELD = ("Lipschitz holds", "leftovers", "FGM floor", "sure+ per atom", "opposed")
STAGES = {
    lemmas.CLEAN: (0.1, 0.95, 0.0, 0.02, 0.0), lemmas.FGM: (0.99, 0.95, 0.6, 0.3, 0.1),
    lemmas.CONTROL: (0.1, 0.95, 0.0, 0.02, 0.0),
}  # fmt: skip
"""The columns `HELD` at each stage."""
COUPLINGS = ("coupling", "coupling at 0")
SETS = ("ept", "ept+", "ept++", "sure within sure", "sure within sure+", "pot+ within pot",
        "pot within pot+")  # fmt: skip
OBJECTIVE = {"objective": 0.3, "clean objective": 0.03, "clean objective, attacked": 2.0}
NAMES = [order.name for order in lemmas.ORDERS.values()]
SENSES = {order.name: order.sense for order in lemmas.ORDERS.values()}


def noisy(value: float, seed: int = 0) -> np.ndarray:
    """One value per seed, a little apart; zeros stay zeros."""
    return value * (1 + 1e-4 * np.random.default_rng(seed).standard_normal(SEEDS))


def measured_lemmas(
    power: float = 0.0,
    stages: Mapping | None = None,
    near: float = 1.0,
    excess: float = -0.1,
    held: float = 0.95,
    objective: Mapping[str, float] | None = None,
    speaks: float = 30.0,
    untrained: bool = False,
    longest: float = 1.0,
) -> pl.DataFrame:
    """One row per d, stage and seed; rows of growth and of training against FGM.

    Args:
        power: of d, that constants grow with (and fall with, where a lemma says Omega).
        stages: other shares that hold, by stage.
        near: the constant of C.19.
        excess: how far L_j is above what the units allow.
        held: the shares of Theorem C.2.
        objective: other objectives; "power" is the power of d of the one along training.
        speaks: the constant from which on nothing breaks a bound; of the couplings that of the
            control.
        untrained: the clean network stands where the one trained against FGM should.
        longest: the longest neuron, over 2.
    """
    paid = {**OBJECTIVE, "power": -0.3, **(objective or {})}
    rows = []
    for d in DIMENSIONS:
        grown, where = (d / 96) ** power, {"d": d, "seed": range(SEEDS)}
        row = {"Lipschitz excess": noisy(excess)} | {name: noisy(held) for name in SETS}
        for name, sense in SENSES.items():
            size = {"near": near, "longest": longest}.get(name, 1.0) * (
                1 / grown if sense == "Omega" else grown
            )
            row |= {
                name: noisy(size, d),
                f"{name} left": noisy(2 * size),
                f"{name} right": noisy(2.0),
            }
        row |= {"longest rest speaks": noisy(speaks)}
        for stage, values in {**STAGES, **(stages or {})}.items():
            some = {name: noisy(value) for name, value in zip(HELD, values, strict=True)}
            if stage == lemmas.CONTROL:
                some |= {f"{name} left": noisy(2 * speaks) for name in COUPLINGS}
            if stage == lemmas.FGM and untrained:
                some |= dict.fromkeys(COUPLINGS, noisy(speaks))
            rows.append(pl.DataFrame({**where, "stage": stage, **row, **some}))
        rows += [
            pl.DataFrame({**where, "stage": lemma_orders.ALONG, "lemma": lemma, "step": step,
                          "share": step / 100, "left": noisy(1 / d), "right": noisy(2 / d),
                          "constant": noisy(0.5 * grown, d), "speaks": noisy(speaks)})
            for lemma in LEMMAS
            for step in (10, 100)
        ]  # fmt: skip
        now = paid["objective"] * (d / 96) ** paid["power"]
        rows += [
            pl.DataFrame({**where, "stage": lemma_orders.ALONG_FGM, "step": step,
                          "share": step / 100, "objective": noisy(now),
                          **{name: noisy(paid[name]) for name in list(OBJECTIVE)[1:]}})
            for step in (0, 50)
        ]  # fmt: skip
    return pl.concat(rows, how="diagonal_relaxed")


def lemmas_specimen() -> Specimen:
    nothing = {lemmas.FGM: STAGES[lemmas.CONTROL]}
    crowd = {lemmas.CLEAN: (0.1, 0.6, 0.0, 0.02, 0.3)}
    labels = (*lemmas.ORDERS, *LEMMAS)
    levels = tuple(f"{label}/level" for label in labels if label != lemma_orders.CAPPED)
    vacuous = tuple(f"{label}/level" for label in lemma_orders.SPEAKS if label in labels)
    chance = {name: 0.01 if sense == "Omega" else 20.0 for name, sense in SENSES.items()}
    chance |= dict.fromkeys((*HELD, *SETS), 0.5) | {"constant": 20.0, "objective": LOG2}
    return Specimen(
        table=measured_lemmas(),
        measured=(*NAMES, *HELD, *SETS, "Lipschitz excess", *OBJECTIVE, "left", "right",
                  "constant", "speaks", "longest left"),
        chance=chance,
        controls={
            "as many more clean steps": Null(
                measured_lemmas(stages=nothing), ("C.20/1", "F.2", "C.2")
            ),
            "neurons that answer to all": Null(
                measured_lemmas(near=20.0, stages=crowd),
                ("C.19/1", "C.19/b", "C.19/level", "E.2/0"),
            ),
            "constants that grow with d": Null(
                measured_lemmas(power=0.3), levels
            ),
            "bounds that nothing could break": Null(measured_lemmas(speaks=0.01), vacuous),
            "bounds that nothing breaks with constant 10": Null(
                measured_lemmas(speaks=3.0), vacuous
            ),
            "the clean network in the place of the trained one": Null(
                measured_lemmas(untrained=True), ("F.11/level", "F.12/level")
            ),
            "a clean network that is as close to its first order": Null(
                measured_lemmas(untrained=True, speaks=1.0), ("F.11/level", "F.12/level")
            ),
            "sets that do not last": Null(measured_lemmas(held=0.3), ("C.2/most",)),
            "no training against FGM": Null(
                measured_lemmas(objective={"objective": 2.0, "power": 0.0}),
                ("F.1/falls", "F.1/chance"),
            ),
        },
        bugs={
            "a unit with slope 2": Null(measured_lemmas(excess=0.5), ("C.13",)),
            "a cap that is not applied": Null(measured_lemmas(longest=1.2), ("C.21/cap",)),
        },
        reported=(*labels, *lemmas.STATED, "F.1"),
    )  # fmt: skip


# In linf.

ENDS = {
    lemmas.CLEAN: {"worst": 0.2, "linearity gap": 5.0, "FGM floor": 0.01},
    lemmas.FGM: {"worst": 0.85, "linearity gap": 0.4, "FGM floor": 0.75},
    lemmas.CONTROL: {"worst": 0.2, "linearity gap": 6.0, "FGM floor": 0.01},
}


def measured_in_linf(
    ends: Mapping[str, Mapping[str, float]] | None = None, **changes
) -> pl.DataFrame:
    """The rows of `measured_lemmas` with what Corollary F.5 is about, some of it changed."""
    table = measured_lemmas(**changes)
    table = table.filter(pl.col("stage") != lemma_orders.ALONG)
    for name in ENDS[lemmas.FGM]:
        values = {stage: {**row, **(ends or {}).get(stage, {})}[name]
                  for stage, row in ENDS.items()}  # fmt: skip
        size = pl.col("stage").replace_strict(values, default=None, return_dtype=pl.Float64)
        table = table.with_columns((size * (1 + 1e-4 * pl.col("seed"))).alias(name))
    return table


def lemmas_linf_specimen() -> Specimen:
    names = {label: order.name for label, order in lemmas_linf.LINF.items()}
    measured = (*names.values(), *ENDS[lemmas.FGM], *OBJECTIVE, "longest rest speaks",
                "coupling left", "coupling at 0 left")  # fmt: skip
    chance = dict.fromkeys(names.values(), 20.0) | {"worst": 0.5, "FGM floor": 0.5}
    vacuous = tuple(f"{label}/level" for label in lemma_orders.SPEAKS if label in names)
    control = {lemmas.FGM: ENDS[lemmas.CONTROL]}
    gains = ("F.5/worst", "F.5/gap", "F.5/floor")
    return Specimen(
        table=measured_in_linf(),
        measured=measured,
        chance=chance | {"objective": LOG2},
        controls={
            "as many more clean steps": Null(measured_in_linf(control), gains),
            "time that makes networks linear": Null(
                measured_in_linf({lemmas.CONTROL: ENDS[lemmas.FGM]}), ("F.5/gap", "F.5/floor")
            ),
            "a clean network that is robust": Null(
                measured_in_linf({lemmas.CLEAN: {"worst": 0.8}}), ("F.5/worst",)
            ),
            "constants that grow with d": Null(
                measured_in_linf(power=0.3), tuple(f"{label}/level" for label in names)
            ),
            "bounds that nothing breaks with constant 10": Null(
                measured_in_linf(speaks=3.0), vacuous
            ),
            "the clean network in the place of the trained one": Null(
                measured_in_linf(untrained=True), ("F.13/level", "F.14/level")
            ),
            "no training against FGM": Null(
                measured_in_linf(objective={"objective": 2.0, "power": 0.0}),
                ("F.4/falls", "F.4/chance"),
            ),
        },
        reported=(*names, "F.4"),
    )  # fmt: skip


SPECIMENS: dict[str, Callable[[], Specimen]] = {
    "purification/lemmas": lemmas_specimen,
    "purification/lemmas_linf": lemmas_linf_specimen,
}
