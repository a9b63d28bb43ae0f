"""Figure 11: purification at one deep layer, on top of robust layers that stand still.

The three stages of section 8.2: adversarial training of all layers; layers below l stand still and
those from l on are drawn anew and trained clean; these are then trained adversarially. Channels of
layer l are shown at the end of each stage by activation maximisation: random, clean, robust. The
paper does so for nine layers of ResNet-34, finds robust accuracy 0 % after the second stage though
the layers below are robust, and reports theta of layer l in Figure 2. The control goes on with
clean training for as many epochs as the third stage.

The paper stops the third stage when accuracies are those of the first; here it takes all its
epochs. At paper scale layer 27 of ResNet-34, T = 50: a GPU is expected, about five hours per seed
on one.
"""

import polars as pl
import torch
from torch import nn

from .... import lab
from ....core.randomness import generator
from ....measure.correlations import neuron_correlations
from ....report import Claims, Verdict, empirical
from ....report.charts import AnyChart, panels, points, stacked
from ....report.tiles import tile_chart, tile_rows
from ....training import rerandomise, split_at
from ._parts import image_scales as scales
from ._parts.image_features import DEEP, features_of_layer, numbered_layer, short, smoothness
from ._parts.image_runs import ABOVE, CLEAN, NAME, ImageSettings, Trainings, start_network

ABOUT = lab.About(
    paper="purification",
    item="Figure 11, and Figure 2 at a deep layer",
    title="Purification at a deep layer, above robust layers that stand still",
    seconds={"smoke": 15, "laptop": 240, "paper": 50_000},
    data=scales.DATA,
    looks=1,
    reduced=scales.reduced(
        "ResNet-34", "the fourth of five convolutions in place of nine layers; 200 gradient steps"
    ),
    claims={
        "fooled": empirical("After clean training above robust layers robust accuracy is below "
                            "0.05"),
        "smoother": empirical("Features of layer l are purer after the third stage: the "
                              "correlation of their neighbouring pixels is more than 0.05 above "
                              "that of the second stage, and of the control"),
        "gap": empirical("Adversarial training keeps the neurons of layer l: theta(w, w') is more "
                         "than 0.3 above theta(w0, w') on average"),
        "kept": empirical("and theta(w, w') is above 0.8 for more than half of them"),
    },
)  # fmt: skip
STAGES = ("drawn anew", "clean", "control", "adversarial")


class Case(ImageSettings):
    """How features are found.

    Args:
        feature_steps: of gradient ascent.
        layer: the number of the convolution, in ResNet-34.
    """

    feature_steps: int = 200
    layer: int = 27


def recipe(scale: str, seeds: int | None = None) -> list[Case]:
    some = {"smoke": {"feature_steps": 3}, "paper": {"feature_steps": 2000}}
    return scales.cases(Case, scale, seeds, "ResNet-34", **some)


def compute(case: Case) -> pl.DataFrame:
    """Pictures (part "tile") and the numbers that decide (part "end")."""
    layer = _layer(case)
    trainings, attacker = Trainings(case), case.attacker
    clean = (attacker, f"{CLEAN}{ABOVE}{layer}")
    histories = {
        "clean": clean,
        "control": (*clean, f"{CLEAN}{ABOVE}{layer}"),
        "adversarial": (*clean, f"{attacker}{ABOVE}{layer}"),
    }
    nets = {name: trainings.network(*history) for name, history in histories.items()}
    nets = {"drawn anew": _drawn_anew(case, trainings, clean, layer), **nets}
    tiles, numbers = [], {}
    for stage, net in nets.items():
        found = features_of_layer(case, net, layer, steps=case.feature_steps)
        tiles.append(tile_rows(found.numpy(), row=stage))
        numbers |= {f"{stage}: {name}": one for name, one in smoothness(found).items()}
        if stage in histories:
            accuracies = trainings.accuracies(*histories[stage])
            numbers |= {f"{stage}: {name}": one for name, one in accuracies.items()}
    moved = neuron_correlations(nets["clean"], nets["adversarial"], layer)
    numbers |= {
        "theta(w, w')": moved.mean,
        "kept": moved.share_above(0.8),
        "theta(w0, w')": neuron_correlations(nets["drawn anew"], nets["adversarial"], layer).mean,
        "control: theta(w, w')": neuron_correlations(nets["clean"], nets["control"], layer).mean,
        "first stage: robust": trainings.accuracies(attacker)["robust"],
    }
    return pl.concat([*tiles, scales.end_row(case, numbers)], how="diagonal")


def _layer(case: Case) -> str:
    if case.network == "large filters":
        return DEEP
    return numbered_layer(start_network(case), case.layer)


def _drawn_anew(
    case: Case, trainings: Trainings, history: tuple[str, ...], layer: str
) -> nn.Module:
    """The network at the beginning of the second stage, as `image_runs` draws it."""
    net = trainings.network(case.attacker).cpu()
    rerandomise(net, split_at(net, layer)[1], generator(NAME, "anew", *history, case.seed))
    # Layers drawn anew have no statistics yet: those of the held-out images are taken.
    _take_statistics(net, layer, trainings.held_out[0][:500])
    return net.eval()


@torch.no_grad()
def _take_statistics(net: nn.Module, layer: str, x: torch.Tensor) -> None:
    modules = dict(net.named_modules())
    norms = [modules[name] for name in split_at(net, layer)[1]]
    for one in norms:
        if isinstance(one, nn.BatchNorm2d):
            one.train()
            one.momentum = 1.0
    net(x)


def figure(table: pl.DataFrame) -> AnyChart:
    grid = tile_chart(
        scales.first_tiles(table), title=f"What channels of {short(DEEP)} look for, by stage"
    )
    looks = {
        "autocorrelation": ("correlation of neighbouring pixels", STAGES),
        "robust": ("robust accuracy (PGD: upper bound)", STAGES[1:]),
    }
    charts = [
        points(scales.by_stage(table, column, some), "stage", "value", x_title=" ", y_title=words)
        for column, (words, some) in looks.items()
    ]
    return stacked(grid, panels(charts))


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    claims = Claims(ABOUT.claims)
    gains = scales.over(table, "autocorrelation", "adversarial", "clean", "control")
    gap = scales.ended(table, "theta(w, w')") - scales.ended(table, "theta(w0, w')")
    return [
        claims.below(
            "fooled", scales.ended(table, "clean: robust"), 0.05,
            what="robust accuracy after the second stage",
        ),
        claims.above(
            "smoother", gains, 0.05, what="correlation of neighbouring pixels of features, gained"
        ),
        claims.above("gap", gap, 0.3, what="theta(w, w') less theta(w0, w')"),
        claims.above(
            "kept", scales.ended(table, "kept"), 0.5,
            what="share of neurons with theta(w, w') above 0.8",
        ),
    ]  # fmt: skip
