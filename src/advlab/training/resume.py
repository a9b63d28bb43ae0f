"""A run that goes on from a stored state: only from its own, unless the user wants another."""

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from torch import Tensor

from ..core.errors import AdvlabError
from ..core.identity import Fingerprint, differences
from ..losses import resolve
from .global_randomness import set_global_randomness

if TYPE_CHECKING:
    from .run import Run


def run_parts(run: "Run") -> dict[str, str]:
    """All that decides a run before its first step, by name (`core.identity`)."""
    found = Fingerprint()
    found.model(run.model)
    run.batches.identify(found)
    found.add("settings: objective", type(run.objective), type(run))
    for name in type(run.objective).model_fields:
        value = getattr(run.objective, name)
        found.add(f"settings: {name}", value, resolve(value) if name == "loss" else None)
    groups = [
        {k: v for k, v in group.items() if k not in ("params", "lr", "initial_lr")}
        for group in run.optimizer.param_groups
    ]
    state = run.optimizer.state_dict()["state"]
    found.add("settings: optimizer", type(run.optimizer), groups, state)
    rates = [float(group["lr"]) for group in run.optimizer.param_groups]
    found.add("settings: lr", rates if run.schedule is None else run.schedule)
    found.add("settings: steps", run.steps)
    found.add("settings: batch", run.batch)
    if run.transform is not None:
        found.add("settings: transform", run.transform)
    if run.parts_of_batch > 1:
        found.add("settings: parts of a batch", run.parts_of_batch)
    found.add("settings: rng", run.generators())
    found.add("settings: hooks", [(type(h), h.settings()) for h in run.part_of_run()])
    found.versions()
    parts = found.parts()
    parts["model: initial weights"] = parts.pop("model: weights")
    return parts


def take_up(run: "Run", state: Mapping[str, Any], reuse: bool) -> None:
    """Put a fresh run to where a state was taken.

    Args:
        run: the fresh run, with its parts.
        state: what `Run.state_dict` gave.
        reuse: whether to go on from the state of another run too, as far as it fits.

    Raises:
        AdvlabError: the state is of another run, or does not fit; the run is as it was.
    """
    parts: Mapping[str, str] = state.get("parts", {})
    changed = differences(parts, run.parts)
    if changed and not reuse:
        advice = "choose another file, delete this one, or go on from it with reuse=True"
        if changed == "made with another model: initial weights changed":
            advice = f"seed them before the model is made; or {advice}"
        raise AdvlabError("a checkpoint must come from the same run", f"one {changed}", advice)
    _check_fits(run, state)
    if changed:
        warnings.warn(f"going on from a checkpoint {changed}", stacklevel=2)

    def same(*names: str) -> bool:
        return all(
            parts.get(f"settings: {name}") == run.parts.get(f"settings: {name}") for name in names
        )

    run.model.load_state_dict(state["model"])
    if same("optimizer"):
        kept = state["optimizer"]
        groups = kept if same("lr") else run.optimizer.state_dict()
        run.optimizer.load_state_dict({**kept, "param_groups": groups["param_groups"]})
    if len(state["rng"]) == len(run.generators()):
        for rng, stored in zip(run.generators(), state["rng"], strict=True):
            rng.set_state(stored)
    if same("batch"):
        run.batches.load_state_dict(state["batches"])
    if state.get("same") is not None:
        x, y = state["same"]
        run._same = (x.to(run.device), y.to(run.device))
    if run.cut is not None and state.get("cut") and same("parts of a batch"):
        run.cut.load_state_dict(state["cut"])
    if same("hooks"):
        for hook, stored in zip(run.part_of_run(), state["hooks"], strict=True):
            hook.load_state_dict(stored)
    probes = list(run.log.probes)
    run.log.load_state_dict(state["log"])
    for name in probes:
        run.log.probes.setdefault(name, [])
        run.log.steps.setdefault(name, [])
    run.step, run.stopped = state["step"], state["stopped"]
    run.diverged_at = state["diverged_at"]
    set_global_randomness(state["global"])


def _check_fits(run: "Run", state: Mapping[str, Any]) -> None:
    mine = {name: tuple(value.shape) for name, value in _tensors(run.model.state_dict()).items()}
    kept = {name: tuple(value.shape) for name, value in _tensors(state["model"]).items()}
    wrong = [name for name in {**mine, **kept} if mine.get(name) != kept.get(name)]
    if wrong:
        name = wrong[0]
        raise AdvlabError(
            f"a checkpoint with the weights of the model, {name} of shape {mine.get(name, 'none')}",
            kept.get(name, "none"),
            "choose another file, or delete this one to start anew",
        )
    if state["step"] > run.steps:
        raise AdvlabError(
            f"a checkpoint of at most {run.steps} steps", f"one of {state['step']}", "raise steps"
        )


def _tensors(state: Mapping[str, Any]) -> dict[str, Tensor]:
    return {name: value for name, value in state.items() if isinstance(value, Tensor)}
