"""The plan of `advlab train`: all that decides a run, as it is kept in the folder."""

import json
import os
from pathlib import Path
from typing import Any, Literal

from ..core.config import ExactConfig
from ..core.errors import AdvlabError
from ..core.files import write_text
from ..core.seal import seal, unseal
from ..evaluation.budget import seconds
from ..threats import Ball
from ..training import Recipe, recipe, with_settings
from ..training.recipes import as_table, from_table
from . import examples

FILE = "train.json"
TO_RECIPE = ("recipe", "settings", "epochs", "batch")
"""Options that are in the resolved recipe, where they are compared."""


class TrainingPlan(ExactConfig):
    """All that decides a run of `advlab train`: its options, and the recipe that they mean.

    A TOML file may change between two runs, so the recipe is kept as it was read.
    """

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
    resolved: dict[str, Any]

    @classmethod
    def of(cls, **options: Any) -> "TrainingPlan":
        """The plan of a command line; what is missing is said in one line."""
        for name in ("model", "data"):
            if options[name] is None:
                raise AdvlabError(f"--{name}", "none", "or --resume with the folder of a run")
        lists = {name: tuple(options[name] or ()) for name in ("settings", "model_settings")}
        if options["accumulate"] is None:  # one part of a batch for each process of torchrun
            options["accumulate"] = int(os.environ.get("WORLD_SIZE", "1"))
        made = with_settings(recipe(options["recipe"]), lists["settings"])
        more = {name: options[name] for name in ("epochs", "batch") if options[name] is not None}
        plan = cls(**{**options, **lists, "resolved": as_table(recipe(made, **more))})
        plan.ball()
        plan.held_out()
        if plan.attack != "none":
            seconds(plan.budget)
        return plan

    @classmethod
    def read(cls, folder: Path) -> "TrainingPlan":
        """The plan of a folder."""
        file = folder / FILE
        if not file.is_file():
            raise AdvlabError(f"a folder with {FILE}, as `advlab train` makes it", folder)
        try:
            return cls(**json.loads(unseal(file.read_bytes())))
        except (ValueError, TypeError) as error:
            came = " ".join(str(error).split())
            raise AdvlabError(f"{file} as it was written", f"{came:.200}") from None

    def keep(self, folder: Path) -> None:
        """Write the plan, or make sure that the folder is of the same one."""
        if not (folder / FILE).is_file():
            folder.mkdir(parents=True, exist_ok=True)
            text = json.dumps(self.model_dump(mode="json"), indent=1)
            write_text(folder / FILE, seal(text))
            return
        other = differences(TrainingPlan.read(folder), self)
        if other:
            raise AdvlabError(
                f"a folder of the same run, or an empty one, not {folder}",
                "; ".join(other),
                "choose another --out, or go on with --resume",
            )

    def usual_folder(self) -> Path:
        """Where the run goes if nothing is said."""
        words = [self.model, Path(self.data).stem, Path(self.recipe).stem, self.norm, self.eps]
        plain = ["".join(c if c.isalnum() or c in "._" else "_" for c in word) for word in words]
        return Path("runs") / "train" / "-".join(plain)

    def made_recipe(self) -> Recipe:
        """The recipe with all that is set."""
        return from_table(self.resolved, FILE)

    def held_out(self) -> float | int:
        """How many examples to set aside: a share, or a number."""
        text = self.validation.strip()
        return int(text) if text.isdigit() else examples.number(text, "--validation")

    def ball(self) -> Ball | None:
        """The threat set; none at eps 0."""
        box = examples.usual_box(self.data) if self.box is None else examples.box(self.box)
        radius = examples.number(self.eps, "eps")
        if radius == 0:
            return None
        return Ball(norm=self.norm, radius=radius, box=box)


def differences(there: TrainingPlan, here: TrainingPlan) -> list[str]:
    """What two plans differ in, with both values; recipes setting by setting.

    Args:
        there: the plan of a folder.
        here: the plan of a command line.
    """
    names = [name for name in TrainingPlan.model_fields if name not in (*TO_RECIPE, "resolved")]
    pairs = [(name, getattr(there, name), getattr(here, name)) for name in names]
    old, new = _flat(there.resolved), _flat(here.resolved)
    pairs += [
        (name if name == "recipe" else f"{name} of the recipe", old.get(name), new.get(name))
        for name in {**new, **old}
    ]
    return [f"{name} {was!r} there, {now!r} here" for name, was, now in pairs if was != now]


def _flat(table: dict[str, Any], before: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in table.items():
        inside = _flat(value, f"{before}{name}.") if isinstance(value, dict) else None
        found |= {f"{before}{name}": value} if inside is None else inside
    return found
