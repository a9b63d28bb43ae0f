"""Checkpoints in safetensors: all that a run needs to go on with the same bits."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from ..core.config import Config
from ..core.errors import AdvlabError
from ..core.files import read_tensors, write_tensors

if TYPE_CHECKING:
    from .loop import _Run


def save(path: Path, run: "_Run", settings: Config) -> None:
    """Write the run's state beside the path, then rename: a reader never sees half a file."""
    tensors = {f"model/{name}": value for name, value in run.model.state_dict().items()}
    tensors |= {f"start/{i}": value for i, value in enumerate(run.start)}
    tensors |= {f"optimizer/{i}": value for i, value in enumerate(run.state)}
    tensors |= {f"rng/{i}": rng.get_state() for i, rng in enumerate(_generators(run))}
    tensors["batches/order"] = run.batches.order
    if run.log.loss:
        tensors["log/loss"] = run.log.losses()
    tensors |= {f"log/probe/{k}": torch.stack(v) for k, v in run.log.probes.items() if v}
    about = {
        "step": run.step,
        "position": run.batches.position,
        "diverged": run.diverged,
        "probe_steps": run.log.probe_steps,
        "settings": settings.canonical(),
    }
    write_tensors(path, tensors, {"advlab": json.dumps(about)})


def load(path: Path, run: "_Run", settings: Config) -> None:
    """Put a fresh run back to where the checkpoint left it."""
    tensors, metadata = read_tensors(path)
    about = json.loads(metadata.get("advlab", "{}"))
    if about.get("settings") != settings.canonical():
        raise AdvlabError(
            f"{path} must come from a run with the same settings",
            "other settings",
            "choose another checkpoint file, or delete this one to start anew",
        )
    run.model.load_state_dict({k[6:]: v for k, v in tensors.items() if k.startswith("model/")})
    with torch.no_grad():
        for kind, targets in (("start", run.start), ("optimizer", run.state)):
            for i, target in enumerate(targets):
                target.copy_(tensors[f"{kind}/{i}"])
    for i, rng in enumerate(_generators(run)):
        rng.set_state(tensors[f"rng/{i}"])
    run.batches.order, run.batches.position = tensors["batches/order"], about["position"]
    run.step, run.diverged = about["step"], about["diverged"]
    run.log.loss = list(tensors.get("log/loss", torch.empty(0)))
    run.log.probe_steps = about["probe_steps"]
    run.log.probes = {k: list(tensors.get(f"log/probe/{k}", torch.empty(0))) for k in run.probes}


def _generators(run: "_Run") -> list[torch.Generator]:
    return [run.rng] if isinstance(run.rng, torch.Generator) else list(run.rng)
