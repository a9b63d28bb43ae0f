"""Specimens of generalization: tables in which the claims hold, and what must break them.

Linear models are here; the lasso, networks and images are in `specimens_generalization_nets`.
"""

from collections.abc import Callable

import numpy as np
import polars as pl
from nulls import Null, Specimen
from specimens_generalization_images import IMAGES
from specimens_generalization_lazy import LAZY
from specimens_generalization_nets import SPECIMENS as OTHERS
from specimens_generalization_theorems import THEOREMS
from tables import cross, when, wobble

from advlab import linear
from advlab.papers.generalization import theory
from advlab.papers.generalization.experiments import closed_forms, fig5, surrogate_limit

SEEDS = range(100)


# Closed forms

EXACT = {
    "gap of kappa": (1e-12, 1e-3, "2a"),
    "zero threshold": (1.0, 0.0, "2b"),
    "growth": (1.7, 0.9, "18a"),
    "off the support, block-diagonal": (0.0, 0.2, "18b"),
    "off the support, correlated": (0.1, 0.0, "18c"),
    "midpoint, potential": (-1e-3, 0.05, "20a"),
    "midpoint, surrogate risk": (-1e-3, 0.05, "20b"),
}
"""What each quantity is, what it would be if its claim were false, and the claim."""


def _wrong_risks(seed: int, norm: str, share: float) -> dict[str, float]:
    """How far wrong closed forms are from the right one, on a model as the experiment draws it."""
    rng = np.random.default_rng([seed, 1])
    factor, theta0, sigma2 = rng.normal(size=(10, 5)), rng.normal(size=5), rng.uniform(0.2, 2)
    cov = factor.T @ factor / 10
    theta = theta0 + 0.3 * rng.normal(size=5)
    eps = share * linear.eps_zero(theta0, sigma2, norm, cov)
    s = float(linear.residual_std(theta, theta0, sigma2, cov))
    q = float(np.linalg.norm(theta, 2 if norm == "l2" else 1))
    other = float(np.linalg.norm(theta, 1 if norm == "l2" else 2))
    bare = np.sqrt(s**2 - sigma2)
    right = s**2 + (eps * q) ** 2 + 2 * linear.C0 * eps * q * s
    wrong = {
        "without the cross term": s**2 + (eps * q) ** 2,
        "without the square of the attack": s**2 + 2 * linear.C0 * eps * q * s,
        "1 in place of sqrt(2/pi)": (s + eps * q) ** 2,
        "the norm itself in place of its dual": s**2
        + (eps * other) ** 2
        + 2 * linear.C0 * eps * other * s,
        "without the noise": bare**2 + (eps * q) ** 2 + 2 * linear.C0 * eps * q * bare,
    }
    return {"right": 1.0} | {name: right / value for name, value in wrong.items()}


def closed() -> Specimen:
    rng = np.random.default_rng(0)
    settings = cross(norm=["l2", "linf"], eps=closed_forms.SHARES, seed=range(20))
    ratios = [_wrong_risks(row["seed"], row["norm"], row["eps"]) for row in settings.to_dicts()]
    sampled = settings.with_columns(quantity=pl.lit("sampled over closed"))
    noise = 1 + 0.005 * rng.normal(size=len(sampled))
    exact = cross(quantity=list(EXACT), seed=range(20)).with_columns(norm=pl.lit("l2"), eps=0.4)
    exact = exact.with_columns(
        value=pl.col("quantity").replace_strict({name: one[0] for name, one in EXACT.items()})
    )

    def table(name: str) -> pl.DataFrame:
        values = np.array([one[name] for one in ratios]) * noise
        rows = sampled.with_columns(value=pl.Series(values))
        return pl.concat([rows, exact.select(rows.columns)])

    good = table("right")
    false = {
        f"false {quantity}": Null(when(good, pl.col("quantity") == quantity, value=value), (label,))
        for quantity, (_, value, label) in EXACT.items()
    }
    wrong = {name: Null(table(name), ("1",)) for name in ratios[0] if name != "right"}
    return Specimen(good, measured=("value",), controls={**wrong, **false})


# Figure 1


def _path(steps: int, end: float, wave: float = 0.0, rise: float = 0.0) -> np.ndarray:
    """A loss that falls to its end; then it zigzags, or creeps up."""
    t = np.arange(steps + 1)
    late = t > steps / 3
    return end + 5 * np.exp(-t / (steps / 12)) + end * late * (wave * (-1.0) ** t + rise * t)


def _fig1_table(
    jitter: float = 5e-3, smooth: float = 0.0, potential: float = 0.0, surrogate: float = 0.0
) -> pl.DataFrame:
    parts = []
    settings = [("figure", 3.0, 0.0, 1000, 100), ("figure", 3.0, 0.05, 1000, 100)]
    settings += [("descent", 0.5, 0.1, 1000, 1000), ("descent", 3.0, 0.05, 1000, 1000)]
    settings += [("theorem", 0.5, 1.52, 1_000_000, 20), ("theorem", 3.0, 1.52, 1_000_000, 20)]
    for purpose, eps, xi, n, steps in settings:
        wave = jitter if xi == 0 else smooth
        seeds = 20 if purpose == "theorem" else 100 if purpose == "figure" else 40
        columns = {
            "step": np.arange(steps + 1),
            "train": _path(steps, 11.0, wave),
            "potential": _path(steps, 11.1, potential),
            "surrogate": _path(steps, 10.9, rise=surrogate),
        }
        run = pl.DataFrame(columns).with_columns(
            purpose=pl.lit(purpose), eps=eps, xi=xi, n=n, test="train"
        )
        parts.append(run.join(cross(seed=range(seeds)), how="cross"))
    return pl.concat(parts)


def fig1() -> Specimen:
    good = _fig1_table()
    return Specimen(
        good,
        measured=("train", "potential", "surrogate"),
        controls={
            "xi = 0.05 in both": Null(_fig1_table(jitter=0.0), ("3a",)),
            "jitter of rounding": Null(_fig1_table(jitter=1e-15), ("3a",)),
            "xi = 0 in both": Null(_fig1_table(smooth=5e-3), ("3b",)),
            "rises of 1e-5": Null(_fig1_table(smooth=1e-5), ("3b",)),
            "a step beyond the stable one": Null(_fig1_table(potential=2e-3), ("7a",)),
            "drift after the minimum": Null(_fig1_table(surrogate=1e-4), ("7b", "7c")),
        },
        by=("purpose", "eps", "xi", "seed"),
    )


# Figure 5


def _fig5_table(excess: float = 0.05, away: float = -0.1, price: float = 1.0) -> pl.DataFrame:
    """Final rows: the share of theta0's excess over R* (a fifth of it at n = 10,000) and so on."""
    rng = np.random.default_rng(0)
    law, strengths = np.ones(10), np.array(fig5.EPS)
    best = linear.optimal_path(law, 1.0, strengths).risk
    lost = linear.adversarial_risks(law, law, 1.0, strengths) - best
    cost = linear.cost_of_robustness(law, 1.0, strengths) * 11
    rows = cross(n=[100, 1000, 10_000], i=range(3), seed=SEEDS)
    i, n, noise = rows["i"].to_numpy(), rows["n"].to_numpy(), 1 + 0.1 * rng.normal(size=len(rows))
    return rows.with_columns(
        eps=pl.Series(strengths[i]),
        step=1000,
        test=pl.Series(best[i] + excess * lost[i] * noise),
        distance=pl.Series(0.5 + away * np.log(n) + 1e-3 * (noise - 1)),
        standard=pl.Series(1 + price * cost[i] * (1 + 0.1 * (noise - 1))),
        least_squares=1.0,
    ).drop("i")


def figure5() -> Specimen:
    everything = ("4a", "4b", "4c", "4d", "5a", "5b")
    return Specimen(
        _fig5_table(),
        measured=("test", "distance", "standard"),
        controls={
            "theta0 itself": Null(_fig5_table(excess=1.0, away=0.0, price=0.0), everything),
            "half of the way": Null(_fig5_table(excess=0.5), ("4a", "4b")),
            "half of c(eps)": Null(_fig5_table(price=0.5), ("5a",)),
            "a risk below the least one": Null(_fig5_table(excess=-0.5), ("4a", "4b", "4d")),
        },
    )


# The surrogate's limit


def limit() -> Specimen:
    law = (np.ones(10), 1.0)

    def table(ends_at: str) -> pl.DataFrame:
        parts = []
        for eps, xi in surrogate_limit.SETTINGS:
            kappa = {
                "limit": float(theory.kappa_alg(*law, eps, xi)),
                "proof": float(theory.kappa_alg(*law, eps, xi, "proof")),
                "best": float(linear.optimal_path(*law, np.array([eps])).kappa[0]),
            }
            rows = cross(part=["descent"], eps=[eps], xi=[xi], step=[600], seed=range(12))
            reached = kappa[ends_at] * wobble(rows, 1e-3)
            parts.append(rows.with_columns(kappa=reached, limit=kappa["limit"], best=kappa["best"]))
        exact = cross(
            part=["limit"], eps=surrogate_limit.STRENGTHS, xi=surrogate_limit.SMOOTHINGS, seed=[0]
        )
        parts.append(exact.with_columns(excess=pl.col("xi") * pl.col("eps")))
        return pl.concat(parts, how="diagonal_relaxed")

    falling = table("limit").with_columns(-pl.col("excess"))
    return Specimen(
        table("limit"),
        measured=("kappa", "excess"),
        controls={
            "the minimiser's kappa": Null(table("best"), ("6b", "6c")),
            "xi in place of xi/2": Null(table("proof"), ("6b",)),
            "excess that falls with xi": Null(falling, ("6a",)),
        },
    )


# High dimension

SETTINGS = {
    "fig3": [(1000, 0.5, 1e-3), (1000, 0.5, 5e-4)],
    "fig9": [(1000, 0.0, 1e-3), (1000, 0.5, 1e-3)],
    "fig10": [(1000, 0.5, 1e-3), (5000, 0.5, 2e-4)],
    "fig11": [(5000, 0.0, 2e-4), (5000, 0.5, 2e-4), (1000, 0.0, 1e-3)],
}
SIGNAL, NOISE = 10 * 20 / 1000, 20 / 979
"""The two terms of E|theta(y)|^2 at n = 20, d = 1000."""


def _training(name: str) -> pl.DataFrame:
    parts = [
        cross(d=[d], xi=[xi], lr=[lr], eps=[0.0, 0.01, 0.1], seed=SEEDS, step=range(7))
        for d, xi, lr in SETTINGS[name]
    ]
    rows = pl.concat(parts).with_columns(part=pl.lit("training"))
    slow, small = pl.when(pl.col("xi") == 0).then(2.0).otherwise(1.0), pl.col("d") / 1000
    return rows.with_columns(
        residual=0.7 ** pl.col("step").cast(float),
        train_exact=11 * 0.05 ** pl.col("step").cast(float) / small * wobble(rows, 0.05),
        test=11 * (1 - 0.01 / small * wobble(rows, 0.05)),
        relative_gap=(pl.col("eps") + 1e-9) * slow / small * wobble(rows, 0.05),
    )


def _drawn(norm2: float = SIGNAL + NOISE, risk: float = 11 - SIGNAL + NOISE) -> pl.DataFrame:
    """4000 draws of the interpolator, with these means."""
    noise = np.random.default_rng(1).normal(size=(2, 4000))
    noise -= noise.mean(1, keepdims=True)
    rows = cross(part=["interpolator"], d=[1000], seed=range(4000))
    return rows.with_columns(
        norm2=pl.Series(norm2 + 0.085 * noise[0]), risk=pl.Series(risk + 0.1 * noise[1])
    )


def _fig3_table(**means: float) -> pl.DataFrame:
    return pl.concat([_training("fig3"), _drawn(**means)], how="diagonal_relaxed")


MOMENTS = {
    "without the noise term": {"norm2": SIGNAL, "risk": 11 - SIGNAL},
    "twice the noise": {"norm2": SIGNAL + 2 * NOISE, "risk": 12 - SIGNAL + 2 * NOISE},
    "n/d squared": {"norm2": SIGNAL * 0.02 + NOISE, "risk": 11 - SIGNAL * 0.02 + NOISE},
    "without the signal": {"norm2": NOISE, "risk": 11 + NOISE},
}


def high_dimension(name: str) -> Specimen:
    good = _fig3_table() if name == "fig3" else _training(name)
    end = pl.col("step") == good["step"].max()
    slow = {"residual": 0.99 ** pl.col("step").cast(float)}
    late = (pl.col("step") > 4).cast(float)
    controls = {
        "fewer dimensions, n/d = 0.1": Null(when(good, end, test=10.2), ("10b",)),
        "a model that learned": Null(when(good, end, test=1.6), ("10b",)),
        "a tenth left to fit": Null(when(good, end, train_exact=1.1), ("10a",)),
    }
    if name in ("fig3", "fig9"):
        controls |= {
            "too few steps": Null(good.with_columns(**slow), ("13a", "13b")),
            "a residual that comes back": Null(
                good.with_columns(residual=pl.col("residual") + late), ("13a",)
            ),
            "a residual that rises first": Null(
                when(good, pl.col("step") == 1, residual=1.1), ("13b",)
            ),
        }
    if name == "fig3":
        controls |= {
            words: Null(_fig3_table(**means), ("11a", "11b")) for words, means in MOMENTS.items()
        }
    same = good.with_columns(relative_gap=pl.col("eps") * wobble(good, 0.05))
    if name != "fig3":
        labels = {"fig9": ("12a",), "fig10": ("12b",), "fig11": ("12a", "12b")}[name]
        controls["the gap of any xi and d"] = Null(same, labels)
    if name == "fig10":
        swapped = when(good, pl.col("eps") == 0.1, test=11 * (1 + 5e-6 * pl.col("d")))
        more = good.with_columns(train_exact=pl.col("train_exact") * (pl.col("d") / 1000) ** 2)
        controls["distance that grows at eps = 0.1"] = Null(swapped, ("10d",))
        controls["loss that grows with d"] = Null(more, ("10c",))
    if name == "fig11":
        square = good.with_columns(relative_gap=pl.col("relative_gap") * pl.col("eps"))
        controls["a gap like eps^2"] = Null(square, ("12c",))
    return Specimen(
        good,
        measured=("residual", "train_exact", "test", "relative_gap")
        + (("norm2", "risk") if name == "fig3" else ()),
        chance={"test": 22.0, "train_exact": 11.0},
        controls=controls,
    )


# Exact paths

PATHS = {
    "distance from the link": (0.03, 0.5, ("p1", "p2")),
    "distance from theta*": (0.1, None, ("p5",)),
    "threshold over population": (1.0, 0.8, ("p7",)),
    "thresholds hold": (1.0, 0.0, ("p6",)),
    "gap": (1e-12, None, ()),
    "threshold over square-root lasso": (np.sqrt(np.pi / 2), 1.0, ("p3",)),
    "same first feature": (1.0, 0.0, ("p4",)),
}
"""What each quantity is, what it would be if its claims were false, and the claims."""


def exact_paths() -> Specimen:
    flags = ("thresholds hold", "same first feature")
    rows = cross(
        n=[100, 400, 1600, 6400], norm=["l2", "linf"], quantity=list(PATHS), seed=range(20)
    )
    only_linf = pl.col("quantity").is_in(["threshold over square-root lasso", "same first feature"])
    rows = rows.filter(~only_linf | (pl.col("norm") == "linf"))
    value = pl.col("quantity").replace_strict({name: one[0] for name, one in PATHS.items()})
    noisy = pl.when(pl.col("quantity").is_in(flags)).then(1.0).otherwise(wobble(rows, 0.02))
    shrink = pl.when(pl.col("quantity") == "distance from theta*").then(
        10 / pl.col("n").cast(float).sqrt()
    )
    good = rows.with_columns(value=value * noisy * shrink.otherwise(1.0))
    false = {
        f"false {name}": Null(when(good, pl.col("quantity") == name, value=wrong * noisy), labels)
        for name, (_, wrong, labels) in PATHS.items()
        if wrong is not None
    }
    still = when(good, pl.col("quantity") == "distance from theta*", value=0.1 * noisy)
    return Specimen(
        good,
        measured=("value",),
        controls={**false, "a distance that stays": Null(still, ("p5",))},
    )


SPECIMENS: dict[str, Callable[[], Specimen]] = {
    "generalization/closed_forms": closed,
    "generalization/fig1": fig1,
    "generalization/paths": exact_paths,
    "generalization/fig5": figure5,
    "generalization/surrogate_limit": limit,
    **{f"generalization/{name}": lambda name=name: high_dimension(name) for name in SETTINGS},
    **OTHERS,
    **THEOREMS,
    **LAZY,
    **IMAGES,
}
