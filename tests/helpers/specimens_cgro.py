"""Specimens of cgro: tables in which the claims hold, and what must break them."""

from collections.abc import Callable

import numpy as np
import polars as pl
from nulls import Null, Specimen
from specimens_cgro_bounds import BOUNDS
from specimens_cgro_images import IMAGES
from specimens_cgro_networks import NETWORKS_SPECIMENS
from specimens_cgro_rates import RATES
from specimens_cgro_regions import REGIONS
from specimens_cgro_trained import TRAINED

from advlab.papers.cgro.experiments import network_attacks, race

SEEDS = np.arange(20)
RNG = np.random.default_rng(0)


def jitter(n: int = 20, size: float = 0.02) -> np.ndarray:
    """The same n factors near 1 each time."""
    return np.random.default_rng(n).uniform(1 - size, 1 + size, n)


def over(frame: dict, **axes) -> pl.DataFrame:
    """All combinations of the axes beside the columns of a frame of seeds."""
    table = pl.DataFrame(frame)
    for name, values in axes.items():
        table = table.join(pl.DataFrame({name: list(values)}), how="cross")
    return table


def phases_table() -> pl.DataFrame:
    spread = RNG.permutation(np.linspace(105, 195, 20))
    seeds = {"seed": SEEDS, "T0": spread, "T0 sharp": 0.8 * spread, "T0 paper": 1.3 * spread,
             "j": jitter()}  # fmt: skip
    rows = over(seeds, step=range(0, 1001, 100), lam=(0.5, 0.0))
    step, j, gta = pl.col("step"), pl.col("j"), pl.col("lam") > 0
    late = pl.when(gta).then(11.0).otherwise(11.0 + 1.2 * (step >= 500))
    rows = rows.with_columns(
        signal=j * pl.when(step < 100).then(0.01).when(step < 400).then(9).otherwise(late),
        loss=j * pl.max_horizontal(step - 449, 1).cast(pl.Float64).pow(-1.1),
        **{
            "T1": 380.0, "T1 sharp": 400.0, "T1 last": 450.0, "T1 ratio": 0.9 * j,
            "alpha u": 2.4 * j, "median V": 3.0, "largest V": 4.0, "mean V": 3.0,
            "smallest V": pl.when(gta & (step >= 450)).then(2.0).otherwise(0.1),
            "clean train": 0.0, "clean test": 0.0, "GTA test": 0.5 * j,
            "GTA train": pl.when(gta).then(0.0).otherwise(0.5 * j),
            "variance ratio": j, "GTA of d-vectors": 0.3 * j, "GTA by formula": 0.3,
        },
    )  # fmt: skip
    parts = [rows.with_columns(part=pl.lit("phases"))]
    parts += [rows.filter(gta).with_columns(part=pl.lit(part)) for part in ("decay", "formula")]
    return pl.concat(parts).with_columns(eta=0.1, steps=1000, d=1000, n=20).drop("j")


def phases() -> Specimen:
    table = phases_table()
    keys = ["seed", "step", "part"]
    clean = table.filter(lam=0.0).select(*keys, "signal", "GTA train", "smallest V")
    # The run without adversarial training in place of the run with it.
    columns = ("signal", "GTA train", "smallest V")
    swapped = table.join(clean, on=keys, how="left", suffix=" clean").with_columns(
        pl.when(pl.col("lam") > 0, pl.col("part") == "phases")
        .then(pl.col(f"{name} clean"))
        .otherwise(pl.col(name))
        .alias(name)
        for name in columns
    )
    formula = pl.col("GTA by formula")
    return Specimen(
        table=table,
        measured=("T0", "T0 sharp", "T0 paper", "T1 ratio", "signal", "alpha u", "smallest V",
                  "loss", "clean test", "GTA test", "GTA train", "variance ratio",
                  "GTA of d-vectors"),
        # What is not learnt stays at its start; a time that was not predicted is anywhere.
        chance={"clean test": 0.5, "GTA test": 0.5, "GTA train": 0.5, "alpha u": 0.2,
                "T1 ratio": 3.0, "T0 sharp": 20.0},
        controls={
            "lambda = 0": Null(swapped.drop(f"{c} clean" for c in columns),
                               ("5a", "5d", "6a", "7b", "7c", "7d")),
            "the signal grows to T_1": Null(
                table.with_columns(signal=pl.when(pl.col("step") < 200).then(1.2)
                                   .otherwise("signal")), ("5c",)),
            "memorised late": Null(table.with_columns(pl.lit(1.4).alias("T1 ratio")), ("6b",)),
        },
        bugs={
            "variance without 6 <b, b>^3": Null(
                table.with_columns(pl.col("variance ratio") * 15 / 9), ("11a",)),
            "P patches for P - 1": Null(
                table.with_columns(pl.col("variance ratio") * 3 / 4), ("11a",)),
            "without the half": Null(
                table.with_columns((2 * formula).alias("GTA by formula")), ("11b",)),
            "always a half": Null(
                table.with_columns(pl.lit(0.5).alias("GTA by formula")), ("11b",)),
        },
        by=("seed", "lam", "part"),
    )  # fmt: skip


def race_table(power: float = 0.0, accurate: float = 0.0, both: bool = False) -> pl.DataFrame:
    """The race crosses at N^power, accuracy at 0.7 N^accurate (both 1 at N = 20)."""
    seeds = {"seed": np.arange(8), "j": jitter(8)}
    rows = over(seeds, n=race.SIZES, d=(500, 1000), rho=(0.02, 0.1, *race.TARGETS))
    size = pl.col("n") / 20
    race_at = pl.col("rho") * 1.02 * pl.col("j") / size.pow(power)
    steep = 1 / (1 + (-25 * race_at.log()).exp())
    right = 1 / (1 + (-12 * (pl.col("rho") / (0.7 * pl.col("j") * size.pow(accurate))).log()).exp())
    return rows.with_columns(
        race=pl.col("rho") * 1.02 * pl.col("j"), share=steep, accuracy=0.5 + 0.5 * right,
        polylog=pl.when(pl.col("rho") < 0.3).then(3.0).otherwise(1.0), eta=0.1,
        **{"clean test": 0.0, "GTA train": 0.0,
           "median V": pl.when(right < 0.5).then(7.0).otherwise(7.0 if both else 0.1)},
    ).drop("j")  # fmt: skip


def race_specimen() -> Specimen:
    table = race_table()
    wrong = table.with_columns(pl.when(pl.col("rho") < 0.05, pl.col("seed") == 3).then(0.2)
                               .otherwise("GTA train").alias("GTA train"))  # fmt: skip
    slow = table.with_columns(rho=pl.col("rho") * 3)
    return Specimen(
        table=table,
        measured=("race", "share", "accuracy", "clean test", "GTA train", "median V"),
        chance={"clean test": 0.5},
        controls={
            "the race goes with N": Null(race_table(power=0.35), ("8c", "8e")),
            "the race goes with d": Null(
                table.with_columns(race=pl.col("race") * pl.when(pl.col("d") > 500).then(1.3)
                                   .otherwise(1.0)), ("8d",)),
            "accuracy goes with N": Null(race_table(accurate=0.34), ("8f",)),
            "memorised and right": Null(race_table(both=True), ("8g",)),
            "noise wins": Null(table.with_columns(share=pl.lit(0.1)), ("8a",)),
            "one wrong run": Null(wrong, ("7",)),
            "crossover elsewhere": Null(slow, tuple(f"8b/{n}" for n in race.SIZES)),
        },
    )  # fmt: skip


def adversarial_weight() -> Specimen:
    rows = over({"seed": SEEDS, "j": jitter()}, lam=(0.0, 0.1, 0.3, 0.5, 0.9), step=(0, 100))
    lam, j, end = pl.col("lam"), pl.col("j"), pl.col("step") == 100
    trained = (lam > 0) & end
    table = rows.with_columns(
        steps=100, d=1000, n=20, eta=0.02,
        **{"T1": pl.when(lam > 0).then(100 * j / lam).otherwise(np.inf),
           "GTA train": pl.when(trained).then(0.0).otherwise(0.5 * j), "clean test": 0.0,
           "mean V": pl.when(trained).then(6 * j).otherwise(1e-3 * j),
           "smallest V": pl.when(trained).then(4 * j).otherwise(1e-3 * j)},
    ).drop("j")  # fmt: skip
    powers = {
        f"T_1 goes like lambda^-{p}": Null(
            table.with_columns(T1=pl.col("T1") * (2 * lam).pow(1 - p)), ("9d",)
        )
        for p in (0.5, 0.9, 1.1)
    }
    return Specimen(
        table=table,
        measured=("T1", "GTA train", "clean test", "mean V", "smallest V"),
        chance={"GTA train": 0.5, "clean test": 0.5},
        controls={
            "clean training too": Null(
                table.with_columns(pl.lit(0.0).alias("GTA train"), pl.lit(6.0).alias("mean V")),
                ("9a", "9b")),
            "one example is left": Null(
                table.with_columns(pl.when(pl.col("seed") == 3).then(0.9).otherwise("smallest V")
                                   .alias("smallest V")), ("9e",)),
            **powers,
        },
        by=("seed", "lam"),
    )  # fmt: skip


def phase_times() -> Specimen:
    rows = over({"seed": SEEDS, "j": jitter()}, part=("T0", "T1"), d=(200, 500, 1000))
    table = rows.with_columns(
        n=5, eta=0.01, sharp=pl.col("d") / 2 * pl.col("j"), late=0, ended=0,
        observed=0.55 * pl.col("d") * pl.col("j") ** 2, paper=0.7 * pl.col("d"),
        met=pl.when(pl.col("part") == "T1").then(0.6).otherwise(0.0),
    ).drop("j")  # fmt: skip
    observed, sharp = pl.col("observed"), pl.col("sharp")
    never = pl.when(pl.col("part") == "T1", pl.col("seed") == 3).then(1).otherwise(0)
    return Specimen(
        table=table,
        measured=("observed", "paper", "late"),
        chance={"late": 2},
        controls={
            "the wrong power": Null(
                table.with_columns(observed=sharp * (sharp / 250).pow(-0.2)), ("a", "c")),
            "twice as long": Null(table.with_columns(observed=observed * 2), ("b", "d", "4")),
            "one example is late": Null(table.with_columns(late=never), ("6",)),
            "runs end too early": Null(table.with_columns(ended=pl.lit(1)), ("6",)),
            "A.2 is met by nobody": Null(table.with_columns(met=0.0), ("6",)),
        },
    )  # fmt: skip


def growth_lemmas_table(
    remainder: float = 0.5, push: float = 1.0, earlier: float = 0.1
) -> pl.DataFrame:
    """T_1 = 500 of 1000 steps; over N remainder, push and T_1 alone go like these powers."""
    rows = over({"seed": SEEDS, "j": jitter()}, d=(250, 1000, 4000), lam=(0.5, 0.3),
                n=(20, 45, 100), step=range(0, 1001, 50))  # fmt: skip
    usual = (pl.col("lam") == 0.5) & (pl.col("n") == 20)
    rows = rows.filter(usual | ((pl.col("d") == 1000) & ((pl.col("lam") == 0.5) | (
        pl.col("n") == 20))))  # fmt: skip
    j, step, size = pl.col("j"), pl.col("step"), pl.col("n") / 20
    learnt, done = step >= 100, step >= 500
    return rows.with_columns(
        eta=0.05, steps=1000, constant=j * pl.when(step <= 300).then(1.0).otherwise(0.5),
        lojasiewicz=pl.when(step < 500).then(0.01).otherwise(2 * j),
        **{"growth ratio": pl.when(learnt).then(2.0 * j).otherwise(np.nan),
           "remainder ratio": j * (pl.col("d") / 250) ** 0.3 * size.pow(remainder) * step / 1000,
           "late remainder": pl.when(done).then(2.0 * j * (step - 500) / 500).otherwise(np.nan),
           "below ratio": 3.0 * j * step / 1000,
           "budget ratio": 0.5 * j * size.pow(push) * step / 1000,
           "alpha u": pl.when(learnt).then(2.4 * j).otherwise(0.5), "largest v": 2.0 * j,
           "T1": 400.0, "T1 last": 500.0, "T1 decoupled": 420 * j * size.pow(earlier),
           "A.2 share": 0.999, "step error": 1e-16},
    ).drop("j")  # fmt: skip


def growth_lemmas() -> Specimen:
    table = growth_lemmas_table()
    lam, raw = pl.col("lam"), pl.col("remainder ratio") * (pl.col("d") / 250) ** -0.3
    slow = raw * (pl.col("d") / 250) ** 0.1
    orders = ("growth ratio", "remainder ratio", "late remainder", "below ratio", "budget ratio",
              "largest v")  # fmt: skip
    return Specimen(
        table=table,
        measured=("constant", *orders, "lojasiewicz", "alpha u", "T1 decoupled", "A.2 share",
                  "step error"),
        # Numbers of no order: hundreds where a lemma has ones.
        chance=dict.fromkeys((*orders, "alpha u"), 200)
        | {"constant": 1e-3, "lojasiewicz": 1e-3, "T1 decoupled": 900, "A.2 share": 0.5},
        controls={
            "falls with e^-V": Null(
                table.with_columns(constant=pl.col("constant") * (-pl.col("step") / 100).exp()),
                ("4.2a",)),
            "3 for 3 (1 - lambda)": Null(
                table.with_columns(constant=pl.col("constant") * (1 - lam)), ("4.2b",)),
            "3 lambda for 3 (1 - lambda)": Null(
                table.with_columns(constant=pl.col("constant") * (1 - lam) / lam), ("4.2b",)),
            "ten times the order": Null(
                table.with_columns(pl.col(orders) * 20),
                ("4.3", "C.5", "C.5/t", "4.4", "C.10", "C.11")),
            # Clean training grows too, without attacked examples: the sum is 0.
            "clean training": Null(
                table.with_columns(pl.lit(np.inf).alias("growth ratio")), ("4.3",)),
            "at the largest N alone": Null(
                table.with_columns(pl.when(pl.col("n") == 100).then(20 * pl.col(one))
                                   .otherwise(pl.col(one)).alias(one) for one in orders),
                ("4.3", "C.5", "C.5/t", "4.4", "C.10", "C.11")),
            "half of the examples": Null(
                table.with_columns(pl.lit(0.6).alias("A.2 share")), ("A.2",)),
            "others matter": Null(
                table.with_columns(pl.col("T1 decoupled") * 1.3), ("C.7",)),
            "as much at each N": Null(growth_lemmas_table(earlier=0.0), ("C.7/N",)),
            "flat": Null(table.with_columns(lojasiewicz=pl.lit(0.05)), ("C.8",)),
            "a remainder of its order": Null(
                table.with_columns(raw.alias("remainder ratio")), ("C.5/d",)),
            "slower than log d": Null(
                table.with_columns(slow.alias("remainder ratio")), ("C.5/d",)),
            "a remainder without N": Null(growth_lemmas_table(remainder=0.0), ("C.5/N",)),
            "a push without N": Null(growth_lemmas_table(push=0.0), ("C.10/N",)),
            "a push like N^(1/2)": Null(growth_lemmas_table(push=0.5), ("C.10/N",)),
        },
        bugs={"a step without (1 - lambda)": Null(
            table.with_columns(pl.lit(1e-4).alias("step error")), ("C.2",))},
        by=("seed", "d", "lam", "n"),
    )  # fmt: skip


def network_attacks_specimen() -> Specimen:
    rows = over({"seed": np.arange(8), "j": jitter(8)}, arm=network_attacks.ARMS, step=(0, 9))
    arm, j, end = pl.col("arm"), pl.col("j"), pl.col("step") == 9
    failed = arm == "pgd90"
    table = rows.with_columns(
        steps=9, d=300, n=20, eta=0.035,
        **{"mean V": pl.when(end & (arm == "oracle")).then(6 * j).otherwise(0.01 * j),
           "own test": pl.when(failed).then(0.8 * j).otherwise(0.0),
           "strong train": pl.when(failed).then(0.8 * j).otherwise(0.0),
           "strong test": pl.when(failed).then(0.85 * j).otherwise(0.0),
           "test radius": pl.when(arm == "oracle").then(0.08 * j).otherwise(0.35 * j)},
    ).drop("j")  # fmt: skip
    oracle = table.filter(arm="oracle").select("seed", "step", taken="mean V")
    memorised = table.join(oracle, on=["seed", "step"]).with_columns(
        pl.col("taken").alias("mean V")
    )
    return Specimen(
        table=table,
        measured=("mean V", "own test", "strong train", "strong test", "test radius"),
        chance={"own test": 0.5, "strong train": 0.5, "strong test": 0.5},
        controls={
            "the paper's GTA in every arm": Null(memorised.drop("taken"), ("a", "c")),
            "broken at every radius": Null(
                table.with_columns(pl.lit(0.5).alias("own test"), pl.lit(0.5).alias("strong test")),
                ("b", "d", "g")),
            "as the paper's GTA": Null(
                table.with_columns(pl.lit(0.08).alias("test radius")), ("e",)),
            "overfitting at 0.9 delta": Null(
                table.with_columns(pl.lit(0.0).alias("strong train")), ("f",)),
        },
        by=("seed", "arm"),
    )  # fmt: skip


SPECIMENS: dict[str, Callable[[], Specimen]] = {
    "cgro/phases": phases,
    "cgro/race": race_specimen,
    "cgro/adversarial_weight": adversarial_weight,
    "cgro/phase_times": phase_times,
    "cgro/growth_lemmas": growth_lemmas,
    "cgro/network_attacks": network_attacks_specimen,
    **BOUNDS,
    **IMAGES,
    **TRAINED,
    **NETWORKS_SPECIMENS,
    **RATES,
    **REGIONS,
}
