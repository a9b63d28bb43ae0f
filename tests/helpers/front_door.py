"""What people hand to `attack`, `evaluate` and `fit`: one row per kind, with what becomes of it."""

from collections import namedtuple
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

import advlab
from advlab.attacks import PGD
from advlab.losses import ModelLoss
from advlab.threats import Ball, Cap
from advlab.training import Adversarial, Clean, Constant

WORKS = None
N, D, CLASSES = 8, 4, 3
X = torch.rand(N, D, generator=torch.Generator().manual_seed(0))
Y = torch.arange(N) % CLASSES
BALL = Ball("linf", 0.1)
VERBS = ("attack", "evaluate", "fit")


class Row(NamedTuple):
    """One call: the verb, the argument that is odd, what it is, its value, and the answer."""

    verb: str
    argument: str
    kind: str
    value: Any
    says: str | None
    """The words of the error, or WORKS."""


class Net(nn.Sequential):
    def __init__(self, *first: nn.Module):
        torch.manual_seed(0)
        super().__init__(*first, nn.Linear(D, 6), nn.ReLU(), nn.Linear(6, CLASSES))


class Returns(nn.Module):
    """A network whose answer is packed in some way."""

    def __init__(self, pack):
        super().__init__()
        self.net, self.pack = Net(), pack

    def forward(self, x: Tensor):
        return self.pack(self.net(x))


class Raises(nn.Module):
    def __init__(self, error: Exception):
        super().__init__()
        self.layer, self.error = nn.Linear(D, CLASSES), error

    def forward(self, x: Tensor) -> Tensor:
        raise self.error


class EditsFirst(Net):
    def forward(self, x: Tensor) -> Tensor:
        x -= 0.5
        return super().forward(x)


class TwoInputs(Net):
    def forward(self, x: Tensor, other: Tensor) -> Tensor:
        return super().forward(x + other)


def tied() -> nn.Module:
    net = nn.Sequential(nn.Linear(D, D), nn.ReLU(), nn.Linear(D, D), nn.Linear(D, CLASSES))
    net[2].weight = net[0].weight
    return net


def unused() -> nn.Module:
    net = Net()
    net.register_parameter("spare", nn.Parameter(torch.zeros(2)))
    return net


def frozen(net: nn.Module) -> nn.Module:
    return net.requires_grad_(False)


def inference() -> nn.Module:
    with torch.inference_mode():
        return Net()


def inference_x() -> Tensor:
    with torch.inference_mode():
        return X.clone()


Packed = namedtuple("Packed", "logits hidden")

REAL = {
    "numpy float32": X.numpy(), "numpy float64": X.double().numpy(), "lists": X.tolist(),
    "tuples": tuple(map(tuple, X.tolist())), "list of arrays": list(X.numpy()),
    "list of tensors": list(X), "big-endian array": X.numpy().astype(">f4"),
    "strided array": np.asfortranarray(X.numpy()), "read-only array": np.frombuffer(
        X.numpy().tobytes(), np.float32).reshape(N, D), "reversed view": X.numpy()[::-1],
    "a leaf with gradients": X.clone().requires_grad_(), "expanded": X[:1].expand(N, D),
    "half array": X.numpy().astype(np.float16), "long double": X.numpy().astype(np.longdouble),
    "whole numbers in lists": [[0, 1, 0, 1]] * N, "inference tensor": inference_x(),
}  # fmt: skip
"""Inputs that are taken as they come."""

ODD_X = {
    "NaN": (torch.full((N, D), torch.nan), "must be finite; got NaN or infinity in 8 of 8"),
    "infinity": (X.clone().fill_(torch.inf), "must be finite"),
    "NaN in an array": (np.full((N, D), np.nan, np.float32), "must be finite"),
    "whole-number tensor": (torch.ones(N, D, dtype=torch.int64), "floating point"),
    "bytes": (np.zeros((N, D), np.uint8), "floating point; got torch.uint8"),
    "text": ("data.npz", "real numbers in x; got str"),
    "None": (None, "real numbers in x; got NoneType"),
    "dict": ({"x": X}, "real numbers in x; got dict"),
    "complex": (X.to(torch.complex64), "plain real numbers"),
    "complex array": (X.numpy().astype(complex), "real numbers in x"),
    "objects": (X.numpy().astype(object), "real numbers in x"),
    "ragged lists": ([[0.0, 1.0], [2.0]], "x as one array; got rows of different lengths"),
    "sparse": (X.to_sparse(), "plain real numbers"),
}
"""Inputs that no verb takes."""

ODD_Y = {
    "int8": (Y.to(torch.int8), WORKS), "int16": (Y.to(torch.int16), WORKS),
    "int32": (Y.to(torch.int32), WORKS), "uint8": (Y.to(torch.uint8), WORKS),
    "bool": (Y > 0, WORKS), "list": (Y.tolist(), WORKS), "tuple": (tuple(Y.tolist()), WORKS),
    "numpy": (Y.numpy(), WORKS), "numpy uint8": (Y.numpy().astype(np.uint8), WORKS),
    "numpy bool": ((Y > 0).numpy(), WORKS), "list of bool": ((Y > 0).tolist(), WORKS),
    "numpy uint16": (Y.numpy().astype(np.uint16), WORKS),
    "real": (Y.float(), "whole-number labels"),
    "too large": (Y + 1, r"labels must be 0 \.\. 2"), "negative": (Y - 1, r"0 \.\. 2"),
    "text": (["cat"] * N, "real numbers in y|got 1 different"), "None": (None, "real numbers in y"),
    "too few": (Y[:3], r"label|y of shape"), "one number": (2, "label|y of shape"),
    "one-hot": (torch.eye(CLASSES)[Y], "label|y of shape|loss of inputs"),
    "column": (Y[:, None], "label|y of shape|loss of inputs"),
    "complex": (Y.to(torch.complex64), "plain real numbers"),
    "NaN": (torch.full((N,), torch.nan), "whole-number labels|finite"),
}  # fmt: skip

ODD_MODELS = {
    "tuple": (Returns(lambda z: (z, None)), WORKS), "list": (Returns(lambda z: [z]), WORKS),
    "dict": (Returns(lambda z: {"logits": z}), WORKS),
    "object with logits": (Returns(lambda z: Packed(z, 0)), WORKS),
    "dict without logits": (Returns(lambda z: {"out": z}), "returns a tensor of scores.*got dict"),
    "None": (Returns(lambda z: None), "returns a tensor of scores.*got NoneType"),
    "empty tuple": (Returns(lambda z: ()), "returns a tensor of scores.*got tuple"),
    "in-place ReLU first": (Net(nn.ReLU(inplace=True)), WORKS), "edits": (EditsFirst(), WORKS),
    "inference-mode weights": (inference(), "made in torch.inference_mode"),
    "eval mode": (Net().eval(), WORKS), "dropout": (Net(nn.Dropout(0.1)), WORKS),
    "batch norm": (Net(nn.BatchNorm1d(D)), WORKS), "tied weights": (tied(), WORKS),
    "unused weights": (unused(), WORKS),
    "other width": (nn.Linear(7, CLASSES), "mat1 and mat2|takes inputs of shape"),
    "two inputs": (TwoInputs(), "missing 1 required positional argument"),
    "raises KeyError": (Raises(KeyError("a")), "KeyError"),
    "raises TypeError": (Raises(TypeError("b")), "TypeError: b"),
    "raises AssertionError": (Raises(AssertionError("c")), "AssertionError: c"),
    "raises ZeroDivisionError": (Raises(ZeroDivisionError("d")), "ZeroDivisionError: d"),
    "raises AttributeError": (Raises(AttributeError("e")), "AttributeError: e"),
    "a number": (3, "got 3"), "nothing": (None, "got None"), "text": ("net", "got 'net'"),
    "image shape": (Returns(lambda z: z[:, :, None]), "shape"),
    "mean over the batch": (Returns(lambda z: z.mean(0)), "shape|loss of outputs"),
}  # fmt: skip

ARRAYS = Returns(lambda z: z.detach().numpy())
NO_ARRAYS = (ARRAYS, "returns a tensor of scores.*got ndarray")

ODD_BALLS = {
    "number": (0.1, "ball as a threat set; got 0.1"), "text": ("linf", "threat set; got 'linf'"),
    "tuple": (("linf", 0.1), "threat set"), "class": (Ball, "got the class Ball"),
    "dict": ({"norm": "linf"}, "threat set"), "l1": (Ball("l1", 0.1), WORKS),
    "off the sphere": (Cap(0.1), "unit sphere"), "radius 0": (Ball("l2", 0.0), WORKS),
    "outside the box": (Ball("linf", 0.1, box=(5, 6)), "declared box"),
}  # fmt: skip

ODD_RNG = {
    "whole number": (0, WORKS), "negative": (-3, WORKS), "numpy int": (np.int64(7), WORKS),
    "generator": (torch.Generator().manual_seed(1), WORKS), "real": (0.5, "whole number; got 0.5"),
    "bool": (True, "rng as a torch.Generator"), "text": ("seed", "rng as a torch.Generator"),
    "numpy generator": (np.random.default_rng(0), "rng as a torch.Generator"),
    "list of text": (["a"], "rng as a torch.Generator"), "empty list": ([], "rng as a torch"),
}  # fmt: skip

EVALUATE = {
    "batch": {
        "0": (0, "batch must be a whole number of at least 1; got 0"), "-5": (-5, "got -5"),
        "real": (2.0, "got 2.0"), "bool": (True, "got True"), "text": ("8", "got '8'"),
        "1": (1, WORKS), "large": (10**9, WORKS), "numpy": (np.int32(4), WORKS),
    },
    "store": {"text": ("store", WORKS), "path": (Path("kept"), WORKS), "number": (3, "as a path"),
              "empty": ("", "as a path")},
    "attack": {
        "class": (PGD, "an attack, or the name of one; got the class PGD"),
        "number": (10, "name of one"), "unknown": ("nope", "there are fast"),
        "empty": ("", "name of a suite"), "needs settings": ("gta", "gta needs surrogate"),
        "name": ("pgd", WORKS), "None and radius 0": (None, WORKS),
    },
    "certificates": {"unknown": (["nope"], "nope"), "number": ([3], "certificates among"),
                     "text": ("ibp", r"write \['ibp'\]"), "name": (["ibp"], WORKS)},
    "transfer": {"text": ("net", "transfer as a network"), "network": (Net(), WORKS)},
    "x": {"no rows": (X[:0], "n at least 1"), "a vector": (X[0], r"x of shape \(n, ...\)"),
          "number": (0.5, r"x of shape \(n, ...\)"), "double": (X.double(), WORKS)},
    "model": {"lambda": (lambda x: x[:, :3], WORKS), "class": (Net, "takes inputs of shape"),
              "without weights": (nn.Flatten(), WORKS), "frozen": (frozen(Net()), WORKS),
              "NaN": (Returns(lambda z: z * torch.nan), "finite outputs"),
              "no gradient": (Returns(lambda z: z.detach()), WORKS), "numpy": (ARRAYS, WORKS)},
    "y": {"from one": (Y + 1, "use y - 1")},
}  # fmt: skip

FIT = {
    "steps": {"real": (2.5, "steps must be a whole number of at least 0; got 2.5"),
              "whole real": (2.0, "got 2.0"), "bool": (True, "got True"), "-1": (-1, "got -1"),
              "text": ("5", "got '5'"), "0": (0, WORKS), "numpy": (np.int64(1), WORKS)},
    "batch": {"0": (0, "batch must be a whole number of at least 1"), "-5": (-5, "got -5"),
              "real": (2.0, "got 2.0"), "3": (3, WORKS), "large": (1000, WORKS)},
    "lr": {"0": (0.0, "greater than 0"), "negative": (-0.1, "greater than 0"),
           "NaN": (float("nan"), "finite|greater"), "bool": (True, "lr as a number"),
           "text": ("fast", "valid number"), "None": (None, "lr, or an optimizer"),
           "schedule": (Constant(lr=0.1), WORKS), "infinite": (1e400, "finite")},
    "loss": {
        "unknown": ("nope", "loss must be one of"), "number": (3, "valid string|callable|one of"),
        "mean": (nn.functional.cross_entropy, r"one value per example, shape \(8,\); got shape"),
        "broadcasts": (lambda f, y: f[:, :1] - y, r"one value per example.*got shape \(8, 8\)"),
        "a number of Python": (lambda f, y: 1.0, "gives a tensor"),
        "constant": (lambda f, y: torch.zeros(len(y)), "depends on the weights"),
        "per example": (lambda f, y: f.square().sum(1), WORKS), "name": ("margin", WORKS),
    },
    "attack": {"without a ball": (PGD(), "a ball for the attack to move in"),
               "class": (PGD, "got the class PGD"), "name": ("pgd", "an attack; got 'pgd'")},
    "objective": {"text": ("trades", "an objective; got 'trades'"), "Clean": (Clean(), WORKS),
                  "class": (Adversarial, "got the class Adversarial"),
                  "Adversarial": (Adversarial(ball=BALL), WORKS)},
    "optimizer": {"text": ("adam", "an optimizer"), "class": (torch.optim.Adam, WORKS)},
    "hooks": {"one, not in a list": (3, "hooks as a list"), "functions": ([print], "as a list")},
    "x": {"no rows": (X[:0], "n at least 1"), "double": (X.double(), "inputs of the model's own"),
          "number": (0.5, "a single number"), "other length": (X[:4], r"y of shape \(n,\)")},
    "model": {"without weights": (nn.Flatten(), "weights that train"),
              "frozen": (frozen(Net()), "none that require grad"),
              "lambda": (lambda x: x, "torch.nn.Module"), "class": (Net, "the class Net"),
              "numpy": NO_ARRAYS},
}  # fmt: skip

ATTACK = {
    "x": {"a vector": (X[0], "inputs of shape"), "number": (0.5, "inputs of shape"),
          "double": (X.double(), "loss of inputs of shape.*float64"), "no rows": (X[:0], "label")},
    "loss": {"unknown": ("nope", "loss must be one of"), "number": (3, "loss must be one of"),
             "mean": (nn.functional.cross_entropy, "one value per example"),
             "text": (lambda f, y: "high", "gives a tensor"), "name": ("margin", WORKS)},
    "model": {"lambda": (lambda x: x[:, :3], WORKS), "class": (Net, "loss of inputs"),
              "frozen": (frozen(Net()), WORKS), "without weights": (nn.Flatten(), WORKS),
              "numpy": NO_ARRAYS},
    "rng": {"None": (None, "rng as a torch.Generator"),
            "two for 8 rows": ([0, 1], WORKS), "three for 8 rows": ([0, 1, 2], "split evenly")},
}  # fmt: skip


def rows() -> list[Row]:
    """All rows of the three verbs."""
    shared = {"y": ODD_Y, "model": ODD_MODELS, "ball": ODD_BALLS, "rng": ODD_RNG}
    shared["x"] = {**{kind: (value, WORKS) for kind, value in REAL.items()}, **ODD_X}
    tables = [(verb, shared) for verb in VERBS]
    tables += [("attack", ATTACK), ("evaluate", EVALUATE), ("fit", FIT)]
    return [
        Row(verb, argument, kind, *row)
        for verb, table in tables
        for argument, kinds in table.items()
        for kind, row in kinds.items()
    ]


def call(verb: str, **odd: Any) -> Any:
    """The verb with plain arguments, but for the odd ones."""
    given = {"model": Net(), "x": X, "y": Y, "ball": BALL, "rng": 0, **odd}
    if verb == "attack":
        loss = ModelLoss(given["model"], given["y"], given.get("loss", "cross_entropy"))
        return PGD(steps=2)(loss, given["x"], given["ball"], rng=given["rng"])
    if verb == "evaluate":
        given = {"attack": PGD(steps=2), "certificates": (), "checks": False, **given}
        if given["attack"] is None:
            given["ball"] = Ball("linf", 0.0)
        return advlab.evaluate(**given)
    if "ball" not in odd:
        given.pop("ball")
    return advlab.fit(**{"steps": 1, "lr": 0.1, **given})
