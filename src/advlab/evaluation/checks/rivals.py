"""Attacks that need no gradient, or another model's: if they win, gradients hide something."""

from dataclasses import dataclass, field, replace

import torch
from torch import nn

from ...attacks import PGD, SPSA, Attack, Square
from ...threats import Ball
from ..cascade import metered, strike
from ..evaluation import Doubt, Effort
from ..outcomes import Find
from .context import Scene, notable
from .stand_ins import surrogates

BLACK_BOX = Square(queries=300)
ON_SURROGATES = PGD(steps=10, step_size=0.25)
BLUR = 0.25
"""Width of the noise as a fraction of the radius, in linf; as long as that in the other norms."""


@dataclass
class Rivalry:
    """Rivals, each on the same rows that the attack left, and what they found."""

    scene: Scene
    doubts: list[Doubt] = field(default_factory=list)
    efforts: list[Effort] = field(default_factory=list)
    finds: list[Find] = field(default_factory=list)

    def black_box(self) -> None:
        """The plan's own black boxes, after white ones, or one that is tried here."""
        members = self.scene.plan.members
        own = [name for place, name in enumerate(members) if place and _blind(members[name])]
        if own and self.scene.rows is not None:
            efforts = [effort for effort in self.scene.rows.efforts if effort.name in own]
            broken, tried = (sum(getattr(e, key) for e in efforts) for key in ("broken", "tried"))
        else:
            broken, tried = self._try("Square (check)", BLACK_BOX, None)
        if notable(broken, tried):
            text = (
                f"a black-box attack broke {broken} of {tried} rows that attacks by gradient left: "
                "gradients are masked or the attack is weak"
            )
            self.doubts.append(Doubt("black_box", text))

    def transfers(self) -> None:
        sources = list(surrogates(self.scene.model, self._blur()))
        if self.scene.transfer is not None:
            sources.insert(0, ("the other model", self.scene.transfer))
        for name, source in sources:
            broken, tried = self._try(f"transfer from {name} (check)", ON_SURROGATES, source)
            if notable(broken, tried):
                text = (
                    f"points found on {name} broke {broken} of {tried} rows that the attack on the "
                    "model itself left: its gradients are masked or the attack is weak"
                )
                self.doubts.append(Doubt("transfer", text))

    def _try(self, name: str, attack: Attack, source: object) -> tuple[int, int]:
        """How many of the rows that were left it broke, and how many there were."""
        index, done = self.scene.left, {find.row for find in self.finds}
        if len(index) == 0:
            return 0, 0
        scene, x = self.scene, self.scene.x[index]
        own = scene.loss(index)
        climbed = own if source is None else own.under(source)  # type: ignore[arg-type]
        # The blurred model is the model itself, asked several times.
        with metered(source if isinstance(source, nn.Module) else scene.model) as meter:
            rng = scene.rng(name)
            found, effort = strike(name, attack, climbed, x, scene.ball, rng, meter)
        with torch.no_grad():
            margins = own(found.x)
        for place in (margins >= 0).nonzero()[:, 0].tolist():
            row, value = int(index[place]), float(margins[place])
            if row not in done:
                self.finds.append(Find(row, name, value, found.x[place]))
        broken = int((margins >= 0).sum())
        self.efforts.append(replace(effort, broken=broken))
        return broken, len(x)

    def _blur(self) -> float:
        ball = self.scene.ball
        if not isinstance(ball, Ball):
            return 0.0
        d = self.scene.x[0].numel()
        return BLUR * ball.radius / {"linf": 1.0, "l2": d**0.5, "l1": float(d)}[ball.norm]


def _blind(attack: Attack) -> bool:
    """Does it work without gradients?"""
    return isinstance(attack, Square | SPSA)
