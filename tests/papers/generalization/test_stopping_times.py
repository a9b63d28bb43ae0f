"""T of Theorem 5 from the closed form of standard training, and what a run reports at it."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from advlab import linear
from advlab.core.randomness import generators
from advlab.papers.generalization import theory
from advlab.papers.generalization.experiments import stopping_times as stopping
from advlab.papers.generalization.experiments._parts.stopping_runs import crossing


@pytest.fixture(scope="module")
def case() -> stopping.Case:
    return stopping.Case(n=10, d=400, eps=0.0, replicates=4)


def test_standard_training_stops_where_its_closed_form_does(case):
    found = stopping.compute(case).sort("seed")
    law = case.model
    x, y = law.sample_stack(generators(stopping.NAME, case.n, case.d, seeds=case.seeds))
    for r, row in enumerate(found.iter_rows(named=True)):
        gram, answers = (x[r] @ x[r].mT).numpy(), y[r].numpy()
        step = np.eye(case.n) - 2 * case.lr * gram / case.n
        unit = math.sqrt(law.v2 * case.n)
        residuals = [np.linalg.matrix_power(step, t) @ answers for t in range(60)]
        level = unit / math.sqrt(math.log(case.n))
        assert row["T"] == next(t for t, one in enumerate(residuals) if np.linalg.norm(one) < level)
        theta = x[r].mT.numpy() @ np.linalg.solve(gram, answers - residuals[row["T"]])
        expected = np.linalg.norm(theta) / (unit / math.sqrt(case.d))
        assert row["theta at T"] == pytest.approx(expected, abs=1e-12)
        assert row["T"] - 1 <= row["crossing"] <= row["T"] or row["T"] == 0
        error = float(np.linalg.norm(theta - law.theta0_vector()) ** 2)
        assert row["risk"] * law.v2 == pytest.approx(error + law.sigma2, rel=1e-9)
        loss = residuals[row["T"]] @ residuals[row["T"]] / case.n
        assert row["loss"] * law.v2 == pytest.approx(loss, rel=1e-9)
        edges = np.linalg.eigvalsh(gram)[[0, -1]] / case.d
        assert [row["smallest"], row["largest"]] == pytest.approx(edges)


def test_a_crossing_is_found_between_two_iterations():
    residual = torch.tensor([[4.0], [2.0], [0.5]], dtype=torch.float64)
    found = crossing(residual, torch.tensor([2]), 1.0)
    assert float(found) == pytest.approx(1.5)  # halfway from log 2 to log 1/2
    assert crossing(residual, torch.tensor([0]), 5.0).isnan()


def test_a_wide_network_stops_with_the_linear_model_and_has_its_risk(case):
    """The risk of the linear part is known in closed form (eq. 5)."""
    attacked = case.model_copy(update={"eps": 0.1})
    wide = attacked.model_copy(update={"net": "gelu"})
    one, other = (stopping.compute(some).sort("seed") for some in (attacked, wide))
    assert one["T"].to_list() == other["T"].to_list()
    assert one["theta at T"].to_list() == pytest.approx(other["theta at T"].to_list(), rel=1e-3)
    risks = other.filter(stopping.pl.col("T") > 0)["risk"].to_numpy()
    assert np.abs(risks - 1).max() < 0.25


def test_the_linear_models_risk_is_the_mean_loss_under_its_attack(case):
    attacked = case.model_copy(update={"eps": 0.5, "replicates": 1})
    found = stopping.compute(attacked)
    law = attacked.model
    x, y = law.sample_stack(generators(stopping.NAME, case.n, case.d, seeds=attacked.seeds))
    path = stopping.train("linear", attacked.width, x, y, 0.5, attacked.xi, attacked.lr)
    net = path.weights[int(found["T"][0])]
    rng = torch.Generator().manual_seed(3)
    points = torch.randn(1, 40_000, case.d, generator=rng, dtype=torch.float64)
    truth = torch.from_numpy(law.theta0_vector())
    noise = torch.randn(1, 40_000, generator=rng, dtype=torch.float64)
    answers = points @ truth + law.sigma2**0.5 * noise
    moved = points + net.attack(points, answers, 0.5, attacked.xi)
    loss = (net.values(moved)[0] - answers).square().mean() / law.v2
    assert found["risk"][0] == pytest.approx(float(loss), rel=0.03)


def rotated(case: stopping.Case) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The sample in the whole space, and a basis that training cannot leave."""
    model = case.model
    x, y = model.sample_stack(generators(stopping.NAME, model.n, case.d, seeds=case.seeds))
    basis = stopping.Subspace.of(x, torch.from_numpy(model.theta0_vector())).basis
    return x, y, basis


def test_correlated_inputs_have_the_closed_form_of_the_whole_space(case):
    some = case.model_copy(update={"d": 60, "eps": 0.3, "rho": 0.6, "replicates": 2})
    found = stopping.compute(some)
    x, y, _ = rotated(some)
    model = some.model
    path = stopping.train("linear", some.width, x, y, some.eps, some.xi, some.lr)
    for r, stop in enumerate(found["T"]):
        theta = path.weights[stop].linear_part[r].numpy()
        at = (model.theta0_vector(), model.sigma2, some.eps, some.xi)
        risk = float(theory.surrogate_risk(theta, *at, cov=model.covariance()))
        assert found["risk"][r] * model.v2 == pytest.approx(risk, rel=1e-9)


@pytest.mark.parametrize(("law", "rho"), [("uniform", 0.0), ("gaussian", 0.6)])
def test_fresh_points_are_those_of_the_whole_space(case, law, rho, monkeypatch):
    """A gelu network that is not lazy, on points drawn in all dimensions."""
    monkeypatch.setattr("advlab.papers.generalization.experiments._parts.stopping_risks.FRESH",
                        200_000)  # fmt: skip
    some = case.model_copy(
        update={"net": "gelu", "width": 64, "d": 40, "eps": 0.3, "law": law, "rho": rho,
                "replicates": 1}
    )  # fmt: skip
    found = stopping.compute(some)
    x, y, basis = rotated(some)
    path = stopping.train("gelu", some.width, x @ basis, y, some.eps, some.xi, some.lr)
    net = path.weights[int(found["T"][0])]
    whole = replace(net, theta=net.theta @ basis.mT)
    points, answers = some.model.sample(torch.Generator().manual_seed(1), 200_000)
    moved = points[None] + whole.attack(points[None], answers[None], some.eps, some.xi)
    loss = (whole.values(moved)[0][0] - answers).square().mean() / some.model.v2
    assert found["risk"][0] == pytest.approx(float(loss), rel=0.02)


def test_the_interpolator_is_that_of_the_closed_form(case, monkeypatch):
    monkeypatch.setattr(stopping, "OTHER", case.d)
    some = case.model_copy(update={"eps": 0.2, "replicates": 2})
    found = stopping.compute(some)
    x, y, _ = rotated(some)
    model = some.model
    for r in range(2):
        theta = linear.min_norm(x[r].numpy(), y[r].numpy())
        at = (model.theta0_vector(), model.sigma2, some.eps, some.xi)
        risk = float(theory.surrogate_risk(theta, *at)) / model.v2
        assert found["interpolator"][r] == pytest.approx(risk, rel=1e-9)
        assert found["length"][r] * some.n / some.d * model.v2 == pytest.approx(theta @ theta)


def test_relu_is_the_linear_model_on_symmetrised_data_with_four_times_the_step(case):
    some = case.model_copy(update={"eps": 0.3, "symmetrised": True})
    four, twice, line = (
        stopping.compute(some.model_copy(update={"net": net}))
        for net in ("relu four times", "relu twice", "linear")
    )
    assert four["apart"].to_numpy().max() < 1e-12
    assert four["T"].to_list() == line["T"].to_list()
    assert twice["apart"].to_numpy().min() > 0.01
    # Twice the step is half of the speed.
    assert (twice["T"] >= line["T"]).all()
    assert stopping.compute(case)["apart"].is_nan().all()
