"""What `advlab train` does: a plan that is kept in the folder, and its execution."""

import json
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
import torch.distributed as dist
from torch import Tensor, nn

from ..core.config import ExactConfig
from ..core.devices import choose_device
from ..core.errors import AdvlabError
from ..core.files import write_text
from ..core.randomness import generator
from ..core.seal import seal, unseal
from ..data.arrays import Arrays
from ..data.resolve import resolve
from ..data.splits import check_every_class, split
from ..evaluation.budget import seconds
from ..lab import provenance
from ..measure.sharpness import input_sharpness
from ..models.folder import save_model
from ..models.networks import NetworkDescription
from ..report.training import write_training
from ..threats import Ball
from ..training import Recipe, Trained, recipe, with_settings
from ..training import train as train_model
from ..training.processes import present
from . import examples
from .attack import run_attack
from .models import from_import

FILE = "train.json"


class Plan(ExactConfig):
    """All that decides a run of `advlab train`, as its options say it."""

    model: str
    model_settings: tuple[str, ...] = ()
    data: str
    norm: Literal["l1", "l2", "linf"] = "linf"
    eps: str = "0"
    box: str | None = None
    recipe: str = "pgd"
    settings: tuple[str, ...] = ()
    epochs: float | None = None
    batch: int | None = None
    limit: int | None = None
    validation: str = "0.1"
    augment: str | None = None
    seed: int = 0
    precision: Literal["32", "bf16"] = "32"
    accumulate: int = 1
    sharpness: bool = False
    attack: str = "standard"
    n: int = 500
    budget: str = "2m"

    @classmethod
    def of(cls, **options: Any) -> "Plan":
        """The plan of a command line; what is missing is said in one line."""
        for name in ("model", "data"):
            if options[name] is None:
                raise AdvlabError(f"--{name}", "none", "or --resume with the folder of a run")
        lists = {name: tuple(options[name] or ()) for name in ("settings", "model_settings")}
        plan = cls(**{**options, **lists})
        plan.made_recipe()
        plan.ball()
        if plan.attack != "none":
            seconds(plan.budget)
        return plan

    @classmethod
    def read(cls, folder: Path) -> "Plan":
        """The plan of a folder."""
        file = folder / FILE
        if not file.is_file():
            raise AdvlabError(f"a folder with {FILE}, as `advlab train` makes it", folder)
        try:
            return cls(**json.loads(unseal(file.read_bytes())))
        except (ValueError, TypeError) as error:
            came = " ".join(str(error).split())
            raise AdvlabError(f"{file} as it was written", f"{came:.200}") from None

    def usual_folder(self) -> Path:
        """Where the run goes if nothing is said."""
        words = [self.model, Path(self.data).stem, self.recipe, self.norm, self.eps]
        plain = ["".join(c if c.isalnum() or c in "._" else "_" for c in word) for word in words]
        return Path("runs") / "train" / "-".join(plain)

    def made_recipe(self) -> Recipe:
        """The recipe with all that is set."""
        made = with_settings(recipe(self.recipe), self.settings)
        more = {"epochs": self.epochs, "batch": self.batch}
        return recipe(made, **{name: value for name, value in more.items() if value is not None})

    def ball(self) -> Ball | None:
        """The threat set; none at eps 0."""
        box = examples.usual_box(self.data) if self.box is None else examples.box(self.box)
        radius = examples.number(self.eps, "eps")
        if radius == 0:
            return None
        if box is not None and self.norm == "linf" and radius >= box[1] - box[0]:
            raise AdvlabError(
                f"eps below {box[1] - box[0]:g}, the width of the box of the inputs",
                self.eps,
                f"inputs are not in 0 to 255: write --eps {self.eps}/255",
            )
        return Ball(norm=self.norm, radius=radius, box=box)


def run_training(
    plan: Plan,
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
    place = _place(device, plan.precision)
    parts = _parts(plan, data_dir)
    about = _description(plan, parts[0])
    model = _network(plan, about)
    if present().first:
        _keep_plan(plan, folder)
    present().wait()
    with _autocast(place, plan.precision):
        trained = train_model(
            model.to(place),
            parts[0].x,
            parts[0].y,
            recipe=plan.made_recipe(),
            ball=plan.ball(),
            validation=parts[1],
            augment=plan.augment,
            rng=plan.seed,
            out=folder,
            measures=_measures(plan, parts[1]),
            accumulate=plan.accumulate,
            tensorboard=tensorboard,
            compile=compile,
        )
    if not present().first:
        return None
    trained.model.to("cpu")
    save_model(folder, trained.model, about, _notes(plan, trained))
    found = _about(plan, trained, folder)
    if trained.status != "diverged" and plan.attack != "none":
        found["evaluation"] = _evaluation(plan, folder, data_dir, device)
    write_training(found, trained.log, folder / "report.html")
    if trained.status == "diverged":
        raise AdvlabError("a finite loss all along", trained.reason, "try --set lr=...")
    return found


def _place(device: str, precision: str) -> torch.device:
    """The device; under torchrun every process joins the others, each with a device of its own."""
    import os

    place = choose_device(device)
    if int(os.environ.get("WORLD_SIZE", "1")) > 1 and not dist.is_initialized():
        dist.init_process_group("nccl" if place.type == "cuda" else "gloo")
        if place.type == "cuda":
            place = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
    if precision == "bf16" and place.type == "mps":
        raise AdvlabError("--precision 32 on mps", precision)
    return place


def _autocast(place: torch.device, precision: str) -> Any:
    return torch.autocast(place.type, torch.bfloat16) if precision == "bf16" else nullcontext()


def _parts(plan: Plan, data_dir: Path | None) -> tuple[Arrays, Arrays]:
    """Training and validation examples: the data's own validation part, or some set aside."""
    train = resolve(plan.data, split="train", directory=data_dir, limit=plan.limit)
    if train.y.is_floating_point():
        raise AdvlabError("classes to train on", f"labels of {train.y.dtype}")
    check_every_class(train)
    try:
        held = resolve(plan.data, split="validation", directory=data_dir)
        return train, held
    except AdvlabError:  # the data have no such part
        pass
    text = plan.validation
    size = float(text) if "." in text or "/" in text else int(text) if text.isdigit() else -1
    parts = split(train, validation=size, seed=plan.seed)
    if parts.validation is None:
        raise AdvlabError("--validation as a share or a number", text)
    return parts.train, parts.validation


def _description(plan: Plan, train: Arrays) -> NetworkDescription:
    """From what the network is built: the shape of the data, their mean and deviation."""
    if train.x.ndim != 4:
        raise AdvlabError(
            "images of shape (n, channels, height, width)",
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
    import tomllib

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


def _network(plan: Plan, about: NetworkDescription) -> nn.Module:
    rng = generator("train", "weights", plan.seed)
    if ":" not in plan.model:
        return about.build(rng)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(rng.initial_seed() % 2**31)
        made = from_import(plan.model)  # which calls a factory
    if not isinstance(made, nn.Module):
        raise AdvlabError("--model as a network or a function that makes one", plan.model)
    return about.normalised(made)


def _measures(plan: Plan, held: Arrays) -> dict[str, Any]:
    ball = plan.ball()
    if not plan.sharpness or ball is None:
        return {}
    x, y = held.x[:100], held.y[:100]
    return {"sharpness": SharpnessOf(x, y, ball)}


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


def _keep_plan(plan: Plan, folder: Path) -> None:
    """Write the plan, or make sure that the folder is of the same one."""
    if (folder / FILE).is_file():
        kept = Plan.read(folder)
        other = [
            f"{name} {getattr(kept, name)!r} there, {getattr(plan, name)!r} here"
            for name in Plan.model_fields
            if getattr(kept, name) != getattr(plan, name)
        ]
        if other:
            raise AdvlabError(
                f"a folder of the same run, or an empty one, not {folder}",
                "; ".join(other),
                "choose another --out, or go on with --resume",
            )
        return
    folder.mkdir(parents=True, exist_ok=True)
    write_text(folder / FILE, seal(json.dumps(plan.model_dump(mode="json"), indent=1)))


def _notes(plan: Plan, trained: Trained) -> dict[str, Any]:
    chosen = trained.recipe
    return {
        "plan": plan.model_dump(mode="json"),
        "recipe": chosen.describe(),
        "best": trained.best,
        "versions": provenance.versions(),
    }


def _about(plan: Plan, trained: Trained, folder: Path) -> dict[str, Any]:
    last = trained.log["epoch"][-1] if len(trained.log) else 0.0
    return {
        "folder": str(folder),
        "plan": plan.model_dump(mode="json"),
        "recipe": trained.recipe.describe(),
        "settings": trained.recipe.model_dump(mode="json"),
        "status": trained.status,
        "reason": trained.reason,
        "epochs_done": float(last),
        "best": trained.best,
        "versions": provenance.versions(),
        "finished": provenance.now(),
    }


def _evaluation(plan: Plan, folder: Path, data_dir: Path | None, device: str) -> dict[str, Any]:
    """The bracket on test examples, with its own page in the folder `evaluation`."""
    settings = {
        "points": False, "certificates": None, "batch": None, "checks": True, "reuse": False,
        "budget": plan.budget,
    }  # fmt: skip
    _, about, _ = run_attack(
        str(folder), plan.data, plan.eps, norm=plan.norm, box=plan.box, attack=plan.attack,
        n=plan.n, seed=plan.seed, out=folder / "evaluation", data_dir=data_dir, device=device,
        settings=settings,
    )  # fmt: skip
    return about
