"""The front door: what callers hand in, turned into tensors, generators, counts and paths.

Numpy arrays, lists and tensors of any number type, whole-number labels of any width and integer
seeds are all taken. What cannot be meant is refused in one line that names the argument.
"""

import os
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from .errors import AdvlabError
from .randomness import Rng, generator

Kind = TypeVar("Kind")
if TYPE_CHECKING:
    Given = Annotated[Kind, "checked by the function that takes it"]
else:

    class Given:
        """`Given[Threat]` is meant to be a Threat; the function that takes it says so if not."""

        def __class_getitem__(cls, kind: object) -> object:
            return Any


TensorLike = Tensor | np.ndarray | Sequence
"""Numbers that `tensor` can read."""

TROUBLES = (
    RuntimeError, ValueError, TypeError, LookupError, AttributeError, AssertionError,
    ArithmeticError,
)  # fmt: skip
"""What a user's own function raises when it is given inputs that it was not made for."""


def tensor(name: str, values: Any) -> Tensor:
    """Real numbers as a tensor; a tensor is handed on as it is.

    Args:
        name: what to call the values in an error.
        values: a tensor, a numpy array, or (nested) lists of numbers.
    """
    if isinstance(values, Tensor):
        if values.is_complex() or values.is_sparse or values.is_quantized:
            raise AdvlabError(f"{name} as plain real numbers", f"{values.dtype}, {values.layout}")
        # A tensor made in inference mode takes no part in autograd; its copy does.
        return values.clone() if values.is_inference() else values
    if isinstance(values, list | tuple) and values and isinstance(values[0], Tensor):
        values = [one.detach().cpu().numpy() for one in values if isinstance(one, Tensor)]
    try:
        array = np.asarray(values)
    except (ValueError, TypeError, RuntimeError):
        raise AdvlabError(f"{name} as one array", "rows of different lengths") from None
    if array.dtype.kind not in "biuf":
        came = f"{type(values).__name__} of dtype {array.dtype}"
        raise AdvlabError(f"real numbers in {name}", came)
    if array.dtype.kind == "f" and array.itemsize > 8:
        array = array.astype(np.float64)
    return torch.from_numpy(np.array(array, dtype=array.dtype.newbyteorder("="), order="C"))


def inputs(values: Any, model: object = None) -> Tensor:
    """Inputs as a tensor; arrays and lists take the model's type, tensors keep their own.

    Args:
        values: inputs, one row per example.
        model: the network that they are for, where it is known.
    """
    x = tensor("x", values)
    if isinstance(values, Tensor):
        return x
    if isinstance(values, np.ndarray):
        return x.to(dtype_of(model) or x.dtype) if x.is_floating_point() else x
    return x.to(dtype_of(model) or torch.get_default_dtype())


def labels(values: Any) -> Tensor:
    """Labels as a tensor: whole numbers and booleans as int64, real targets as they are."""
    y = tensor("y", values)
    if y.is_floating_point():
        return y if isinstance(values, Tensor | np.ndarray) else y.to(torch.get_default_dtype())
    return y if y.dtype == torch.int64 else y.to(torch.int64)


def randomness(rng: Any) -> Rng:
    """One generator or one per replicate; a whole number is a seed.

    Args:
        rng: a `torch.Generator`, a whole number, or a sequence of either.
    """
    if isinstance(rng, torch.Generator):
        return rng
    if isinstance(rng, Sequence) and not isinstance(rng, str | bytes) and len(rng):
        if all(isinstance(one, torch.Generator) for one in rng):
            return rng
        return [_one_generator(one) for one in rng]
    return _one_generator(rng)


def seed(rng: Any) -> int:
    """A number for all draws of a call, from one generator or a whole number.

    Args:
        rng: a `torch.Generator`, which is moved on by one draw, or a whole number.
    """
    one = randomness(rng)
    if not isinstance(one, torch.Generator):
        raise AdvlabError("one generator, or a whole number", f"{rng!r:.60}")
    return int(torch.randint(2**31, (), generator=one, device=one.device))


def _one_generator(rng: Any) -> torch.Generator:
    if isinstance(rng, torch.Generator):
        return rng
    if isinstance(rng, int | np.integer) and not isinstance(rng, bool):
        return generator("seed", int(rng))
    raise AdvlabError(
        "rng as a torch.Generator or a whole number", f"{rng!r:.60}", "for example rng=0"
    )


def count(name: str, value: Any, least: int = 1) -> int:
    """A whole number of at least `least`; neither True nor 2.0 is one.

    Args:
        name: the argument's name, for the error.
        value: what came.
        least: the smallest that makes sense.
    """
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or value < least:
        raise AdvlabError(f"{name} must be a whole number of at least {least}", f"{value!r:.60}")
    return int(value)


def path(name: str, value: Any) -> Path:
    """A path, also from text.

    Args:
        name: the argument's name, for the error.
        value: what came.
    """
    if not isinstance(value, str | os.PathLike) or str(value) == "":
        raise AdvlabError(f"{name} as a path", f"{value!r:.60}")
    return Path(value)


def instance(name: str, value: Any, kind: type, advice: str) -> None:
    """Refuse a value of another kind.

    Args:
        name: what the value is for, with its article: "ball as a threat set".
        value: what came.
        kind: what it must be an instance of.
        advice: an example of one.
    """
    if not isinstance(value, kind):
        came = f"the class {value.__name__}" if isinstance(value, type) else f"{value!r:.60}"
        raise AdvlabError(name, came, advice)


def scores(outputs: Any) -> Tensor:
    """The scores in what a model returned: a tensor, or one in a tuple, a dict or an object.

    Args:
        outputs: a tensor; a tuple or list that starts with one; a dict or an object with `logits`.
    """
    if isinstance(outputs, Tensor):
        return outputs
    found: Any = None
    if isinstance(outputs, dict):
        found = outputs.get("logits")
    elif hasattr(outputs, "logits"):
        found = outputs.logits
    elif isinstance(outputs, tuple | list) and outputs:
        found = outputs[0]
    if isinstance(found, Tensor):
        return found
    raise AdvlabError(
        "a model that returns a tensor of scores, or a tuple, dict or object with them",
        type(outputs).__name__,
        "return the scores, or put them first in a tuple or under 'logits' in a dict",
    )


EDITS: dict[int, bool] = {}
"""By id, functions that were called before, and whether they edit their input in place."""


def call(function: Callable[[Tensor], Any], x: Tensor) -> Any:
    """What a user's function makes of x, which stays as it is.

    Functions that edit their input, such as a network that begins with an in-place ReLU, are given
    a copy. Whether one does is seen in its first call; all others get x itself.

    Args:
        function: a model, or a loss of inputs.
        x: its input.
    """
    edits = EDITS.get(id(function))
    if edits or x.is_inference():
        return function(x.clone())
    kept, before = x.detach().clone() if edits is None else None, x._version
    try:
        outputs = function(x)
    except RuntimeError as error:
        if not (x.requires_grad and x.is_leaf and "in-place" in str(error)):
            raise
        _remember(function, edits=True)
        return function(x.clone())
    if x._version == before:
        if kept is not None:
            _remember(function, edits=False)
        return outputs
    _remember(function, edits=True)
    if kept is None:
        raise edited()
    with torch.no_grad():
        x.copy_(kept)
    return function(x.clone())


def edited() -> AdvlabError:
    """The error for a function that edits its input after calls in which it did not."""
    return AdvlabError(
        "a model that leaves its inputs alone",
        "one that has begun to edit them in place",
        "begin its forward with x = x.clone()",
    )


def _remember(function: object, *, edits: bool) -> None:
    try:
        if id(function) not in EDITS:
            weakref.finalize(function, EDITS.pop, id(function), None).atexit = False
    except TypeError:  # cannot be watched: nothing is known of whoever has this id next
        return
    EDITS[id(function)] = edits


def check_weights(model: object) -> None:
    """Refuse weights that autograd cannot see: those made in inference mode.

    Args:
        model: a network; functions have no weights to look at.
    """
    if not isinstance(model, nn.Module):
        return
    for name, weight in model.named_parameters():
        if weight.is_inference():
            raise AdvlabError(
                "weights that gradients can pass", f"{name}, made in torch.inference_mode",
                "make or load the model outside it, or take copy.deepcopy(model) outside it",
            )  # fmt: skip


def dtype_of(model: object) -> torch.dtype | None:
    """The floating-point type of a network's weights, if it has any.

    Args:
        model: a network, or a function, of which nothing is known.
    """
    if not isinstance(model, nn.Module):
        return None
    values = (*model.parameters(), *model.buffers())
    return next((value.dtype for value in values if value.is_floating_point()), None)


def whole_line(error: BaseException) -> str:
    """An error of somebody else's in one line.

    Args:
        error: what was raised.
    """
    return f"{type(error).__name__}: {' '.join(str(error).split()):.200}"
