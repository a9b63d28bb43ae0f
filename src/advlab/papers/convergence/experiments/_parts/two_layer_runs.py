"""Two-layer networks on separated points of the sphere, trained against any attack in a cap.

The data of every experiment of this paper: n = 6 points on the unit sphere of R^3, at least four
radii apart, labels +1, -1, ...; caps of radius 0.15; the pseudo-Huber loss (Lipschitz, smooth,
convex, 0 where f = y); f = m^(-1/2) sum a_r sigma(w_r x) with sigma = sin + cos and paired starts,
so that f is 0 at first. Gradient descent on all of the first layer, no projection (Theorem 5.1).

A seed has the same data in every setting.
"""

from typing import ClassVar, Literal

import torch
from jaxtyping import Float
from pydantic import Field, PositiveFloat, PositiveInt
from torch import Tensor

from ..... import lab
from .....attacks import FGM, PGD, Anti, Attack, Fixed, Grid, Identity, Random, Switch, Transfer
from .....core.randomness import generators
from .....losses import pseudo_huber
from .....models import Stack, TwoLayer
from .....threats import Cap
from .....training import AttackedObjective, Fit, Hook, Project, Projection, fit
from ...data import Sphere, SpherePoints
from ...measures.compatibility import compatibility
from ...reductions import ExplicitAdversarial, ExplicitLoss

AttackName = Literal["identity", "random", "fixed", "fgm", "pgd", "anti", "switch", "transfer"]
ACTIVATION = "sin_cos"
ASCENT = PGD(steps=10, step_size=0.25, random_start=False, jump=False)
"""Steps of 2.5 radius/10 from the clean input."""
PASSES_PER_STEP: dict[AttackName, float] = {
    "identity": 2,
    "random": 3,
    "fixed": 2,
    "fgm": 4,
    "pgd": 12,
    "anti": 13,
    "switch": 14,
    "transfer": 3,
}
"""About how many passes over the network a step takes."""


class Case(lab.Case):
    """One attack, width and rate."""

    dtype: ClassVar[torch.dtype] = torch.float32
    """Enough to see a loss fall; where inequalities are checked it is float64."""
    attack: AttackName = "pgd"
    width: PositiveInt
    steps: PositiveInt = 1500
    rate: PositiveFloat = 0.5
    n: PositiveInt = 6
    d: int = Field(default=3, ge=2)
    radius: PositiveFloat = 0.15
    separation: PositiveFloat = 0.6
    searched: PositiveInt = 300
    """Points of each cap that the oracle tries before it refines the worst."""

    @property
    def cost(self) -> float:
        return (
            PASSES_PER_STEP[self.attack] * self.steps * self.replicates * (self.width + 200) / 1e6
        )

    @property
    def lr(self) -> float:
        return self.rate

    @property
    def objective(self) -> type[AttackedObjective]:
        return ExplicitAdversarial

    @property
    def projection(self) -> Projection | None:
        return None

    @property
    def oracle(self) -> Grid:
        """The search of the whole cap that gives worst-case losses."""
        return Grid(points=self.searched, refinements=30)

    @property
    def cap(self) -> Cap:
        return Cap(radius=self.radius)

    def data(self, name: str) -> tuple[Float[Tensor, "R n d"], Float[Tensor, "R n"]]:
        """Points whose caps leave every label its meaning, or a refusal."""
        law = Sphere(n=self.n, d=self.d, separation=self.separation)
        drawn = SpherePoints(*law.sample_stack(generators(name, "data", seeds=self.seeds)))
        for x, y in zip(drawn.x, drawn.y, strict=True):
            compatibility(x, y, self.cap).require()
        return drawn.x.to(self.dtype), drawn.y.to(self.dtype)

    def networks(self, name: str, dtype: torch.dtype | None = None) -> Stack:
        rngs = generators(name, "start", self.width, seeds=self.seeds)
        drawn = Stack.draw(
            lambda rng: TwoLayer.draw(self.d, self.width, ACTIVATION, rng, init="paired"), rngs
        )
        return drawn.to(dtype or self.dtype)

    def map(self, name: str) -> Attack:
        """The attack of this name; transfer has other, random networks to look at."""
        if self.attack == "transfer":
            rngs = generators(name, "other networks", seeds=self.seeds)
            others = Stack.draw(
                lambda rng: TwoLayer.draw(self.d, 64, ACTIVATION, rng, init="torch"), rngs
            )
            return Transfer(source=others.to(self.dtype), inner=ASCENT)
        return MAPS[self.attack]


def maps(ascent: Attack) -> dict[AttackName, Attack]:
    """The maps into the cap that need no other network; `ascent` is what climbs in them."""
    return {
        "identity": Identity(),
        "random": Random(samples=1),
        "fixed": Fixed(),
        "fgm": FGM(),
        "pgd": ascent,
        "anti": Anti(inner=ascent),
        "switch": Switch(inner=ascent),
    }


MAPS = maps(ASCENT)


def train(case: Case, name: str, *hooks: Hook) -> Fit:
    """One run of all seeds of a case."""
    projected = [] if case.projection is None else [Project(case.projection)]
    return fit(
        case.networks(name),
        *case.data(name),
        steps=case.steps,
        lr=case.lr,
        objective=case.objective(loss=pseudo_huber, ball=case.cap, attack=case.map(name)),
        hooks=[*hooks, *projected],
        rng=generators(name, "attack", seeds=case.seeds),
    )


def loss_under(
    model: torch.nn.Module, attack: Attack, case: Case, name: str
) -> Float[Tensor, " R"]:
    """The mean loss on what an attack finds, for each network."""
    x, y = case.data(name)
    loss = ExplicitLoss.of(model, y.flatten(), pseudo_huber)
    rngs = generators(name, "evaluation", seeds=case.seeds)
    found = attack(loss, x.flatten(0, 1), case.cap, rng=rngs)
    return found.loss.reshape(y.shape).mean(1)
