"""Differentiable stand-ins for operations without a useful gradient, in any model as it runs.

The value of every operation stays as it is; only the backward pass is another one (straight-through
estimators, Bengio et al. 2013; as an attack, Athalye et al. 2018). With hard the value and soft the
stand-in, hard + (soft - soft.detach()) has the value of the one and the gradient of the other.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from ...losses import outputs_of

SATURATED = 4.0
"""Arguments of softmax, sigmoid and tanh beyond this are brought back to it for the gradient."""

Call = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]


class StandIn(nn.Module):
    """A model with stand-ins for its roundings, signs, comparisons, casts and saturations.

    Where its last operation is a softmax or sigmoid the logits are returned, which order classes
    alike and do not round to 0 and 1. Everywhere else outputs are those of the model.

    Args:
        model: any model that runs torch operations; inside TorchScript nothing is seen.
    """

    def __init__(self, model: Callable[[Tensor], Tensor]):
        super().__init__()
        self.model = model
        # A new module is in train mode; this one has none of its own.
        self.training = getattr(model, "training", False)

    def forward(self, x: Tensor) -> Tensor:
        with StandIns() as mode:
            outputs = outputs_of(self.model, x)
        return mode.logits(outputs)


def straight(hard: Tensor, soft: Tensor) -> Tensor:
    """The value of `hard` with the gradient of `soft`."""
    return hard.detach().to(soft.dtype) + (soft - soft.detach())


class StandIns(TorchFunctionMode):
    """Replaces operations while it is entered.

    Comparisons and casts give booleans and whole numbers, which cannot carry a gradient. Their
    stand-ins are kept beside them, and used where they are multiplied, added or cast back.
    """

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[int, tuple[Tensor, Any]] = {}  # the tensor is kept: ids are used again
        self.before_last: dict[int, tuple[Tensor, Tensor]] = {}

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "").strip("_")
        rule = RULES.get(name)
        if rule is not None:
            return rule(self, (func, args, kwargs))
        return func(*args, **kwargs)

    def keep(self, hard: Tensor, soft: Any) -> Tensor:
        """Remember what stands in for a tensor that carries no gradient."""
        self.kept[id(hard)] = hard, soft
        return hard

    def stand_in(self, value: Any) -> Any:
        """What was kept for a tensor, else None."""
        found = self.kept.get(id(value)) if isinstance(value, Tensor) else None
        return None if found is None else found[1]

    def logits(self, outputs: Tensor) -> Tensor:
        """What went into the softmax or sigmoid that made these scores, if one did."""
        found = self.before_last.get(id(outputs))
        several = outputs.ndim == 2 and outputs.shape[1] > 1
        return found[1] if found is not None and several else outputs


def _carries(value: Any) -> bool:
    return isinstance(value, Tensor) and value.is_floating_point() and value.requires_grad


def _rounding(mode: StandIns, call: Call) -> Any:
    func, args, kwargs = call
    hard = func(*args, **kwargs)
    return straight(hard, args[0]) if _carries(args[0]) else hard


def _floor_divide(mode: StandIns, call: Call) -> Any:
    func, args, kwargs = call
    hard = func(*args, **kwargs)
    if func.__name__ == "div" and kwargs.get("rounding_mode") is None:
        return _arithmetic(mode, call)
    return straight(hard, args[0] / args[1]) if _carries(args[0]) else hard


def _sign(mode: StandIns, call: Call) -> Any:
    func, args, kwargs = call
    hard = func(*args, **kwargs)
    if not _carries(args[0]):
        return hard
    return straight(hard, torch.tanh(args[0] / _scale(args[0])))


def _comparison(mode: StandIns, call: Call) -> Any:
    func, args, kwargs = call
    hard = func(*args, **kwargs)
    if not (_carries(args[0]) or (len(args) > 1 and _carries(args[1]))):
        return hard
    gap = args[0] - args[1]
    below = func.__name__.strip("_") in ("lt", "le", "less", "less_equal")
    gap = -gap if below else gap
    return mode.keep(hard, straight(hard.to(gap.dtype), torch.sigmoid(gap / _scale(gap))))


def _heaviside(mode: StandIns, call: Call) -> Any:
    func, args, kwargs = call
    hard = func(*args, **kwargs)
    if not _carries(args[0]):
        return hard
    return straight(hard, torch.sigmoid(args[0] / _scale(args[0])))


def _softmax(mode: StandIns, call: Call) -> Any:
    func, args, kwargs = call
    hard, z = func(*args, **kwargs), args[0]
    if not isinstance(z, Tensor) or not z.is_floating_point():
        return hard
    if _carries(z):
        dim = kwargs.get("dim", args[1] if len(args) > 1 else -1)
        dim = -1 if dim is None else dim
        spread = (z.amax(dim, keepdim=True) - z.amin(dim, keepdim=True)).detach()
        hard = straight(hard, torch.softmax(z / (spread / SATURATED).clamp(min=1), dim))
    mode.before_last[id(hard)] = hard, z
    return hard


def _squashing(mode: StandIns, call: Call) -> Any:
    func, args, kwargs = call
    hard, z = func(*args, **kwargs), args[0]
    if _carries(z):
        tempered = z / (z.detach().abs() / SATURATED).clamp(min=1)
        hard = straight(hard, func(tempered, *args[1:], **kwargs))
    mode.before_last[id(hard)] = hard, z
    return hard


def _clamp(mode: StandIns, call: Call) -> Any:
    """Both ends given: else it may be a ReLU, whose own gradient is right."""
    func, args, kwargs = call
    hard = func(*args, **kwargs)
    ends = [*args[1:3], kwargs.get("min"), kwargs.get("max")]
    two = func.__name__ == "hardtanh" or sum(end is not None for end in ends) == 2
    return straight(hard, args[0]) if two and _carries(args[0]) else hard


def _detach(mode: StandIns, call: Call) -> Any:
    func, args, kwargs = call
    return args[0] if _carries(args[0]) else func(*args, **kwargs)


def _cast(mode: StandIns, call: Call) -> Any:
    func, args, kwargs = call
    soft = mode.stand_in(args[0])
    hard = func(*args, **kwargs)
    if isinstance(soft, Tensor):
        if hard.is_floating_point():
            return straight(hard, soft)
        return mode.keep(hard, soft)
    if _carries(args[0]) and not hard.is_floating_point():
        return mode.keep(hard, straight(hard.to(args[0].dtype), args[0]))
    return hard


def _arithmetic(mode: StandIns, call: Call) -> Any:
    """A stand-in takes part where its tensor would."""
    func, args, kwargs = call
    if not any(isinstance(mode.stand_in(one), Tensor) for one in args):
        return func(*args, **kwargs)
    soft = [mode.stand_in(one) for one in args]
    given = [a if not isinstance(s, Tensor) else s for a, s in zip(args, soft, strict=True)]
    found, hard = func(*given, **kwargs), func(*args, **kwargs)
    if hard.is_floating_point():
        return straight(hard, found)
    return mode.keep(hard, straight(hard.to(found.dtype), found))


def _logical(mode: StandIns, call: Call) -> Any:
    func, args, kwargs = call
    hard = func(*args, **kwargs)
    soft = [mode.stand_in(one) for one in args]
    if not any(isinstance(one, Tensor) for one in soft):
        return hard
    parts = [
        s if isinstance(s, Tensor) else torch.as_tensor(a) for a, s in zip(args, soft, strict=True)
    ]
    name = func.__name__.strip("_")
    if name in ("invert", "logical_not", "bitwise_not"):
        return mode.keep(hard, 1 - parts[0])
    one, two = (part.to(torch.promote_types(part.dtype, torch.float32)) for part in parts)
    return mode.keep(hard, one * two if "and" in name else one + two - one * two)


def _where(mode: StandIns, call: Call) -> Any:
    func, args, kwargs = call
    hard = func(*args, **kwargs)
    if func.__name__ == "where":
        mask, yes, no = (args[1], args[0], args[2]) if _method(call) else (*args, None, None)[:3]
    else:  # masked_fill(x, mask, value)
        no, mask, yes = (*args, None, None)[:3]
    soft = mode.stand_in(mask)
    if not isinstance(soft, Tensor) or yes is None or no is None:
        return hard
    gap = torch.as_tensor(yes).detach() - torch.as_tensor(no).detach()
    gap = torch.nan_to_num(gap.to(hard.dtype), 0.0, 0.0, 0.0)
    return hard + gap * (soft - soft.detach())


def _method(call: Call) -> bool:
    """x.where(mask, y), whose second argument is the mask."""
    args = call[1]
    return len(args) > 1 and isinstance(args[1], Tensor) and args[1].dtype == torch.bool


def _argmax(mode: StandIns, call: Call) -> Any:
    func, args, kwargs = call
    hard, z = func(*args, **kwargs), args[0]
    dim = kwargs.get("dim", args[1] if len(args) > 1 else None)
    if not _carries(z) or dim is None:
        return hard
    spread = (z.amax(dim, keepdim=True) - z.amin(dim, keepdim=True)).detach().clamp(min=1e-12)
    soft = torch.softmax(SATURATED * z / spread, dim).movedim(dim, -1)
    return mode.keep(hard, ("winner", soft))


def _one_hot(mode: StandIns, call: Call) -> Any:
    func, args, kwargs = call
    hard, kept = func(*args, **kwargs), mode.stand_in(args[0])
    if not isinstance(kept, tuple) or kept[0] != "winner" or kept[1].shape != hard.shape:
        return hard
    return mode.keep(hard, straight(hard.to(kept[1].dtype), kept[1]))


def _topk(mode: StandIns, call: Call) -> Any:
    func, args, kwargs = call
    found, z = func(*args, **kwargs), args[0]
    largest = kwargs.get("largest", args[3] if len(args) > 3 else True)
    dim = kwargs.get("dim", args[2] if len(args) > 2 else -1)
    if _carries(z) and largest and found.values.shape[dim]:
        gap = z - found.values.detach().amin(dim, keepdim=True)
        mode.keep(found.indices, ("winners", torch.sigmoid(gap / _scale(gap)), z))
    return found


def _scatter(mode: StandIns, call: Call) -> Any:
    """Winners written into zeros, by value or as ones."""
    func, args, kwargs = call
    hard = func(*args, **kwargs)
    index, source = (args[2], args[3]) if len(args) > 3 else (None, None)
    kept = mode.stand_in(index)
    if not isinstance(kept, tuple) or kept[0] != "winners" or kept[1].shape != hard.shape:
        return hard
    if not hard.is_floating_point():
        return mode.keep(hard, straight(hard.to(kept[1].dtype), kept[1]))
    weight = kept[2].detach() if _carries(source) else 1.0
    return hard + weight * (kept[1] - kept[1].detach())


def _shape(mode: StandIns, call: Call) -> Any:
    func, args, kwargs = call
    hard, soft = func(*args, **kwargs), mode.stand_in(args[0]) if args else None
    if isinstance(soft, Tensor) and isinstance(hard, Tensor):
        return mode.keep(hard, func(soft, *args[1:], **kwargs))
    return hard


def _scale(values: Tensor) -> Tensor:
    """The usual size of the values: how wide a soft step is to be."""
    return values.detach().abs().mean().clamp(min=1e-12)


RULES: dict[str, Callable[[StandIns, Call], Any]] = {
    **dict.fromkeys(("round", "floor", "ceil", "trunc", "fix"), _rounding),
    **dict.fromkeys(("floor_divide", "floordiv", "div"), _floor_divide),
    **dict.fromkeys(("sign", "sgn"), _sign),
    **dict.fromkeys(("gt", "ge", "lt", "le", "greater", "greater_equal", "less", "less_equal"),
                    _comparison),
    "heaviside": _heaviside,
    "softmax": _softmax,
    **dict.fromkeys(("sigmoid", "tanh"), _squashing),
    **dict.fromkeys(("clamp", "clip", "hardtanh"), _clamp),
    "detach": _detach,
    **dict.fromkeys(("to", "type", "type_as", "float", "double", "half", "bfloat16", "int", "long",
                     "short", "byte", "char", "bool"), _cast),
    **dict.fromkeys(("mul", "multiply", "rmul", "add", "radd", "sub", "rsub", "subtract", "neg",
                     "truediv", "rtruediv", "true_divide", "sum", "mean", "matmul", "rmatmul",
                     "linear"), _arithmetic),
    **dict.fromkeys(("invert", "logical_not", "bitwise_not", "and", "logical_and", "bitwise_and",
                     "or", "logical_or", "bitwise_or"), _logical),
    **dict.fromkeys(("where", "masked_fill"), _where),
    "argmax": _argmax,
    "one_hot": _one_hot,
    "topk": _topk,
    **dict.fromkeys(("scatter", "scatter_"), _scatter),
    **dict.fromkeys(("view", "reshape", "flatten", "unsqueeze", "squeeze", "expand", "expand_as",
                     "transpose", "permute", "getitem", "contiguous", "clone"), _shape),
}  # fmt: skip
