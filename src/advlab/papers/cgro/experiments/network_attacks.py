"""Training on patch data against attacks that look at the network itself (exploratory).

The paper's GTA knows w* and the signal patch; other attacks are its future work (section 7). Here
the surrogate of GTA is the network in training, g = f_W, or the attack is PGD on f_W in a ball of
0.05, 0.3, 0.5, 0.7 or 0.9 delta; beside them the paper's attack and clean training. d = 300,
N = 20, lambda = 1/2, eta = 0.035.

Clean training alone stands about 0.3 delta, so that PGD below that asks for little. f_W is cubic,
so GTA of f_W takes about a third of the signal away, not nearly all of it, and follows the network
as it learns. At 0.9 delta PGD leaves too little signal for any answer, and training fails on
training and test inputs alike: no radius that was tried memorises. "Own attack" is the one a
network was trained against; a PGD of 20 steps and 30 starts judges all networks at the end, at
their own training radius (claims f and g) and by critical radii (the last picture).

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
from ....report import Assumption, Claims, Verdict, ours, sample
from ....report.charts import AnyChart, curves, panels, points
from ....threats import Ball
from ....training import Mixed, fit
from ..data import Patches
from ..models import PatchCNN
from ..reductions.patch_dynamics import log_steps
from ._parts.assumptions import parameterization
from ._parts.other_attacks_runs import critical_radii
from ._parts.patch_runs import FILTERS, SHARE

ABOUT = lab.About(
    paper="cgro",
    item="Section 7, other attacks in training",
    title="Training against GTA of f_W and PGD from 0.05 to 0.9 delta: who memorises",
    seconds={"smoke": 8, "laptop": 130, "paper": 3000},
    looks=1,
    claims={
        "a": ours("GTA of f_W does not make the network memorise: the mean V_i is below 1"),
        "b": ours("and is withstood on test data: its error is below 5 %"),
        "c": ours("PGD at 0.05, 0.3, 0.5, 0.7 and 0.9 delta does not make it memorise: the mean "
                  "V_i is below 1 at each"),
        "d": ours("Up to 0.7 delta the PGD of training is withstood on test data: its error is "
                  "below 5 %, at each"),
        "g": ours("and up to 0.5 delta a strong PGD at the training radius too"),
        "e": ours("GTA of f_W and PGD up to 0.7 delta stand a median radius on test data that is "
                  "at least 0.1 delta larger than after the paper's GTA training"),
        "f": ours("At 0.9 delta training fails: a strong PGD at that radius breaks more than half "
                  "of the training inputs, and of the test inputs"),
    },
)  # fmt: skip
NAME = "cgro/s9"
Arm = Literal["oracle", "own", "pgd5", "pgd30", "pgd50", "pgd70", "pgd90", "clean"]
ARMS: dict[Arm, str] = {
    "oracle": "GTA of w* (paper)",
    "own": "GTA of f_W",
    "pgd5": "PGD at 0.05 delta",
    "pgd30": "PGD at 0.3 delta",
    "pgd50": "PGD at 0.5 delta",
    "pgd70": "PGD at 0.7 delta",
    "pgd90": "PGD at 0.9 delta",
    "clean": "no attack",
}


RADII: dict[Arm, float] = {"pgd5": 0.05, "pgd30": 0.3, "pgd50": 0.5, "pgd70": 0.7, "pgd90": 0.9}
"""Of PGD in training, as shares of delta."""


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
        "laptop": (8, {}),
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
    whole = {"seed": list(case.seeds)}
    for name, inputs, labels in _sets(train, fresh):
        radii = _radii(case, model, inputs[:, :60], labels[:, :60])
        broken = radii <= RADII.get(case.arm, 0.0)
        whole |= {f"{name} radius": radii.median(1).values.numpy(),
                  f"strong {name}": broken.double().mean(1).numpy()}  # fmt: skip
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
    if case.arm in RADII:
        return walk, Ball(norm="l2", radius=RADII[case.arm] * law.delta)
    attacks: dict[str, Attack] = {
        "oracle": GTA(surrogate=SignalPatch(w), gamma=law.gamma),
        "own": GTA(surrogate=model, gamma=law.gamma),
        "clean": Identity(),
    }
    return attacks[case.arm], budget


def _sets(train: tuple[Tensor, Tensor], fresh: Tensor) -> list[tuple[str, Tensor, Tensor]]:
    """Training and fresh inputs with their labels, by name."""
    return [("train", *train), ("test", fresh, torch.ones_like(fresh[:, :, 0, 0]))]


def _look(case: Case, model: Stack, train: tuple, fresh: Tensor, step: int) -> dict[str, object]:
    """Signal, memorised noise and errors, clean and under the arm's own attack."""
    law = case.law
    signal = law.alpha**3 * model.get_parameter("weight").detach()[:, :, 0].pow(3).sum(1)
    attack, ball = _attack(case, model)
    found: dict[str, object] = {"step": step, "signal": signal.numpy()}
    for name, inputs, labels in _sets(train, fresh):
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


def _radii(case: Case, model: Stack, inputs: Tensor, labels: Tensor) -> Tensor:
    """Critical radii over delta, searched in the span of the filters; at most 1."""
    weight = model.get_parameter("weight").detach()
    root = torch.linalg.cholesky(weight @ weight.mT)
    seen = inputs @ weight.mT[:, None]
    x = torch.linalg.solve_triangular(root.mT[:, None], seen, upper=True, left=False)
    delta = torch.full((case.replicates,), case.law.delta, dtype=torch.float64)
    walk = PGD(steps=20, step_size=0.2, restarts=case.restarts)
    rngs = generators(NAME, "radius", seeds=case.seeds)
    stack = Stack([PatchCNN(one) for one in root])
    return critical_radii(stack, x, labels, delta, walk, 10, rngs)


def figure(table: pl.DataFrame) -> AnyChart:
    shown = table.with_columns(
        pl.col("arm").replace_strict(ARMS), step=pl.col("step") + 1,
    )  # fmt: skip
    usual = {"x_title": "step + 1", "log_x": True}
    last = shown.filter(pl.col("step") == pl.col("steps") + 1)
    return panels(
        [
            curves(shown, "step", "signal", "arm", title="signal", y_title="alpha^3 U",
                   band="quartiles", log_y=True, **usual),
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


def assumptions(table: pl.DataFrame) -> list[Assumption]:
    """Parameterization 3.1, but for its attack."""
    lam = pl.when(pl.col("arm") == "clean").then(0.0).otherwise(SHARE)
    return parameterization(table.with_columns(lam=lam))


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    claims, last = Claims(ABOUT.claims), table.filter(pl.col("step") == pl.col("steps"))
    oracle = last.filter(arm="oracle").select("seed", oracle="test radius")
    last = last.join(oracle, on="seed", how="left").with_columns(
        wider=pl.col("test radius") - pl.col("oracle")
    )

    def of(column: str, *arms: str) -> dict:
        return {ARMS[arm]: sample(last.filter(arm=arm), column) for arm in arms}  # type: ignore

    stood = [arm for arm, radius in RADII.items() if radius <= 0.7]
    memorised = "mean of V_i at the end"
    failed = {name: of(f"strong {name}", "pgd90")[ARMS["pgd90"]] for name in ("train", "test")}
    return [
        claims.below("a", of("mean V", "own"), 1, what=memorised),
        claims.below("b", of("own test", "own"), 0.05,
            what="test error under the own attack at the end"),
        claims.below("c", of("mean V", *RADII), 1, what=memorised),
        claims.below("d", of("own test", *stood), 0.05,
            what="test error under the own attack at the end"),
        claims.below("g", of("strong test", *stood[:-1]), 0.05,
            what="share of test inputs that a strong PGD breaks at the training radius"),
        claims.above("e", of("wider", "own", *stood), 0.1,
            what="median critical radius of test inputs less that after the paper's training"),
        claims.above("f", failed, 0.5,
            what="share of inputs that a strong PGD breaks at 0.9 delta"),
    ]  # fmt: skip
