"""Specimens of cgro: the powers of Theorem E.1's terms in N and delta."""

from collections.abc import Callable

import polars as pl
from nulls import Null, Specimen
from tables import cross, when, wobble

from advlab.papers.cgro.experiments import flatness_rate

NETWORK = pl.col("part") == "network"
G_OF_NETWORKS = 3 * (pl.col("N") / 100).pow(-0.3)
MEASURED = ("gap", "(I)", "(II)", "delta G", "bound", "slack", "printed slack")


def rate_table() -> pl.DataFrame:
    """Twenty replicates with the powers of the claims."""
    seeds = range(20)
    rate = cross(part=["rate", "fixed"], D=flatness_rate.DIMENSIONS, N=flatness_rate.SIZES,
                 delta=[0.25], seed=seeds)  # fmt: skip
    radius = cross(part=["radius"], D=flatness_rate.DIMENSIONS, N=[1600],
                   delta=flatness_rate.RADII, seed=seeds)  # fmt: skip
    network = cross(part=["network"], D=flatness_rate.DIMENSIONS, N=flatness_rate.FEW,
                    delta=[0.25], seed=range(10))  # fmt: skip
    N, D = pl.col("N").cast(pl.Float64), pl.col("D")
    trained, moves = NETWORK, pl.col("part").is_in(["rate", "network"])
    delta = pl.when(moves).then(N.log() * (-1 / (D + 2))).otherwise(pl.col("delta").log()).exp()
    rows = pl.concat([rate, radius, network])
    rows = rows.with_columns(delta=delta)
    j = {name: wobble(rows, 0.02, k) for k, name in enumerate(MEASURED)}
    sizes = {
        "gap": pl.when(trained)
        .then(12 * G_OF_NETWORKS * N.pow(-0.5) * pl.col("delta"))
        .otherwise(N.pow(-0.5)),
        "(I)": 0.1 * pl.col("delta").pow(2),
        "(II)": 0.8 * N.pow(-0.5),
        "delta G": pl.when(trained).then(G_OF_NETWORKS).otherwise(0.5) * pl.col("delta"),
        "bound": 0.5 * pl.col("delta") + 0.1,
        "slack": 0.3 * pl.col("delta"),
        "printed slack": 0.9 * pl.col("delta"),
    }
    return rows.with_columns(**{name: value * pl.lit(j[name]) for name, value in sizes.items()})


def rates() -> Specimen:
    table, N = rate_table(), pl.col("N").cast(pl.Float64)
    delta, D = pl.col("delta"), pl.col("D")
    every = pl.lit(True)
    one = (pl.col("seed") == 3) & (pl.col("N") == 6400)
    return Specimen(
        table=table,
        measured=MEASURED,
        chance={"printed slack": -0.01},
        controls={
            "one gap above the printed bound": Null(
                when(table, one, **{"printed slack": -0.01}), ("E.1",)),
            "(I) like delta": Null(when(table, every, **{"(I)": 0.1 * delta}), ("I",)),
            "(II) without N": Null(when(table, every, **{"(II)": 0.1}), ("II/N",)),
            "(II) like N^(-1/4)": Null(when(table, every, **{"(II)": N.pow(-0.25)}), ("II/N",)),
            "(II) as printed": Null(
                when(table, every, **{"(II)": 0.01 * (-D / 2 * delta.log()).exp()}), ("II/r",)),
            "G like N^-0.1": Null(
                when(table, every, **{"delta G": 0.5 * delta * N.pow(-0.1)}), ("G",)),
            "G like N^0.1": Null(
                when(table, every, **{"delta G": 0.5 * delta * N.pow(0.1)}), ("G", "G/net")),
            "G of networks without N": Null(
                when(table, NETWORK, **{"delta G": 1.5 * delta}), ("G/net",)),
            "one network above the printed bound": Null(
                when(table, (pl.col("seed") == 3) & NETWORK & (N == 400),
                     **{"printed slack": -0.01}), ("E.1/net",)),
            "a gap of networks like its bound": Null(
                when(table, NETWORK, gap=1.4 * pl.col("delta G")), ("gap/net",)),
            "a bound far from the gap of networks": Null(
                when(table, NETWORK, gap=0.4 * pl.col("delta G")), ("gap/net", "near")),
            "the gap falls like its bound": Null(
                when(table, every, gap=(-N.log() / (D + 2)).exp()), ("gap", "fixed/g")),
        },
        bugs={
            "(II) left out": Null(when(table, one, slack=-0.01), ("holds",)),
        },
    )  # fmt: skip


RATES: dict[str, Callable[[], Specimen]] = {"cgro/flatness_rate": rates}
