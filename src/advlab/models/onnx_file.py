"""Networks in ONNX files, as models without gradients."""

from os import PathLike
from pathlib import Path

from torch import nn

from ..core.errors import AdvlabError
from .fixed_batch import FixedBatch
from .sandboxed import SandboxedModel


def onnx_model(path: str | PathLike[str]) -> nn.Module:
    """The program of an ONNX file as a black box: scores without gradients.

    It is run by onnxruntime (the extra `onnx`) in a sandboxed process: the file runs no code of its
    own, and a fault of the runtime cannot reach this process. Programs that were exported for a
    fixed number of rows are fed in pieces of that size.

    Args:
        path: the file; the program has one input, and its first output is taken.

    Example:
        import advlab
        from advlab.models import onnx_model
        from advlab.threats import Ball
        advlab.evaluate(onnx_model("net.onnx"), x, y, Ball("linf", 0.1))
    """
    place = Path(path)
    if not place.is_file():
        raise AdvlabError("an ONNX file", f"{place}, which does not exist")
    program = SandboxedModel(place, "onnx")
    return program if program.rows is None else FixedBatch(program, program.rows)
