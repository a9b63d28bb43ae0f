"""Corollary 5.1 carried out: from the tangent kernel to the width, and training of that width."""

import copy
import math
from typing import Annotated, ClassVar

import numpy as np
import polars as pl
import torch
from jaxtyping import Float
from pydantic import Field, PositiveFloat, PositiveInt
from torch import Tensor, nn

from ..... import lab
from .....attacks import PGD, Attack
from .....core.randomness import generator
from .....measure.audit import Audit
from .....models import Stack
from .....training import Probe
from ... import theory
from ...theory.descent import Descent, steps_of_theorem, two_layer_bound, width_for
from . import two_layer_runs
from .regret_audit_runs import descent
from .two_layer_runs import ACTIVATION, PASSES_PER_STEP, loss_under, train

NAME = "convergence/corollary_end_to_end, new draws"
FIT, BUILD, RATE, WIDTH = 7 / 20, 3 / 20, 1 / 8, 3 / 8
"""The shares of eps: the kernel function's robust loss, what the network made of it may lose, the
step size's term, the width's term. Of what the first two leave over these two make m T smallest."""
SIGMAS, WEIGHTS = 2, 20_000
"""Standard deviations of random features for which BUILD has room, and weights that they are
taken over."""


class TwoLayerRun(two_layer_runs.Case):
    """A training whose width, rate and steps the corollary has given."""

    dtype: ClassVar[torch.dtype] = torch.float64


class Case(lab.Case):
    """One eps and one law of the data."""

    eps: PositiveFloat = 0.3
    n: PositiveInt = 6
    d: int = Field(default=3, ge=2)
    radius: PositiveFloat = 0.15
    separation: PositiveFloat = 0.9
    searched: PositiveInt = 100
    samples: PositiveInt = 30
    share: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Of the theorem's steps; below 1 nothing is promised."""
    pair: bool = False
    """Two points of opposite labels at this very separation: R(eps), and no network."""

    @property
    def cost(self) -> float:
        return self.replicates * (1 if self.pair else self.n**2 / self.eps**4)

    def distance(self, share: float) -> float:
        """The distance from a label at which the loss sqrt(1 + u^2) - 1 is this share of eps."""
        return math.sqrt((1 + share * self.eps) ** 2 - 1)

    def run(self, width: int = 2, rate: float = 1.0, steps: int = 1) -> TwoLayerRun:
        data = self.model_dump(include={"n", "d", "radius", "separation", "searched"})
        return TwoLayerRun(width=width, rate=rate, steps=steps, **data, seed=self.seed,
                   replicates=self.replicates)  # fmt: skip


def end_to_end(case: Case) -> pl.DataFrame:
    """One row per attack and seed.

    `norm` is R(eps), the RKHS norm of the least function with the robust loss FIT eps; `distance`
    that of the network made of it, `worst` its robust loss; `least` and `mean` are of the losses of
    the run, `audited` and `proved` the bounds on them. `moved` is ||W_T - W_0||_F, `reached` that
    of the first step at which the loss is down to `worst`, and NaN if there is none. `farthest` is
    max_t ||W_t - W_0||_F, `early` whether it leaves B(3 R), R = `distance`, before its loss was
    within alpha L^2 C1^2/2 of `worst`: neither case of Theorem 5.1's proof.
    """
    fits = _fits(case)
    norms = [one.norm for one in fits]
    run = _sized(case, max(norms), max(_spread(one) for one in fits))
    goal = _built(run, fits)
    start = _weight(run.networks(NAME))
    distance = _length(_weight(goal) - start)
    worst = loss_under(goal, _search(run), run, NAME)
    constants = descent(run.width, run.rate)
    proved = [
        two_layer_bound(constants, run.steps, *pair)
        for pair in zip(distance.tolist(), worst.tolist(), strict=True)
    ]
    shared = {"seed": list(case.seeds), "norm": norms, "distance": distance.tolist(),
              "worst": worst.tolist(), "proved": proved}  # fmt: skip
    tables = []
    for attack in PASSES_PER_STEP:
        audit = Audit(goal)
        probe = Probe({"moved": lambda model: _length(_weight(model) - start)})
        trained = train(run.model_copy(update={"attack": attack}), NAME, audit, probe)
        report = audit.report()
        last = report.table().filter(pl.col("step") == run.steps - 1).sort("replicate")
        measured = {
            "first": report.terms.loss[0].tolist(),
            "least": report.terms.loss.amin(0).tolist(),
            "mean": last["mean_loss"].to_list(),
            "audited": last["bound"].to_list(),
            "violations": [len(report.violations)] * case.replicates,
            "moved": trained.log.probe("moved")[-1].tolist(),
            "reached": _when(report.terms.loss, worst, trained.log.probe("moved")).tolist(),
            **_leaves(report.terms.loss, worst + constants.jitter, trained.log.probe("moved"),
                      3 * distance),
        }  # fmt: skip
        tables.append(pl.DataFrame({"attack": attack, **shared, **measured}))
    sizes = {"m": run.width, "T": run.steps, "alpha": run.rate}
    return pl.concat(tables).with_columns(**{name: pl.lit(value) for name, value in sizes.items()})


def pair_rows(case: Case) -> pl.DataFrame:
    """R(eps) of two points, which is the same wherever they lie, and Theorem 5.1's width for it."""
    x = np.zeros((2, case.d))
    angle = 2 * math.asin(case.separation / 2)
    x[:, :2] = [[1.0, 0.0], [math.cos(angle), math.sin(angle)]]
    norm = _fit(case, x, np.array([1.0, -1.0]), case.seed).norm
    wanted = width_for(WIDTH * case.eps, norm, descent(2, 1.0))
    return pl.DataFrame({"seed": [case.seed], "norm": [norm], "wanted": [wanted]})


def _fits(case: Case) -> list[theory.RobustFit]:
    """Assumption 5.2 for each draw of the data."""
    x, y = case.run().data(NAME)
    return [
        _fit(case, points.numpy(), labels.numpy(), seed)
        for seed, points, labels in zip(case.seeds, x, y, strict=True)
    ]


def _fit(case: Case, x: np.ndarray, y: np.ndarray, seed: int) -> theory.RobustFit:
    return theory.robust_interpolant(
        ACTIVATION, x, y, case.radius, case.distance(FIT),
        rng=np.random.default_rng(generator(NAME, "caps", seed).initial_seed()),
        samples=case.samples,
    )  # fmt: skip


def _spread(fit: theory.RobustFit) -> float:
    """Of one random feature, where it is largest: at points of caps that hold the function."""
    g = fit.expansion
    rng = np.random.default_rng(generator(NAME, "spread").initial_seed())
    first = rng.standard_normal((WEIGHTS, g.centres.shape[1]))
    return float(theory.feature_spread(g, g.centres, first).max())


def _sized(case: Case, R: float, spread: float) -> TwoLayerRun:
    """m, alpha and T of Theorem 5.1 with its constants, for the largest R of the draws.

    m is at least what Theorem 5.2 needs: m/2 random features are within BUILD at SIGMAS standard
    deviations. That is of order 1/eps^2 times a squared norm, less than R^4/eps^2 for small eps.
    """
    unit = descent(2, 1.0)
    rate = RATE * case.eps / unit.jitter
    room = case.distance(FIT + BUILD) - case.distance(FIT)
    features = (SIGMAS * spread / room) ** 2
    width = 2 * math.ceil(max(width_for(WIDTH * case.eps, R, unit) / 2, features))
    steps = math.ceil(case.share * steps_of_theorem(Descent(width, rate, *unit[2:])))
    return case.run(width, rate, steps)


def _built(run: TwoLayerRun, fits: list[theory.RobustFit]) -> Stack:
    """The networks of Theorem 5.2 on the very start that is trained."""
    goal = copy.deepcopy(run.networks(NAME))
    weight, top = goal.get_parameter("weight"), dict(goal.named_buffers())["top"]
    half = run.width // 2
    with torch.no_grad():
        for r, fit in enumerate(fits):
            first, signs = weight[r, :half].numpy(), top[r].flatten()[:half].sign().numpy()
            weight[r] = torch.from_numpy(theory.robust_network(fit.expansion, first, signs).weight)
    return goal


def _search(run: TwoLayerRun) -> Attack:
    """The worst case: of the whole cap up to three dimensions, by PGD from below beyond."""
    return run.oracle if run.d <= 3 else PGD(steps=20, step_size=0.2, restarts=3)


def _when(
    losses: Float[Tensor, "T R"], level: Float[Tensor, " R"], moved: Float[Tensor, "steps R"]
) -> Float[Tensor, " R"]:
    """How far each run has moved when its loss is first at most the level."""
    down = losses <= level
    first = down.double().argmax(0)
    there = moved.gather(0, first[None])[0]
    return torch.where(down.any(0), there, torch.nan)


def _leaves(
    losses: Float[Tensor, "T R"], level: Float[Tensor, " R"], moved: Float[Tensor, "steps R"],
    limit: Float[Tensor, " R"],
) -> dict[str, list]:  # fmt: skip
    """max_t ||W_t - W_0||, and whether a run is beyond the limit while its loss never was at most
    the level."""
    down = (losses <= level).cummax(0).values
    before = torch.cat([torch.zeros_like(down[:1]), down])[: len(moved)]
    early = ((moved > limit) & ~before).any(0)
    return {"farthest": moved.amax(0).tolist(), "early": early.long().tolist()}


def _weight(model: nn.Module) -> Float[Tensor, "R m d"]:
    return model.get_parameter("weight").detach()


def _length(move: Float[Tensor, "R m d"]) -> Float[Tensor, " R"]:
    return move.flatten(1).norm(dim=1)
