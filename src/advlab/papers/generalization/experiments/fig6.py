"""Three lazy networks reach the least adversarial risk of a linear model (Theorems 3 and 4).

Section A.2, Figure 6: "Since we match phi'(0) and learning rate for all the three networks, the
adversarial risks decrease in the same speed and all converges to R*(eps). ... For finite h, sigmoid
networks and ReLU networks have higher adversarial testing loss than linear networks."
d = 3, theta0 = 1/sqrt(3), n = 100, h = 50; convergence is judged at n = 1000.
The radii are not printed; the networks see eps = 0.1, 0.3 and 0.5.

The same file runs what the proofs use: three exact identities in float64, and the distances between
the runs OP1, OP2 and OP3 that the proofs couple.
"""

import copy
from dataclasses import replace
from itertools import combinations
from typing import Any, Literal

import polars as pl
import torch
from torch import Tensor, nn

from .... import lab
from ....attacks import Surrogate
from ....core.randomness import generators
from ....linear import optimal
from ....models import ACTIVATIONS, Linear, Stack
from ....report import Assumption, Claims, Verdict, charts, empirical, identity, theorem
from ....report.samples import changes, ends, groups
from ....threats import Ball
from ....training import fit
from ..data import LinearModel, symmetrise
from ..measures.lazy_terms import function_distance, linearisation_radius, weight_distance, weighted
from ..models import LazyNet
from ..theory import linear_eta
from ._parts import assumptions as conditions
from ._parts.lazy_runs import NETS, LazyProblem, Net, NetCase

ABOUT = lab.About(
    paper="generalization",
    item="Figure 6",
    title="Lazy networks in low dimension reach R*(eps)",
    seconds={"smoke": 5, "laptop": 130, "paper": 3000},
    looks=2,
    claims={
        "8a": identity("scaling y, theta(0) by v and xi by v^2 scales every iterate by v"),
        "8b": identity(
            "a linear network from zero is the linear model, with a step of eta phi'(0)^2 |a|^2/h"
        ),
        "8c": identity(
            "on symmetrised data a ReLU network with four times the step is the linear network"
        ),
        "8d": theorem(
            "on symmetrised data a ReLU network with twice the step is the linear network (as the "
            "proof of Theorem 4 says)"
        ),
        "9a": empirical("at t = 100 the three networks' standard risks are within 5 %"),
        "9b": empirical("at t = 100 the three networks' adversarial risks are within 5 %"),
        "9c": empirical("at n = 1000 all three networks end within 5 % of R*(eps)"),
        "9d": empirical(
            "at n = 100 the final gaps of sigmoid and ReLU networks to the linear one shrink from "
            "h = 50 to h = 400, in the mean over eps"
        ),
        "9e": empirical(
            "at n = 100, h = 50 sigmoid and ReLU networks end above a linear one, in the mean over "
            "eps"
        ),
        "9f": empirical(
            "the distances of OP1, OP2 and OP3 and the linearisation radius fall as h grows"
        ),
        "9g": empirical(
            "at t = 100 the sigmoid network's gap to the linear one shrinks from h = 50 to h = 400"
        ),
    },
)
CLAIMS = Claims(ABOUT.claims)

SIGMA2, DELTA, XI = 1.0, 0.5, 0.01
WIDE_SPEED: tuple[Net, ...] = ("linear", "sigmoid")
"""At t = 100 ReLU has no gap to speak of, so only the sigmoid network is run at h = 400."""
STREAM = "generalization/fig6 decisive"
"""Not the streams of the trials that chose rules and replicates."""
REPLICATES = {"smoke": (2, 2, 2, 2, 2), "laptop": (20, 6, 6, 20, 8), "paper": (50, 50, 50, 50, 50)}
"""At n = 100, at n = 1000, at h = 400, for the first 100 steps, and for the proofs' quantities."""


class Case(NetCase):
    kind: Literal["risk", "speed", "identities", "distances"] = "risk"
    every: int = 200
    """Steps from one estimate of the risk to the next."""

    @property
    def law(self) -> LinearModel:
        return LinearModel(n=self.n, d=3, theta0="unit", sigma2=SIGMA2)


def recipe(scale: str, seeds: int | None = None) -> list[Case]:
    smoke = scale == "smoke"
    short = {"steps": 30, "tests": 500} if smoke else {}
    small, large, wide, early, proof = (seeds or count for count in REPLICATES[scale])
    radii = (0.3,) if smoke else (0.1, 0.3, 0.5)
    sizes = [
        *({"n": 100, **block} for block in lab.blocks(small, 5)),
        *({"n": 1000, **block} for block in lab.blocks(large, 3)),
    ]
    widest = [{"width": 400, "every": 1000, **block} for block in lab.blocks(wide, 3)]
    risks = [
        Case(kind="risk", activation=net, radius=radius, **size, **short)
        for size in (*sizes, *widest)
        for net in NETS
        for radius in radii
    ]
    first = {**short, "steps": 100, "n": 1000}
    speeds = [
        Case(kind="speed", activation=net, width=width, radius=radius, **first, **block)
        for width, seeds, nets in ((50, early, NETS), (400, wide, WIDE_SPEED))
        for net in nets
        for radius in (0.0, *radii)
        for block in lab.blocks(seeds, 5 if width == 50 else 3)
    ]
    return [*risks, *speeds, *_proof_cases(scale, proof)]


def _proof_cases(scale: str, seeds: int) -> list[Case]:
    widths = {"smoke": (50, 200), "laptop": (50, 200, 800), "paper": (50, 200, 800, 3200)}[scale]
    long, short = (40, 40) if scale == "smoke" else (1000, 300)
    distances: dict[str, Any] = {"kind": "distances", "n": 200, "steps": long, "tests": 0}
    identities: dict[str, Any] = {"kind": "identities", "n": 50, "steps": short, "tests": 0}
    return [
        *(Case(width=h, **distances, **block) for h in widths for block in lab.blocks(seeds, 1)),
        *(Case(width=20, **identities, **block) for block in lab.blocks(seeds, 5)),
    ]


def compute(case: Case) -> pl.DataFrame:
    if case.kind == "identities":
        return _identities(case)
    return _distances(case) if case.kind == "distances" else _risks(case)


def _risks(case: Case) -> pl.DataFrame:
    problem = LazyProblem.draw(STREAM, case.law, case, DELTA)
    if case.kind == "speed":
        at, radii = {case.steps}, {"risk": case.radius, "standard": 0.0}
    else:
        at, radii = {20, 50, 100, *range(0, case.steps, case.every)}, {"risk": case.radius}
    best = optimal(case.law.theta0_vector(), SIGMA2, Ball(norm="l2", radius=case.radius))
    return problem.fit(case, at, radii).log.table(case.seeds).with_columns(best=pl.lit(best.risk))


def _distances(case: Case) -> pl.DataFrame:
    """OP1, OP2 and OP3 at the last step, from the same data and output weights."""
    problem = LazyProblem.draw(STREAM, case.law, case, DELTA)
    nets = {
        "op1": [LazyNet(0 * net.theta, net.top, "linear") for net in problem.nets],
        "op2": [LazyNet(0 * net.theta, net.top, case.activation) for net in problem.nets],
        "op3": problem.nets,
    }
    runs = {name: replace(problem, nets=some).fit(case).model for name, some in nets.items()}
    theta = {name: net.get_parameter("theta").detach() for name, net in runs.items()}
    linear, zero = (weighted(theta[op], runs[op].get_buffer("top")) for op in ("op1", "op2"))
    return pl.DataFrame(
        {
            "seed": list(case.seeds),
            "D_12": function_distance(linear, zero, problem.theta0).numpy(),
            "D_23": weight_distance(theta["op2"], theta["op3"], case.n).numpy(),
            "max |x'theta|": linearisation_radius(theta["op3"], problem.train.x).numpy(),
        }
    )


def _identities(case: Case) -> pl.DataFrame:
    """The largest difference of each identity over weights, outputs and the losses of all steps."""
    x, y = case.law.sample_stack(generators(STREAM, "identities", seeds=case.seeds))
    rngs = generators(STREAM, "identity networks", seeds=case.seeds)
    relu = Stack.draw(lambda rng: LazyNet.draw(3, case.width, "relu", rng, None), rngs)
    linear = _from_zero(relu, "linear")
    mirrored = symmetrise(x, y)
    plain = _train(linear, *mirrored, case)
    return pl.DataFrame(
        {
            "seed": list(case.seeds),
            "equivariance": _equivariance(x, y, case, rngs),
            "linear network": [
                _reduction(linear.replicate(r), x[r], y[r], case) for r in range(len(x))
            ],
            "four times": _gap(plain, _train(relu, *mirrored, case, rate=4.0)),
            "twice": _gap(plain, _train(_from_zero(relu, "relu"), *mirrored, case, rate=2.0)),
        }
    )


def _from_zero(like: Stack, activation: str) -> Stack:
    theta, top = like.get_parameter("theta"), like.get_buffer("top")
    return Stack([LazyNet(0 * one, a, activation) for one, a in zip(theta, top, strict=True)])


def _train(
    model: nn.Module, x: Tensor, y: Tensor, case: Case, rate: float = 1.0, xi: float = XI
) -> Tensor:
    """Rows (R, ...) of the losses of all steps and the outputs of the last, on a copy."""
    run = fit(
        copy.deepcopy(model), x, y, steps=case.steps, lr=case.lr * rate, loss="squared",
        ball=Ball(norm="l2", radius=case.radius), attack=Surrogate(xi=xi),
    )  # fmt: skip
    rows = x.flatten(0, 1) if isinstance(model, Stack) else x
    outputs = run.model(rows).detach().reshape(run.log.losses().shape[1], -1)
    return torch.cat([run.log.losses().mT, outputs], dim=1)


def _gap(one: Tensor, other: Tensor) -> list[float]:
    return (one - other).abs().amax(1).tolist()


def _equivariance(x: Tensor, y: Tensor, case: Case, rngs: list[torch.Generator]) -> list[float]:
    """(y, theta(0), xi) -> (v y, v theta(0), v^2 xi), for the models with f(v theta) = v f."""
    v = 3.0
    worst = torch.zeros(len(x), dtype=x.dtype)
    for activation in ("linear", "relu"):
        start = [LazyNet.draw(3, case.width, activation, rng, DELTA) for rng in rngs]
        scaled = [LazyNet(v * net.theta, net.top, activation) for net in start]
        one = _train(Stack(start), x, y, case)
        other = _train(Stack(scaled), x, v * y, case, xi=v**2 * XI)
        # Losses scale by v^2, outputs by v.
        other[:, : case.steps + 1] /= v**2
        other[:, case.steps + 1 :] /= v
        worst = torch.maximum(worst, torch.tensor(_gap(one, other)))
    return worst.tolist()


def _reduction(net: nn.Module, x: Tensor, y: Tensor, case: Case) -> float:
    """A linear network from zero against the linear model with its own step."""
    rate = linear_eta(1.0, net.get_buffer("top").numpy(), ACTIVATIONS["linear"].slope)
    one, other = _train(net, x, y, case), _train(Linear.zero(3), x, y, case, rate)
    return max(_gap(one, other))


def figure(table: pl.DataFrame):
    rows = table.filter(pl.col("kind") == "risk", pl.col("width") == 50)
    rows = rows.sort("n", "radius", maintain_order=True)
    by = rows.partition_by("n", "radius", as_dict=True, maintain_order=True)
    return charts.panels(
        [
            charts.curves(
                part.with_columns(network=pl.col("activation").replace({"relu": "ReLU"})),
                "step",
                "risk",
                "network",
                theory=part.select(risk="best").head(1),
                title=f"n = {n}, eps = {radius:g}",
                x_title="iteration",
                y_title="adversarial test risk",
            )
            for (n, radius), part in by.items()
        ],
        columns=3,
    )


def assumptions(table: pl.DataFrame) -> list[Assumption]:
    """How far the figure's network is from Theorem 3's regime; no claim is one of the theorem."""
    law = Case(n=1000).law
    return [
        conditions.low_dimension(law.n, law.d),
        conditions.lazy(law.n, law.d, law.v2, Case().width),
        conditions.gaussian(),
    ]


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    found = [*_identity_verdicts(table), *_risk_verdicts(table), _distance_verdict(table)]
    return sorted(found, key=lambda verdict: verdict.id)


def _identity_verdicts(table: pl.DataFrame) -> list[Verdict]:
    rows = table.filter(pl.col("kind") == "identities")
    columns = {"8a": "equivariance", "8b": "linear network", "8c": "four times", "8d": "twice"}
    return [
        CLAIMS.below(label, _largest(rows[column]), 1e-10, what="the largest difference")
        for label, column in columns.items()
    ]


def _largest(values: pl.Series) -> float:
    return float(values.to_numpy().max())


def _risk_verdicts(table: pl.DataFrame) -> list[Verdict]:
    rows, speeds = (ends(table.filter(pl.col("kind") == kind)) for kind in ("risk", "speed"))
    last = rows.filter(pl.col("n") == 1000).with_columns(ratio=pl.col("risk") / pl.col("best"))
    early = speeds.filter(pl.col("width") == 50)
    attacked = early.filter(pl.col("radius") > 0)
    gaps = _gaps(rows.filter(pl.col("n") == 100))
    usual = gaps.filter(pl.col("width") == 50).group_by("activation", "seed", maintain_order=True)
    early_gaps = _gaps(speeds).filter(pl.col("activation") == "sigmoid")
    by_width = gaps.group_by("activation", "width", "seed", maintain_order=True)
    final = by_width.agg(gap=pl.col("gap").mean())
    return [
        CLAIMS.within("9a", _ratios(early, "standard"), 0.95, 1.05, what="ratio of standard risks"),
        CLAIMS.within("9b", _ratios(attacked, "risk"), 0.95, 1.05,
                      what="ratio of adversarial risks"),
        CLAIMS.within("9c", groups(last, "ratio", "activation", "radius"), 0.95, 1.05,
                      what="final risk over R*(eps)"),
        CLAIMS.below("9d", changes(final, "width", "gap", "activation"), 0,
                     what="change of the final gap in risk, mean over eps, when h grows"),
        CLAIMS.above("9e", groups(usual.agg(gap=pl.col("gap").mean()), "gap", "activation"), 0,
                     what="final risk less that of the linear network, mean over eps,"),
        CLAIMS.below("9g", changes(early_gaps, "width", "gap", "radius"), 0,
                     what="change of the gap in risk at t = 100 when h grows"),
    ]  # fmt: skip


def _ratios(rows: pl.DataFrame, value: str) -> dict[str, pl.Series]:
    """For each radius and pair of networks, the ratio of their risks at the end."""
    keys, found = ["radius", "seed"], {}
    # A network that is still where it began, at v^2, has no speed.
    moved = pl.when(pl.col(value) < 0.99 * Case().law.v2).then(pl.col(value)).alias(value)
    risk = {net: ends(rows).filter(pl.col("activation") == net).with_columns(moved) for net in NETS}
    for one, other in combinations(NETS, 2):
        pairs = risk[one].join(risk[other], on=keys, suffix=" other")
        pairs = pairs.with_columns(ratio=pl.col(f"{value} other") / pl.col(value))
        ratios = groups(pairs, "ratio", "radius")
        found |= {f"{other} over {one}, {name}": values for name, values in ratios.items()}
    return found


def _gaps(rows: pl.DataFrame) -> pl.DataFrame:
    """Each network's risk less that of the linear network with the same seed."""
    keys = ["width", "radius", "seed"]
    linear = rows.filter(pl.col("activation") == "linear").select(*keys, linear="risk")
    other = rows.filter(pl.col("activation") != "linear").join(linear, on=keys)
    return other.with_columns(gap=pl.col("risk") - pl.col("linear"))


def _distance_verdict(table: pl.DataFrame) -> Verdict:
    rows = table.filter(pl.col("kind") == "distances").unpivot(
        ["D_12", "D_23", "max |x'theta|"], index=["seed", "width"], variable_name="measure"
    )
    falls = changes(rows, "width", "value", "measure")
    return CLAIMS.below("9f", falls, 0, what="change from one width to the next")
