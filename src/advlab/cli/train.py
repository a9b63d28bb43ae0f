"""advlab train: a robust network from a recipe, with an honest evaluation at the end."""

import json
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

Network = Annotated[
    str | None,
    typer.Option("--model", help="A network by name, such as resnet9, or module:factory."),
]
Data = Annotated[
    str | None,
    typer.Option(help="mnist, cifar10, cifar100, an .npz file, a folder of images, module:object."),
]
Norm = Annotated[Literal["l1", "l2", "linf"], typer.Option(help="The norm of the perturbation.")]
Eps = Annotated[
    str, typer.Option(help="The largest perturbation, in the units of the inputs: 8/255; 0: none.")
]
Limits = Annotated[
    str | None, typer.Option("--box", help="Where inputs live: LOW,HIGH or none; 0,1 for images.")
]
RecipeName = Annotated[
    str,
    typer.Option("--recipe", help="pgd, fast, trades, ... or a TOML file; see docs/recipes.md."),
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="A setting of the recipe; more than once."),
]
NetworkSettings = Annotated[
    list[str] | None,
    typer.Option("--model-set", metavar="KEY=VALUE", help="A setting of the network: width=16."),
]
Epochs = Annotated[float | None, typer.Option(help="Passes over the data, if not the recipe's.")]
Batch = Annotated[int | None, typer.Option(min=1, help="Rows per step, if not the recipe's.")]
Limit = Annotated[int | None, typer.Option(min=1, help="Only the first N training examples.")]
Validation = Annotated[
    str,
    typer.Option(
        help="Training examples set aside to choose the epoch, where the data have no validation "
        "part (and as many to judge by, where they have no test part): a share or a number."
    ),
]
Augment = Annotated[
    str | None, typer.Option(help="none, crop_flip or crop_flip_cutout, if not the recipe's.")
]
Seed = Annotated[int, typer.Option(min=0, help="Seed of weights, split, order and attacks.")]
Out = Annotated[Path | None, typer.Option(help="The folder of the run.")]
Resume = Annotated[
    Path | None, typer.Option("--resume", metavar="RUN", help="Go on with the run of this folder.")
]
Directory = Annotated[
    Path | None, typer.Option("--data-dir", help="The folder of data sets; see `advlab data path`.")
]
Device = Annotated[str, typer.Option(help="cpu, cuda, cuda:1, mps, or auto, the best there is.")]
Precision = Annotated[
    Literal["32", "bf16"],
    typer.Option(help="bf16: mixed precision, where the device is good at it."),
]
Accumulate = Annotated[
    int | None,
    typer.Option(min=1, help="Parts of each batch, which processes of torchrun share; one each."),
]
Compile = Annotated[bool, typer.Option("--compile", help="Run the network through torch.compile.")]
TensorBoard = Annotated[bool, typer.Option(help="Also write files for TensorBoard.")]
Sharpness = Annotated[
    bool, typer.Option("--sharpness", help="Also measure sharpness after each epoch.")
]
Evaluation = Annotated[
    str, typer.Option("--attack", help="The attack at the end: fast, standard, ... or none.")
]
Count = Annotated[int, typer.Option("--n", min=1, help="Test examples of the evaluation.")]
Budget = Annotated[str, typer.Option(help="Time for the evaluation, such as 90s or 5m.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


def train(
    model: Network = None,
    data: Data = None,
    norm: Norm = "linf",
    eps: Eps = "0",
    recipe: RecipeName = "pgd",
    epochs: Epochs = None,
    out: Out = None,
    settings: Settings = None,
    model_settings: NetworkSettings = None,
    box: Limits = None,
    batch: Batch = None,
    limit: Limit = None,
    validation: Validation = "0.1",
    augment: Augment = None,
    seed: Seed = 0,
    resume: Resume = None,
    data_dir: Directory = None,
    device: Device = "auto",
    precision: Precision = "32",
    accumulate: Accumulate = None,
    compile: Compile = False,
    tensorboard: TensorBoard = False,
    sharpness: Sharpness = False,
    attack: Evaluation = "standard",
    n: Count = 500,
    budget: Budget = "2m",
    as_json: AsJson = False,
) -> None:
    """Train a robust network by a published recipe, then bracket its robust error.

    The folder gets the model (safetensors and a description, for `advlab attack run` and
    `advlab.load("run")`), log.csv, checkpoints, and report.html. The same command goes on where it
    was stopped, with the same bits on a CPU.

    Examples:

    \b
      advlab train --model small_cnn --data mnist --eps 0.1 --epochs 5 --out run
      advlab train --model resnet9 --data cifar10 --eps 8/255 --recipe fast --epochs 15 --out run
      advlab train --model resnet9 --model-set width=16 --data cifar10 --limit 5000 --eps 8/255 \\
          --recipe trades --set beta=3 --set attack.steps=7
      advlab train --model my_nets:Net --data my_data.npz --norm l2 --eps 0.5 --recipe my.toml
      advlab train --model lenet5 --data mnist --eps 0 --recipe clean
      advlab train --resume run
      torchrun --nproc-per-node 2 -m advlab train --model resnet9 --data cifar10 --eps 8/255 \\
          --out run
    """
    from .training_plan import TrainingPlan
    from .training_run import run_training

    if resume is not None:
        plan, folder = TrainingPlan.read(resume), resume
    else:
        plan = TrainingPlan.of(
            model=model, data=data, norm=norm, eps=eps, box=box, recipe=recipe, settings=settings,
            model_settings=model_settings, epochs=epochs, batch=batch, limit=limit,
            validation=validation, augment=augment, seed=seed, precision=precision,
            accumulate=accumulate, sharpness=sharpness, attack=attack, n=n, budget=budget,
        )  # fmt: skip
        folder = out or plan.usual_folder()
    about = run_training(
        plan, folder, data_dir=data_dir, device=device, compile=compile, tensorboard=tensorboard
    )
    if about is None:  # another process speaks
        return
    if as_json:
        print(json.dumps(about))
    else:
        _print(about, folder)


def _print(about: dict[str, Any], folder: Path) -> None:
    print(f"{about['recipe']['recipe']}: {about['status']}, {about['epochs_done']:g} epochs")
    if about["reason"]:
        print(about["reason"])
    found = about.get("evaluation")
    if found:
        upper = found["certified_error"]
        ends = f"{found['robust_error']:.3f} and {1.0 if upper is None else upper:.3f}"
        print(f"clean error {found['clean_error']:.3f}, robust error between {ends}")
        print(f"({found['threat_words']}; {found['n']} test examples)")
    print(f"model: {folder}   report: {folder / 'report.html'}", file=sys.stdout)
