"""PGD on two-layer networks in the coordinates of their weights.

The gradient of f in x is v W with v_s = a_s phi'(z_s), so from a clean start an l2 attack moves by
delta = C W with C (n, m), and all it ever asks for are products: with G = W W' and q = v G,

    z~ = z + C G,    ||v W||^2 = v q,    <delta, v W> = (C G) v.

No vector of inputs is made until C is known, and a PGD step has one product instead of two.

Where phi is ReLU-like, v changes from one step to the next in about one entry of a thousand. Then q
needs those rows of G only, f and ||v W||^2 those entries only, and C is put together at the end.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from ..attacks import PGD
from ..errors import AdvlabError
from ..models import Stack, TwoLayer
from ..models.activations import Activation

Score = Callable[[Tensor], tuple[Tensor, Tensor]]
"""f (R, n) to the loss and its derivative in f."""


@dataclass(frozen=True)
class Layers:
    """R two-layer networks; `top` is a with its scale, `shift` the top bias."""

    weight: Float[Tensor, "R m k"]
    bias: Float[Tensor, "R 1 m"] | None
    top: Float[Tensor, "R 1 m"]
    shift: Float[Tensor, "R 1"]
    zero: Bool[Tensor, "R 1"]
    """Whether the halves cancel and f is the constant `shift`."""
    activation: Activation
    scale: float

    @classmethod
    def of(cls, model: object) -> "Layers":
        alone = model if isinstance(model, TwoLayer) else getattr(model, "skeleton", None)
        if not isinstance(alone, TwoLayer) or not isinstance(model, TwoLayer | Stack):
            raise AdvlabError("a TwoLayer network or a stack of them", type(model).__name__)
        state = {name: value.detach() for name, value in model.state_dict().items()}
        if alone is model:
            state = {name: value[None] for name, value in state.items()}
        weight, top, bias = state["weight"], state["top"], state.get("bias")
        return cls(
            weight=weight,
            bias=None if bias is None else bias[:, None],
            top=alone.scale * top[:, None],
            shift=state.get("top_bias", top.new_zeros(len(top)))[:, None],
            zero=_mirrored(alone, weight, top, bias),
            activation=alone.activation,
            scale=alone.scale,
        )

    def value(self, z: Float[Tensor, "R n m"]) -> Float[Tensor, "R n"]:
        f = torch.linalg.vecdot(self.activation.phi(z), self.top)
        return torch.where(self.zero, 0, f) + self.shift


@dataclass(frozen=True)
class Peak:
    """The worst point seen of each row: x + C W."""

    C: Float[Tensor, "R n m"]
    z: Float[Tensor, "R n m"]
    f: Float[Tensor, "R n"]


def climb(
    net: Layers,
    gram: Float[Tensor, "R m m"],
    z: Float[Tensor, "R n m"],
    score: Score,
    radius: float,
    attack: PGD,
) -> Peak:
    """PGD from clean inputs with preactivations z: the worst of `attack`'s points, by row."""
    sides = _sides(net.activation, z)
    if radius == 0 or bool(net.zero.all()):
        return Peak(torch.zeros_like(z), z, net.value(z))
    walk = _smooth if sides is None else partial(_kinked, sides=sides)
    C = walk(net, gram, z, score, _Path(attack.steps, attack.step_size * radius, radius))
    there = torch.baddbmm(z, C, gram)
    return Peak(C, there, net.value(there))


def _sides(activation: Activation, like: Tensor) -> tuple[float, float] | None:
    """phi' left and right of 0 where phi(z) = z phi'(z); None for other activations."""
    if activation.c1 != 0:
        return None
    left, zero, right = activation.dphi(like.new_tensor([-1.0, 0.0, 1.0])).tolist()
    return (left, right) if zero == left else None


class _Path:
    """What is known of the walk by row: how long each step was, and where the loss was largest."""

    def __init__(self, steps: int, step: float, radius: float):
        self.steps, self.step, self.radius = steps, step, radius
        self.adds: list[Tensor] = []
        self.keeps: list[Tensor] = []
        self.length2: Tensor | float = 0.0
        self.worst: Tensor | None = None

    def note(self, loss: Float[Tensor, "R n"]) -> Bool[Tensor, "R n"]:
        """Which rows are worse than ever at the point reached now."""
        if self.worst is None:
            self.worst, self.end = loss, torch.zeros_like(loss, dtype=torch.long)
            return torch.ones_like(loss, dtype=torch.bool)
        worse = loss > self.worst
        self.end = torch.where(worse, len(self.adds), self.end)
        self.worst = torch.where(worse, loss, self.worst)
        return worse

    def go(
        self, sign: Tensor, steepness2: Tensor, along: Tensor
    ) -> tuple[Float[Tensor, "R n"], Float[Tensor, "R n"]]:
        """(keep, add) of the next step: delta <- keep delta + add v W, back inside the ball.

        steepness2 is ||v W||^2, and along is <delta, v W>.
        """
        s = torch.where(steepness2 > 0, self.step * sign * steepness2.clamp(min=0).rsqrt(), 0)
        length2 = (self.length2 + 2 * s * along + s * s * steepness2).clamp(min=0)
        keep = (self.radius * length2.rsqrt()).clamp(max=1)
        self.length2 = length2 * keep * keep
        self.keeps.append(keep)
        self.adds.append(keep * s)
        return keep, keep * s

    def tails(self) -> Float[Tensor, "steps R n"]:
        """For each step l, the sum over k >= l of what step k has left at the worst point."""
        tail, kept, tails = torch.zeros_like(self.adds[0]), torch.ones_like(self.adds[0]), []
        for k in reversed(range(len(self.adds))):
            before = self.end > k
            tail = tail + torch.where(before, self.adds[k] * kept, 0)
            kept = torch.where(before, self.keeps[k] * kept, kept)
            tails.append(tail)
        return torch.stack(tails[::-1])


def _smooth(
    net: Layers, gram: Tensor, z: Tensor, score: Score, path: _Path
) -> Float[Tensor, "R n m"]:
    C, S, best = torch.zeros_like(z), torch.zeros_like(z), torch.zeros_like(z)
    for step in range(path.steps + 1):
        here = z + S
        loss, slope = score(net.value(here))
        best = torch.where(path.note(loss)[:, :, None], C, best)
        if step == path.steps:
            break
        v = net.top * net.activation.dphi(here)
        q = torch.bmm(v, gram)
        dot = torch.linalg.vecdot
        sign = torch.where(net.zero, 0, slope.sign())
        keep, add = (one[:, :, None] for one in path.go(sign, dot(v, q), dot(v, S)))
        C, S = (C * keep).addcmul_(v, add), (S * keep).addcmul_(q, add)
    return best


def _kinked(
    net: Layers, gram: Tensor, z: Tensor, score: Score, path: _Path, sides: tuple[float, float]
) -> Float[Tensor, "R n m"]:
    """As `_smooth`; of v, f = v here, v z and v q only what a changed slope changes is computed."""
    left, right = sides
    positive = z.numpy() > 0
    v = net.top * torch.from_numpy(positive).to(z).mul_(right - left).add_(left)
    q, here = torch.bmm(v, gram), z.clone()
    flips = _Flips(net, gram, right - left, positive)
    f = clean = torch.linalg.vecdot(v, z).double()
    steepness2 = torch.linalg.vecdot(v, q).double()
    for step in range(path.steps + 1):
        loss, slope = score((torch.where(net.zero, 0, f) + net.shift).to(z))
        path.note(loss)
        if step == path.steps:
            break
        sign = torch.where(net.zero, 0, slope.sign()).double()
        keep, add = path.go(sign, steepness2, f - clean)
        f = (1 - keep) * clean + keep * f + add * steepness2
        torch.lerp(z, here, keep.to(z)[:, :, None], out=here).addcmul_(q, add.to(z)[:, :, None])
        changes = flips.at(here, z, q)
        f, clean, steepness2 = f + changes[0], clean + changes[1], steepness2 + changes[2]
    return flips.collect(v, path.tails())


class _Flips:
    """The slopes phi' that change on the way."""

    def __init__(self, net: Layers, gram: Tensor, jump: float, positive: np.ndarray):
        self.top, self.gram = net.top.flatten(), gram.flatten(0, 1)
        self.jump, self.positive = jump, positive
        self.found: list[tuple[Tensor, Tensor, Tensor]] = []

    def at(self, here: Tensor, z: Tensor, q: Tensor) -> Float[Tensor, "3 R n"]:
        """Update q to the slopes at `here`; the changes of v here, v z and v q."""
        R, n, m = here.shape
        # numpy compares and scans on a CPU several times faster than torch.
        positive = here.numpy() > 0
        at = np.flatnonzero(positive ^ self.positive)
        sign = torch.from_numpy(np.where(positive.reshape(-1)[at], self.jump, -self.jump))
        self.positive, at = positive, torch.from_numpy(at)
        row = at // m
        unit = row // n * m + at % m
        moved = self.top[unit] * sign.to(here)
        self.found.append((at, row, moved))
        before = q.view(-1)[at]
        starts = torch.searchsorted(row, torch.arange(R * n))
        q.view(-1, m).add_(
            F.embedding_bag(unit, self.gram, starts, mode="sum", per_sample_weights=moved)
        )
        parts = torch.stack([here.view(-1)[at], z.view(-1)[at], before + q.view(-1)[at]])
        changes = torch.zeros(3, R * n, dtype=torch.float64)
        return changes.index_add_(1, row, (parts * moved).double()).reshape(3, R, n)

    def collect(
        self, v: Float[Tensor, "R n m"], tails: Float[Tensor, "steps R n"]
    ) -> Float[Tensor, "R n m"]:
        """C, the sum over steps of what is left of each step's v at the worst point."""
        C = v * tails[0].to(v)[:, :, None]
        tails = torch.cat([tails[1:], torch.zeros_like(tails[:1])]).flatten(1)
        at, row, moved = (torch.cat(parts) for parts in zip(*self.found, strict=True))
        step = torch.arange(len(self.found)).repeat_interleave(
            torch.tensor([len(part[0]) for part in self.found])
        )
        C.view(-1).index_add_(0, at, moved * tails[step, row].to(v))
        return C


def _mirrored(
    net: TwoLayer, weight: Tensor, top: Tensor, bias: Tensor | None
) -> Bool[Tensor, "R 1"]:
    """`TwoLayer.mirrored` of every replicate."""
    if net.init != "symmetric":
        return torch.zeros(len(weight), 1, dtype=torch.bool)
    (plus, minus), (w1, w2) = top.chunk(2, dim=1), weight.chunk(2, dim=1)
    same = (plus == -minus).all(1) & (w1 == w2).flatten(1).all(1)
    if bias is not None:
        b1, b2 = bias.chunk(2, dim=1)
        same = same & (b1 == b2).all(1)
    return same[:, None]
