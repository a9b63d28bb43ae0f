"""Quadratic ReLU from first weights of length sqrt(d) (appendix C.2): features, and training."""

import math
from typing import Literal

import numpy as np
import polars as pl
import torch
from jaxtyping import Float
from pydantic import PositiveFloat, PositiveInt
from torch import Tensor, nn

from ..... import lab
from .....attacks import PGD, Attack, Grid, Transfer
from .....core.randomness import generator, generators, normal
from .....losses import pseudo_huber
from .....models import Stack, TwoLayer
from .....threats import Cap
from .....training import Fit, Probe, fit
from ... import theory
from ...data import Sphere
from ...data.separated_antipodes import SeparatedAntipodes
from ...reductions import ExplicitAdversarial, ExplicitLoss
from ...theory.descent import Descent, two_layer_bound
from ...theory.kernels import gram
from ...theory.quadratic_floor import quadratic_floor
from .two_layer_runs import PASSES_PER_STEP, AttackName, maps

NAME = "convergence/quadratic_relu decisive"
WIDTHS = "convergence/quadratic_relu, widths"
FEATURES = "convergence/quadratic_relu, 60 draws of features"
SIGMA = "quadratic_relu"
ASCENT = PGD(steps=3, step_size=0.5, random_start=False, jump=False)
D, LINES, SEPARATION, DELTA = 3, 10, 0.45, 0.05
MARGIN_ERROR = 0.3
"""How far the kernel function of the comparator may be from the labels on a cap."""


class Case(lab.Case):
    """Random features in d dimensions, or training on one kind of data.

    "theorem" and "same" train against PGD on data without antipodes: T = sqrt(m)/alpha as in
    Corollary C.1, and the same T at every width.
    """

    kind: Literal["features", "apart", "equal", "opposite", "theorem", "same"]
    d: PositiveInt = D
    width: PositiveInt = 512
    steps: PositiveInt = 500
    rate: PositiveFloat = 0.5
    features: tuple[PositiveInt, ...] = (256, 1024, 4096, 16384)
    points: PositiveInt = 500
    """Of the sphere, at which errors of features are measured."""
    searched: PositiveInt = 100
    """Points of each cap that the worst case is looked for at, before they are refined."""

    @property
    def cost(self) -> float:
        if self.kind == "features":
            return self.replicates * sum(self.features) / 1e4
        return self.replicates * self.steps * self.width / 1e5

    @property
    def stream(self) -> str:
        """The name that data, starts and attacks are drawn by."""
        return WIDTHS if self.kind in ("theorem", "same") else NAME


def feature_rows(case: Case) -> list[dict]:
    """Theorem C.1: h interpolates six points, and M random features stand for it."""
    rows = []
    for seed in case.seeds:
        rng = generator(FEATURES, case.d, seed)
        x, y = Sphere(n=6, d=case.d).sample(rng)
        h = theory.Expansion(
            theory.get_activation(SIGMA),
            x.numpy(),
            np.linalg.solve(gram(SIGMA, x.numpy()), y.numpy()),
        )
        points = _sphere(case.points, case.d, rng)
        for M in case.features:
            first = math.sqrt(case.d) * _sphere(M, case.d, rng)
            features = theory.random_features(h, first)
            error = features(points) - h(points)
            rows.append({
                "seed": seed, "M": M, "norm": h.norm,
                "coefficients": float(M * (features.directions**2).sum()),
                "l2": float((error**2).mean()), "sup": float(np.abs(error).max()),
            })  # fmt: skip
    return rows


def _sphere(number: int, d: int, rng: torch.Generator) -> np.ndarray:
    """Uniform unit vectors, all at once."""
    drawn = normal(torch.empty(number, d, dtype=torch.float64), rng)
    return (drawn / drawn.norm(dim=1, keepdim=True)).numpy()


def data(case: Case) -> tuple[Float[Tensor, "R n d"], Float[Tensor, "R n"]]:
    """Ten lines: a point of each, or both with equal or with opposite labels."""
    labels = "opposite" if case.kind == "opposite" else "equal"
    law = SeparatedAntipodes(n=2 * LINES, d=D, labels=labels, separation=SEPARATION)
    x, y = law.sample_stack(generators(case.stream, "data", seeds=case.seeds))
    return (x, y) if case.kind in ("equal", "opposite") else (x[:, ::2], y[:, ::2])


def trained_rows(case: Case) -> pl.DataFrame:
    """One row per attack and seed.

    `least` is min_t L_A(W_t), `worst` the worst-case loss found at the end, `floor` what no network
    goes below if antipodes have equal labels (else 0), `even` how far f(x) + f(-x) is from its
    quadratic form. `proved` is Theorem 5.1's bound for the network made of the kernel function,
    where there are no antipodes, with C1 = 2 max_t ||W_t||/sqrt(m), operator norms (`slope`).
    """
    x, y = data(case)
    floor = [
        quadratic_floor(one[::2], labels[::2]) if case.kind == "equal" else 0.0
        for one, labels in zip(x.numpy(), y.numpy(), strict=True)
    ]
    built = _comparator(case, x, y) if case.kind == "apart" else None
    tables = []
    for attack, attacked in _maps(case).items():
        trained = _train(case, x, y, attacked, attack)
        losses = trained.log.losses()
        slope = 2 * trained.log.probe("size").amax(0) / math.sqrt(case.width)
        rows = {
            "seed": list(case.seeds), "first": losses[0].tolist(), "floor": floor,
            "least": losses.amin(0).tolist(), "slope": slope.tolist(),
            "worst": _worst(case, trained.model, x, y).tolist(),
            "even": _even(trained.model, x).tolist(),
        }  # fmt: skip
        if built is not None:
            distance, loss = built
            proved = [
                two_layer_bound(Descent(case.width, case.rate, C1, 2.0), case.steps, R, L)
                for C1, R, L in zip(slope.tolist(), distance, loss, strict=True)
            ]
            rows |= {"distance": distance, "comparator": loss, "proved": proved}
        tables.append(pl.DataFrame({"attack": attack, **rows}))
    return pl.concat(tables)


def width_rows(case: Case) -> pl.DataFrame:
    """One row per seed: the least loss against PGD."""
    losses = _train(case, *data(case), ASCENT, "pgd").log.losses()
    return pl.DataFrame({
        "attack": "pgd", "seed": list(case.seeds), "first": losses[0].tolist(),
        "least": losses.amin(0).tolist(),
    })  # fmt: skip


def _maps(case: Case) -> dict[AttackName, Attack]:
    """All eight; transfer looks at other, random networks."""
    rngs = generators(case.stream, "others", seeds=case.seeds)
    others = Stack.draw(lambda rng: TwoLayer.draw(D, 64, SIGMA, rng, init="torch"), rngs)
    every = {**maps(ASCENT), "transfer": Transfer(source=others, inner=ASCENT)}
    return {name: every[name] for name in PASSES_PER_STEP}


def _starts(case: Case) -> Stack:
    rngs = generators(case.stream, "start", case.width, seeds=case.seeds)
    return Stack.draw(
        lambda rng: TwoLayer.draw(D, case.width, SIGMA, rng, init="paired_sphere"), rngs
    )


def _train(case: Case, x: Tensor, y: Tensor, attack: Attack, name: str) -> Fit:
    cap = Cap(radius=DELTA)
    return fit(
        _starts(case), x, y, steps=case.steps, lr=case.rate,
        objective=ExplicitAdversarial(loss=pseudo_huber, ball=cap, attack=attack),
        hooks=[Probe({"size": _size})],
        rng=generators(case.stream, "attack", name, seeds=case.seeds),
    )  # fmt: skip


def _weight(model: nn.Module) -> Float[Tensor, "R m d"]:
    return model.get_parameter("weight").detach()


def _size(model: nn.Module) -> Float[Tensor, " R"]:
    """The operator norm of W."""
    w = _weight(model)
    return torch.linalg.eigvalsh(w.mT @ w)[:, -1].sqrt()


def _even(model: nn.Module, x: Float[Tensor, "R n d"]) -> Float[Tensor, " R"]:
    """The largest |f(x) + f(-x) - m^(-1/2) sum a_r (w_r.x)^2| over the inputs."""
    w, top = _weight(model), dict(model.named_buffers())["top"].reshape(len(x), -1)
    form = (x @ w.mT).square() @ top[:, :, None] / math.sqrt(w.shape[1])
    with torch.no_grad():
        both = model(x.flatten(0, 1)) + model(-x.flatten(0, 1))
    return (both.reshape(x.shape[:2]) - form[:, :, 0]).abs().amax(1)


def _worst(case: Case, model: nn.Module, x: Tensor, y: Tensor) -> Float[Tensor, " R"]:
    loss = ExplicitLoss.of(model, y.flatten(), pseudo_huber)
    search = Grid(points=case.searched, refinements=30)
    rngs = generators(NAME, "evaluation", seeds=case.seeds)
    found = search(loss, x.flatten(0, 1), Cap(radius=DELTA), rng=rngs)
    return found.loss.reshape(y.shape).mean(1)


def _comparator(case: Case, x: Tensor, y: Tensor) -> tuple[list[float], list[float]]:
    """Theorem 5.2's networks on the starts that are trained: distances and worst-case losses."""
    goal = _starts(case)
    weight, top = goal.get_parameter("weight"), dict(goal.named_buffers())["top"]
    start, half = weight.detach().clone(), case.width // 2
    with torch.no_grad():
        for r, seed in enumerate(case.seeds):
            rng = np.random.default_rng(generator(NAME, "caps", seed).initial_seed())
            g = theory.robust_interpolant(
                SIGMA, x[r].numpy(), y[r].numpy(), DELTA, MARGIN_ERROR, rng=rng
            ).expansion
            first, a = weight[r, :half].numpy(), top[r].flatten()[:half].sign().numpy()
            weight[r] = torch.from_numpy(theory.robust_network(g, first, a).weight)
    distance = (weight.detach() - start).flatten(1).norm(dim=1)
    return distance.tolist(), _worst(case, goal, x, y).tolist()
