"""A trained network as a folder: model.safetensors and model.json, which anybody can load.

No code runs that the folder names: networks of ours are built by name, and those of a user's own
class are loaded only when the one who loads hands in that class.
"""

import json
from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from ..core import inputs
from ..core.config import Config
from ..core.errors import AdvlabError
from ..core.files import file_checksum, read_tensors, write_tensors, write_text
from ..core.inputs import Given
from ..core.nearest import unknown
from ..core.seal import seal, unseal
from .networks import NETWORKS, NetworkDescription

WEIGHTS, ABOUT = "model.safetensors", "model.json"
LARGEST = 2**24
"""No description has more bytes."""
DTYPES = {"float16": torch.float16, "bfloat16": torch.bfloat16, "float32": torch.float32,
          "float64": torch.float64}  # fmt: skip


class StoredModel(Config):
    """What model.json holds.

    Args:
        format: the version of this format.
        network: from what the network is built.
        dtype: the floating-point type of all its weights.
        sha256: the checksum of model.safetensors.
        notes: what the one who saved it wants to tell, in JSON's own types.
    """

    format: Literal[1] = 1
    network: NetworkDescription
    dtype: Literal["float16", "bfloat16", "float32", "float64"]
    sha256: str = Field(pattern="^[0-9a-f]{64}$")
    notes: dict[str, Any] = Field(default_factory=dict)


def save_model(
    folder: Given[str | PathLike[str]],
    model: Given[nn.Module],
    description: Given[NetworkDescription],
    notes: Given[Mapping[str, Any] | None] = None,
) -> Path:
    """Write a network as a folder that `load_model` (and `advlab.load`) can read.

    Args:
        folder: where to; it is made if it is missing, and a model that is there is replaced.
        model: the network. It must be the one that the description describes.
        description: from what it is built. For a class of your own `network` is "module:object",
            which is only told to the one who loads it.
        notes: anything else to keep: numbers, words, lists and dicts of them.

    Returns:
        The folder.

    Example:
        from advlab.models import NetworkDescription, save_model
        about = NetworkDescription(network="lenet5", channels=1, side=28, classes=10)
        net = about.build(rng=0)
        save_model("run", net, about, {"epochs": 20})
    """
    place = inputs.path("folder", folder)
    inputs.instance("a model that is a torch.nn.Module", model, nn.Module, "")
    inputs.instance("a NetworkDescription", description, NetworkDescription, "")
    state = model.state_dict()
    if ":" not in description.network:
        _check_state(description.network, description.build().state_dict(), state, "the model")
    _check_normalisation(description, state, "the model")
    try:
        place.mkdir(parents=True, exist_ok=True)
        write_tensors(place / WEIGHTS, state, {"advlab": "model"})
        stored = StoredModel(
            network=description,
            dtype=_dtype(state),
            sha256=file_checksum(place / WEIGHTS),
            notes=_plain(notes),
        )
        text = json.dumps(stored.model_dump(mode="json"), indent=1)
        write_text(place / ABOUT, seal(text))
    except OSError as error:
        raise AdvlabError(f"a folder that can be written, not {place}", error.strerror) from None
    return place


def load_model(
    folder: Given[str | PathLike[str]],
    network: Given[nn.Module | Callable[[], nn.Module] | None] = None,
) -> nn.Module:
    """The network of a folder, in eval mode on the CPU. Nothing that the folder names is imported.

    Args:
        folder: what `save_model` wrote.
        network: for a network that is not one of advlab's own: the untrained network, or a function
            without arguments that makes it, such as its class.

    Raises:
        AdvlabError: a file is missing, truncated or edited, or belongs to another network.

    Example:
        import advlab
        import my_nets
        net = advlab.load("run")
        net = advlab.load("mine", network=my_nets.Net)
    """
    place = inputs.path("folder", folder)
    stored = read_description(place)
    model = _built(place, stored.network, network)
    weights = place / WEIGHTS
    if not weights.is_file():
        raise AdvlabError("a folder with model.safetensors", f"{place} without it")
    if file_checksum(weights) != stored.sha256:
        raise AdvlabError(
            f"{weights} as it was saved (sha256 {stored.sha256[:12]}...)",
            "a truncated or edited file, or that of another model",
            "restore it from a copy",
        )
    state, _ = read_tensors(weights, sealed=True)
    _check_state(stored.network.network, model.state_dict(), state, str(weights))
    _check_normalisation(stored.network, state, str(weights))
    if _dtype(state) != stored.dtype:
        raise AdvlabError(f"weights of {stored.dtype}", f"{_dtype(state)} in {weights}")
    model.load_state_dict(state, assign=True)
    return model.eval()


def read_description(folder: Given[str | PathLike[str]]) -> StoredModel:
    """What is told of the model of a folder, without its weights.

    Args:
        folder: what `save_model` wrote.

    Example:
        from advlab.models import read_description
        read_description("run").network.class_names
    """
    file = inputs.path("folder", folder) / ABOUT
    if not file.is_file():
        raise AdvlabError("a folder with model.json, as `save_model` writes it", f"{file.parent}")
    try:
        if file.stat().st_size > LARGEST:
            raise ValueError(f"more than {LARGEST} bytes")
        found = json.loads(unseal(file.read_bytes()))
        if found.get("format") != 1:
            raise ValueError(f"format {found.get('format')!r:.20}, where this version reads 1")
        return StoredModel(**found)
    except (ValueError, OSError, RecursionError) as error:
        came = " ".join(str(error).split())
    raise AdvlabError(f"{file} as it was saved", f"{came:.200}", "restore it from a copy")


def is_model_folder(path: Path) -> bool:
    """Whether a path is a folder that `save_model` wrote, as far as names tell."""
    return (path / ABOUT).is_file()


def _built(place: Path, about: NetworkDescription, network: Any) -> nn.Module:
    if network is None:
        # Ours only: a folder must not choose which installed package is imported.
        if about.network in list(NETWORKS):
            return about.build()
        if ":" in about.network:
            raise AdvlabError(
                f"the network of {place}, {about.network}, which is not one of advlab's own",
                "none",
                "give its class if you trust it: load(folder, network=TheClass)",
            )
        raise unknown(f"{place} with a network", about.network, NETWORKS)
    try:
        made = network if isinstance(network, nn.Module) else network()
    except inputs.TROUBLES as error:
        raise AdvlabError(
            "a network, or a function without arguments that makes it", inputs.whole_line(error)
        ) from error
    inputs.instance("a torch.nn.Module from network", made, nn.Module, "")
    return about.normalised(made)


def _check_state(
    name: str, wanted: Mapping[str, Tensor], state: Mapping[str, Tensor], source: str
) -> None:
    """Refuse weights of another architecture, and say where it differs first."""
    missing = [key for key in wanted if key not in state]
    extra = [key for key in state if key not in wanted]
    other = [
        f"{key} {tuple(state[key].shape)} in place of {tuple(wanted[key].shape)}"
        for key in wanted
        if key in state and state[key].shape != wanted[key].shape
    ]
    told = [
        f"{len(some)} {what} ({some[0]}{', ...' if len(some) > 1 else ''})"
        for what, some in (("missing", missing), ("unknown", extra), ("of other shape", other))
        if some
    ]
    if told:
        raise AdvlabError(f"{source} with the weights of {name}", "; ".join(told))


def _check_normalisation(
    about: NetworkDescription, state: Mapping[str, Tensor], source: str
) -> None:
    """Refuse a normalisation that is not the one described, but for rounding to the weights' type.

    A model whose inputs are scaled in another way than is told would be measured in wrong units.
    """
    for name, told in (("mean", about.mean), ("std", about.std)):
        if told is None:
            continue
        came = state.get(name)
        if came is None:
            raise AdvlabError(f"{source} with a layer Normalised in front", "none")
        if came.shape != (len(told),) or not torch.allclose(
            came.double(), torch.tensor(told, dtype=torch.float64), rtol=0.01, atol=1e-6
        ):
            raise AdvlabError(f"{name} {told} in {source}", f"{came.tolist()}")


def _dtype(state: Mapping[str, Tensor]) -> Any:
    found = {value.dtype for value in state.values() if value.is_floating_point()}
    names = [name for name, dtype in DTYPES.items() if dtype in found]
    if len(found) != 1 or len(names) != 1:
        came = ", ".join(sorted(map(str, found))) or "none"
        raise AdvlabError("weights of one floating-point type", came)
    return names[0]


def _plain(notes: Any) -> dict[str, Any]:
    try:
        return json.loads(json.dumps(dict(notes or {}), allow_nan=False))
    except (TypeError, ValueError) as error:
        raise AdvlabError("notes of numbers, words, lists and dicts", str(error)) from None
