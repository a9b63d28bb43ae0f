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
from jaxtyping import Bool, Float, Float64
from torch import Tensor

from ..attacks import PGD
from ..core.errors import AdvlabError
from ..models import Stack, TwoLayer
from ..models.activations import Activation
from ..models.two_layer import mirrored

Score = Callable[[Tensor], tuple[Tensor, Tensor]]
"""f (R, n) to the loss and its derivative in f."""
Rows = Float64[np.ndarray, "R n"]
Flags = Bool[np.ndarray, "R n"]


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
        """The weights of a `TwoLayer` network on the CPU (R = 1), or of a stack of R."""
        alone = model if isinstance(model, TwoLayer) else getattr(model, "skeleton", None)
        if not isinstance(alone, TwoLayer) or not isinstance(model, TwoLayer | Stack):
            raise AdvlabError("a TwoLayer network or a stack of them", type(model).__name__)
        state = {name: value.detach() for name, value in model.state_dict().items()}
        if alone is model:
            state = {name: value[None] for name, value in state.items()}
        weight, top, bias = state["weight"], state["top"], state.get("bias")
        if weight.device.type != "cpu":
            raise AdvlabError("networks on the CPU", weight.device, "use Adversarial() elsewhere")
        zero = torch.zeros(len(weight), dtype=torch.bool)
        if alone.init != "torch":
            zero = mirrored(weight, top, bias)
        return cls(
            weight=weight,
            bias=None if bias is None else bias[:, None],
            top=alone.scale * top[:, None],
            shift=state.get("top_bias", top.new_zeros(len(top)))[:, None],
            zero=zero[:, None],
            activation=alone.activation,
            scale=alone.scale,
        )

    def value(self, z: Float[Tensor, "R n m"]) -> Float[Tensor, "R n"]:
        """f from the preactivations."""
        return self.output(self.activation.phi(z))

    def output(self, phi: Float[Tensor, "R n m"]) -> Float[Tensor, "R n"]:
        """f from the activations."""
        f = torch.bmm(phi, self.top.mT)[:, :, 0]
        return torch.where(self.zero, 0, f) + self.shift


@dataclass(frozen=True)
class WorstPoint:
    """The worst point seen of each row.

    Args:
        x: the point.
        z: its preactivations, bias included.
        f: its output.
    """

    x: Float[Tensor, "R n k"]
    z: Float[Tensor, "R n m"]
    f: Float[Tensor, "R n"]


def gram_pgd(
    net: Layers,
    gram: Float[Tensor, "R m m"],
    x: Float[Tensor, "R n k"],
    z: Float[Tensor, "R n m"],
    score: Score,
    radius: float,
    attack: PGD,
) -> WorstPoint:
    """PGD in an l2 ball from clean inputs: the worst of `attack`'s points, by row.

    Args:
        net: R networks.
        gram: G = W W' of each.
        x: the clean inputs.
        z: the preactivations of the clean inputs, bias included.
        score: what PGD maximises, as a function of f, and its derivative.
        radius: of the ball.
        attack: number and size of the steps.
    """
    sides = sides_of(net.activation, z)
    if radius == 0 or bool(net.zero.all()):
        return WorstPoint(x, z, net.value(z))
    steps = _smooth if sides is None else partial(_kinked, sides=sides)
    C = steps(net, gram, z, score, Path(net, attack, radius))
    there = torch.baddbmm(z, C, gram)
    return WorstPoint(torch.baddbmm(x, C, net.weight), there, net.value(there))


def sides_of(activation: Activation, like: Tensor) -> tuple[float, float] | None:
    """phi' left and right of 0 where phi(z) = z phi'(z); None for other activations."""
    if activation.c1 != 0:
        return None
    left, zero, right = activation.dphi(like.new_tensor([-1.0, 0.0, 1.0])).tolist()
    return (left, right) if zero == left else None


class Path:
    """What is known of the steps by row: how long each step was, and where the loss was largest.

    Rows are few, and on few numbers numpy is several times faster than torch.
    """

    def __init__(self, net: Layers, attack: PGD, radius: float):
        self.steps, self.step, self.radius = attack.steps, attack.step_size * radius, radius
        self.still = net.zero.numpy()
        self.adds: list[Rows] = []
        self.keeps: list[Rows] = []
        self.length2: Rows | float = 0.0
        self.worst: Rows | None = None

    def note(self, loss: Tensor) -> Flags:
        """Which rows are worse than ever at the point reached now."""
        found = loss.double().numpy()
        if self.worst is None:
            self.worst, self.end = found.copy(), np.zeros(found.shape, dtype=int)
            return np.ones(found.shape, dtype=bool)
        worse = found > self.worst
        self.end[worse] = len(self.adds)
        self.worst[worse] = found[worse]
        return worse

    def go(self, slope: Tensor, steepness2: Rows, along: Rows) -> tuple[Rows, Rows]:
        """(keep, add) of the next step: delta <- keep delta + add v W, back inside the ball.

        steepness2 is ||v W||^2, and along is <delta, v W>.
        """
        sign = np.sign(slope.numpy()) * ~self.still
        moves = (steepness2 > 0) & (sign != 0)
        s = np.where(moves, self.step * sign / np.sqrt(np.where(moves, steepness2, 1.0)), 0.0)
        length2 = self.length2 + 2 * s * along + s * s * steepness2
        keep = self.radius / np.sqrt(np.maximum(length2, self.radius**2))
        self.length2 = length2 * keep * keep
        self.keeps.append(keep)
        self.adds.append(keep * s)
        return keep, self.adds[-1]

    def tails(self) -> np.ndarray:
        """(steps + 1, R, n): the sum over steps k >= l of what k has left at the worst point."""
        tails = [np.zeros(self.end.shape)]
        kept = np.ones(self.end.shape)
        for k in reversed(range(len(self.adds))):
            before = self.end > k
            tails.append(tails[-1] + np.where(before, self.adds[k] * kept, 0.0))
            kept = np.where(before, self.keeps[k] * kept, kept)
        return np.stack(tails[::-1])


def _smooth(
    net: Layers, gram: Tensor, z: Tensor, score: Score, path: Path
) -> Float[Tensor, "R n m"]:
    C, S, best = torch.zeros_like(z), torch.zeros_like(z), torch.zeros_like(z)
    for step in range(path.steps + 1):
        here = z + S
        loss, slope = score(net.value(here))
        best = torch.where(torch.from_numpy(path.note(loss))[:, :, None], C, best)
        if step == path.steps:
            break
        v = net.top * net.activation.dphi(here)
        q = torch.bmm(v, gram)
        keep, add = path.go(slope, rows_of(v, q), rows_of(v, S))
        keep, add = wide(keep, z), wide(add, z)
        C, S = (C * keep).addcmul_(v, add), (S * keep).addcmul_(q, add)
    return best


def _kinked(
    net: Layers, gram: Tensor, z: Tensor, score: Score, path: Path, sides: tuple[float, float]
) -> Float[Tensor, "R n m"]:
    """As `_smooth`; of v, f = v here, v z and v q only what a changed slope changes is computed."""
    left, right = sides
    positive = z.numpy() > 0
    v = net.top * torch.from_numpy(positive).to(z).mul_(right - left).add_(left)
    q, here = torch.bmm(v, gram), z.clone()
    flips = Flips(net, gram, right - left, positive)
    f = clean = rows_of(v, z)
    steepness2, shift = rows_of(v, q), net.shift.double().numpy()
    for step in range(path.steps + 1):
        loss, slope = score(torch.from_numpy(np.where(path.still, 0.0, f) + shift).to(z))
        path.note(loss)
        if step == path.steps:
            break
        keep, add = path.go(slope, steepness2, f - clean)
        f = (1 - keep) * clean + keep * f + add * steepness2
        torch.lerp(z, here, wide(keep, z), out=here).addcmul_(q, wide(add, z))
        new = flips.at(here)
        before = new.of(q)
        new.add_to(q)
        f, clean = f + new.sums(new.of(here)), clean + new.sums(new.of(z))
        steepness2 = steepness2 + new.sums(before + new.of(q))
    return flips.collect(v, path.tails())


@dataclass(frozen=True)
class Flipped:
    """Entries (row, unit) whose slope changed in one step, and by how much v did there."""

    table: Float[Tensor, "Rm c"]
    at: np.ndarray
    row: np.ndarray
    unit: np.ndarray
    """Its row of `table`."""
    moved: np.ndarray
    rows: tuple[int, int]
    """R and n."""

    def of(self, values: Float[Tensor, "R n m"]) -> np.ndarray:
        """The values of these entries."""
        return values.view(-1).numpy()[self.at]

    def sums(self, values: np.ndarray) -> np.ndarray:
        """By row, the sum over its entries of how much v changed times this value."""
        found = np.bincount(self.row, self.moved * values, minlength=self.rows[0] * self.rows[1])
        return found.reshape(self.rows)

    def add_to(self, total: Float[Tensor, "R n c"]) -> None:
        """Bring v `table` up to date, in place."""
        starts = np.searchsorted(self.row, np.arange(self.rows[0] * self.rows[1]))
        total.view(-1, total.shape[-1]).add_(
            F.embedding_bag(
                torch.from_numpy(self.unit), self.table, torch.from_numpy(starts), mode="sum",
                per_sample_weights=torch.from_numpy(self.moved).to(total),
            )
        )  # fmt: skip


class Flips:
    """The slopes phi' that change on the way.

    Args:
        net: R networks.
        table: what one unit's part of v is multiplied with, its row of G or of W.
        jump: phi' right of 0 less phi' left of it.
        positive: which preactivations are positive at the start.
    """

    def __init__(
        self, net: Layers, table: Float[Tensor, "R m c"], jump: float, positive: np.ndarray
    ):
        self.top, self.table = net.top.flatten().numpy(), table.flatten(0, 1)
        self.jump, self.positive = jump, positive
        self.found: list[Flipped] = []

    def at(self, here: Tensor) -> Flipped:
        """What flips on the way to the preactivations `here`."""
        R, n, m = here.shape
        positive = here.numpy() > 0
        at = np.flatnonzero(positive ^ self.positive)
        self.positive = positive
        row, s = np.divmod(at, m)
        unit = row // n * m + s
        moved = self.top[unit] * np.where(positive.reshape(-1)[at], self.jump, -self.jump)
        self.found.append(Flipped(self.table, at, row, unit, moved, (R, n)))
        return self.found[-1]

    def collect(self, v: Float[Tensor, "R n m"], tails: np.ndarray) -> Float[Tensor, "R n m"]:
        """C, the sum over steps of what is left of each step's v at the worst point."""
        C = v * wide(tails[0], v)
        flat, tails = C.view(-1).numpy(), tails.reshape(len(tails), -1)
        for step, one in enumerate(self.found, start=1):
            flat[one.at] += one.moved * tails[step, one.row]
        return C


def rows_of(one: Float[Tensor, "R n m"], other: Float[Tensor, "R n m"]) -> Rows:
    return torch.linalg.vecdot(one, other).double().numpy()


def wide(rows: Rows, like: Tensor) -> Float[Tensor, "R n 1"]:
    return torch.from_numpy(rows).to(like)[:, :, None]
