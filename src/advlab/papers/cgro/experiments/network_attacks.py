"""Training on patch data against attacks that look at the network itself (exploratory).

The paper's GTA knows w* and the signal patch; other attacks are its future work (section 7). Here
the surrogate of GTA is the network in training, g = f_W, or the attack is PGD in a small ball (2 %
and 5 % of delta); beside them the paper's attack and clean training. d = 300, N = 20,
lambda = 1/2, eta = 0.035.

f_W is cubic, so GTA of f_W takes about a third of the signal away, not nearly all of it, and
follows the network as it learns. The expectation, before any run: the signal stays enough to answer
it, nothing is memorised, and train and test agree. "Own attack" is the one a network was trained
against; the last picture is one strong PGD for all.

Exact in few dimensions: gradients of f_W lie in the span of its filters, so data, weights and moves
stay in span{w*, noise patches, W_0}, K + m + 1 numbers per patch; fresh noise is normal there.
"""

from typing import Literal

import polars as pl
import torch
from pydantic import PositiveFloat, PositiveInt
from torch import Tensor

from .... import lab
from ....attacks import GTA, PGD, Attack, Identity, SignalPatch
from ....core.randomness import generators, normal
from ....losses import ModelLoss, margin
from ....models import Stack
from ....report import Claims, Verdict, sample
from ....report.charts import AnyChart, curves, panels, points
from ....threats import Ball
from ....training import Mixed, fit
from ..data import Patches
from ..models import PatchCNN
from ..reductions.patch_dynamics import log_steps
from ._parts.other_attacks_runs import critical_radii
from ._parts.patch_runs import FILTERS, SHARE

ABOUT = lab.About(
    paper="cgro",
    item="Section 7, other attacks in training",
    title="With attacks on the network itself nothing is memorised",
    seconds={"smoke": 5, "laptop": 330, "paper": 1500},
    looks=1,
    claims={
        "a": "GTA of f_W does not make the network memorise",
        "b": "and is withstood on test data",
        "c": "PGD at 5 % of delta does not make it memorise",
        "d": "and is withstood on test data",
        "e": "Both stand larger radii on test data than the paper's GTA training",
    },
)
NAME = "cgro/s9"
Arm = Literal["oracle", "own", "pgd2", "pgd5", "clean"]
ARMS: dict[Arm, str] = {
    "oracle": "GTA of w* (paper)",
    "own": "GTA of f_W",
    "pgd2": "PGD at 0.02 delta",
    "pgd5": "PGD at 0.05 delta",
    "clean": "no attack",
}


class Case(lab.Case):
    arm: Arm
    d: PositiveInt = 300
    n: PositiveInt = 20
    eta: PositiveFloat = 0.035
    steps: PositiveInt = 9000
    tested: PositiveInt = 200
    restarts: PositiveInt = 30
    ratio: PositiveFloat = 1.5
    """Of one step looked at to the one before."""

    @property
    def law(self) -> Patches:
        return Patches.scaled(n=self.n, d=self.d)

    @property
    def cost(self) -> float:
        return self.steps * self.replicates * (3.0 if self.arm.startswith("pgd") else 1.0)


def recipe(scale: str, seeds: int | None = None) -> list[Case]:
    usual, some = {
        "smoke": (2, {"d": 100, "n": 4, "steps": 30, "tested": 5, "restarts": 1, "ratio": 4}),
        "laptop": (10, {}),
        "paper": (30, {"tested": 1000}),
    }[scale]
    return [
        Case(arm=arm, **some, **block) for block in lab.blocks(seeds or usual, 10) for arm in ARMS
    ]


def compute(case: Case) -> pl.DataFrame:
    """One row per seed and step."""
    law = case.law
    train, model = _reduced(case)
    fresh = _fresh(case, model.get_parameter("weight").shape[2])
    attack, ball = _attack(case, model)
    lam = 0.0 if case.arm == "clean" else SHARE
    rngs, rows, before = generators(NAME, "run", seeds=case.seeds), [], 0
    for step in log_steps(case.steps, case.ratio):
        fit(model, *train, steps=step - before, lr=case.eta, rng=rngs,
            objective=Mixed(loss="logistic", ball=ball, attack=attack, lam=lam))  # fmt: skip
        before = step
        rows.append(_look(case, model, train, fresh, step))
    radii = _radii(case, model, fresh)
    whole = {"seed": list(case.seeds), "test radius": radii.median(1).values.numpy()}
    return pl.concat(pl.DataFrame(whole | row) for row in rows).with_columns(delta=law.delta)


def _reduced(case: Case) -> tuple[tuple[Tensor, Tensor], Stack]:
    """Examples and networks in an orthonormal basis of w*, the noise patches and the filters."""
    law, inputs, labels, networks = case.law, [], [], []
    data, starts = (generators(NAME, part, seeds=case.seeds) for part in ("data", "start"))
    for mine, start in zip(data, starts, strict=True):
        points = law.sample(mine)
        weight = PatchCNN.draw(law.d, FILTERS, law.d**-0.5, start).weight.detach()
        noise = points.x[torch.arange(law.P) != points.signal[:, None]]
        basis, upper = torch.linalg.qr(torch.cat([law.direction()[None], noise, weight]).T)
        basis = basis * upper.diagonal().sign()
        inputs.append(points.x @ basis)
        labels.append(points.y)
        networks.append(PatchCNN(weight @ basis))
    return (torch.stack(inputs), torch.stack(labels)), Stack(networks)


def _fresh(case: Case, dimension: int) -> Tensor:
    """Fresh inputs of label 1, (R, n, P, dimension), in the same basis; the signal comes first."""
    law = case.law
    like = torch.empty(case.replicates * case.tested, law.P, dimension, dtype=torch.float64)
    x = law.sigma * normal(like, generators(NAME, "fresh", seeds=case.seeds))
    x[..., 0] = 0
    x[:, 0] = law.alpha * torch.eye(1, dimension, dtype=x.dtype)
    return x.reshape(case.replicates, case.tested, law.P, dimension)


def _attack(case: Case, model: Stack) -> tuple[Attack, Ball]:
    """What the arm trains against."""
    law, budget = case.law, Ball(norm="l2", radius=case.law.delta)
    w = torch.eye(1, model.get_parameter("weight").shape[2], dtype=torch.float64)[0]
    # From the clean input, so that moves stay in the span of the filters.
    walk = PGD(steps=3, step_size=0.5, random_start=False)
    return {
        "oracle": (GTA(surrogate=SignalPatch(w), gamma=law.gamma), budget),
        "own": (GTA(surrogate=model, gamma=law.gamma), budget),
        "pgd2": (walk, budget.with_radius(0.02 * law.delta)),
        "pgd5": (walk, budget.with_radius(0.05 * law.delta)),
        "clean": (Identity(), budget),
    }[case.arm]  # type: ignore[return-value]


def _look(case: Case, model: Stack, train: tuple, fresh: Tensor, step: int) -> dict[str, object]:
    """Signal, memorised noise and errors, clean and under the arm's own attack."""
    (x, y), law = train, case.law
    signal = law.alpha**3 * model.get_parameter("weight").detach()[:, :, 0].pow(3).sum(1)
    attack, ball = _attack(case, model)
    found: dict[str, object] = {"step": step, "signal": signal.numpy()}
    for name, inputs, labels in (
        ("train", x, y),
        ("test", fresh, torch.ones_like(fresh[:, :, 0, 0])),
    ):
        loss = ModelLoss(model, labels.flatten(), margin)
        rngs = generators(NAME, "look", step, seeds=case.seeds)
        with torch.no_grad():
            clean = loss(inputs.flatten(0, 1)).reshape(labels.shape)
        hurt = attack(loss, inputs.flatten(0, 1), ball, rng=rngs).loss.reshape(labels.shape)
        found |= {f"clean {name}": (clean >= 0).double().mean(1).numpy(),
                  f"own {name}": (hurt >= 0).double().mean(1).numpy()}  # fmt: skip
        if name == "train":
            V = -clean - signal[:, None]
            found |= {"smallest V": V.amin(1).numpy(), "mean V": V.mean(1).numpy()}
    return found


def _radii(case: Case, model: Stack, fresh: Tensor) -> Tensor:
    """Critical radii of fresh inputs over delta, searched in the span of the filters."""
    weight = model.get_parameter("weight").detach()
    root = torch.linalg.cholesky(weight @ weight.mT)
    seen = fresh @ weight.mT[:, None]
    x = torch.linalg.solve_triangular(root.mT[:, None], seen, upper=True, left=False)
    delta = torch.full((case.replicates,), case.law.delta, dtype=torch.float64)
    walk = PGD(steps=20, step_size=0.2, restarts=case.restarts)
    rngs = generators(NAME, "radius", seeds=case.seeds)
    few = x[:, :60]
    ones = torch.ones_like(few[:, :, 0, 0])
    return critical_radii(Stack([PatchCNN(one) for one in root]), few, ones, delta, walk, 10, rngs)


def figure(table: pl.DataFrame) -> AnyChart:
    shown = table.with_columns(
        pl.col("arm").replace_strict(ARMS), step=pl.col("step") + 1,
    )  # fmt: skip
    usual = {"x_title": "step + 1", "log_x": True}
    last = shown.filter(pl.col("step") == pl.col("steps") + 1)
    return panels(
        [
            curves(shown, "step", "signal", "arm", title="signal", y_title="alpha^3 U", **usual),
            curves(shown, "step", "mean V", "arm", title="memorised noise", y_title="mean V_i",
                   **usual),
            curves(shown, "step", "own train", "arm", title="under the own attack, training",
                   y_title="error", **usual),
            curves(shown, "step", "own test", "arm", title="under the own attack, test",
                   y_title="error", **usual),
            points(last, "arm", "test radius", "arm", title="what test inputs stand in the end",
                   x_title="trained against", y_title="critical radius / delta (PGD)"),
        ],
        columns=3,
    )  # fmt: skip


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    claims, last = Claims(ABOUT.claims), table.filter(pl.col("step") == pl.col("steps"))
    own, pgd, oracle = (last.filter(arm=arm) for arm in ("own", "pgd5", "oracle"))
    radii = {
        ARMS[arm]: sample(
            last.filter(arm=arm)
            .join(oracle, on="seed", suffix=" oracle")
            .select("seed", ratio=pl.col("test radius") / pl.col("test radius oracle")),
            "ratio",
        )
        for arm in ("own", "pgd5")
    }
    memorised, error = "mean of V_i at the end", "test error under the own attack at the end"
    return [
        claims.below("a", sample(own, "mean V"), 1, what=memorised),
        claims.below("b", sample(own, "own test"), 0.05, what=error),
        claims.below("c", sample(pgd, "mean V"), 1, what=memorised),
        claims.below("d", sample(pgd, "own test"), 0.05, what=error),
        claims.above("e", radii, 1,
            what="median critical radius of test inputs over that after the paper's training"),
    ]  # fmt: skip
