r"""Figure 3, a drawing: a linear neuron passes small inputs on, a thresholded pair zeroes them.

$\mathrm{ReLU}(x - b) - \mathrm{ReLU}(-x - b)$ is zero for $|x| \le b$ and moves with x beyond: the
many small parts of a dense perturbation are lost on it, while the few large parts of a signal pass
(section 3). Drawn with the network of the theorems, `models.SymmetricReLU`, at b = 1/2. Nothing is
trained, so all scales are the same.
"""

import polars as pl
import torch

from .... import lab
from ....core.checks import length
from ....report import Claims, Verdict, identity
from ....report.charts import AnyChart, curves
from ..models import SymmetricReLU

ABOUT = lab.About(
    paper="purification",
    item="Figure 3",
    title="A thresholded pair zeroes small inputs, a linear neuron does not",
    seconds={"smoke": 1, "laptop": 1, "paper": 1},
    claims={
        "zero": identity("The pair's response is 0 wherever |x| <= b"),
        "shift": identity("and differs from x by b beyond"),
    },
)


class Case(lab.Case):
    """The threshold b of the pair."""

    bias: float = 0.5


def recipe(scale: str, seeds: int | None = None) -> list[Case]:
    return [Case()]


def compute(case: Case) -> pl.DataFrame:
    """Responses of the linear neuron and of the pair to x in [-2, 2]."""
    bias = length("bias", case.bias)
    net = SymmetricReLU(torch.ones(1, 1), bias=bias)
    x = torch.linspace(-2, 2, 161)
    with torch.no_grad():
        pair = net(x[:, None]).flatten()
    return pl.DataFrame({"x": x.numpy(), "linear": x.numpy(), "thresholded": pair.numpy()})


def figure(table: pl.DataFrame) -> AnyChart:
    rows = table.unpivot(["linear", "thresholded"], index="x", variable_name="neuron")
    return curves(
        rows, "x", "value", "neuron", x_title="input <w, x>", y_title="response",
        title="Linear against ReLU with a bias",
    )  # fmt: skip


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    claims, bias = Claims(ABOUT.claims), float(table["bias"][0])
    small = table.filter(pl.col("x").abs() <= bias)
    large = table.filter(pl.col("x").abs() > bias)
    moved = (large["x"].abs() - large["thresholded"].abs() - bias).abs()
    return [
        claims.equal("zero", float(small["thresholded"].abs().max()), 0, 1e-6,  # type: ignore[arg-type]
                     what="largest response inside"),
        claims.equal("shift", float(moved.max()), 0, 1e-6,  # type: ignore[arg-type]
                     what="largest deviation from |x| - b outside"),
    ]  # fmt: skip
