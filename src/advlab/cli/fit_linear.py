"""advlab fit-linear: a robust linear model of a table, solved exactly, with a report."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

if TYPE_CHECKING:
    import numpy as np

Data = Annotated[str, typer.Argument(help="A table: .csv, .parquet, or .npz with x and y.")]
Target = Annotated[str, typer.Option(help="The column to predict; in an .npz file its key.")]
NormOption = Annotated[str, typer.Option("--norm", help="l1, l2, linf, or a number p >= 1.")]
Eps = Annotated[str, typer.Option(help="The radius, or default for the data-driven one.")]
LossOption = Annotated[
    Literal["auto", "squared", "absolute", "huber", "logistic", "hinge"],
    typer.Option("--loss", help="auto: logistic for classes, squared for numbers."),
]
Scales = Annotated[
    Literal["std", "none"],
    typer.Option(help="std: the radius counts in standard deviations of each feature."),
]
L1 = Annotated[float, typer.Option(help="An extra l1 penalty.")]
L2 = Annotated[float, typer.Option(help="An extra l2 penalty.")]
Tol = Annotated[float, typer.Option(help="The relative duality gap to stop at.")]
Out = Annotated[str, typer.Option(help="Folder of the report.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


def fit_linear(
    data: Data,
    target: Target = "y",
    norm: NormOption = "linf",
    eps: Eps = "default",
    loss: LossOption = "auto",
    scales: Scales = "std",
    l1: L1 = 0.0,
    l2: L2 = 0.0,
    tol: Tol = 1e-8,
    out: Out = "runs/fit-linear",
    as_json: AsJson = False,
) -> None:
    """Fit a linear model against attacks on its inputs, exactly, and write a report.

    Examples:

    \b
      advlab fit-linear data.csv --target price --norm linf --eps 0.1
      advlab fit-linear data.parquet --target label --norm l2 --eps default
      advlab fit-linear data.npz --eps 0.5 --scales none --json
    """
    from ..core.errors import AdvlabError

    x, y, names = read_table(Path(data), target)
    kind = _loss_of(loss, y)
    try:
        order: str | float = float(norm) if norm[:1].isdigit() else norm
    except ValueError:
        raise AdvlabError("--norm l1, l2, linf or a number p >= 1", repr(norm)) from None
    radius: str | float = eps
    if eps != "default":
        try:
            radius = float(eps)
        except ValueError:
            raise AdvlabError("--eps as a number, or default", repr(eps)) from None
    settings = dict(  # noqa: C408
        norm=order, eps=radius, loss=kind, l1=l1, l2=l2, tol=tol,
        scales="std" if scales == "std" else None,
    )  # fmt: skip
    found = fitted(x, y, settings)
    about = {"data": Path(data).name, "target": target, "features": names, **found}
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    from ..core.files import write_text
    from ..report.linear_models import write_linear_model

    write_text(folder / "model.json", json.dumps(about, indent=1))
    write_linear_model(about, folder / "report.html")
    if as_json:
        print(json.dumps(about))
        return
    print(f"{kind} loss, {norm} attack of radius {about['eps']:.4g}: {about['status']}")
    print(f"objective {about['objective']:.6g}, relative duality gap {about['gap']:.1e}, "
          f"{about['method']}, {about['seconds']:.2f} s")  # fmt: skip
    print(f"report: {folder / 'report.html'}")


def read_table(path: Path, target: str) -> "tuple[np.ndarray, np.ndarray, list[str]]":
    """Features, target and the features' names of a file; nothing is unpickled."""
    import numpy as np

    from ..core.errors import AdvlabError

    if not path.is_file():
        raise AdvlabError("a .csv, .parquet or .npz file", f"{path}, which does not exist")
    if path.suffix == ".npz":
        try:
            with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
                arrays = {key: file[key] for key in file.files}
        except (OSError, ValueError, EOFError) as error:
            raise AdvlabError("an .npz file of plain arrays", f"{path} ({error})") from None
        if target not in arrays or "x" not in arrays:
            raise AdvlabError(f"keys x and {target}", ", ".join(arrays) or "no keys")
        x = np.asarray(arrays["x"], dtype=np.float64).reshape(len(arrays["x"]), -1)
        return x, arrays[target], [f"x{j}" for j in range(x.shape[1])]
    import polars as pl

    try:
        table = pl.read_parquet(path) if path.suffix == ".parquet" else pl.read_csv(path)
    except (pl.exceptions.PolarsError, OSError) as error:
        came = " ".join(str(error).split())[:120]
        raise AdvlabError("a .csv, .parquet or .npz file", f"{path} ({came})") from None
    if target not in table.columns:
        raise AdvlabError(f"--target as one of {', '.join(table.columns)[:200]}", repr(target))
    features = table.drop(target)
    words = [name for name in features.columns if not features[name].dtype.is_numeric()]
    if words:
        raise AdvlabError(
            "columns of numbers", f"{', '.join(words[:5])} of other types",
            "drop them, or encode them as numbers first",
        )  # fmt: skip
    missing = [name for name in features.columns if features[name].null_count()]
    if missing or table[target].null_count():
        raise AdvlabError("a table without gaps", f"gaps in {', '.join(missing[:5]) or target}")
    x = features.to_numpy().astype(np.float64)
    return x, table[target].to_numpy(), features.columns


def _loss_of(loss: str, y: "np.ndarray") -> str:
    import numpy as np

    if loss != "auto":
        return loss
    classes = y.dtype.kind in "OUSb" or len(np.unique(y)) == 2
    return "logistic" if classes else "squared"


def fitted(x: "np.ndarray", y: "np.ndarray", settings: dict[str, Any]) -> dict[str, Any]:
    """The robust and the clean model with their numbers, as JSON can hold them."""
    import warnings

    import numpy as np
    from sklearn.exceptions import ConvergenceWarning

    from ..linear import AdversarialClassifier, AdversarialRegressor

    classifies = settings["loss"] in ("logistic", "hinge")
    kind = AdversarialClassifier if classifies else AdversarialRegressor
    if not classifies:
        y = np.asarray(y, dtype=np.float64)
    with warnings.catch_warnings():
        # The status is printed and stands in the report.
        warnings.simplefilter("ignore", ConvergenceWarning)
        robust = kind(**settings).fit(x, y)
        clean = kind(**{**settings, "eps": 0.0}).fit(x, y)
        curve = _curve(robust, clean, x, y, classifies)
        path = _path(robust, x, y, settings, classifies)
    return {
        "norm": settings["norm"], "loss": settings["loss"], "scales": settings["scales"],
        "eps": float(robust.eps_), "status": robust.status_, "method": robust.method_,
        "objective": float(robust.objective_), "gap": float(robust.gap_),
        "iterations": int(robust.n_iter_), "seconds": float(robust.fit_time_),
        "samples": len(y), "classes": [str(one) for one in getattr(robust, "classes_", [])],
        "coef": np.atleast_2d(robust.coef_).tolist(),
        "intercept": np.atleast_1d(robust.intercept_).tolist(),
        "clean_coef": np.atleast_2d(clean.coef_).tolist(),
        "clean_intercept": np.atleast_1d(clean.intercept_).tolist(),
        "clean_status": clean.status_, "score": float(robust.score(x, y)),
        "clean_score": float(clean.score(x, y)), "curve": curve, "path": path,
    }  # fmt: skip


def _curve(robust: Any, clean: Any, x: Any, y: Any, classifies: bool) -> list[dict[str, Any]]:
    """Robust error (classes) or mean loss (numbers) of both models over radii."""
    import numpy as np

    rows = []
    for eps in np.linspace(0, 2 * max(robust.eps_, 1e-12), 21):
        for name, model in (("robust", robust), ("clean", clean)):
            value = (
                1 - model.robust_score(x, y, eps) if classifies else model.robust_loss(x, y, eps)
            )
            rows.append({"eps": float(eps), "model": name, "value": float(value)})
    return rows


def _path(model: Any, x: Any, y: Any, settings: dict[str, Any], classifies: bool) -> dict | None:
    """Coefficients over radii, for one score; None for several classes."""
    import numpy as np

    from ..core.errors import AdvlabError
    from ..linear import adversarial_path

    if classifies and len(model.classes_) != 2:
        return None
    target = np.where(y == model.classes_[1], 1.0, -1.0) if classifies else y
    try:
        found = adversarial_path(
            x, target, None, settings["norm"], settings["loss"], points=30, l1=settings["l1"],
            l2=settings["l2"], scales=model.scales_, delta=1.35,
        )  # fmt: skip
    except AdvlabError:
        return None
    return {
        "eps": found.eps.tolist(), "coefs": found.coefs.tolist(),
        "zero": found.thresholds.zero, "interpolation": found.thresholds.interpolation,
        "largest_gap": float(max(
            (s.relative_gap for s in found.solutions if not s.status.startswith("no")), default=0.0
        )),
    }  # fmt: skip
