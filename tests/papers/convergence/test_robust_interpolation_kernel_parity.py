"""The robust network near initialisation and its kernels: verdicts that can fail, and smoke."""

import numpy as np
import polars as pl
import pytest
import torch

from advlab import lab
from advlab.papers.convergence.experiments import kernel_parity, robust_interpolation
from advlab.threats import Cap

SEEDS = range(20)
NETWORK = {
    "feature_error": lambda m: 4 / m**0.5,
    "residual": lambda m: 3 / m,
    "residual_bound": lambda m: 9 / m**0.5,
    "distance": lambda m: 10.2,
    "margin": lambda m: 0.6 - 8 / m**0.5,
    "norm": lambda m: 10.0,
    "kernel_margin": lambda m: 0.7,
    "rf_norm": lambda m: 100.0,
    "refused_above": lambda m: True,
    "refused_below": lambda m: False,
    "forced_margin": lambda m: -0.2,
}
FALSE_NETWORK = {
    "12a": {"feature_error": lambda m: 4 / m**0.2},
    "12b": {"feature_error": lambda m: 4000 / m**0.5},
    "13a": {"distance": lambda m: 10.7},
    "13b": {"margin": lambda m: -0.1},
    "a": {"residual": lambda m: 3 / m**0.5},
    "b": {"residual_bound": lambda m: 2 / m},
    "19a": {"refused_below": lambda m: True},
    "19b": {"forced_margin": lambda m: 0.1},
}


def networks(**changes) -> pl.DataFrame:
    columns = NETWORK | changes
    return pl.DataFrame(
        [
            {"seed": seed, "activation": name, "m": m}
            | {column: value(m) for column, value in columns.items()}
            for seed in SEEDS
            for name in ("sin_cos", "quadratic_relu")
            for m in robust_interpolation.WIDTHS
        ]
    )


def outcomes(module, table: pl.DataFrame) -> dict[str, str]:
    found = module.verdicts(table)
    assert [verdict.id for verdict in found] == list(module.ABOUT.claims)
    return {verdict.id: verdict.outcome for verdict in found}


def test_all_claims_about_the_network_hold_on_a_table_in_which_they_do():
    assert outcomes(robust_interpolation, networks()) == dict.fromkeys(FALSE_NETWORK, "supported")


@pytest.mark.parametrize("part", FALSE_NETWORK)
def test_a_false_claim_about_the_network_is_refuted_and_the_others_are_not(part):
    expected = dict.fromkeys(FALSE_NETWORK, "supported") | {part: "refuted"}
    assert outcomes(robust_interpolation, networks(**FALSE_NETWORK[part])) == expected


def test_a_guard_that_lets_caps_meet_is_refuted():
    assert (
        outcomes(robust_interpolation, networks(refused_above=lambda m: False))["19a"] == "refuted"
    )


def test_one_activation_that_fails_is_enough():
    rows = networks()
    one = (pl.col("activation") == "quadratic_relu") & (pl.col("m") == 16384)
    rows = rows.with_columns(margin=pl.when(one).then(-0.1).otherwise("margin"))
    assert outcomes(robust_interpolation, rows)["13b"] == "refuted"


def test_small_networks_decide_nothing_about_wide_ones():
    rows = networks(margin=lambda m: -0.1, distance=lambda m: 20.0)
    found = outcomes(robust_interpolation, rows.filter(pl.col("m") < robust_interpolation.WIDE))
    assert found["13a"] == found["13b"] == "undecided"


def test_slopes_are_those_of_the_table():
    for values in robust_interpolation.slopes(networks(), "feature_error").values():
        assert values == pytest.approx([-0.5] * 20)


def test_grids_lie_in_the_caps_and_spread_over_the_sphere():
    x = robust_interpolation.fibonacci(7)
    grid = robust_interpolation.cap_grid(x, 0.15)
    flat, centres = grid.reshape(-1, 3), np.repeat(x, grid.shape[1], axis=0)
    assert Cap(radius=0.15).contains(torch.from_numpy(flat), torch.from_numpy(centres)).all()
    reach = np.linalg.norm(grid - x[:, None], axis=2)
    assert reach.min(1) == pytest.approx(np.zeros(7), abs=1e-12)
    assert reach.max(1) == pytest.approx(np.full(7, 0.15))
    many = robust_interpolation.fibonacci(3000)
    assert np.linalg.norm(many, axis=1) == pytest.approx(np.ones(3000))
    assert many.T @ many / 3000 == pytest.approx(np.eye(3) / 3, abs=1e-3)


def kernels() -> pl.DataFrame:
    """Every row that the experiment makes, with the values that its claims foretell."""
    rows = []
    for seed in SEEDS:
        rows += [(seed, name, "gap", None, None, None, 1e-12) for name in kernel_parity.SMOOTH]
        for name in kernel_parity.KINKED:
            for c in kernel_parity.COSINES:
                exact = float(kernel_parity.theory.kernel(name, c))
                rows.append((seed, name, "sampled", None, None, c, exact + 1e-5))
                rows.append((seed, name, "error", None, None, c, 1e-4))
            for d in (3, 4, 5):
                even, odd = (d * (d + 1) / 2, 60) if name == "quadratic_relu" else (60, d)
                rows.append((seed, name, "even rank", None, None, d, even))
                rows.append((seed, name, "odd rank", None, None, d, odd))
        for name in (*kernel_parity.SMOOTH, *kernel_parity.KINKED):
            rows.append((seed, name, "eigenvalue", None, None, 3, -1e-16))
            parity = kernel_parity.theory.parity(name)
            for labels, degree in (("equal", parity.even), ("opposite", parity.odd)):
                for inputs in ("raw", "lifted"):
                    fits = inputs == "lifted" or degree == np.inf
                    value = 1e-3 if fits else 1.0
                    rows.append((seed, name, "residual", labels, inputs, None, value))
    columns = ["seed", "activation", "quantity", "labels", "inputs", "at", "value"]
    order = [columns.index(name) for name in kernel_parity.SCHEMA]
    return pl.DataFrame(
        [[row[i] for i in order] for row in rows], schema=kernel_parity.SCHEMA, orient="row"
    )


FALSE_KERNEL = {
    "10a": ({"quantity": "gap", "activation": "gelu"}, 1e-6),
    "10b": ({"quantity": "sampled", "activation": "relu", "at": 0.3}, 0.5),
    "10c": ({"quantity": "eigenvalue", "activation": "erf"}, -1e-3),
    "11a": ({"quantity": "even rank", "activation": "quadratic_relu", "at": 4.0}, 60.0),
    "11b": ({"quantity": "odd rank", "activation": "relu", "at": 5.0}, 60.0),
    "a": (
        {"quantity": "residual", "activation": "erf", "labels": "equal", "inputs": "raw"}, 0.01),
    "b": (
        {"activation": "relu", "quantity": "residual", "labels": "opposite", "inputs": "raw"}, 0.0),
    "c": (
        {"quantity": "residual", "activation": "sin_cos", "labels": "equal", "inputs": "raw"}, 1.0),
    "d": (
        {"quantity": "residual", "activation": "gelu", "labels": "equal", "inputs": "lifted"}, 1.0),
    "e": (
        {"quantity": "residual", "activation": "gelu", "labels": "equal", "inputs": "raw"}, 1.0),
}  # fmt: skip


def test_all_claims_about_kernels_hold_on_a_table_in_which_they_do():
    assert outcomes(kernel_parity, kernels()) == dict.fromkeys(FALSE_KERNEL, "supported")


@pytest.mark.parametrize("part", FALSE_KERNEL)
def test_a_false_claim_about_kernels_is_refuted(part):
    where, value = FALSE_KERNEL[part]
    here = pl.all_horizontal(pl.col(name) == level for name, level in where.items())
    rows = kernels().with_columns(value=pl.when(here).then(value).otherwise("value"))
    found = outcomes(kernel_parity, rows)
    assert found[part] == "refuted"
    # A fit that the parity does not foretell refutes the forecast as well.
    others = set(found) - {part, "e"}
    assert {found[other] for other in others} == {"supported"}


def test_smoke_of_the_network(tmp_path):
    result = lab.run("convergence/robust_interpolation", scale="smoke", out=tmp_path, jobs=1)
    assert not result.failed
    assert {verdict.outcome for verdict in result.verdicts} == {"undecided"}
    assert len(result.chart["concat"]) == 4
    found = {verdict.id: verdict.measured for verdict in result.verdicts}
    assert found["19a"] == 1
    assert found["19b"] < 0
    assert found["12b"] < 1
    assert found["b"] < 1


def test_smoke_of_the_kernels(tmp_path):
    result = lab.run("convergence/kernel_parity", scale="smoke", out=tmp_path, jobs=1)
    assert not result.failed
    assert {verdict.outcome for verdict in result.verdicts} == {"undecided"}
    fits, kernels = result.chart["vconcat"]
    assert (len(fits["concat"]), len(kernels["concat"])) == (2, 1)
    found = {verdict.id: verdict.measured for verdict in result.verdicts}
    assert found["10a"] < 1e-8
    assert {found[label] for label in ("11a", "11b", "a", "d")} == {1}
