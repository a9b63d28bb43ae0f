"""When training stops in high dimension: Condition M, and T of linear models and networks.

Theorems 5 to 7 stop at T, the first t with |f - y|/(v sqrt n) < 1/sqrt(log n). The proof of Theorem
5 carries Condition M from step to step up to T,

    |theta| = O(sqrt(n/d)),   |X theta| = O(sqrt n),   |X theta - y| > sqrt(n/log n),

and has from it that the residual falls, that adversarial gradients are those of standard training
up to O((n/sqrt d)/|X theta - y|) of them (eq. 13), and that eta T = O((n/d) log log n). Lemma 3
says that all eigenvalues of XX' are of order d. Remark 1 says that all this holds for other laws of
x: bounded entries (uniform; Student's t, cut), and correlated ones, are run here.

Networks start from zero and have a = +-1/2, +-1, so they are known for every width
(`reductions.repeated_neurons`); Theorem 6's conditions ask for h = 2^26 at n = 20, d = 1000. The
step is that of the linear model, eta h/(|a|^2 phi'(0)^2); for ReLU it is twice or four times (as in
the figures) that of a network of slope 1/4. The proof of Theorems 4 and 7 assumes data that are
symmetrised, X = [X0, -X0], and says twice; such data are run too. Data are those of Figure 12:
v^2 = 1.1 where inputs are not correlated. eta is half of the largest that the theorem as printed
allows.

At T the training loss without attack is below v^2/log n by T's definition. 5d, 6b and 7d nearly
restate it: they add that the attack with this eps raises the loss by a few percent at most. 5e to
5g, 6c, 6f, 7e and 7i do not follow from the definition. 6e and 7h, as 5e, say that T is found while
its level falls.
"""

import math
from functools import partial

import polars as pl
import torch
from pydantic import NonNegativeFloat, PositiveFloat, PositiveInt
from torch import Tensor

from .... import lab
from ....core.randomness import generators
from ....report import Assumption, Claims, Verdict, charts, ours, theorem
from ....report.samples import groups, slopes
from .. import theory
from ..data import AR1, LinearModel, SparseVector, symmetrise
from ..data.regression import Law
from ..reductions import Subspace
from ._parts import assumptions as conditions
from ._parts.lazy_nets import SQUARE
from ._parts.stopping_figure import stopping_figure
from ._parts.stopping_networks import (
    LAZIEST,
    NETS,
    NETWORK_CLAIMS,
    RELU,
    SMOOTH,
    WIDE,
    WIDEST,
    Net,
    beside,
    flags,
    network_verdicts,
    symmetrised_verdicts,
)
from ._parts.stopping_risks import RISKS, SpanLaw, linear_model, one_of
from ._parts.stopping_runs import StoppingPath, crossing, train

ABOUT = lab.About(
    paper="generalization",
    item="Theorems 5, 6, 7",
    title="Stopping times in high dimension, and Condition M along the runs",
    seconds={"smoke": 5, "laptop": 215, "paper": 760},
    looks=5,
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
        "R1": theorem(
            "Remark 1: with uniform or truncated t entries, and with Gaussian ones of covariance "
            "0.6^|i-j|, at d = 2000, every run of the linear model stops, and its residual falls "
            "at each iteration up to T", *WIDE,
        ),
        "R2": theorem("and every run of a gelu, sigmoid or ReLU network stops too", *NETS),
        "R3": theorem(
            "and at T the risk is within 5 % of v^2 on average, of the linear model and of each "
            "network under each law", *NETS,
        ),
        "R4": theorem(
            "Remark 1 and Lemma 1: under each law the min-norm interpolator has |theta(y)|^2 below "
            "1.5 v^2 n/d on average", "high dimension",
        ),
        "R5": theorem("and a risk within 5 % of v^2 on average", "high dimension"),
        "R6": theorem(
            "Remark 1 and Lemma 3: under each law all eigenvalues of XX'/d are between 0.5 and "
            "1.6, in every run", "high dimension",
        ),
        **NETWORK_CLAIMS,
    },
)  # fmt: skip
NAME = "generalization/stopping_times decisive 5"
"""Not the stream of the trials that chose sizes and tolerances."""
EPS, N, D, LARGE, ANY = (0.0, 0.1, 0.5), 20, 1000, 16_000, 1e-6
LAWS: tuple[tuple[Law, float], ...] = (("uniform", 0.0), ("truncated-t", 0.0), ("gaussian", 0.6))
"""Of Remark 1: laws of the entries, and rho of their covariance rho^|i-j|; at `OTHER` inputs."""
OTHER = 2000


class Case(lab.Case):
    net: Net = "linear"
    width: PositiveInt = LAZIEST
    n: PositiveInt = N
    d: PositiveInt = D
    eps: NonNegativeFloat = 0.1
    xi: PositiveFloat = 0.1
    law: Law = "gaussian"
    rho: NonNegativeFloat = 0.0
    symmetrised: bool = False
    """X = [X0, -X0], as the proof of Theorems 4 and 7 assumes."""

    @property
    def cost(self) -> float:
        risk = 0.006 if self.law == "gaussian" and not self.rho else 0.2
        return self.replicates * (self.n * (self.d + 50 * self.n) * 6e-8 + risk)

    @property
    def model(self) -> LinearModel:
        theta0 = SparseVector(k=10, value=1 / math.sqrt(10))
        cov = AR1(rho=self.rho) if self.rho else None
        n = self.n // 2 if self.symmetrised else self.n
        return LinearModel(n=n, d=self.d, theta0=theta0, sigma2=0.1, cov=cov, law=self.law)

    @property
    def lr(self) -> float:
        """eta of the linear model: lambda_max(eta X'X) is about 1/2."""
        half = 0.5 / (self.d * theory.spectrum_edges(self.n, self.d)[1])
        # The eigenvalues of n/2 inputs and their mirror images are twice as large.
        return half / 2 if self.symmetrised else half


def recipe(scale: str, seeds: int | None = None) -> list[Case]:
    smoke = scale == "smoke"
    dims = (1000, 4000) if smoke else (1000, 4000, LARGE)
    # At d = 400 n the condition (log n) sqrt(n/d) is 0.22 at most.
    sizes = (20, 40) if smoke else (20, 40, 80)
    widths = (LAZIEST,) if smoke else (2**4, 2**6, 2**8, 2**10, 2**14, 2**20, LAZIEST)
    nets: tuple[Net, ...] = ("linear", *SMOOTH, RELU[0])
    cases = [
        *(Case(d=d, eps=eps, xi=xi) for d in dims for eps in EPS for xi in (0.1, ANY)),
        *(Case(net=net, n=n, d=400 * n, xi=ANY, width=WIDEST) for net in nets for n in sizes),
        *(Case(net=net, width=h, eps=eps) for net in SMOOTH for h in widths for eps in EPS),
        *(Case(net=net, eps=eps) for net in RELU for eps in EPS),
        *(Case(net=net, eps=eps, symmetrised=True) for net in ("linear", *RELU) for eps in EPS),
        *(Case(net=net, d=OTHER, xi=ANY, width=WIDEST, law=law, rho=rho)
          for net in nets for law, rho in LAWS),
    ]  # fmt: skip
    count = seeds or {"smoke": 2, "laptop": 100, "paper": 400}[scale]
    return [
        case.model_copy(update=block)
        for case in cases
        for block in lab.blocks(count, 10 if case.n > N else 25)
    ]


def compute(case: Case) -> pl.DataFrame:
    """One row per replicate."""
    model = case.model
    x, y = model.sample_stack(generators(NAME, model.n, case.d, seeds=case.seeds))
    theta0 = torch.from_numpy(model.theta0_vector())
    space = Subspace.of(x, theta0)
    x = space.into(x)
    if case.symmetrised:
        x, y = symmetrise(x, y)
    path = train(case.net, case.width, x, y, case.eps, case.xi, case.lr)
    level, unit = theory.stopping_level(case.n), math.sqrt(model.v2 * case.n)
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
        "loss": path.loss.gather(0, at)[0] / model.v2,
        "apart": _apart(case, path, x, y) / unit,
        **_risks(case, path, stop, space, x, y),
    }  # fmt: skip
    table = pl.DataFrame({"seed": list(case.seeds), **{k: v.numpy() for k, v in columns.items()}})
    return table.with_columns(rate=case.lr * pl.col("crossing") * case.d / case.n)


def _apart(case: Case, path: StoppingPath, x: Tensor, y: Tensor) -> Tensor:
    """On symmetrised data, the largest difference of outputs from those of the linear model."""
    if not case.symmetrised:
        return torch.full((len(x),), math.nan, dtype=x.dtype)
    line = train("linear", case.width, x, y, case.eps, case.xi, case.lr)
    gaps = [(one.values(x)[0] - two.values(x)[0]).norm(dim=1)
            for one, two in zip(path.weights, line.weights, strict=True)]  # fmt: skip
    return torch.stack(gaps).amax(0)


def _risks(
    case: Case, path: StoppingPath, stop: Tensor, space: Subspace, x: Tensor, y: Tensor
) -> dict[str, Tensor]:
    """Over v^2, the risk under the surrogate attack at T; and the min-norm interpolator's risk and
    length, of linear models under other laws."""
    model = case.model
    found = {name: torch.full((len(x),), math.nan, dtype=x.dtype) for name in RISKS}
    for r, rng in enumerate(generators(NAME, "fresh", seeds=case.seeds)):
        inside = SpanLaw.of(model, space.basis[r])
        risk = partial(inside.risk, fresh=inside.fresh(rng), eps=case.eps, xi=case.xi)
        if stop[r] >= 0:
            found["risk"][r] = risk(one_of(path.weights[int(stop[r])], r)) / model.v2
        if case.net == "linear" and case.d == OTHER:
            theta = torch.linalg.lstsq(x[r], y[r], driver="gelsd").solution
            found["interpolator"][r] = risk(linear_model(theta)) / model.v2
            found["length"][r] = theta.square().sum() * case.d / case.n / model.v2
    return found


def figure(table: pl.DataFrame) -> charts.AnyChart:
    return stopping_figure(table, at=(N, D), tiny=ANY, nets=SMOOTH, relu=RELU)


def assumptions(table: pl.DataFrame) -> list[Assumption]:
    """The largest of all runs that are judged."""
    col = pl.col
    settings = ("net", "width", "n", "d", "law", "rho")
    cases = [Case(**row) for row in table.unique(settings, maintain_order=True)
             .select(settings).iter_rows(named=True)]  # fmt: skip
    nets = [(one.n, one.d, one.model.v2, one.width)
            for one in cases if one.net in SMOOTH and one.width >= LAZIEST]  # fmt: skip
    # lambda_max(eta X'X) is 1/2 where lambda_max(XX'/d) is Lemma 3's, which `lr` takes twice as
    # large on symmetrised data.
    edge = (1 + (col("n") / col("d")).sqrt()) ** 2
    halved = pl.when(col("symmetrised")).then(0.25).otherwise(0.5)
    steps = table.filter(net="linear").select(step=halved * col("largest") / edge)
    return [
        conditions.worst(conditions.high_dimension(one.n, one.d) for one in cases),
        conditions.interpolation_step(steps["step"]),
        conditions.worst(conditions.lazy(*one) for one in nets),
        conditions.worst(conditions.second_layer_of_many(*one, SQUARE) for one in nets),
        conditions.gaussian(),
    ]


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    claims, usual = Claims(ABOUT.claims), (pl.col("law") == "gaussian") & (pl.col("rho") == 0)
    plain = table.filter(usual, ~pl.col("symmetrised"))
    return [
        *_linear(claims, plain.filter(net="linear")), *_laws(claims, table.filter(~usual)),
        *network_verdicts(claims, plain), *symmetrised_verdicts(claims, table),
    ]  # fmt: skip


def _laws(claims: Claims, table: pl.DataFrame) -> list[Verdict]:
    """Remark 1."""
    linear, nets = (table.filter((pl.col("net") == "linear") == flag) for flag in (True, False))
    inside = (pl.col("smallest") >= 0.5) & (pl.col("largest") <= 1.6)
    return [
        claims.every("R1", flags(linear, pl.col("stays") & pl.col("falls")),
                     what="a T, and a residual that falls up to it,"),
        claims.every("R2", flags(nets, pl.col("stays")), what="a T, and the level kept"),
        claims.within("R3", groups(table, "risk", "net", "law", "rho"), 0.95, 1.05,
                      what="risk at T over v^2"),
        claims.below("R4", groups(linear, "length", "law", "rho"), 1.5,
                     what="|theta(y)|^2 over v^2 n/d"),
        claims.within("R5", groups(linear, "interpolator", "law", "rho"), 0.95, 1.05,
                      what="the interpolator's risk over v^2"),
        claims.every("R6", flags(linear, inside), what="eigenvalues of XX'/d in [0.5, 1.6]"),
    ]  # fmt: skip


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
    pairs = beside(end.filter(col("eps") > 0), end.filter(col("eps") == 0), "xi")
    once = last.unique("seed", maintain_order=True)
    return [
        claims.every("M1", flags(linear, bounded), what="the two bounds hold up to a finite T"),
        claims.every("M2", flags(linear, col("falls")), what="a residual that falls up to T"),
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
        claims.every("5c", flags(pairs, (col("T") - col("T other")).abs() <= 1),
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
