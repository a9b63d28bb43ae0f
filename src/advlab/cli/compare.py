"""advlab compare: which of two models is more robust, row by row."""

import json
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

First = Annotated[str, typer.Argument(help="A folder that `advlab attack` left, or a model.")]
Second = Annotated[str, typer.Argument(help="Another.")]
Data = Annotated[
    str | None, typer.Argument(help="For models: an .npz file with x and y, or mnist or cifar10.")
]
Norm = Annotated[Literal["l1", "l2", "linf"], typer.Option(help="The norm of the perturbation.")]
Eps = Annotated[str | None, typer.Option(help="For models: the largest perturbation.")]
Limits = Annotated[str | None, typer.Option("--box", help="Where inputs live: LOW,HIGH or none.")]
AttackName = Annotated[str, typer.Option("--attack", help="A suite, an attack, or module:object.")]
Count = Annotated[int, typer.Option("--n", min=0, help="Examples, drawn at random; 0 for all.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of the examples drawn and of the attacks.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


def compare(
    a: First,
    b: Second,
    data: Data = None,
    eps: Eps = None,
    norm: Norm = "linf",
    box: Limits = None,
    attack: AttackName = "standard",
    n: Count = 500,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Compare two models on the same examples: rows that only one loses, and what that proves.

    Give two folders that `advlab attack` left, or two models with data and --eps: then both are
    attacked first, in the same way.

    Examples:

    \b
      advlab compare runs/attack/net_a-mnist-linf-0.1 runs/attack/net_b-mnist-linf-0.1
      advlab compare my_nets:clean my_nets:robust mnist --eps 0.1 --attack fast
      advlab compare a.pt2 b.pt2 data.npz --norm l2 --eps 0.5 --json
    """
    from ..core.errors import AdvlabError
    from ..evaluation import compare_states
    from .attack import run_attack

    def evaluated(one: str) -> dict[str, Any]:
        if (Path(one) / "evaluation.json").is_file():
            return _read(Path(one))
        if data is None or eps is None:
            raise AdvlabError(
                "a folder with evaluation.json, or models with data and --eps", repr(one),
                "for example `advlab compare my_nets:a my_nets:b mnist --eps 0.1`",
            )  # fmt: skip
        settings = {"checks": True, "points": False, "certificates": None, "batch": None}
        _, about, _ = run_attack(
            one, data, eps, norm=norm, box=box, attack=attack, n=n, seed=seed, settings=settings
        )
        return about

    found = [evaluated(a), evaluated(b)]
    for key, what in (("threat", "threat set"), ("rows", "rows"), ("attack", "attack")):
        if found[0][key] != found[1][key]:
            came = " and ".join(f"{one[key]!r:.60}" for one in found)
            raise AdvlabError(f"evaluations with the same {what}", came)
    _check_same_data(found[0], found[1])
    comparison = compare_states(found[0]["broken_by"], found[1]["broken_by"])
    if as_json:
        print(json.dumps({"a": a, "b": b, **comparison.numbers()}))
        return
    for name, one in zip("AB", found, strict=True):
        print(f"{name}: {one['model']}, robust error at least {one['robust_error']:.4f}")
    print(comparison)


def _read(folder: Path) -> dict[str, Any]:
    from ..core.errors import AdvlabError
    from ..core.seal import unseal

    path = folder / "evaluation.json"
    try:
        return json.loads(unseal(path.read_bytes()))
    except (ValueError, KeyError) as error:
        raise AdvlabError(f"{path} as `advlab attack` left it", error) from None


def _check_same_data(a: dict[str, Any], b: dict[str, Any]) -> None:
    from ..core.errors import AdvlabError

    first, second = (one.get("made_by", {}).get("data") for one in (a, b))
    if a["data"] != b["data"] or (first and second and first != second):
        raise AdvlabError("evaluations of the same data", f"{a['data']} and {b['data']}")
