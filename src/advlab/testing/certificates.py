"""The laws of certificates."""

import copy
import itertools
import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from ..attacks import PGD
from ..certify import Certificate
from ..core.errors import AdvlabError
from ..core.inputs import Given, instance
from ..core.randomness import generator, normal
from ..losses import ModelLoss, margin
from ..threats import Ball, FeatureBall, Integers, Product, Threat
from .law import Laws

ROWS, FEATURES = 6, 5
THREATS: tuple[Threat, ...] = (
    Ball("linf", 0.1),
    Ball("l2", 0.3, box=(-2.0, 2.0)),
    Ball("l1", 0.5),
    Ball("linf", 1.5),
    FeatureBall("linf", [0.0, 0.3, 0.1, 0.5, 0.0]),
    Product([([0, 1], Ball("l2", 0.4)), ([3], Integers(1.0, step=0.5))], changes=1),
)


def check_certificate(
    certificate: Given[Certificate],
    *,
    models: Sequence[nn.Module] | None = None,
    threats: Sequence[Threat] = THREATS,
    seed: int = 0,
) -> None:
    """Hold a certificate to the laws that upper bounds rely on.

    No draw of the set and no attack passes a bound; a bound is at least the clean margin; a set
    that does not state its support function is refused; the network is left as it was; a row does
    not depend on its company; a network that is not a number certifies nothing. What the
    certificate refuses in words is not held against it, unless it refuses everything.

    Args:
        certificate: The certificate.
        models: Networks of 5 inputs it is tried on; by default linear ones, one and two hidden
            layers of ReLU, and one output.
        threats: The sets it is tried with.
        seed: Of networks, inputs and points.

    Raises:
        LawBroken: Naming the law, with numbers. It is an AssertionError too.

    Example:
        >>> from advlab.testing import check_certificate
        >>> check_certificate(MyBound())
    """
    instance("a certificate", certificate, Certificate, "for example check_certificate(IBP())")
    laws, bounded = Laws(certificate), 0
    chosen = list(models) if models is not None else default_models(seed)
    for number, model in enumerate(chosen):
        rng = generator("check_certificate", seed, number)
        x = normal(torch.empty(ROWS, FEATURES, dtype=torch.float64), rng).clamp(-1.9, 1.9)
        y = _labels(model, x)
        for threat in threats:
            if certificate.refuses(model, threat, x[:1]) is None:
                bounded += 1
                _sound(laws, certificate, model, x, y, threat, rng)
                if bounded == 1:
                    _once(laws, certificate, model, x, y, threat)
    laws.holds("it bounds some network in some set", bounded > 0, "refusals only")


def default_models(seed: int = 0) -> list[nn.Module]:
    """Small networks of 5 inputs: linear, one and two hidden layers, one output.

    Args:
        seed: Of the weights.
    """
    rng = generator("check_certificate", "weights", seed)
    nets = [_network(FEATURES, *widths) for widths in ((3,), (8, 3), (8, 6, 3), (8, 1))]
    for weight in (one for net in nets for one in net.double().parameters()):
        weight.data = normal(weight.data, rng) / math.sqrt(weight.shape[-1])
    return nets


def _network(*widths: int) -> nn.Module:
    layers: list[nn.Module] = []
    for inputs, outputs in itertools.pairwise(widths):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def _labels(model: nn.Module, x: Tensor) -> Tensor:
    with torch.no_grad():
        scores = model(x)
    if scores.ndim == 2 and scores.shape[1] > 1:
        return scores.argmax(1)
    return torch.where(scores.reshape(-1) >= 0, 1, -1)


def _sound(
    laws: Laws, certificate: Certificate, model: nn.Module, x: Tensor, y: Tensor, threat: Threat,
    rng: torch.Generator,
) -> None:  # fmt: skip
    bound = certificate.worst_margin(model, x, y, threat)
    laws.holds("one bound per row", bound.shape == y.shape, tuple(bound.shape))
    loss, where = ModelLoss(model, y, margin), f"in {threat!r:.80}"
    with torch.no_grad():
        slack = 1e-9 * (1 + loss(x).abs())
        laws.at_least(f"a bound is at least the clean margin, {where}", bound, loss(x), slack)
        for _ in range(20):
            value = loss(threat.sample(x, rng=rng))
            laws.at_least(f"no draw passes a bound, {where}", bound, value, slack)
    found = PGD(steps=10, restarts=2)(loss, x, threat, rng=rng)
    laws.at_least(f"no attack passes a bound, {where}", bound, found.loss, slack)
    one = certificate.worst_margin(model, x[:1], y[:1], threat)
    laws.close("a bound does not depend on other rows", one, bound[:1], slack[:1])


def _once(
    laws: Laws, certificate: Certificate, model: nn.Module, x: Tensor, y: Tensor, threat: Threat
) -> None:
    """What need not be seen in every set."""
    given, labels, before = x.clone(), y.clone(), copy.deepcopy(model.train())
    first = certificate.worst_margin(model, given, labels, threat)
    laws.same("it leaves the inputs as they were", given, x)
    laws.same("it leaves the labels as they were", labels, y)
    for (name, now), (_, was) in zip(model.named_modules(), before.named_modules(), strict=True):
        laws.holds(
            "it leaves train and eval modes as they were", now.training == was.training, name
        )
    for name, value in before.state_dict().items():
        laws.same(f"it leaves parameters as they were ({name})", model.state_dict()[name], value)
    none = all(one.grad is None for one in model.parameters())
    laws.holds("it leaves no gradients behind", none)
    laws.same("it repeats itself", certificate.worst_margin(model, given, labels, threat), first)
    refused = certificate.refuses(model, _Unstated(norm="linf", radius=0.1), x[:1]) is not None
    laws.holds("a set that does not state its support function is refused", refused)
    broken = copy.deepcopy(model)
    next(broken.parameters()).data[..., 0] = torch.nan
    try:
        bound = certificate.worst_margin(broken, x, y, threat)
    except AdvlabError:
        return  # a refusal is as good
    laws.holds("a network that is not a number certifies nothing", ~(bound < 0), "bounds below 0")


class _Unstated(Ball):
    """A ball that is larger than its parent says, and states nothing about itself."""

    def contains(self, point: Tensor, center: Tensor, slack: float | None = None) -> Tensor:
        return super().contains(point, center, slack) | True
