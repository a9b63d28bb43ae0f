"""What `advlab train` does with a plan: data, network, training, evaluation, report."""

import json
import os
import sys
import tomllib
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import filelock
import torch
import torch.distributed as dist
from torch import Tensor, nn

from ..core.datafiles import recording
from ..core.devices import choose_device
from ..core.errors import AdvlabError
from ..core.randomness import generator
from ..core.seal import unseal
from ..data.all_parts import all_parts
from ..data.arrays import Arrays
from ..data.splits import check_every_class, split
from ..lab import provenance
from ..lab.evaluations import check_evaluation
from ..measure.sharpness import input_sharpness
from ..models.folder import save_model
from ..models.networks import NetworkDescription
from ..report.training import write_training
from ..threats import Ball
from ..training import TrainedModel
from ..training import train as train_model
from ..training.processes import present
from . import examples
from .attack import run_attack
from .models import from_import
from .training_plan import TrainingPlan


@dataclass(frozen=True)
class TrainingData:
    """Examples to train on, to choose the epoch by, and to judge by; the files they are from."""

    train: Arrays
    validation: Arrays
    test: Arrays | None
    read: Any


def run_training(
    plan: TrainingPlan,
    folder: Path,
    *,
    data_dir: Path | None,
    device: str,
    compile: bool,
    tensorboard: bool,
) -> dict[str, Any] | None:
    """Train, evaluate and write everything; what train.json and the report tell.

    Args:
        plan: what to do.
        folder: where to.
        data_dir: the folder of data sets.
        device: where the model runs.
        compile: whether to compile the network.
        tensorboard: whether to write its files.

    Returns:
        What was found; None on processes that leave the telling to the first.
    """
    with _place(device, plan.precision) as place, _alone_in(folder, plan):
        data = _data(plan, data_dir)
        about = _description(plan, data.train)
        with _autocast(place, plan.precision), warnings.catch_warnings():
            # That the loss was not finite is the last line, said once.
            warnings.filterwarnings("ignore", message="the loss was not finite")
            trained = train_model(
                _network(plan, about).to(place),
                data.train.x,
                data.train.y,
                recipe=plan.made_recipe(),
                ball=plan.ball(),
                validation=data.validation,
                augment=plan.augment,
                rng=plan.seed,
                out=folder,
                measures=_measures(plan, data.validation),
                accumulate=plan.accumulate,
                tensorboard=tensorboard,
                compile=compile,
            )
        if not present().first:
            return None
        trained.model.to("cpu")
        save_model(folder, trained.model, about, _notes(plan, trained))
        found = _about(plan, trained, folder)
        if trained.status != "diverged" and data.test is not None:
            found["evaluation"] = _evaluation(plan, folder, data, device)
        write_training(found, trained.log, folder / "report.html")
        if trained.status == "diverged":
            raise AdvlabError("a finite loss all along", trained.reason, "try --set lr=...")
        return found


@contextmanager
def _place(device: str, precision: str) -> Iterator[torch.device]:
    """The device; under torchrun every process joins the others, each with a device of its own."""
    place = choose_device(device)
    joins = int(os.environ.get("WORLD_SIZE", "1")) > 1 and not dist.is_initialized()
    if joins:
        if place.type == "cuda":
            place = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
            torch.cuda.set_device(place)
        dist.init_process_group("nccl" if place.type == "cuda" else "gloo")
    if precision == "bf16" and place.type == "mps":
        raise AdvlabError("--precision 32 on mps", precision)
    try:
        yield place
    finally:
        if joins:
            dist.destroy_process_group()


@contextmanager
def _alone_in(folder: Path, plan: TrainingPlan) -> Iterator[None]:
    """Keep the plan in the folder, and others out of it until the run is over."""
    if not present().first:
        present().wait()
        yield
        return
    folder.mkdir(parents=True, exist_ok=True)
    lock = filelock.FileLock(folder / ".lock")
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout:
        raise AdvlabError(f"a folder that no other run writes to, not {folder}", "one") from None
    try:
        plan.keep(folder)
        present().wait()
        yield
    finally:
        lock.release()


def _autocast(place: torch.device, precision: str) -> Any:
    return torch.autocast(place.type, torch.bfloat16) if precision == "bf16" else nullcontext()


def _data(plan: TrainingPlan, data_dir: Path | None) -> TrainingData:
    """The data's own validation and test parts, or examples set aside for them."""
    with recording() as read:
        parts = all_parts(plan.data, directory=data_dir, limit=plan.limit)
    if parts.train.y.is_floating_point():
        raise AdvlabError("classes to train on", f"labels of {parts.train.y.dtype}")
    check_every_class(parts.train)
    judged = plan.attack != "none"
    size = plan.held_out()
    cut = split(
        parts.train,
        validation=size if parts.validation is None else None,
        test=size if parts.test is None and judged else None,
        seed=plan.seed,
    )
    validation, test = parts.validation or cut.validation, parts.test or cut.test
    if validation is None:
        raise AdvlabError("--validation as a share or a number", plan.validation)
    if parts.test is None and judged:
        _say(f"the data have no test part: {len(cut.test.y) if cut.test else 0} are set aside")
    _say_units(plan, parts.train.x)
    return TrainingData(cut.train, validation, test if judged else None, read)


def _say_units(plan: TrainingPlan, x: Tensor) -> None:
    ball, low, high = plan.ball(), float(x.min()), float(x.max())
    if ball is None:
        return
    if ball.box is not None:
        corner = torch.full_like(x[:1], ball.box[0])
        if bool(ball.contains(torch.full_like(corner, ball.box[1]), corner).all()):
            raise AdvlabError(
                "an eps that leaves part of the box out, or every image may become every other",
                plan.eps,
                f"inputs are not in 0 to 255: write --eps {plan.eps}/255",
            )
    if not present().first:
        return
    if ball.box is None and low >= 0 and high <= 1:
        _say("inputs lie in [0, 1] but there is no box: --box 0,1 keeps perturbed ones in")
    if high > 100 and ball.radius < 1:
        _say(f"inputs go up to {high:g}: eps {plan.eps} is in these units")
    if ball.box is not None and not ball.box[0] <= low <= high <= ball.box[1]:
        raise AdvlabError(f"inputs in the box {ball.box}", f"inputs from {low:g} to {high:g}")


def _description(plan: TrainingPlan, train: Arrays) -> NetworkDescription:
    """From what the network is built: the shape of the data, their mean and deviation."""
    if train.x.ndim != 4 or train.x.shape[2] != train.x.shape[3]:
        raise AdvlabError(
            "images of shape (n, channels, side, side)",
            tuple(train.x.shape),
            "train other data with advlab.train in Python",
        )
    classes = len(train.classes) if train.classes is not None else int(train.y.max()) + 1
    sides = (0, 2, 3)
    mean, std = train.x.double().mean(sides), train.x.double().std(sides)
    return NetworkDescription(
        network=plan.model,
        channels=train.x.shape[1],
        side=train.x.shape[2],
        classes=classes,
        class_names=train.classes,
        mean=tuple(round(float(one), 4) for one in mean),
        std=tuple(max(round(float(one), 4), 1e-4) for one in std),
        settings=_settings(plan.model_settings),
    )


def _settings(given: tuple[str, ...]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for one in given:
        name, equals, text = one.partition("=")
        if not equals:
            raise AdvlabError("--model-set as key=value", repr(one), "for example width=16")
        try:
            found[name.strip()] = tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            found[name.strip()] = text.strip()
    return found


def _network(plan: TrainingPlan, about: NetworkDescription) -> nn.Module:
    rng = generator("train", "weights", plan.seed)
    if ":" not in plan.model:
        return about.build(rng)
    if about.settings:
        raise AdvlabError("--model-set with a network by name only", plan.model)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(rng.initial_seed() % 2**31)
        made = from_import(plan.model)  # which calls a factory
    if not isinstance(made, nn.Module):
        raise AdvlabError("--model as a network or a function that makes one", plan.model)
    return about.normalised(made)


def _measures(plan: TrainingPlan, held: Arrays) -> dict[str, Any]:
    ball = plan.ball()
    if not plan.sharpness or ball is None:
        return {}
    return {"sharpness": SharpnessOf(held.x[:100], held.y[:100], ball)}


@dataclass(frozen=True)
class SharpnessOf:
    """The mean largest slope of the loss in the ball, from below, on fixed examples."""

    x: Tensor
    y: Tensor
    ball: Ball

    def __call__(self, model: nn.Module) -> dict[str, float]:
        place = next(model.parameters()).device
        x, y = self.x.to(place), self.y.to(place)
        found = input_sharpness(model, x, y, self.ball, draws=4, starts=1, climb=5, bound=False)
        return {"validation": float(found.steepest.mean())}


def _notes(plan: TrainingPlan, trained: TrainedModel) -> dict[str, Any]:
    return {
        "plan": plan.model_dump(mode="json"),
        "recipe": trained.recipe.describe(),
        "best": trained.best,
        "versions": provenance.versions(),
    }


def _about(plan: TrainingPlan, trained: TrainedModel, folder: Path) -> dict[str, Any]:
    last = trained.log["epoch"][-1] if len(trained.log) else 0.0
    return {
        "folder": str(folder),
        "plan": plan.model_dump(mode="json", exclude={"resolved"}),
        "recipe": trained.recipe.describe(),
        "settings": trained.recipe.model_dump(mode="json"),
        "status": trained.status,
        "reason": trained.reason,
        "epochs_done": float(last),
        "best": trained.best,
        "versions": provenance.versions(),
        "finished": provenance.now(),
    }


def _evaluation(
    plan: TrainingPlan, folder: Path, data: TrainingData, device: str
) -> dict[str, Any]:
    """The bracket on test examples, with its own page in the folder `evaluation`."""
    out = folder / "evaluation"
    kept = _kept(out)
    if kept is not None:
        return kept
    settings = {
        "points": False, "certificates": None, "batch": None, "checks": True, "reuse": False,
        "budget": plan.budget,
    }  # fmt: skip
    test = data.test or data.validation
    _, about, _ = run_attack(
        str(folder), plan.data, plan.eps, norm=plan.norm, box=plan.box, attack=plan.attack,
        n=plan.n, seed=plan.seed, out=out, device=device, settings=settings, read=data.read,
        architecture=plan.model if ":" in plan.model else None,
        sample=examples.rows_of(test.x, test.y, plan.n, plan.seed),
    )  # fmt: skip
    return about


def _kept(out: Path) -> dict[str, Any] | None:
    """The evaluation of the same weights by the same code, if it is there and whole."""
    if not (out / "evaluation.json").is_file():
        return None
    files = [file.name for file in out.iterdir() if file.is_file()]
    problems = check_evaluation(out, out.name, files).problems
    if problems:
        _say(f"evaluated anew: {problems[0].why}")
        return None
    return json.loads(unseal((out / "evaluation.json").read_bytes()))


def _say(text: str) -> None:
    print(f"note: {text}", file=sys.stderr, flush=True)
