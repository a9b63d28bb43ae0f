"""Image networks by name, and a description from which one is built again."""

import inspect
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from pydantic import ConfigDict, Field, PositiveInt, field_validator, model_validator
from torch import Tensor, nn

from ..core import inputs
from ..core.config import ExactConfig
from ..core.errors import AdvlabError
from ..core.inputs import Given
from ..core.nearest import nearest, unknown
from ..core.registry import Registry
from .alexnet import AlexNet
from .lenet5 import LeNet5
from .normalised import Normalised
from .preact_resnet import PreActResNet
from .resnet9 import ResNet9
from .seeded import seeded
from .small_cnn import SmallCNN
from .wide_resnet import WideResNet

NETWORKS: Registry[Callable[..., nn.Module]] = Registry(
    "advlab.networks",
    None,
    {
        "lenet5": LeNet5,
        "small_cnn": SmallCNN,
        "resnet9": ResNet9,
        "alexnet": AlexNet,
        "preact_resnet14": partial(PreActResNet, depth=14),
        "preact_resnet18": partial(PreActResNet, depth=18),
        "preact_resnet32": partial(PreActResNet, depth=32),
        "preact_resnet34": partial(PreActResNet, depth=34),
        "preact_resnet": PreActResNet,
        "wrn34_1": partial(WideResNet, depth=34, widen=1),
        "wrn34_10": partial(WideResNet, depth=34, widen=10),
        "wrn28_10": partial(WideResNet, depth=28, widen=10),
        "wide_resnet": WideResNet,
    },
)
"""Functions that make a network from `channels`, `classes`, where it matters `side`, and settings
of its own."""

IMAGE = ("channels", "side", "classes")
Setting = bool | int | float | str | None


class NetworkDescription(ExactConfig):
    """What has to be known to build a network for images again, but for its weights.

    Args:
        network: a name of `NETWORKS`, or `module:object` for a class of the user's own.
        channels: of the images.
        side: height and width of the images.
        classes: how many scores the network gives.
        class_names: their names, in order.
        mean: what the first layer takes off, per channel; None for no such layer.
        std: what the first layer divides by, per channel.
        settings: the network's own settings, such as width or activation; usual ones if left out.

    Example:
        from advlab.models import NetworkDescription
        about = NetworkDescription(network="resnet9", channels=3, side=32, classes=10)
        net = about.build(rng=0)
    """

    # Neither "3" nor 3.0 is a count: what a file says is what it means.
    model_config = ConfigDict(strict=True)

    network: str = Field(min_length=1)
    channels: PositiveInt
    side: PositiveInt
    classes: int = Field(ge=2)
    class_names: tuple[str, ...] | None = None
    mean: tuple[float, ...] | None = None
    std: tuple[float, ...] | None = None
    settings: dict[str, Setting] = Field(default_factory=dict)

    @field_validator("class_names", "mean", "std", mode="before")
    @classmethod
    def _tuple(cls, value: Any) -> Any:
        return tuple(value) if isinstance(value, list) else value

    @field_validator("settings", mode="before")
    @classmethod
    def _plain(cls, value: Any) -> Any:
        for name, one in value.items() if isinstance(value, dict) else ():
            if not isinstance(one, bool | int | float | str | None):
                raise AdvlabError(f"{name} as a number or a word", f"{one!r:.60}")
        return value

    @model_validator(mode="after")
    def _fits(self) -> "NetworkDescription":
        if self.class_names is not None and len(self.class_names) != self.classes:
            raise AdvlabError(f"names of {self.classes} classes", f"{len(self.class_names)} names")
        if (self.mean is None) != (self.std is None):
            raise AdvlabError("mean and std together", "one of them")
        for part in (self.mean, self.std):
            if part is not None and len(part) != self.channels:
                raise AdvlabError(f"mean and std of {self.channels} channels", f"{len(part)}")
        return self

    def build(self, rng: Given[torch.Generator | int | None] = None) -> nn.Module:
        """The network at its start; without a generator, on the meta device and without numbers.

        Args:
            rng: what draws the start, a generator or a whole number.
        """
        if self.network not in NETWORKS:
            raise unknown("a network", self.network, NETWORKS.names())
        make = NETWORKS[self.network]
        given = _checked(self.network, make, self)
        start = torch.device("meta") if rng is None else seeded(_generator(rng))
        with start:
            try:
                return self.normalised(make(**given))
            except AdvlabError:
                raise
            except inputs.TROUBLES as error:
                raise AdvlabError(
                    f"settings that {self.network} can be built with", inputs.whole_line(error)
                ) from None

    def check_examples(self, x: Tensor, y: Tensor) -> None:
        """Refuse images of another shape than the network takes, and labels that it has not.

        Args:
            x: images (n, channels, side, side).
            y: their classes.
        """
        wanted = (self.channels, self.side, self.side)
        if tuple(x.shape[1:]) != wanted:
            raise AdvlabError(
                f"images of shape {wanted} for {self.network}",
                f"{tuple(x.shape[1:])}",
                "build the network with the channels and side of the images",
            )
        if y.is_floating_point() or len(y) != len(x):
            raise AdvlabError("a class per image", f"{len(x)} images and {len(y)} {y.dtype}")
        if len(y) and not 0 <= int(y.min()) <= int(y.max()) < self.classes:
            came = f"labels from {int(y.min())} to {int(y.max())}"
            raise AdvlabError(f"labels from 0 to {self.classes - 1} for {self.network}", came)

    def normalised(self, model: nn.Module) -> nn.Module:
        """The network behind its normalisation, if it has one.

        Args:
            model: the network that takes normalised inputs.
        """
        if self.mean is None or self.std is None:
            return model
        return Normalised(model, self.mean, self.std)


def network(
    name: Given[str],
    *,
    channels: Given[int],
    side: Given[int],
    classes: Given[int],
    rng: Given[torch.Generator | int],
    mean: Given[Sequence[float] | None] = None,
    std: Given[Sequence[float] | None] = None,
    **settings: Given[Setting],
) -> nn.Module:
    """A network for images by name, at its start.

    Args:
        name: one of `NETWORKS`.
        channels: of the images.
        side: height and width of the images.
        classes: how many scores to give.
        rng: what draws the start, a generator or a whole number.
        mean: what a first layer takes off, per channel; inputs stay in natural units.
        std: what a first layer divides by, per channel.
        settings: the network's own, such as width=32 or activation="silu".

    Example:
        from advlab.models import network
        net = network("preact_resnet18", channels=3, side=32, classes=10, rng=0,
                      mean=(0.491, 0.482, 0.447), std=(0.247, 0.243, 0.262))
    """
    image = {"channels": channels, "side": side, "classes": classes}
    scale: dict[str, Any] = {"mean": mean, "std": std}
    described = NetworkDescription(network=name, settings=settings, **image, **scale)
    return described.build(rng)


def settings_of(name: str) -> dict[str, Setting]:
    """The settings of a network's own and what they are if left out.

    Args:
        name: one of `NETWORKS`.
    """
    if name not in NETWORKS:
        raise unknown("a network", name, NETWORKS.names())
    return _own(NETWORKS[name])


def _own(make: Callable[..., nn.Module]) -> dict[str, Setting]:
    fixed = make.keywords if isinstance(make, partial) else {}
    parameters = inspect.signature(make).parameters
    return {
        name: about.default
        for name, about in parameters.items()
        if name not in (*IMAGE, *fixed) and about.default is not about.empty
    }


def _checked(
    name: str, make: Callable[..., nn.Module], about: NetworkDescription
) -> dict[str, Setting]:
    """The arguments of a network's function, with settings that it has and of their kind."""
    own = _own(make)
    for setting, value in about.settings.items():
        if setting not in own:
            raise AdvlabError(
                f"settings of {name} among {', '.join(own) or 'none'}",
                repr(setting),
                nearest(setting, own),
            )
        usual = own[setting]
        if usual is not None and type(value) is not type(usual):
            kind = {int: "a whole number", str: "a word", float: "a number", bool: "true or false"}
            raise AdvlabError(
                f"{setting} of {name} as {kind[type(usual)]}, such as {usual}", repr(value)
            )
    image = {part: getattr(about, part) for part in IMAGE}
    taken = inspect.signature(make).parameters
    return {**{part: value for part, value in image.items() if part in taken}, **about.settings}


def _generator(rng: Any) -> torch.Generator:
    one = inputs.randomness(rng)
    if not isinstance(one, torch.Generator):
        raise AdvlabError("one generator, or a whole number", f"{rng!r:.60}")
    return one
