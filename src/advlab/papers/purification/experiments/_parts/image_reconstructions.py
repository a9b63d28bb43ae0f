"""Images and perturbations from sparse sums of first-layer features, for Figures 4 and 12."""

import polars as pl
import torch
from torch import Tensor, nn

from ..... import lab
from .....measure.dictionaries import ConvolutionalDictionary
from .....measure.sparse_reconstruction import (
    ReconstructionPath,
    largest_weight,
    lasso_path,
    sparse_reconstruction,
    zero_mean,
)
from .image_runs import ImageSettings, Trainings, scores
from .image_scales import Stage, histories

RECONSTRUCTIONS = "image_reconstructions"
"""The folder of these shared runs."""
STAGES: tuple[Stage, ...] = ("start", "clean", "control", "adversarial")
SHARE = 0.0405
"""The average share of nonzeros that Figure 4 prints."""
SPAN_STEPS = 300


class ImageReconstructions(ImageSettings):
    """The Lasso paths of one seed.

    Args:
        reconstructed: how many images; 100 in the paper. The first held-out ones that the
            adversarially trained network classifies, as in the paper.
        fractions: weights of the l1 norm, over the largest useful one.
        tolerance: of the duality gap, over |x|^2.
        lasso_steps: the most per weight.
    """

    reconstructed: int = 24
    fractions: tuple[float, ...] = (0.5, 0.25, 0.12, 0.06, 0.03, 0.015)
    tolerance: float = 2e-3
    lasso_steps: int = 400


def reconstructions(case: ImageSettings, **own: object) -> lab.Stored:
    """The paths of a figure's case, computed once for all figures."""
    run = ImageReconstructions(**case.of_runs(), **own)  # type: ignore[arg-type]
    return lab.shared(run, reconstruct, RECONSTRUCTIONS)


def reconstruct(case: ImageReconstructions) -> lab.Computed:
    """Rows of paths (part "path"), of the span (part "span"), and reconstructions as arrays."""
    trainings, known = Trainings(case), histories(case)
    robust = trainings.network(*known["adversarial"])
    images, labels = trainings.held_out
    count = len(trainings.perturbations(*known["clean"]))
    right = scores(robust, images[:count].to(next(robust.parameters()).device)).argmax(1).cpu()
    chosen = (right == labels[:count]).nonzero().flatten()[: case.reconstructed]
    chosen = chosen if len(chosen) else torch.arange(case.reconstructed)  # a net at chance
    x = zero_mean(images[chosen])
    rows, arrays = [], {"images": images[chosen].numpy()}
    for stage in STAGES:
        features = features_of(trainings, stage)
        path = _path(case, features, x)
        rows.append(_rows(path, "images", stage))
        arrays[f"{stage}: reconstruction"] = _at_share(case, features, x, path).numpy()
    features = features_of(trainings, "adversarial")
    for stage in ("clean", "control", "adversarial"):
        delta = _like(zero_mean(trainings.perturbations(*known[stage])[chosen]), x)
        rows.append(_rows(_path(case, features, delta), f"perturbations of {stage}", "adversarial"))
        rows.append(pl.DataFrame({
            "part": "span", "target": f"perturbations of {stage}",
            "error": [float(outside_span(features, delta).mean())],
        }))  # fmt: skip
    return lab.Computed(pl.concat(rows, how="diagonal"), arrays)


def features_of(trainings: Trainings, stage: Stage) -> ConvolutionalDictionary:
    """The first layer's filters at a stage, of length one, as a dictionary."""
    net = trainings.network(*histories(trainings.settings)[stage]).cpu()
    layer = net.get_submodule(trainings.settings.first_layer)
    if not isinstance(layer, nn.Conv2d):
        raise TypeError(type(layer).__name__)
    return ConvolutionalDictionary.of(layer).normalised()


def _path(
    case: ImageReconstructions, features: ConvolutionalDictionary, x: Tensor
) -> ReconstructionPath:
    return lasso_path(features, x, case.fractions, tolerance=case.tolerance, steps=case.lasso_steps)


def _rows(path: ReconstructionPath, target: str, features: str) -> pl.DataFrame:
    """The mean over images at each weight, and the error at 2 %, 4.05 % and 5 % of nonzeros."""
    points = pl.DataFrame({
        "part": "path", "target": target, "features": features,
        "fraction": path.fractions,
        "error": path.error.double().mean(1).numpy(), "share": path.share.double().mean(1).numpy(),
        "gap": path.gap.double().amax(1).numpy(),
    })  # fmt: skip
    at = pl.DataFrame([
        {"part": "at", "target": target, "features": features, "share": share,
         "error": float(path.error_at(share).double().mean())}
        for share in (0.02, SHARE, 0.05)
    ])  # fmt: skip
    return pl.concat([points, at], how="diagonal")


def _at_share(
    case: ImageReconstructions, features: ConvolutionalDictionary, x: Tensor,
    path: ReconstructionPath,
) -> Tensor:  # fmt: skip
    """Reconstructions at the weight of the path whose mean share comes nearest to 4.05 %."""
    share = path.share.mean(1)
    near = int((share - SHARE).abs().argmin())
    weight = path.fractions[near] * largest_weight(features, x)
    return sparse_reconstruction(
        features, x, weight, tolerance=case.tolerance, steps=case.lasso_steps
    ).image


def _like(delta: Tensor, x: Tensor) -> Tensor:
    """Perturbations with the images' standard deviation (footnote 19)."""
    size = delta.flatten(1).std(1).clamp(min=1e-12)
    return delta * (x.flatten(1).std(1) / size)[:, None, None, None]


@torch.no_grad()
def outside_span(features: ConvolutionalDictionary, x: Tensor, steps: int = SPAN_STEPS) -> Tensor:
    """min over codes of |W y - x|^2 / |x|^2, from above: conjugate gradients on W W' z = x.

    Args:
        features: W.
        x: what is to be reconstructed without any sparsity.
        steps: of conjugate gradients; the answer falls with them.

    Example:
        outside_span(features, delta).max() < 5e-5  # Remark 8.2
    """
    W = features.for_images(x)
    rest, total = x.double().clone(), x.double().flatten(1).square().sum(1)
    W = ConvolutionalDictionary(W.filters.double(), W.stride, W.padding, W.size)
    code = torch.zeros_like(W.analyze(rest))
    slope = W.analyze(rest)
    move, size = slope.clone(), slope.flatten(1).square().sum(1)
    for _ in range(steps):
        image = W.synthesize(move)
        length = size / image.flatten(1).square().sum(1).clamp(min=1e-300)
        code += length[:, None, None, None] * move
        rest -= length[:, None, None, None] * image
        slope = W.analyze(rest)
        new = slope.flatten(1).square().sum(1)
        move = slope + (new / size.clamp(min=1e-300))[:, None, None, None] * move
        size = new
    return rest.flatten(1).square().sum(1) / total.clamp(min=1e-300)
