"""One call that picks the exact reduction of a training run, or says why there is none.

A network that sees x through one linear layer, f(x) = h(W x), has gradients in W that are
combinations of the inputs, and gradients in x that are combinations of the rows of W. So gradient
descent against an l2 attack that moves along gradients never leaves the span of the inputs and the
first weights, whatever h is: one output or several, two layers or more. In an orthonormal basis of
that span the run is the same. Moves along signs, boxes and optimisers that treat coordinates one by
one (Adam) leave the span.
"""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ....attacks import FGM, PGD, Attack, Identity
from ....core import inputs
from ....core.errors import AdvlabError
from ....core.inputs import Given, TensorLike
from ....losses import PerExample
from ....models import Linear, Stack, TwoLayer
from ....models.two_layer import mirrored
from ....reductions import Subspace
from ....threats import Ball, Threat
from ....training import Adversarial, AttackedObjective
from ..data import Clusters, NoisyMixture
from . import mixture_law
from .random_starts import RandomStarts
from .two_layer_training import TwoLayerAdversarial, plain_pgd

KINDS = (
    "TwoLayer, Linear, nn.Linear, an nn.Sequential that begins with one (nn.Flatten before it), "
    "or a stack of them"
)


@dataclass(frozen=True)
class Reduced:
    """The same run in fewer numbers: `fit(model, x, y, objective=objective, ...)`.

    Gradient descent with or without momentum and weight decay stays in the span; Adam does not.
    """

    how: str
    """What was picked, in one line."""
    model: nn.Module
    x: Float[Tensor, "*stack n k"]
    objective: AttackedObjective
    space: Subspace | None = None
    """The basis, where the inputs were given; None where nothing is rotated."""
    train: Clusters | None = None
    test: Clusters | None = None
    """Examples and fresh ones with their labels, where they were drawn here."""

    def into(self, x: Float[Tensor, "*stack n d"]) -> Float[Tensor, "*stack n k"]:
        """Fresh inputs in the coordinates of the reduced model, which sees no more of them."""
        if self.space is None and self.train is not None:
            raise AdvlabError("inputs that were given", "a drawn problem", "its .test is fresh")
        if self.space is None:
            return x
        return self.space.into(x if x.ndim == 3 else x[None]).reshape(*x.shape[:-1], -1)

    def lifted(self) -> nn.Module:
        """The network in all dimensions that the reduced one stands for, as trained so far."""
        if self.space is None and self.train is not None:
            raise AdvlabError("inputs that were given", "a drawn problem, whose basis is not known")
        if self.space is None:
            return copy.deepcopy(self.model)
        return _moved(self.model, self.space.lift)


def reduce(
    model: nn.Module | mixture_law.Start,
    data: Given[TensorLike] | Clusters | NoisyMixture,
    attack: Attack,
    ball: Threat,
    loss: str | PerExample = "logistic",
    *,
    steps: int | None = None,
    rng: torch.Generator | Sequence[torch.Generator] | None = None,
) -> Reduced:
    """Pick the exact reduction of adversarial training for a model, its data and an attack.

    - A `Start` and a `NoisyMixture` of Gaussian clusters: the law of the reduced problem, no
      d-vector is made.
    - A two-layer network and PGD from the clean inputs: span of the data and Gram matrices.
    - Any network that sees x through one linear layer, with PGD or FGM: span of the data; with
      random starts n more coordinates per step.

    Args:
        model: `TwoLayer`, `Linear`, `nn.Linear`, an `nn.Sequential` that begins with one (any
            layers and number of outputs behind it, `nn.Flatten` before it), or a `Stack` of R; or
            the `Start` of networks to draw.
        data: inputs (n, d), for a stack (R, n, d), as a tensor, array or lists; `Clusters` of them;
            or the law.
        attack: `PGD`, `FGM` or `Identity`.
        ball: an l2 ball without a box. Attacks here do not hold their set, so it comes beside.
        loss: what training lowers and the attack climbs.
        steps: how many steps will be trained; needed for random starts only.
        rng: for random starts, where their directions come from; with a `Start`, where the problem
            comes from: one generator, or one per network of a stack.

    Returns:
        A `Reduced`. Where there is no exact reduction, an `AdvlabError` says why in one line.

    Example:
        from advlab.attacks import PGD
        from advlab.papers.benign.reductions import reduce
        from advlab.threats import Ball
        from advlab.training import fit
        small = reduce(net, x, PGD(random_start=False, jump=False), Ball("l2", 1.0))
        fit(small.model, small.x, y, objective=small.objective, steps=100, lr=0.1)
        small.lifted()  # the network in all dimensions
    """
    _check_attack(attack, ball)
    adversary = {"loss": loss, "ball": ball, "attack": attack}
    if isinstance(model, mixture_law.Start) or isinstance(data, NoisyMixture):
        return _drawn(model, data, adversary, rng)
    x = data.x if isinstance(data, Clusters) else inputs.inputs(data, model)
    return _in_the_span(model, x, adversary, steps, rng)


def _check_attack(attack: Attack, ball: Threat) -> None:
    if ball != Ball("l2", ball.radius):
        raise AdvlabError(
            "an l2 ball without a box: attacks in other sets leave the span of inputs and weights",
            ball, "train in all dimensions",
        )  # fmt: skip
    if type(attack) not in (PGD, FGM, Identity):
        raise AdvlabError(
            "PGD, FGM or Identity, which move along gradients: others may leave the span",
            type(attack).__name__, "train in all dimensions",
        )  # fmt: skip


def _in_the_span(
    model: nn.Module,
    x: Float[Tensor, "*stack n d"],
    adversary: dict,
    steps: int | None,
    rng: torch.Generator | Sequence[torch.Generator] | None,
) -> Reduced:
    """Inputs and network in a basis of the inputs, the first weights, and what starts may add."""
    attack, nets = adversary["attack"], _networks(model, x)
    blocks = x if x.ndim == 3 else x[None]
    rows = torch.cat([blocks, _spanning(nets)], 1)
    dim, known = x.shape[-1], min(rows.shape[1], x.shape[-1])
    products = isinstance(nets[0], TwoLayer) and plain_pgd(attack) and x.device.type == "cpu"
    new = _new_directions(attack, x.shape[-2], known, dim, steps)
    if known + new >= dim and not products:
        rows_of = "inputs, neurons and random starts" if new else "inputs and neurons"
        raise AdvlabError(
            f"fewer {rows_of} than the {dim} dimensions",
            known + new,
            "nothing is gained here: use Adversarial()",
        )
    if products:
        objective = TwoLayerAdversarial(**adversary)
    elif new:
        objective = RandomStarts(
            **adversary, dim=dim, known=known, rows=x.shape[-2], replicates=len(nets)
        )
    else:
        objective = Adversarial(**adversary)
    engine = "Gram matrices of the weights" if products else "autograd"
    if known == dim:
        how = f"all {dim} coordinates, {engine}"
        return Reduced(how, copy.deepcopy(model), x, objective)
    frame = _gaussian(rows, new, rng) if new else rows[:, :0]
    space = Subspace.of(torch.cat([rows, frame], 1))
    how = f"{known + new} of {dim} coordinates (span of inputs and first weights), {engine}"
    inside = space.into(blocks).reshape(*x.shape[:-1], -1)
    return Reduced(how, _moved(model, space.into), inside, objective, space)


def _new_directions(attack: Attack, n: int, known: int, dim: int, steps: int | None) -> int:
    """How many coordinates random starts add to the span; the last gradient is one more step."""
    if not isinstance(attack, PGD) or not (attack.random_start or attack.restarts > 1):
        return 0
    if steps is None or attack.early_exit:
        raise AdvlabError(
            "with random starts the number of steps and no early exit: each step adds n directions",
            f"steps={steps}, early_exit={attack.early_exit}", "or PGD(random_start=False)",
        )  # fmt: skip
    return min(n * (steps + 1), dim - known)


def _networks(model: nn.Module, x: Tensor) -> list[nn.Module]:
    """The networks one by one, where the span argument holds for them."""
    stack, nets = isinstance(model, Stack), _each(model)
    if x.ndim != (3 if stack else 2) or (stack and len(x) != len(nets)):
        raise AdvlabError(
            f"inputs (R, n, d) with R = {len(nets)}" if stack else "inputs (n, d)", tuple(x.shape)
        )
    for net in nets:
        weight = _weight(net)
        if weight.shape[-1] != x.shape[-1]:
            raise AdvlabError(f"inputs of {weight.shape[-1]} features", x.shape[-1])
        if weight.dtype != x.dtype:
            raise AdvlabError(f"inputs of the network's type, {weight.dtype}", x.dtype)
    return nets


def _each(model: nn.Module) -> list[nn.Module]:
    stack = isinstance(model, Stack)
    return [model.replicate(r) for r in range(model.replicates)] if stack else [model]


def _weight(net: nn.Module) -> Float[Tensor, "m d"]:
    """The only weights that see x."""
    if isinstance(net, TwoLayer):
        return net.weight.detach()
    if isinstance(net, Linear):
        return net.theta.detach()[None]
    first = _first_layer(net)
    if first is None or not isinstance(first._parameters.get("weight"), nn.Parameter):
        raise AdvlabError(
            f"a network that sees its inputs through one linear layer: {KINDS}", type(net).__name__
        )
    if _uses(net, first.weight) > 1:
        raise AdvlabError(
            "a first layer that nothing else uses: a layer tied to it works in all dimensions",
            "shared weights", "train in all dimensions",
        )  # fmt: skip
    return first.weight.detach()


def _first_layer(net: nn.Module) -> nn.Linear | None:
    """The nn.Linear that sees x; nn.Flatten leaves rows of inputs as they are."""
    layers = iter(net if isinstance(net, nn.Sequential) else [net])
    first = next((one for one in layers if type(one) is not nn.Flatten or one.start_dim != 1), None)
    return first if type(first) is nn.Linear else None


def _uses(net: nn.Module, weight: Tensor) -> int:
    """How many of a network's parts hold these numbers."""
    place = weight.untyped_storage().data_ptr()
    parts = (one for _, one in net.named_modules(remove_duplicate=False))
    held = (one for part in parts for one in part.parameters(recurse=False))
    return sum(one.untyped_storage().data_ptr() == place for one in held)


def _spanning(nets: Sequence[nn.Module]) -> Float[Tensor, "R m d"]:
    """The weights that see x, without halves that repeat others."""
    weights = torch.stack([_weight(net) for net in nets])
    return weights[:, : weights.shape[1] // 2] if all(map(_halves, nets)) else weights


def _halves(net: nn.Module) -> bool:
    """Whether the second half of a two-layer network repeats the first."""
    return isinstance(net, TwoLayer) and net.init != "torch" and bool(
        mirrored(net.weight, net.top, net.bias)
    )  # fmt: skip


def _moved(model: nn.Module, move: Callable[[Tensor], Tensor]) -> nn.Module:
    """A copy with other coordinates for the weights that see x."""
    nets = _each(model)
    # Equal halves stay equal to the last bit.
    halves = [_halves(net) for net in nets]
    weights = move(torch.stack([_weight(net) for net in nets]))
    moved = [
        _with_weight(net, w[: len(w) // 2].repeat(2, 1) if half else w)
        for net, w, half in zip(nets, weights, halves, strict=True)
    ]
    return Stack(moved) if isinstance(model, Stack) else moved[0]


def _with_weight(net: nn.Module, weight: Float[Tensor, "m k"]) -> nn.Module:
    if isinstance(net, Linear):
        return Linear(weight[0])
    other = copy.deepcopy(net)
    if isinstance(other, TwoLayer):
        other.weight = nn.Parameter(weight.clone(), other.weight.requires_grad)
        return other
    first = _first_layer(other)
    if first is not None:
        first.in_features = weight.shape[1]
        first.weight = nn.Parameter(weight.clone(), first.weight.requires_grad)
    return other


def _gaussian(
    rows: Float[Tensor, "R s d"], new: int, rng: torch.Generator | Sequence[torch.Generator] | None
) -> Float[Tensor, "R new d"]:
    """Directions without preference, for the parts of random starts outside of the span."""
    if rng is None:
        raise AdvlabError("a generator, for the directions of random starts", "none", "rng=...")
    rngs = [rng] * len(rows) if isinstance(rng, torch.Generator) else rng
    like = rows.new_empty(new, rows.shape[-1])
    return torch.stack([torch.empty_like(like).normal_(generator=one) for one in rngs])


def _drawn(
    model: object,
    data: object,
    adversary: dict,
    rng: torch.Generator | Sequence[torch.Generator] | None,
) -> Reduced:
    if not isinstance(model, mixture_law.Start) or not isinstance(data, NoisyMixture):
        raise AdvlabError(
            "a Start with a NoisyMixture, or a network with its inputs",
            f"{type(model).__name__} with {type(data).__name__}",
        )
    if not plain_pgd(adversary["attack"]):
        raise AdvlabError(
            "PGD(random_start=False, jump=False) for a drawn problem", adversary["attack"],
            "or draw network and inputs, and reduce these",
        )  # fmt: skip
    if rng is None:
        raise AdvlabError("generators to draw the problem with", "none", "rng=generator('mine')")
    one = isinstance(rng, torch.Generator)
    problem = (
        mixture_law.draw(data, model, rng) if one else mixture_law.draw_stack(data, model, rng)
    )
    k = problem.train.x.shape[-1]
    return Reduced(
        f"{k} of {data.d} coordinates, drawn by their law, Gram matrices of the weights",
        problem.model,
        problem.train.x,
        TwoLayerAdversarial(**adversary),
        train=problem.train,
        test=problem.test,
    )
