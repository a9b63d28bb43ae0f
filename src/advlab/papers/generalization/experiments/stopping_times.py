"""When training stops in high dimension: Condition M, and T of linear models and networks.

Theorems 5 to 7 stop at T, the first t with |f - y|/(v sqrt n) < 1/sqrt(log n). The proof of Theorem
5 carries Condition M from step to step up to T,

    |theta| = O(sqrt(n/d)),   |X theta| = O(sqrt n),   |X theta - y| > sqrt(n/log n),

and has from it that the residual falls, that adversarial gradients are those of standard training
up to O((n/sqrt d)/|X theta - y|) of them (eq. 13), and that eta T = O((n/d) log log n). Lemma 3
says that all eigenvalues of XX' are of order d.

Networks start from zero and have a = +-1/2, +-1, so they are known for every width
(`reductions.repeated_neurons`); Theorem 6's conditions ask for h = 2^26 at n = 20, d = 1000. The
step is that of the linear model, eta h/(|a|^2 phi'(0)^2); for ReLU it is twice (as the proof of
Theorem 7 says) or four times (as in the figures) that of a network of slope 1/4. Data are those of
Figure 12: v^2 = 1.1. eta is half of the largest that the theorem as printed allows.

At T the training loss without attack is below v^2/log n by T's definition. 5d, 6b and 7d nearly
restate it: they add that the attack with this eps raises the loss by a few percent at most. 5e, 5f,
6c and 7e do not follow from the definition.
"""

import math
from typing import Literal

import polars as pl
import torch
from pydantic import NonNegativeFloat, PositiveFloat, PositiveInt
from torch import Tensor

from .... import lab
from ....core.randomness import generators
from ....report import Assumption, Claims, Verdict, charts, ours, theorem
from ....report.samples import groups, slopes
from .. import theory
from ..data import LinearModel, SparseVector
from ..reductions import RepeatedNeurons, Subspace
from ._parts import assumptions as conditions
from ._parts.stopping_figure import stopping_figure
from ._parts.stopping_runs import SQUARE, StoppingPath, crossing, train

WIDE = ("high dimension", "step size")
NETS = (*WIDE, "lazy", "second layer")
ABOUT = lab.About(
    paper="generalization",
    item="Theorems 5, 6, 7",
    title="Stopping times in high dimension, and Condition M along the runs",
    seconds={"smoke": 1, "laptop": 40, "paper": 300},
    looks=4,
    claims={
        "M1": theorem(
            "Condition M holds up to T in every run of the linear model: |theta| and |X theta| are "
            "at most 1.5 times v sqrt(n/d) and v sqrt n", *WIDE,
        ),
        "M2": theorem("and the residual falls at each iteration up to T", *WIDE),
        "M3": theorem(
            "|theta(T)| = o(sqrt(n/d)), as the proof ends: over v sqrt(n/d) it falls like d to a "
            "power below -0.1, at n = 20", *WIDE,
        ),
        "M4": ours(
            "|theta(T)| is (|y| - |X theta(T) - y|)/sqrt(d), within 3 % on average at d = 16000"
        ),
        "13": theorem(
            "(13) with one constant: the gradients' relative difference up to T, over "
            "(n/sqrt d)/|X theta - y|, does not grow with d or n (powers below 0.25), xi = 1e-6",
            *WIDE,
        ),
        "5a": theorem(
            "eta T is O((n/d) log log n): over it, on average, it does not grow with d or n "
            "(powers below 0.2)", *WIDE,
        ),
        "5b": ours(
            "T is where (1 - 2 eta d/n)^t |y| reaches the level, within 3 % on average at d = 16000"
        ),
        "5c": ours(
            "adversarial training stops within one iteration of standard training in every run, at "
            "d = 16000 and eps = 0.1 and 0.5"
        ),
        "5d": theorem(
            "at T the surrogate training loss of the linear model is below 1.15/log n of v^2 on "
            "average, at each n, d, eps and xi (without attack T's definition says so)", *WIDE,
        ),
        "5e": theorem("and over v^2 it falls as n grows, at d = 400 n and eps = 0.1", *WIDE),
        "5f": theorem(
            "its risk R_{L,xi} is within 3 % of v^2 on average, at d = 16000 and at d = 400 n",
            *WIDE,
        ),
        "5g": theorem(
            "and within O(sqrt(n/d)): on average its distance from v^2 is below 0.5 v^2 sqrt(n/d), "
            "at each n, d, eps and xi", *WIDE,
        ),
        "L3": theorem(
            "Lemma 3: at d = 16000 the smallest and largest eigenvalues of XX'/d are "
            "(1 -+ sqrt(n/d))^2, within 2 % on average", "high dimension",
        ),
        "6a": theorem(
            "at h = 2^26 gelu and sigmoid networks stop in every run, and stay below the level for "
            "as long again", *NETS,
        ),
        "6b": theorem(
            "at T their adversarial training loss is below 1.1/log n of v^2, at eps = 0.1 (without "
            "attack T's definition says so)", *NETS,
        ),
        "6c": theorem(
            "and their adversarial risk is within 5 % of v^2 on average, at eps = 0.1", *NETS
        ),
        "6d": ours("and T is that of the linear model up to one iteration in every run"),
        "7a": theorem("ReLU networks stop in every run, and stay below the level", *WIDE),
        "7b": theorem(
            "with twice the step T is that of the linear model, within 10 % on average (as the "
            "proof of Theorem 7 says)", *WIDE,
        ),
        "7c": ours(
            "with four times the step, which low dimension needs, T is 0.45 to 0.6 of the linear "
            "model's"
        ),
        "7d": theorem(
            "(8) for ReLU networks: at T their adversarial training loss is below 1.1/log n of "
            "v^2, at eps = 0.1 and with either step (without attack T's definition says so)", *WIDE,
        ),
        "7e": theorem(
            "(8) for ReLU networks: at T their adversarial risk is within 5 % of v^2 on average, "
            "at eps = 0.1 and with either step", *WIDE,
        ),
    },
)  # fmt: skip
NAME = "generalization/stopping_times decisive 4"
"""Not the stream of the trials that chose sizes and tolerances."""
EPS, N, D, LARGE, ANY = (0.0, 0.1, 0.5), 20, 1000, 16_000, 1e-6
LAZIEST, FRESH = 2**26, 4000
"""The widest network, and fresh points of a risk."""
Net = Literal["linear", "gelu", "sigmoid", "relu twice", "relu four times"]
SMOOTH: tuple[Net, ...] = ("gelu", "sigmoid")
RELU: tuple[Net, ...] = ("relu twice", "relu four times")


class Case(lab.Case):
    net: Net = "linear"
    width: PositiveInt = LAZIEST
    n: PositiveInt = N
    d: PositiveInt = D
    eps: NonNegativeFloat = 0.1
    xi: PositiveFloat = 0.1

    @property
    def cost(self) -> float:
        return self.replicates * self.n * (self.d + 50 * self.n) * 1e-6

    @property
    def law(self) -> LinearModel:
        theta0 = SparseVector(k=10, value=1 / math.sqrt(10))
        return LinearModel(n=self.n, d=self.d, theta0=theta0, sigma2=0.1)

    @property
    def lr(self) -> float:
        """eta of the linear model: lambda_max(eta X'X) is about 1/2."""
        return 0.5 / (self.d * theory.spectrum_edges(self.n, self.d)[1])


def recipe(scale: str, seeds: int | None = None) -> list[Case]:
    smoke = scale == "smoke"
    dims = (1000, 4000) if smoke else (1000, 4000, LARGE)
    # At d = 400 n the condition (log n) sqrt(n/d) is 0.22 at most.
    sizes = (20, 40) if smoke else (20, 40, 80)
    widths = (LAZIEST,) if smoke else (2**4, 2**6, 2**8, 2**10, 2**14, 2**20, LAZIEST)
    cases = [
        *(Case(d=d, eps=eps, xi=xi) for d in dims for eps in EPS for xi in (0.1, ANY)),
        *(Case(n=n, d=400 * n, xi=ANY) for n in sizes),
        *(Case(net=net, width=h, eps=eps) for net in SMOOTH for h in widths for eps in EPS),
        *(Case(net=net, eps=eps) for net in RELU for eps in EPS),
    ]
    count = seeds or {"smoke": 2, "laptop": 100, "paper": 400}[scale]
    return [
        case.model_copy(update=block)
        for case in cases
        for block in lab.blocks(count, 10 if case.n > N else 25)
    ]


def compute(case: Case) -> pl.DataFrame:
    """One row per replicate."""
    law = case.law
    x, y = law.sample_stack(generators(NAME, case.n, case.d, seeds=case.seeds))
    theta0 = torch.from_numpy(law.theta0_vector())
    space = Subspace.of(x, theta0)
    x, truth = space.into(x), space.into(theta0.expand(len(x), -1))
    path = train(case.net, case.width, x, y, case.eps, case.xi, case.lr)
    level, unit = theory.stopping_level(case.n), math.sqrt(law.v2 * case.n)
    below = path.residual / unit < level
    stop = torch.where(below.any(0), below.to(torch.int8).argmax(0), -1)
    steps = torch.arange(len(path.residual))[:, None]
    before = steps <= torch.where(stop < 0, len(steps), stop)
    largest = lambda values: torch.where(before, values, 0).amax(0)  # noqa: E731
    falls = (path.residual[1:] < path.residual[:-1]) | ~before[1:]
    at = stop.clamp(min=0)[None]
    eigenvalues = torch.linalg.eigvalsh(x @ x.mT) / case.d
    expected = (path.residual[0] / unit / level).log() / -math.log1p(-2 * case.lr * case.d / case.n)
    columns = {
        "T": stop, "crossing": crossing(path.residual / unit, stop, level), "expected": expected,
        "stays": (below | (steps < stop)).all(0) & (stop >= 0), "falls": falls.all(0),
        "theta": largest(path.theta) / (unit / math.sqrt(case.d)),
        "theta at T": path.theta.gather(0, at)[0] / (unit / math.sqrt(case.d)),
        "fitted": (path.residual[0] - path.residual.gather(0, at)[0]) / unit,
        "outputs": largest(path.outputs) / unit,
        "gap": largest(path.gap * path.residual) * math.sqrt(case.d) / case.n,
        "smallest": eigenvalues[:, 0], "largest": eigenvalues[:, -1],
        "loss": path.loss.gather(0, at)[0] / law.v2,
        "risk": _risk(case, path, stop, truth) / law.v2,
    }  # fmt: skip
    table = pl.DataFrame({"seed": list(case.seeds), **{k: v.numpy() for k, v in columns.items()}})
    return table.with_columns(rate=case.lr * pl.col("crossing") * case.d / case.n)


def _risk(case: Case, path: StoppingPath, stop: Tensor, truth: Tensor) -> Tensor:
    """The risk under the surrogate attack at T: in closed form for the linear model, else on fresh
    points.

    A fresh x enters only through its coordinates in the span, which are again N(0, I).
    """
    found = torch.full((len(truth),), math.nan, dtype=truth.dtype)
    if case.net == "linear":
        for r in range(len(truth)):
            if stop[r] >= 0:
                theta = path.weights[int(stop[r])].linear_part[r].numpy()
                at = (truth[r].numpy(), case.law.sigma2, case.eps, case.xi)
                found[r] = float(theory.surrogate_risk(theta, *at))
        return found
    for r, rng in enumerate(generators(NAME, "fresh", seeds=case.seeds)):
        if stop[r] < 0:
            continue
        points = torch.randn(1, FRESH, truth.shape[1], generator=rng, dtype=truth.dtype)
        noise = torch.randn(1, FRESH, generator=rng, dtype=truth.dtype)
        answers = points @ truth[r] + case.law.sigma2**0.5 * noise
        whole = path.weights[int(stop[r])]
        net = RepeatedNeurons(whole.theta[r : r + 1], whole.top, whole.width, whole.activation)
        attacked = points + net.attack(points, answers, case.eps, case.xi)
        found[r] = (net.values(attacked)[0] - answers).square().mean()
    return found


def figure(table: pl.DataFrame) -> charts.AnyChart:
    return stopping_figure(table, at=(N, D), tiny=ANY, nets=SMOOTH, relu=RELU)


def assumptions(table: pl.DataFrame) -> list[Assumption]:
    case = Case()
    lazy = theory.lazy_width(case.n, case.d, case.law.v2, LAZIEST)
    size = math.sqrt(case.d * case.n) * math.log(case.n) ** 2
    second = size * math.sqrt(case.law.v2 / LAZIEST) / SQUARE
    edges = table.filter(net="linear").select(
        step=0.5 * pl.col("largest") / (1 + (pl.col("n") / pl.col("d")).sqrt()) ** 2
    )
    return [
        conditions.high_dimension(case.n, case.d),
        conditions.interpolation_step(edges["step"]),
        Assumption(
            name="lazy",
            condition=f"(d log n) |a|_inf v/sqrt h -> 0, here below {conditions.SMALL}",
            reached=lazy, holds=lazy < conditions.SMALL,
        ),
        Assumption(
            name="second layer",
            condition="sqrt(dn) (log n)^2 |a|_inf v sqrt h/|a|^2 -> 0, here below "
            f"{conditions.SMALL}",
            reached=second, holds=second < conditions.SMALL,
        ),
        conditions.gaussian(),
    ]  # fmt: skip


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    claims = Claims(ABOUT.claims)
    return [*_linear(claims, table.filter(net="linear")), *_networks(claims, table)]


def _linear(claims: Claims, linear: pl.DataFrame) -> list[Verdict]:
    col = pl.col
    # At the start the level is met by chance in some draws: T = 0 says nothing.
    moving = linear.filter(col("crossing").is_not_nan())
    dims = moving.filter(col("n") == N, col("d") != 400 * N)
    sizes = moving.filter(col("d") == 400 * col("n"))
    last = dims.filter(col("d") == col("d").max()).with_columns(
        theta_share=col("theta at T") / col("fitted"), time=col("crossing") / col("expected"),
        low=col("smallest") / (1 - (N / col("d")).sqrt()) ** 2,
        high=col("largest") / (1 + (N / col("d")).sqrt()) ** 2,
    )  # fmt: skip
    tiny = {"d": dims.filter(col("xi") == ANY, col("eps") > 0), "n": sizes}
    bounded = (col("theta") <= 1.5) & (col("outputs") <= 1.5) & (col("T") >= 0)
    end = linear.filter(col("n") == N).filter(col("d") == col("d").max())
    pairs = _beside(end.filter(col("eps") > 0), end.filter(col("eps") == 0), "xi")
    once = last.unique("seed", maintain_order=True)
    return [
        claims.every("M1", _flags(linear, bounded), what="the two bounds hold up to a finite T"),
        claims.every("M2", _flags(linear, col("falls")), what="a residual that falls up to T"),
        claims.below("M3", _powers(dims, "d", "theta at T"), -0.1, what="the power of d"),
        claims.equal("M4", groups(last, "theta_share", "eps", "xi"), 1, 0.03,
                     what="|theta(T)| over its value"),
        claims.below("13", {name: values for x, rows in tiny.items()
                            for name, values in _powers(rows, x, "gap").items()}, 0.25,
                     what="the power of d or n"),
        claims.below("5a", {name: values for x, rows in (("d", dims), ("n", sizes))
                            for name, values in _mean_powers(rows, x).items()}, 0.2,
                     what="the power of d or n"),
        claims.equal("5b", groups(last, "time", "eps", "xi"), 1, 0.03, what="T over its value"),
        claims.every("5c", _flags(pairs, (col("T") - col("T other")).abs() <= 1),
                     what="T within one iteration of that without attack"),
        claims.below("5d", groups(moving.with_columns(order=col("loss") * col("n").log()), "order",
                                  "n", "d", "eps", "xi"), 1.15, what="loss at T / v^2 times log n"),
        claims.decreasing("5e", sizes, "n", "loss", what="loss at T / v^2"),
        claims.within("5f", groups(pl.concat([end, sizes]).unique(maintain_order=True), "risk",
                                   "n", "d", "eps", "xi"), 0.97, 1.03, what="risk at T / v^2"),
        claims.below("5g", groups(moving.with_columns(away=(col("risk") - 1).abs()
                                                      * (col("d") / col("n")).sqrt()),
                                  "away", "n", "d", "eps", "xi"), 0.5,
                     what="|risk at T / v^2 - 1| over sqrt(n/d)"),
        claims.equal("L3", {end: once[end] for end in ("low", "high")}, 1, 0.02,
                     what="eigenvalue over its value"),
    ]  # fmt: skip


def _networks(claims: Claims, table: pl.DataFrame) -> list[Verdict]:
    col = pl.col
    here = table.filter(n=N, d=D, xi=0.1)
    linear = here.filter(net="linear")
    wide = here.filter(col("net").is_in(SMOOTH), width=LAZIEST)
    relu = here.filter(col("net").is_in(RELU))
    near = (col("T") - col("T other")).abs() <= 1
    weak = wide.filter(eps=0.1)
    same = _beside(wide, linear, "eps")
    two, four = (groups(_ratio(_beside(relu.filter(net=net), linear, "eps")), "ratio", "eps")
                 for net in RELU)  # fmt: skip
    return [
        claims.every("6a", _flags(wide, col("stays")), what="a T, and the level kept"),
        claims.below("6b", groups(weak, "loss", "net"), 1.1 / math.log(N),
                     what="adversarial training loss at T over v^2"),
        claims.within("6c", groups(weak, "risk", "net"), 0.95, 1.05,
                      what="adversarial risk at T over v^2"),
        claims.every("6d", _flags(same, near), what="T within one iteration of the linear model's"),
        claims.every("7a", _flags(relu, col("stays")), what="a T, and the level kept"),
        claims.equal("7b", two, 1, 0.1, what="T over the linear model's"),
        claims.within("7c", four, 0.45, 0.6, what="T over the linear model's"),
        claims.below("7d", groups(relu.filter(eps=0.1), "loss", "net"), 1.1 / math.log(N),
                     what="adversarial training loss at T over v^2"),
        claims.within("7e", groups(relu.filter(eps=0.1), "risk", "net"), 0.95, 1.05,
                      what="adversarial risk at T over v^2"),
    ]  # fmt: skip


def _ratio(pairs: pl.DataFrame) -> pl.DataFrame:
    """T as a real number over that of the other run, where neither starts below the level."""
    ratio = pl.col("crossing") / pl.col("crossing other")
    return pairs.with_columns(ratio=ratio).filter(pl.col("ratio").is_not_nan())


def _beside(rows: pl.DataFrame, other: pl.DataFrame, *keys: str) -> pl.DataFrame:
    kept = other.select("seed", *keys, "T", "crossing").unique(maintain_order=True)
    return rows.join(kept, on=["seed", *keys], suffix=" other", maintain_order="left")


def _flags(rows: pl.DataFrame, holds: pl.Expr) -> list[bool]:
    """One flag per seed: whether it holds in all settings."""
    flags = rows.group_by("seed").agg(holds=holds.all()).sort("seed")
    return flags["holds"].to_list()


def _powers(rows: pl.DataFrame, x: str, y: str) -> dict[str, list[float]]:
    """Of each seed with every level of x, the power of x in y, for each eps and xi."""
    found = {}
    for (eps, xi), part in rows.partition_by(
        "eps", "xi", as_dict=True, maintain_order=True
    ).items():
        whole = part.filter(pl.len().over("seed") == part[x].n_unique())
        found[f"{x}, eps {eps:g}, xi {xi:g}"] = slopes(whole, x, y)
    return found


def _mean_powers(rows: pl.DataFrame, x: str) -> dict[str, list[float]]:
    """The powers of x in eta T over (n/d) log log n, of each seed."""
    scaled = rows.with_columns(scaled=pl.col("rate") / pl.col("n").cast(float).log().log())
    return _powers(scaled, x, "scaled")
