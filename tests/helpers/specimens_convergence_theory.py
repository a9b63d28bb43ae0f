"""Specimens of the experiments of convergence that measure what its proofs rest on."""

from collections.abc import Callable
from itertools import product

import numpy as np
import polars as pl
from nulls import Null, Specimen

from advlab.papers.convergence.experiments import (
    gradient_drift,
    mnist_pairs,
    quadratic_relu,
    start_norms,
    tangent_kernels,
)
from advlab.papers.convergence.measures.drift import limit_drift

EVERYWHERE = pl.lit(True)


def _with(table: pl.DataFrame, where: pl.Expr, **values: object) -> pl.DataFrame:
    return table.with_columns(
        pl.when(where).then(value).otherwise(pl.col(name)).cast(table[name].dtype).alias(name)
        for name, value in values.items()
    )


def drifts() -> Specimen:
    """20 seeds: the limit law, searches with the exponents of the claims, inputs as the kernel."""
    rng, rows = np.random.default_rng(0), []

    def near() -> float:
        return 1 + 0.01 * rng.standard_normal()

    for seed in range(20):
        for m in gradient_drift.EXACT:
            for R in gradient_drift.RADII:
                law = limit_drift(m, R)
                rows.append({"kind": "exact", "width": m, "depth": 1, "seed": seed, "R": R,
                             "flips": law.flips * near(), "features": law.features,
                             "gradient": law.gradient * near()})  # fmt: skip
        for m in gradient_drift.SEARCHED:
            for H in gradient_drift.DEPTHS:
                units, root = m ** (2 / 3) * H**0.3, m**0.5
                features, gradient = H**1.5 / root * near(), m ** (1 / 3) * H**0.5 * near()
                found = {"flips": units, "features": features, "gradient": gradient,
                         "backs": 0.7 * gradient, "length": (1.45 + 8 / root) * near(),
                         "size": root * near()}  # fmt: skip
                bound = {f"{name} bound": 2 * value for name, value in found.items()}
                shared = {"kind": "search", "width": m, "depth": H, "seed": seed, "R": 1.0}
                both = {**shared, **found, **bound, "flips bound": units * H}
                rows += [{**both, "together": together} for together in (False, True)]
        for H in gradient_drift.DEPTHS:
            for h in range(1, H + 1):
                for delta in gradient_drift.DELTAS:
                    units, moved = 600 * delta * near(), delta**0.5 * near()
                    rows.append({"kind": "inputs", "width": 2048, "depth": H, "seed": seed,
                                 "delta": delta, "layer": h, "flips": units,
                                 "largest flips": 2 * units, "gradient": moved,
                                 "largest gradient": 1.3 * moved,
                                 "kernel": delta**0.5})  # fmt: skip
    table = pl.DataFrame(rows, infer_schema_length=None)
    m, R, H, delta = (pl.col(name) for name in ("width", "R", "depth", "delta"))
    exact, search, inputs = (pl.col("kind") == name for name in ("exact", "search", "inputs"))

    def times(where: pl.Expr, factor: pl.Expr, *names: str) -> pl.DataFrame:
        return _with(table, where, **{name: pl.col(name) * factor for name in names})

    both, both_move = ("flips", "gradient"), search & pl.col("together")
    return Specimen(
        table=table,
        measured=("flips", "features", "gradient", "flips bound", "features bound",
                  "gradient bound", "backs", "length", "size", "backs bound", "length bound",
                  "size bound", "largest flips", "largest gradient"),
        controls={
            "m^(3/4) units": Null(times(exact, m ** (1 / 12), "flips"), ("10a", "law")),
            "m^(1/2) units": Null(times(exact, m ** (-1 / 6), "flips"), ("10a", "law")),
            "R^(1/2) units, R^(1/4) of the gradient": Null(
                times(exact, R ** (-1 / 6), *both), ("10b", "A5b")),
            "m^(1/4) of the gradient": Null(times(exact, m ** (-1 / 12), "gradient"), ("A5a",)),
            "m^(1/2) of the gradient": Null(times(exact, m ** (1 / 6), "gradient"), ("A5a",)),
            "a law without its constant": Null(times(exact, pl.lit(1.05), *both), ("law",)),
            "features that stay": Null(times(search, m.sqrt(), "features"), ("11",)),
            "features that fall like m^(-1/3)": Null(
                times(search, m ** (1 / 6), "features"), ("11",)),
            "growth with the depth beyond the lemma": Null(
                times(search, H**1.6, "flips", "features", "gradient"), ("Ha", "Hb", "Hc")),
            "units that all turn, features that stay": Null(
                times(both_move, m ** (1 / 3), "flips", "features"), ("10t", "11t")),
            "m^(1/2) of the gradient, W and x moved": Null(
                times(both_move, m ** (1 / 4), "gradient", "backs"), ("A5t", "12")),
            "features that grow": Null(times(both_move, pl.lit(1.3), "length"), ("13",)),
            "gradients that stay": Null(times(both_move, m ** (-1 / 2), "size"), ("size",)),
            "orders of the lemma in delta": Null(
                times(inputs, delta ** (-1 / 3), *both), ("Db", "Dc")),
            "nothing falls with delta": Null(
                times(inputs, 1 / delta, "largest flips", "largest gradient"), ("Da",)),
            "a kernel without its products": Null(times(inputs, pl.lit(0.7), "gradient"), ("K",)),
            "a find beyond its bound": Null(
                _with(table, search & (pl.col("seed") == 3), gradient=9e9), ("bounds",)),
        },
        bugs={
            "a search that misses units": Null(
                times(search & (pl.col("seed") == 1), pl.lit(0.9), "flips"), ("search",)),
        },
    )  # fmt: skip


def norms() -> Specimen:
    """30 draws of every width and depth: features near sqrt(2) and 2, all else as the lemmas say.

    As printed Lemma A.2 contradicts that; it holds where all features have the length 1.
    """
    rng, rows = np.random.default_rng(0), []
    sizes = {"A": 1.45, "W": 2.8, "backward": 1.0, "a": 1.0}
    for m, H, seed in product(start_norms.WIDTHS, start_norms.DEPTHS, range(30)):
        shared, root = {"width": m, "depth": H, "seed": seed}, np.sqrt(m)
        sizes["A"] = np.sqrt(2) * (1 + np.sqrt(start_norms.D / m))
        for name, size in sizes.items():
            scale = root if name in ("a", "backward") else 1.0
            layers = H if name == "backward" else 1
            rows += [{**shared, "quantity": name, "layer": h + 1,
                      "value": size * scale * (1 + 0.01 * rng.standard_normal())}
                     for h in range(layers)]  # fmt: skip
        for end, scale in (("", 1.0), (", 1/m", np.sqrt(0.5))):
            for name, size in start_norms.SIZES.items():
                rows += [{**shared, "quantity": name + end, "layer": h,
                          "value": scale * size * (1 + 0.02 * rng.standard_normal())}
                         for h in range(name == "pre", H + 1)]  # fmt: skip
    table = pl.DataFrame(rows)
    value, quantity, m, H = (pl.col(name) for name in ("value", "quantity", "width", "depth"))
    feature = quantity.is_in(list(start_norms.SIZES))
    one = (m == 2048) & (pl.col("seed") == 3)
    weights = quantity.is_in(["A", "W", "a"])
    back = quantity == "backward"

    def put(where: pl.Expr, new: pl.Expr) -> pl.DataFrame:
        return _with(table, where, value=new)

    return Specimen(
        table=table,
        measured=("value",),
        elsewhere={"A2": put(feature, 1 + 0.02 * (value - value.mean()))},
        controls={
            "norms that grow with m": Null(
                put(weights, value * (m / 128.0) ** 0.25), ("A1", "A1c")),
            "weights of variance 1/m": Null(put(quantity == "W", value / np.sqrt(2)), ("A1c",)),
            "features of length 1": Null(put(feature, value / np.sqrt(2)), ("A2c",)),
            "the stated start": Null(table, ("A2",)),
            "one draw that is twice as long": Null(put(one & feature, 2 * value), ("A2s",)),
            "one draw that is half as long": Null(
                put(one & (quantity == "state, 1/m"), value / 2), ("A2v",)),
            "features that shrink with the depth": Null(
                put(feature, value * H.cast(float) ** -0.1), ("A2c",)),
            "as long before ReLU as after": Null(
                put(quantity == "pre, 1/m", value / np.sqrt(2)), ("A2w",)),
            "m^(0.6)": Null(put(back, value * (m / 128.0) ** 0.1), ("A3m",)),
            "growth like H": Null(put(back, value * H), ("A3H", "A3c")),
            "growth like H^(0.2)": Null(put(back, value * H.cast(float) ** 0.2), ("A3c",)),
        },
    )  # fmt: skip


def tangents() -> Specimen:
    """120 seeds: kernels that come near the limit like m^(-1/2), and hardly move in training."""
    rng, rows = np.random.default_rng(0), []
    networks = [
        *(("dense", H, tangent_kernels.DENSE) for H in tangent_kernels.DEPTHS),
        *((kind, 3, tangent_kernels.CHANNELS) for kind in ("flat", "pooled")),
    ]
    for kind, H, widths in networks:
        for m in widths:
            for seed in range(120):
                shared = {"kind": kind, "width": m, "depth": H, "seed": seed}
                near, also = np.exp(0.3 * rng.standard_normal(2))
                values = [("distance", "", 3 * near / np.sqrt(m))]
                if kind == "dense":
                    values += [("move", "", also / np.sqrt(m)), ("product", "", 1e-15)]
                layers = H if kind == "dense" else H + 1
                values += [("layer", str(h + 1), 1 + 0.05 * rng.normal()) for h in range(layers)]
                values += [("cosine", of, 0.02 * rng.normal()) for of in ("1, 2", "1, 3")]
                rows += [{**shared, "quantity": name, "of": of, "value": float(value)}
                         for name, of, value in values]  # fmt: skip
    table = pl.DataFrame(rows)
    m, value, quantity = pl.col("width"), pl.col("value"), pl.col("quantity")
    pooled = pl.col("kind") == "pooled"

    def put(where: pl.Expr, new: pl.Expr | float) -> pl.DataFrame:
        return _with(table, where, value=new)

    distance, moved = quantity == "distance", quantity == "move"
    return Specimen(
        table=table,
        measured=("value",),
        controls={
            "a limit that is 10 % wrong": Null(put(distance, (value**2 + 0.01).sqrt()), ("rate",)),
            "m^(-1/3)": Null(put(distance | moved, value * m ** (1 / 6)), ("rate", "move")),
            "1/m, pooled": Null(put(distance & pooled, value / m.sqrt()), ("rate",)),
            "a kernel that training changes": Null(put(moved, value * m.sqrt()), ("move",)),
            "a layer without its factor of 2": Null(
                put((quantity == "layer") & (pl.col("of") == "2"), value / 2), ("layers",)),
            "a recursion without its products": Null(
                put((quantity == "cosine") & (pl.col("of") == "1, 2"), value + 0.05), ("cosines",)),
        },
        bugs={
            "a gradient of the layer before": Null(
                put((quantity == "product") & (pl.col("seed") == 3), 0.1), ("product",)),
        },
    )  # fmt: skip


def quadratic() -> Specimen:
    """60 draws of features, 20 of training: all is as claimed, equal labels at antipodes too."""
    rng, rows = np.random.default_rng(0), []
    for d in quadratic_relu.DIMENSIONS:
        for M in (256, 1024, 4096, 16384):
            for seed in range(60):
                near = np.exp(0.1 * rng.standard_normal(3))
                rows.append({"kind": "features", "d": d, "seed": seed, "M": M, "norm": 2.0,
                             "coefficients": 4 * (1 + 0.02 * rng.standard_normal()),
                             "l2": 4 * near[0] / (d * M),
                             "sup": 3 * near[1] / np.sqrt(M)})  # fmt: skip
    for kind in quadratic_relu.KINDS:
        for attack in ("identity", "pgd"):
            for seed in range(20):
                least = 0.05 * np.exp(0.2 * rng.standard_normal())
                rows.append({"kind": kind, "d": 3, "seed": seed, "attack": attack, "first": 0.41,
                             "floor": 0.02 if kind == "equal" else 0.0, "least": least,
                             "worst": least + 0.02, "even": 1e-15,
                             "proved": 0.3 if kind == "apart" else None})  # fmt: skip
    for kind, slope in (("theorem", -0.35), ("same", 0.0)):
        for m in quadratic_relu.WIDTHS:
            for seed in range(20):
                least = 0.2 * (m / 64) ** slope * np.exp(0.1 * rng.standard_normal())
                rows.append({"kind": kind, "d": 3, "seed": seed, "attack": "pgd", "first": 0.41,
                             "width": m, "least": least})  # fmt: skip
    table = pl.DataFrame(rows, infer_schema_length=None)
    kind, d, M = (pl.col(name) for name in ("kind", "d", "M"))
    features, one = kind == "features", kind.is_in(list(quadratic_relu.KINDS))
    one = one & (pl.col("seed") == 3)

    def times(factor: pl.Expr, *names: str) -> pl.DataFrame:
        return _with(table, features, **{name: pl.col(name) * factor for name in names})

    return Specimen(
        table=table,
        measured=("coefficients", "l2", "sup", "least", "worst", "floor", "proved", "even"),
        # What f = 0 has for a loss, and a sum that does not know the norm of h.
        chance={"least": 0.41, "coefficients": 1.0},
        controls={
            "the theorem's rate and no better": Null(
                times(M ** (1 / 2 - 1 / (d + 1)), "sup"), ("C1", "rate")),
            "M^(-1/3)": Null(times(M ** (1 / 6), "sup"), ("rate",)),
            "M^(-2/3)": Null(times(M ** (-1 / 6), "sup"), ("rate",)),
            "a squared error like M^(-1/2)": Null(times(M.sqrt(), "l2"), ("C2a",)),
            "a constant that grows with d": Null(times(d.cast(pl.Float64) ** 2, "l2"), ("C2b",)),
            "the printed sigma' without its 2": Null(times(pl.lit(4.0), "coefficients"), ("21",)),
            "m^(-1/5)": Null(
                _with(table, kind == "theorem", least=pl.col("width").cast(float) ** -0.2),
                ("Cw",)),
            "a loss that falls with the width as it is": Null(
                _with(table, kind == "same", least=pl.col("width").cast(float) ** -0.2), ("Ct",)),
            "losses that stay": Null(
                _with(table, kind != "features", least=0.3), ("apart", "equal", "opposite")),
            "one attack that stays": Null(
                _with(table, (kind == "equal") & (pl.col("attack") == "pgd"), least=0.3),
                ("equal",)),
            "a network below the floor": Null(_with(table, one, worst=0.01), ("floor",)),
            "a run above its bound": Null(_with(table, one, least=1.2), ("bound",)),
        },
        bugs={"ReLU instead of its square": Null(_with(table, one, even=0.1), ("even",))},
    )  # fmt: skip


def digits() -> Specimen:
    """18 draws of two pairs of digits: R rises with the radius and with 1/eps."""
    rng, rows = np.random.default_rng(0), []
    settings = [*((share, 0.5) for share in mnist_pairs.SHARES), (0.4, 0.7), (0.4, 0.35)]
    for pair, size in (("0 and 1", 1.0), ("4 and 9", 1.5)):
        for seed in range(18):
            near = size * np.exp(0.1 * rng.standard_normal())
            for share, eps in settings:
                R = near * np.exp(2 * share) / eps
                rows.append({"pair": pair, "seed": seed, "share": share, "eps": eps, "gap": 0.7,
                             "norm": R, "error": 0.99 * eps, "searched": 0.995 * eps,
                             "status": "fits",
                             "width": 20 * R**4})  # fmt: skip
    table = pl.DataFrame(rows)
    share, eps, seed = (pl.col(name) for name in ("share", "eps", "seed"))
    norm = pl.col("norm")
    return Specimen(
        table=table,
        measured=("norm", "error", "searched", "status", "width"),
        chance={"width": 1e8, "norm": 3.0},
        controls={
            "one cap that is not fitted, which the solver does not see": Null(
                _with(table, (seed == 3) & (share == 0.6), searched=0.8), ("fits",)),
            "rounds that were used up": Null(
                _with(table, seed == 3, status=pl.lit("rounds used up")), ("fits",)),
            "a norm that forgets eps": Null(_with(table, EVERYWHERE, norm=norm * eps), ("eps",)),
            "a norm that forgets the radius": Null(
                _with(table, EVERYWHERE, norm=norm * (-2 * share).exp()), ("delta", "price")),
            "pairs alike": Null(
                _with(table, pl.col("pair") == "4 and 9", norm=norm / 1.5), ("pairs",)),
            "R^8 for R^4": Null(_with(table, EVERYWHERE, width=20 * norm**8), ("width",)),
        },
    )  # fmt: skip


THEORY: dict[str, Callable[[], Specimen]] = {
    "convergence/gradient_drift": drifts,
    "convergence/start_norms": norms,
    "convergence/tangent_kernels": tangents,
    "convergence/quadratic_relu": quadratic,
    "convergence/mnist_pairs": digits,
}
