"""Attack realism, flatness bounds and attacks on the network itself: parts, verdicts, smoke."""

import numpy as np
import polars as pl
import pytest
import specimens_cgro
import specimens_cgro_bounds
import torch

from advlab import lab
from advlab.attacks import PGD, FakeSignal
from advlab.models import Stack
from advlab.papers.cgro.data import Patches
from advlab.papers.cgro.experiments import flatness_bound, network_attacks, other_attacks
from advlab.papers.cgro.experiments._parts import other_attacks_runs
from advlab.papers.cgro.models import PatchCNN
from advlab.training import Mixed, fit


def outcomes(module, table: pl.DataFrame) -> dict[str, str]:
    return {verdict.id: verdict.outcome for verdict in module.verdicts(table)}


def draws(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


# --- other_attacks ----------------------------------------------------------------------------


def test_critical_radii_are_distances_to_the_boundary():
    """One filter: with one patch f = <w, x>^3 changes sign at distance |<w, x>|/||w||; with two,
    where <w, x_1> + <w, x_2> = 0, at |their sum|/(sqrt 2 ||w||)."""
    w = draws(2, 1, 6, seed=1)
    stack = Stack([PatchCNN(one) for one in w])
    delta = torch.tensor([30.0, 10.0], dtype=torch.float64)
    rngs = [torch.Generator().manual_seed(seed) for seed in range(2)]
    # With two patches PGD has other places to end in: it needs its restarts, and stays above.
    for patches, restarts, slack in ((1, 1, 0.0), (2, 12, 0.05)):
        x = draws(2, 5, patches, 6, seed=patches)
        along = (x * w[:, None]).sum((2, 3)) / patches**0.5 / w[:, 0].norm(dim=1)[:, None]
        walk = PGD(steps=10, step_size=0.25, restarts=restarts)
        found = other_attacks_runs.critical_radii(stack, x, along.sign(), delta, walk, 10, rngs)
        exact = along.abs() / delta[:, None]
        assert (found >= exact).all()
        assert (found <= (1 + slack) * exact + 2**-10).all()


def test_full_budget_counts_what_the_closed_forms_count():
    law = Patches.scaled(n=60, d=40)
    points = law.sample(torch.Generator().manual_seed(3))
    weight = 0.3 * draws(4, 40, seed=4) + 0.1 * law.direction()
    found = other_attacks_runs.full_budget(PatchCNN(weight), points, law)
    fake = FakeSignal(direction=(1.0,))
    w, u = weight.numpy(), weight[:, 0].numpy()
    gta, least = [], []
    for x, y, signal in zip(*(part.numpy() for part in points), strict=True):
        noise = [y * (w @ x[j]) for j in range(4) if j != signal]
        V = sum((one**3).sum() for one in noise)
        gta.append((law.alpha * (1 - law.gamma)) ** 3 * (u**3).sum() + V)
        weak = (law.alpha - fake.a * law.delta) ** 3 * (u**3).sum()
        shift = [((one - fake.b * law.delta * u) ** 3 - one**3).sum() for one in noise]
        least.append(weak + V + min(shift))
    assert found["GTA"] == pytest.approx(np.mean(np.array(gta) > 0))
    assert found["fake signal"] == pytest.approx(np.mean(np.array(least) > 0))
    assert 0 < found["GTA"] < 1
    assert 0 < found["fake signal"] < 1


def test_other_attacks_sees_a_window_after_clean_training():
    table = specimens_cgro_bounds.other_attacks_table()
    own = (pl.col("lam") == 0) & (pl.col("quantity") == "median train")
    wide = table.with_columns(value=pl.col("value") * pl.when(own).then(1.1).otherwise(1.0))
    assert outcomes(other_attacks, wide)["12d"] == "refuted"


# --- flatness_bound ---------------------------------------------------------------------------


def test_networks_need_not_be_convex():
    table = specimens_cgro_bounds.flatness_table()
    lower = pl.when(pl.col("model") == "network").then(0.28).otherwise(pl.col("lower"))
    assert set(outcomes(flatness_bound, table.with_columns(lower=lower)).values()) == {"supported"}


def test_linear_models_are_measured_in_closed_form_as_networks_are_by_search():
    """The same linear models, once by formula and once by the search that networks get."""
    case = flatness_bound.Case(model="linear", D=3, replicates=2)
    x, y = (part.flatten(0, 1) for part in flatness_bound._clusters(case, "fresh", 30))
    stack = Stack([flatness_bound.Linear(draws(3, seed=seed)) for seed in range(2)])
    ball = flatness_bound.Ball(norm="l2", radius=0.5)
    rngs = flatness_bound._rngs(case, "test")
    exact = flatness_bound._sharpness(case, stack, x, y, ball, rngs)
    searched = flatness_bound._sharpness(
        case.model_copy(update={"model": "network"}), stack, x, y, ball, rngs
    )
    for name in ("loss", "slope", "steepest", "rise"):
        ours, theirs = getattr(exact, name), getattr(searched, name)
        torch.testing.assert_close(ours, theirs.detach(), rtol=1e-6, atol=1e-9)


# --- network_attacks --------------------------------------------------------------------------


@pytest.mark.parametrize("arm", ["oracle", "own", "pgd5"])
def test_network_attacks_trains_in_few_dimensions_as_in_all(arm):
    """The same data, start and attack in d dimensions, side by side."""
    case = network_attacks.Case(arm=arm, d=200, n=3, replicates=1, seed=5)
    law = case.law
    (x, y), few = network_attacks._reduced(case)
    attack, ball = network_attacks._attack(case, few)
    objective = Mixed(loss="logistic", ball=ball, attack=attack, lam=0.5)
    fit(few, x, y, steps=25, lr=0.05, objective=objective)
    points = law.sample(network_attacks.generators(network_attacks.NAME, "data", seeds=[5])[0])
    rng = network_attacks.generators(network_attacks.NAME, "start", seeds=[5])[0]
    whole = Stack([PatchCNN.draw(law.d, network_attacks.FILTERS, law.d**-0.5, rng)])
    attack, _ = network_attacks._attack(case, whole)
    objective = Mixed(loss="logistic", ball=ball, attack=attack, lam=0.5)
    fit(whole, points.x[None], points.y[None], steps=25, lr=0.05, objective=objective)
    torch.testing.assert_close(few(x[0]), whole(points.x), rtol=1e-8, atol=1e-10)
    gram = [one @ one.mT for one in (few.get_parameter("weight"), whole.get_parameter("weight"))]
    torch.testing.assert_close(*gram, rtol=1e-8, atol=1e-10)
    assert float((few(x[0]) * y[0]).detach().min()) > 0.5


def test_every_radius_of_training_is_judged_on_its_own():
    """One radius that memorises is enough to refute."""
    table = specimens_cgro.network_attacks_specimen().table
    one = pl.when(pl.col("arm") == "pgd50").then(5.0).otherwise("mean V").alias("mean V")
    found = outcomes(network_attacks, table.with_columns(one))
    assert found.pop("c") == "refuted"
    assert set(found.values()) == {"supported"}


# --- all --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["other_attacks", "flatness_bound", "network_attacks"])
def test_smoke_runs_end_to_end(name, tmp_path):
    result = lab.run(f"cgro/{name}", scale="smoke", jobs=1, out=tmp_path)
    assert result.failed == []
    assert {verdict.outcome for verdict in result.verdicts} <= {"undecided", "outside"}
    assert result.chart["concat"]
