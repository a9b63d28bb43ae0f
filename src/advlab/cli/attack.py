"""advlab attack: how robust is this model, really."""

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

    from ..evaluation import Evaluation
    from ..threats import Ball
    from .examples import Sample

Model = Annotated[
    str,
    typer.Argument(
        help="A folder of `advlab train` or `save_model`, module:object, file.py:object, "
        ".safetensors, .pt2, TorchScript, .onnx."
    ),
]
Data = Annotated[
    str,
    typer.Argument(
        help="mnist, cifar10, cifar100, an .npz file with x and y (or x_test and y_test), a folder "
        "of images (class/name.png, or in test/), module:object."
    ),
]
Norm = Annotated[Literal["l1", "l2", "linf"], typer.Option(help="The norm of the perturbation.")]
Eps = Annotated[str, typer.Option(help="The largest perturbation: a number or a fraction.")]
Limits = Annotated[
    str | None,
    typer.Option("--box", help="Where inputs live: LOW,HIGH or none; 0,1 for sets by name."),
]
AttackName = Annotated[
    str,
    typer.Option(
        "--attack", help="fast, standard, plus, rand, the name of one attack, or module:object."
    ),
]
Save = Annotated[Path | None, typer.Option("--save", help="An .npz file for the perturbed inputs.")]
Count = Annotated[int, typer.Option("--n", min=0, help="Examples, drawn at random; 0 for all.")]
Out = Annotated[
    Path | None,
    typer.Option(help="The folder for results; named after the arguments if left out."),
]
Architecture = Annotated[
    str | None,
    typer.Option(
        metavar="MODULE:FACTORY", help="Makes the network of a file of weights, or of a folder."
    ),
]
Trust = Annotated[
    bool, typer.Option("--trust", help="Run a program from a file outside the sandbox.")
]
OtherModel = Annotated[
    str | None, typer.Option("--transfer", help="Another model to carry perturbations over from.")
]
Directory = Annotated[
    Path | None, typer.Option("--data-dir", help="The folder of data sets; see `advlab data path`.")
]
Part = Annotated[Literal["train", "test"], typer.Option(help="Which part of a set by name.")]
Batch = Annotated[
    int | None, typer.Option(min=1, help="Rows at a time; what fits in memory if left out.")
]
Seed = Annotated[int, typer.Option(min=0, help="Seed of the examples drawn and of the attacks.")]
Checks = Annotated[bool, typer.Option(help="Look for reasons to doubt the result.")]
Certificates = Annotated[bool, typer.Option(help="Look for an upper bound.")]
Resume = Annotated[bool, typer.Option("--resume", help="Go on where a stopped run was.")]
Reuse = Annotated[
    bool, typer.Option("--reuse", help="With --resume: keep batches that other code or data made.")
]
Device = Annotated[
    str,
    typer.Option(help="Where the model runs: cpu, cuda, cuda:1, mps, or auto, the best there is."),
]
OutputKind = Annotated[
    str,
    typer.Option(
        "--output",
        help="What outputs mean: auto, scores, logit, probability, multilabel or regression.",
    ),
]
Budget = Annotated[
    str | None,
    typer.Option(help="Time for everything, such as 90s or 2m: the cheap and promising first."),
]
Curve = Annotated[
    bool, typer.Option("--curve", help="Also bracket the robust error over all radii.")
]
Classes = Annotated[
    str | None,
    typer.Option(help="Labels in the order of the outputs, such as cat,dog, if not 0, 1, ..."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


def attack(
    model: Model,
    data: Data,
    eps: Eps,
    norm: Norm = "linf",
    box: Limits = None,
    attack: AttackName = "standard",
    n: Count = 500,
    out: Out = None,
    as_json: AsJson = False,
    resume: Resume = False,
    reuse: Reuse = False,
    seed: Seed = 0,
    architecture: Architecture = None,
    trust: Trust = False,
    transfer: OtherModel = None,
    batch: Batch = None,
    split: Part = "test",
    data_dir: Directory = None,
    checks: Checks = True,
    certificates: Certificates = True,
    save: Save = None,
    device: Device = "auto",
    output: OutputKind = "auto",
    classes: Classes = None,
    budget: Budget = None,
    curve: Curve = False,
) -> None:
    """Bracket the robust error of a model: from below by attacks, from above by certificates.

    Writes evaluation.json and report.html. The result comes with warnings where there is reason to
    doubt it. docs/attack.md says how to read it and how to name models.

    Examples:

    \b
      advlab attack run mnist --eps 0.1
      advlab attack my_nets:net mnist --norm linf --eps 0.1
      advlab attack net.pt2 data.npz --norm l2 --eps 0.5 --box 0,1 --n 1000
      advlab attack run.safetensors cifar10 --architecture my_nets:ResNet --eps 8/255
      advlab attack my_nets:net mnist --eps 0.1 --attack fast --json
      advlab attack my_nets:net mnist --eps 0.1 --resume
      advlab attack my_nets:net mnist --eps 0.1 --save adv.npz
      advlab attack my_nets:net mnist --eps 0.1 --budget 2m
      advlab attack my_nets:net mnist --eps 0.1 --curve
      advlab attack my_nets:net mnist --eps 0.1 --device cuda
      advlab attack my_nets:net mnist --eps 0.1 --attack my_module:MyAttack
      advlab attack net.onnx photos/test --eps 8/255 --attack fast
      advlab attack my_models:forest table.npz --eps 0.1 --box none
      advlab attack my_nets:detector data.npz --eps 0.1 --output probability --classes no,yes
      advlab attack my_nets:prices data.npz --eps 0.1 --output regression
    """
    settings = {
        "points": save is not None,
        "certificates": None if certificates else (),
        "batch": batch,
        "checks": checks,
        "reuse": reuse,
        "budget": budget,
    }
    found, about, folder = run_attack(
        model, data, eps, norm=norm, box=box, attack=attack, n=n, out=out, resume=resume, seed=seed,
        architecture=architecture, trust=trust, transfer=transfer, split=split, data_dir=data_dir,
        save=save, device=device, output=output, classes=classes, curve=curve, settings=settings,
    )  # fmt: skip
    if as_json:
        print(json.dumps({**about, "folder": str(folder)}))
    else:
        _print(found, folder, about)


def run_attack(
    model: str, data: str, eps: str, *, norm: Literal["l1", "l2", "linf"], box: str | None,
    attack: str, n: int, seed: int, settings: dict[str, Any], out: Path | None = None,
    resume: bool = False, architecture: str | None = None, trust: bool = False,
    transfer: str | None = None, split: Literal["train", "test"] = "test",
    data_dir: Path | None = None, save: Path | None = None, device: str = "auto",
    output: str = "auto", classes: str | None = None, curve: bool = False,
    sample: "Sample | None" = None, read: Any = None,
) -> "tuple[Evaluation, dict[str, Any], Path]":  # fmt: skip
    """Evaluate a model and write all files; what was found, evaluation.json, and the folder.

    The arguments are those of the command; `settings` are those that `evaluate` takes. Who has the
    examples already gives them as `sample`, with the files that they were `read` from.
    """
    from ..attacks import ATTACKS
    from ..core.datafiles import recording
    from ..core.devices import choose_device, moved
    from ..evaluation import Output
    from ..lab.evaluations import evaluation_origin
    from . import examples
    from .curve import curve_of
    from .models import load_attack, load_model

    read_as = Output(output, None if classes is None else examples.labels(classes))
    place = choose_device(device)
    chosen = load_attack(attack) if ":" in attack else attack
    own = attack if ":" in attack else ATTACKS.source(attack)
    ball = _ball(norm, eps, examples.usual_box(data) if box is None else examples.box(box))
    if sample is None:
        with recording() as read:
            sample = examples.sample(data, n or None, seed, data_dir, split)
    net, notes = load_model(model, architecture, trust)
    made_by = evaluation_origin(
        [one for one in (model, architecture, transfer, own) if one is not None], read
    )
    folder = out or Path("runs") / "attack" / _name(model, data, norm, eps)
    for note in [*notes, *_notes(sample, ball, seed)]:
        _say(f"note: {note}")
    other = moved(load_model(transfer, trust=trust)[0], place) if transfer else None
    settings = {**settings, "attack": chosen, "output": read_as, "transfer": other}
    net, store = moved(net, place), folder / "batches"
    found = _evaluate(net, sample, ball, seed, store, resume, settings)
    about = _about(found, sample, ball, model, data, eps, seed, bool(settings["checks"]))
    about["device"] = str(place)
    if curve:
        about["robustness_curve"] = curve_of(net, sample, ball, seed, settings, folder)
    _write(folder, about, made_by, found, sample)
    if save is not None and found.adversarial is not None:
        targets = {} if sample.y is None else {"y": sample.y}
        found.adversarial.save(save, rows=sample.rows, **targets)
        _say(f"perturbed inputs: {save}")
    return found, about, folder


def _ball(norm: Literal["l1", "l2", "linf"], eps: str, box: tuple[float, float] | None) -> "Ball":
    from ..threats import Ball
    from .examples import number

    return Ball(norm=norm, radius=number(eps, "eps"), box=box)


def _evaluate(
    net: "Callable[[Tensor], Tensor]", sample: "Sample", ball: "Ball", seed: int, store: Path,
    resume: bool, settings: dict[str, Any],
) -> "Evaluation":  # fmt: skip
    from ..core.randomness import generator
    from ..evaluation import evaluate, plan
    from ..evaluation.resume import BatchStore

    plan(settings["attack"])  # a mistaken name must not cost the batches of an earlier run
    if not resume:
        BatchStore(store).clear()
    rng = generator("attack", seed)
    try:
        return evaluate(
            net, *sample.data, ball=ball, rng=rng, progress=True, store=store, **settings
        )
    except KeyboardInterrupt:
        _say(f"stopped; the same command with --resume goes on from {store}")
        raise


def _name(*words: str) -> str:
    """A folder's name from the arguments: the same command, the same folder."""
    stems = [*map(_stem, words[:-1]), words[-1]]
    return "-".join(re.sub(r"[^A-Za-z0-9.]+", "_", stem).strip("_.") for stem in stems)


def _stem(word: str) -> str:
    """The name of a file, which no file of another folder has; other words as they are."""
    from ..lab.loader import file_name

    start, colon, inner = word.partition(".py:")
    path = Path(f"{start}.py" if colon else word)
    if not path.is_file():
        return word
    kind = "" if path.suffix in (".npz", ".py") else path.suffix
    return f"{file_name(path)}{kind}" + (f":{inner}" if colon else "")


def _notes(sample: "Sample", ball: "Ball", seed: int) -> list[str]:
    notes = []
    if len(sample.rows) < sample.total:
        notes.append(
            f"{len(sample.rows)} of {sample.total} examples, drawn at random (seed {seed}); --n 0 "
            "takes all"
        )
    low, high = sample.limits or (-1.0, 2.0)
    if ball.box is None and low >= 0 and high <= 1:
        notes.append("inputs lie in [0, 1] but there is no box: --box 0,1 keeps perturbed ones in")
    return notes


def _about(
    found: "Evaluation", sample: "Sample", ball: "Ball", model: str, data: str, eps: str,
    seed: int, checks: bool,
) -> dict[str, Any]:  # fmt: skip
    """What evaluation.json holds."""
    from ..lab import provenance

    where = f" in the box [{ball.box[0]:g}, {ball.box[1]:g}]" if ball.box else ""
    return {
        "model": model,
        "data": data,
        **found.numbers(),
        "seed": seed,
        "rows": sample.rows.tolist(),
        "norm": ball.norm,
        "eps": ball.radius,
        "box": ball.box,
        "threat_words": f"{ball.norm} perturbations up to {eps}{where}",
        "checks": checks,
        "versions": provenance.versions(),
        "commit": provenance.commit(),
        "finished": provenance.now(),
    }


def _write(
    folder: Path, about: dict[str, Any], made_by: dict[str, Any], found: "Evaluation",
    sample: "Sample",
) -> None:  # fmt: skip
    from ..core.files import file_checksum
    from ..core.seal import seal
    from ..report.evaluation import write_evaluation
    from ..report.page import write_page

    pictures = [
        {
            "row": int(sample.rows[one.row]),
            "label": one.label,
            "answer": one.answer,
            "wrong_answer": one.wrong_answer,
            "margin": one.margin,
            "original": one.original.double().cpu().numpy(),
            "perturbed": one.perturbed.double().cpu().numpy(),
        }
        for one in found.examples
    ]
    write_evaluation(about, pictures, folder / "report.html")
    curve = [folder / f"curve.{kind}" for kind in ("csv", "svg", "png")]
    curve = curve if "robustness_curve" in about else []
    files = [folder / "report.html", *curve, *sorted((folder / "batches").glob("[!.]*"))]
    sums = {path.relative_to(folder).as_posix(): file_checksum(path) for path in files}
    sealed = seal(json.dumps({**about, "made_by": made_by, "sha256": sums}, indent=1))
    write_page(sealed, folder / "evaluation.json")


def _print(found: "Evaluation", folder: Path, about: dict[str, Any]) -> None:
    print(found)
    for row in about.get("robustness_curve", {}).get("curve", ()):
        print(f"eps {row['eps']:<8.4g} robust error {row['at_least']:.4f} to {row['at_most']:.4f}")
    if "robustness_curve" in about:
        print(f"curve: {folder / 'curve.csv'}, {folder / 'curve.svg'}")
    print(f"batches of {found.batch}, {found.seconds:.1f} s in all")
    print(f"report: {folder / 'report.html'}")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
