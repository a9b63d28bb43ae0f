"""The paper's conditions on the data, read from the data that the runs of a table had."""

import polars as pl
import torch

from .....report import Assumption
from ...theory import compatible_caps, on_unit_sphere
from .two_layer_runs import Case


def data_conditions(table: pl.DataFrame, name: str) -> list[Assumption]:
    """Inputs on the unit sphere, and caps of other labels that do not meet (sections 3.1, 3.3).

    Args:
        table: of runs of `two_layer_runs.Case`, with its settings as columns.
        name: the name that the experiment draws its data by.
    """
    lengths, apart, radii = [], [], []
    for setting in table.select("n", "d", "radius", "separation").unique().to_dicts():
        rows = table.filter(*(pl.col(key) == value for key, value in setting.items()))
        seeds = rows["seed"].unique().sort()
        case = Case(width=2, seed=seeds[0], replicates=len(seeds), **setting)
        x, _ = case.data(name)
        lengths += x.double().norm(dim=2).flatten().tolist()
        apart += [float(torch.pdist(one.double()).min()) for one in x]
        radii.append(case.radius)
    return [on_unit_sphere(lengths), compatible_caps(min(apart), max(radii))]
