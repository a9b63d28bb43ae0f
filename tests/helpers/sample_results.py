"""Results of experiments that never ran: enough kinds to fill a report."""

import numpy as np
import polars as pl

from advlab.report import Claims, Failure, Result, Verdict, sample, undecide
from advlab.report.charts import boxes, curves, heat, panels, points
from advlab.report.findings import Finding

OPTIMAL = {0.0: 1.0, 0.1: 1.595, 0.5: 5.385}


def decided(rule: str, label: str, claim: str, *values, **more) -> Verdict:
    """A verdict by one of the rules of `Claims`."""
    return getattr(Claims({label: claim}), rule)(label, *values, **more)


def training(steps=400, seeds=20) -> pl.DataFrame:
    """Risks that fall to a little above their optimum, as in a low-dimensional linear model."""
    rng = np.random.default_rng(0)
    step, seed = (axis.ravel() for axis in np.meshgrid(np.arange(steps), np.arange(seeds)))
    tables = []
    for eps, best in OPTIMAL.items():
        noise = 1 + 0.08 * rng.normal(size=seeds)[seed]
        fall = (11 - best) * np.exp(-step / 60)
        columns = {"step": step, "seed": seed, "train": (0.97 * best + fall) * noise}
        columns |= {
            "test": best + 0.02 * noise + fall * noise,
            "gap": np.exp(-step / (60 + 90 * eps)) * noise,
        }
        tables.append(pl.DataFrame(columns).with_columns(eps=pl.lit(eps)))
    return pl.concat(tables)


def convergence() -> Result:
    table = training()
    best = pl.DataFrame({"eps": list(OPTIMAL), "test": list(OPTIMAL.values())})
    last = table.filter(pl.col("step") == 399).join(best, on="eps", suffix="_best")
    last = last.with_columns(excess=(pl.col("test") - pl.col("test_best")) / 11)
    axes = {"color": "eps", "x_title": "iteration"}
    chart = panels(
        [
            curves(table, "step", "train", **axes, y_title="loss", title="Training"),
            curves(table, "step", "test", **axes, theory=best, y_title="risk", title="Test"),
            curves(table, "step", "gap", **axes, log_y=True, log_x=True, title="Distance"),
        ]
    )
    about = """Figure 5: adversarial training reaches the smallest adversarial risk (Theorem 2).

    With `d = 10` features and `n = 1000` points, gradient descent on the surrogate loss goes to

        R*(eps) = min over theta of R(theta, eps)

    - the dashed lines are R*, from the closed form (5);
    - the bands are one standard deviation over 20 data sets.
    """
    return result(
        "generalization/fig5",
        item="Figure 5",
        title="Adversarial training reaches the optimal adversarial risk",
        about=about,
        settings={"dimension": 10, "points": 1000, "eps": [0, 0.1, 0.5], "xi": 0.1},
        chart=chart.to_dict(),
        verdicts=[
            decided(
                "below",
                "4",
                "The adversarial risk ends within 1 % of the optimum.",
                sample(last, "excess", by="eps"),
                0.01,
                what="excess risk over the variance of y",
            ),
            decided(
                "above",
                "5",
                "Adversarial training hurts the standard risk at eps = 0.5.",
                last.filter(pl.col("eps") == 0.5)["test"] - 5.39,
                0.05,
                what="standard risk above that of least squares",
            ),
            decided(
                "share",
                "7",
                "The loss does not rise in at least 80 % of runs.",
                [True] * 19 + [False],
                0.8,
                what="descent",
            ),
            decided(
                "within",
                "2",
                "kappa is 0.2277 at eps = 0.5.",
                0.22772,
                0.2276,
                0.2278,
                what="kappa",
            ),
            decided("below", "6", "The bias vanishes.", [0.1, None, 0.2], 1, what="bias"),
        ],
    )


def lasso() -> Result:
    rng = np.random.default_rng(1)
    rows = [
        {"n": n, "seed": seed, "lambda": lam, "accuracy": min(1.0, acc + 0.03 * rng.normal())}
        for n, base in {10: 0.62, 50: 0.74, 200: 0.86, 1000: 0.9}.items()
        for lam, acc in {"0": base - 0.1, "0.001": base}.items()
        for seed in range(30)
    ]
    table = pl.DataFrame(rows)
    risk = table.filter(pl.col("lambda") == "0").with_columns(risk=1 - pl.col("accuracy"))
    chart = panels(
        [
            boxes(table, "n", "accuracy", "lambda", y_title="adversarial accuracy"),
            points(table, "n", "accuracy", "lambda", log_x=True, y_title="mean accuracy"),
            heat(risk.with_columns(fold=pl.col("seed") % 5), "n", "fold", "risk"),
        ]
    )
    falling = decided("decreasing", "14", "Risk falls with n.", risk, "n", "risk")
    return result(
        "generalization/fig4",
        item="Figure 4",
        title="An L1 penalty helps when points are few",
        about="An L1 penalty raises the adversarial accuracy of a two-layer network on few digits.",
        cases=8,
        failed=[
            Failure(
                case={"n": 500, "penalty": 0.001, "seed": 0},
                reason="FloatingPointError: loss is nan",
            ),
            Failure(case={"n": 500, "penalty": 0}, reason="MemoryError: no room"),
        ],
        chart=chart.to_dict(),
        verdicts=[falling, undecide(falling, "two sizes are missing")],
    )


def quick() -> Result:
    table = training(steps=5, seeds=2)
    chart = curves(table, "step", "test", "eps", title="Risk")
    verdict = decided("below", "a", "Test error stays small.", [0.1, 0.1, 0.2], 1, what="error")
    return result(
        "benign/fig1",
        paper="benign",
        item="Figure 1",
        title="A quick look",
        about="Robust training loss goes to zero while the test error stays small.",
        scale="smoke",
        seeds=2,
        seconds=1.2,
        chart=chart.to_dict(),
        verdicts=[undecide(verdict, "smoke scale decides nothing")],
    )


def results() -> list[Result]:
    return [quick(), lasso(), convergence()]


KNOWN = {
    "generalization/fig5/5": Finding(
        finding="The printed constant drops a factor of two.", docs="docs/findings.md#fig5"
    )
}


def result(experiment: str, **changes) -> Result:
    usual = {
        "paper": "generalization",
        "scale": "laptop",
        "seeds": 20,
        "cases": 3,
        "seconds": 38.4,
        "versions": {"advlab": "0.1.0", "torch": "2.13.0", "polars": "2.1.0"},
        "commit": "f6fc3e6",
        "finished": "2025-11-15T19:30:00+00:00",
    }
    return Result(experiment=experiment, **{**usual, **changes})
