"""Runs inside Assumption 1 on which both sides of the inequalities of Appendix B are measured.

Each inequality is kept as one number per run, the worst over its steps: a share of its bound (at
most 1 where it holds), with the constants that the paper states, or the constant that the run
implies, where the paper only says that there is one.
"""

import copy
import math
from typing import Literal

import polars as pl
import torch
from torch import Tensor

from .....core.randomness import generators
from .....models import SHAPES as ACTIVATIONS
from .....training import Fit, Probe, fit
from ... import measures
from ...data import Clusters
from ...measures import Networks, Snapshot
from ...measures.good_run import good_run
from ...measures.growth import sum_before
from ...measures.probes import SnapshotCache
from ...reductions import TwoLayerAdversarial
from ...reductions.mixture_law import MixtureProblem, Start, draw_stack
from ...theory import (
    C1,
    C2,
    C_r,
    c7,
    gradient_alignment,
    normalised_margin_floor,
    slrelu_loss_bound,
    squared_norm_rate,
    training_loss_bound,
)
from .lemmas_runs import ATTACK
from .regime_runs import RegimeCase

STREAM = "benign/appendix_bounds, explicit c7"
FEW = 100
"""Fresh points on which single steps are taken apart."""


class AppendixCase(RegimeCase):
    """A stack of networks inside Assumption 1; `first` is what the first step sees."""

    kind: Literal["lemmas", "footnote"] = "lemmas"
    first: Literal["clean", "against mu"] = "clean"
    """The data themselves, or x_i - alpha y_i mu/||mu||: at t = 0 all points of a ball fare alike,
    and these take most of the signal away."""


def appendix_run(case: AppendixCase) -> pl.DataFrame:
    """One row per seed."""
    start = Start(width=case.width, activation=case.activation, omega=case.omega)
    rngs = generators(STREAM, f"C = {case.C:g}", f"{case.mu_norm:g}", seeds=case.seeds)
    problem = draw_stack(case.law, start, rngs, case.tests)
    mu = case.law.model_copy(update={"d": problem.train.x.shape[-1]}).mu()
    found = _lemmas(case, problem, mu) if case.kind == "lemmas" else _footnote(case, problem, mu)
    weight = problem.model.get_parameter("weight").detach()
    found["good"] = good_run(
        problem.train, weight, d=case.d, kappa=case.law.kappa, delta=case.delta, alpha=case.alpha,
        beta=case.beta, omega=case.omega,
    ).holds  # fmt: skip
    columns = {name: value.numpy() for name, value in found.items()}
    fixed = {"eta": pl.lit(case.eta), "omega": pl.lit(case.omega)}
    return pl.DataFrame({"seed": list(case.seeds), **columns}).with_columns(**fixed)


def _lemmas(case: AppendixCase, problem: MixtureProblem, mu: Tensor) -> dict[str, Tensor]:
    cache = SnapshotCache(problem.train, mu, case.ball, ATTACK, generators("x", seeds=case.seeds))
    few = Clusters(*(part[:, :FEW] for part in problem.test))
    names: list[str] = []

    def every(model: torch.nn.Module) -> Tensor:
        found = _at_a_step(case, cache(model), few)
        names[:] = list(found)
        return torch.stack(list(found.values()), 1)

    run = _train(case, problem, Probe({"every": every}, every=1))
    values = run.log.probe("every")
    by_name = {name: values[..., place] for place, name in enumerate(names)}
    return _shares(case, by_name)


def _train(case: AppendixCase, problem: MixtureProblem, *hooks: Probe) -> Fit:
    objective = TwoLayerAdversarial(loss="logistic", ball=case.ball, attack=ATTACK)
    return fit(
        copy.deepcopy(problem.model), problem.train.x, problem.train.y, steps=case.steps,
        lr=case.eta, objective=objective, hooks=hooks,
    )  # fmt: skip


def _at_a_step(case: AppendixCase, now: Snapshot, few: Clusters) -> dict[str, Tensor]:
    """What is measured at every step, one number per network."""
    low, middle, high = measures.gradient_bounds(now, case.d, case.law.kappa)
    gradients = measures.gradient_products(now)
    secants = measures.secants(now, case.eta, few.x)
    step = few.y_clean * (now.after(case.eta).value(few.x) - now.net.value(few.x))
    gap = measures.secant_step(now, case.eta, few.x, few.y_clean) - step
    shares = measures.active_shares(now)
    return {
        "G": now.G_rob,
        "L": now.L_rob,
        "norm": measures.weight_norm(now.net),
        "B.7 gradient": low / middle,
        "B.7 loss": middle / high,
        "alignment": measures.gradient_alignment(now),
        "gradient": measures.gradient_size(now, case.d),
        "apart": gradients.apart,
        "half clean": gradients.half_clean,
        "own low": gradients.own_low,
        "own high": gradients.own_high,
        "curvature": _curvature_used(now, case.eta, few),
        "rho low": _rho_low(now, few),
        "secant error": gap.abs().amax(1) / step.abs().amax(1),
        "secant low": secants.amin((1, 2)),
        "secant high": secants.amax((1, 2)),
        "secant floor": measures.secant_floor(now, case.eta).amin(1),
        "kept": measures.kept_pairs(now, case.eta).double().mean(2).amin(1),
        "neuron margin": measures.neuron_margins(now.net, few).amin(1),
        "neuron size": measures.neuron_sizes(
            now.net, few, case.alpha, case.mu_norm, case.d, case.n
        ).amax(1),
        "margin": measures.normalised_margin(now.net, few),
        "active": torch.minimum(shares.per_neuron.amin(1), shares.per_example.amin(1)),
    }  # fmt: skip


def _curvature_used(now: Snapshot, eta: float, few: Clusters) -> Tensor:
    """Lemma B.13 in its sharpest form: the share of its curvature term by which a step falls short
    of its linear one, at most 1; 0 without smoothness.

    At the assumed pace that term is 1e-12 of a step, and rounding a hundredth of that term.
    """
    if now.net.activation.lipschitz is None:
        return torch.zeros_like(now.G_rob)
    found = measures.fresh_step(now, eta, few.x, few.y_clean)
    return ((found.linear - found.step) / found.curvature).amax(1)


def _rho_low(now: Snapshot, few: Clusters) -> Tensor:
    rho = now.net.activation.dphi(now.net.inner(few.x)) @ now.slope.mT / now.net.width
    return rho.amin((1, 2))


def _shares(case: AppendixCase, seen: dict[str, Tensor]) -> dict[str, Tensor]:
    """The worst over the steps of each side of an inequality over the other; values (steps, R)."""
    shape = ACTIVATIONS[case.activation]()
    gamma, smooth = shape.gamma or 0.0, shape.lipschitz is not None
    steps = torch.arange(1, len(seen["G"]), dtype=torch.float64)[:, None]
    sums = sum_before(seen["G"])[1:]
    c0 = seen["active"][:2].amin(0)
    active = [None if smooth else max(float(one), 1e-3) for one in c0]
    c2, neuron, least = (
        torch.tensor([constant(1.0, gamma, one) for one in active], dtype=torch.float64)
        for constant in (C2, c7, normalised_margin_floor)
    )
    floor = gradient_alignment(gamma) * (1.0 if smooth else c0)
    growth = measures.norm_growth(seen["norm"], seen["G"], case.eta, case.d, case.n)
    unit = case.eta * case.mu_norm**2 * sums / math.sqrt(case.width)
    implied = 4 * (seen["neuron margin"][1:] / unit).amin(0)
    c8 = (seen["neuron size"][1:] * math.sqrt(case.width) / (case.eta * sums)).amax(0)
    strength = case.mu_norm**2 * math.sqrt(case.n / case.d)
    margin = seen["margin"][1:].amin(0) / strength
    return {
        "B.7 gradient": seen["B.7 gradient"].amax(0),
        "B.7 loss": seen["B.7 loss"].amax(0),
        **_gradient_shares(case, seen, gamma if smooth else 0.0),
        "B.15": floor / seen["alignment"].amin(0),
        "eq. 5": seen["gradient"].amax(0) / c2,
        "B.12": growth.amax(0) / c2,
        **_losses(case, seen, steps, c0 if not smooth else None),
        "B.16": _norms(case, seen, steps, c2),
        "B.13": seen["curvature"].amax(0),
        "rho": gamma**2 / seen["rho low"].amin(0) if smooth else torch.zeros_like(c2),
        "secant error": seen["secant error"].amax(0),
        "secant low": seen["secant low"].amin(0),
        "secant high": seen["secant high"].amax(0),
        "B.24": -seen["secant floor"][1:].amin(0),
        "kept": seen["kept"][1:].amin(0),
        "B.31": neuron / implied,
        "B.32": c8 / _c8(case, gamma, c0, smooth),
        "B.33": least / margin,
        "C2": seen["gradient"].amax(0),
        "C2 of B.12": growth.amax(0),
        "c7": implied,
        "c8": c8,
        "margin": margin,
    }  # fmt: skip


def _gradient_shares(case: AppendixCase, seen: dict[str, Tensor], gamma: float) -> dict:
    """Lemma B.8's upper bounds, and its lower one where phi is smooth (gamma > 0 here)."""
    one, alpha = C1(1.0), case.alpha
    near = one * (case.mu_norm**2 + math.sqrt(case.d * math.log(case.n / case.delta)))
    long, short = math.sqrt(one * case.d), math.sqrt(case.d / one)
    upper = [
        seen["apart"] / (near + 2 * alpha * long + alpha**2),
        seen["half clean"] / (near + alpha * long),
        seen["own high"] / (long + alpha) ** 2,
    ]
    lower = gamma**2 * (short - alpha) ** 2 / seen["own low"]
    return {
        "B.8": torch.stack(upper).amax((0, 1)),
        "B.8 low": lower.amax(0) if gamma else torch.zeros_like(upper[0][0]),
    }


def _losses(
    case: AppendixCase, seen: dict[str, Tensor], steps: Tensor, c0: Tensor | None
) -> dict[str, Tensor]:
    """Lemmas B.15, B.29 and Corollary B.16: L_rob(W^T) over its bounds at every T."""
    shape, L = ACTIVATIONS[case.activation](), seen["L"][1:]
    gamma = shape.gamma or 0.0
    grid = steps[:, 0].numpy()
    common = (case.mu_norm, case.eta, gamma, case.width, case.d)
    if c0 is None:
        bound = torch.as_tensor(training_loss_bound(grid, *common))[:, None]
        slrelu = slrelu_loss_bound(grid, case.mu_norm, case.eta, gamma, case.width, 1.0)
        bound = torch.minimum(bound, torch.as_tensor(slrelu)[:, None])
    else:
        rows = [training_loss_bound(grid, *common, c0=max(float(one), 1e-3)) for one in c0]
        bound = torch.stack([torch.as_tensor(row) for row in rows], 1)
    averaged = measures.averaged_bound(seen["G"])[1:]
    return {"loss": (L / bound).amax(0), "averaged": (L / averaged).amax(0)}


def _norms(case: AppendixCase, seen: dict[str, Tensor], steps: Tensor, c2: Tensor) -> Tensor:
    """eq. 16 and Corollary B.16: what ||W^t||_F^2 grew by, over its bound."""
    c1 = ACTIVATIONS[case.activation]().c1 or 0.0
    curvature = case.eta * c2**2 * case.d / case.n
    rates = [squared_norm_rate(case.eta, case.width, c1, float(one)) for one in curvature]
    grown = seen["norm"][1:] ** 2 - seen["norm"][:1] ** 2
    return (grown / (torch.tensor(rates, dtype=torch.float64) * steps)).amax(0)


def _c8(case: AppendixCase, gamma: float, c0: Tensor, smooth: bool) -> Tensor:
    """The c8 that the proof of Lemma B.32 gives, with the C of the case."""
    flips = case.beta + math.sqrt(2 / case.C)
    start = 4 / math.sqrt(case.C * math.log(2))
    ratios = [C_r(1.0, gamma, None if smooth else max(float(one), 1e-3)) for one in c0]
    return torch.tensor(ratios, dtype=torch.float64) * max(1.5 + 3 * flips, 2.0) + start


def _footnote(case: AppendixCase, problem: MixtureProblem, mu: Tensor) -> dict[str, Tensor]:
    """The first step by hand, then Algorithm 1 as it is."""
    train = problem.train
    x = train.x
    if case.first == "against mu":
        x = x - case.alpha * train.y[..., None] * mu / case.mu_norm
    net = Networks.of(problem.model)
    begun = Snapshot.at(net, train, mu.expand(len(x), -1), case.alpha, x).after(case.eta)
    model = copy.deepcopy(problem.model)
    with torch.no_grad():
        model.get_parameter("weight").copy_(begun.weight)
    after_one = measures.errors(model, problem.test, case.ball, ATTACK)
    objective = TwoLayerAdversarial(loss="logistic", ball=case.ball, attack=ATTACK)

    def error(now: torch.nn.Module) -> Tensor:
        return measures.errors(now, train, case.ball, ATTACK).robust

    run = fit(
        model, train.x, train.y, steps=case.steps - 1, lr=case.eta, objective=objective,
        hooks=[Probe({"error": error}, every=1)],
    )  # fmt: skip
    strength = case.mu_norm**2 * math.sqrt(case.n / case.d)
    margins = [
        measures.normalised_margin(one, problem.test) / strength
        for one in (begun, Networks.of(run.model))
    ]
    return {
        "first margin": margins[0],
        "margin": margins[1],
        "training error": run.log.probe("error").amax(0),
        "first error": after_one.clean,
        "clean error": measures.errors(run.model, problem.test, case.ball, ATTACK).clean,
        "L": run.log.losses()[-1],
    }
