"""Activity, growth rates and the growth identity: plain loops, autograd and a real run."""

import itertools

import numpy as np
import polars as pl
import pytest
import torch

from advlab.core.errors import AdvlabError
from advlab.core.randomness import generator
from advlab.losses import logistic
from advlab.models import Stack
from advlab.papers.purification.data import SparseCoding
from advlab.papers.purification.experiments._parts.growth_along_training import (
    LEMMAS,
    band_constant,
    growth,
    noisy,
    sides,
)
from advlab.papers.purification.experiments._parts.presets import SparseProblem, scaled
from advlab.papers.purification.measures import (
    GrowthLog,
    Nets,
    activation_probability,
    active,
    alive,
    coordinate_lipschitz,
    coordinates,
    growth_identity,
    growth_rates,
    label_direction,
    leftover,
    leftover_share,
    lipschitz_bound,
    loss_slope,
    own_sets,
)
from advlab.papers.purification.models import SymmetricReLU
from advlab.training import L2, Penalize, Probe, fit

R, WIDTH, D, N = 2, 9, 6, 20


def problem(sigma: float = 0.0, **noise):
    data = SparseCoding(n=N, d=D, k=2, **noise)
    points = [data.sample(generator("points", r)) for r in range(R)]
    nets = [SymmetricReLU.draw(D, WIDTH, 0.6, 0.3, generator("net", r), sigma) for r in range(R)]
    x, y, z, M, w = (torch.stack(part) for part in zip(*points, strict=True))
    return Stack(nets), x, y, z, M, w


def test_activity_is_counted():
    model, x, *_ = problem()
    nets = Nets.of(model)
    found, chance = active(nets, x), activation_probability(nets, x)
    for r in range(R):
        u = np.array([[float(p @ w) for w in nets.weight[r]] for p in x[r]])
        assert found.near[r].tolist() == (abs(u) >= 0.03).sum(1).tolist()
        assert found.open[r].tolist() == (abs(u) > 0.3).sum(1).tolist()
        np.testing.assert_allclose(chance[r].numpy(), (abs(u) > 0.3).mean(0))


def test_leftovers_are_what_other_atoms_and_noise_bring():
    model, x, _, z, M, _ = problem(sx=0.5)
    nets = Nets.of(model)
    A = coordinates(nets.weight, M)
    own = own_sets(A)
    rest = leftover(nets, x, z, A, own)
    xi = x - z @ M.mT
    for r, n, i in itertools.product(range(R), range(3), range(WIDTH)):
        other = sum(M[r, :, j] * z[r, n, j] for j in range(D) if not bool(own[r, i, j]))
        expected = float(nets.weight[r, i] @ (other + xi[r, n]))
        assert float(rest[r, n, i]) == pytest.approx(expected, abs=1e-12)
    share = (rest.abs() <= 0.03).double().mean(dim=(1, 2))
    torch.testing.assert_close(leftover_share(nets, rest), share)


@pytest.mark.parametrize("sigma", [0.0, 0.2])
def test_coordinate_constants_are_differences_of_the_network_and_below_their_bound(sigma):
    model, x, _, z, M, _ = problem(sigma, sx=0.3)
    nets, levels = Nets.of(model), (1.0, 0.5)
    A = coordinates(nets.weight, M)
    found = coordinate_lipschitz(nets, x, z, A, levels, 0.8)
    for r, j in itertools.product(range(R), range(D)):
        net = model.replicate(r)
        start = x[r] - z[r, :, j, None] * M[r, :, j]
        steep = [
            abs(net(start + v * M[r, :, j]) - net(start)).detach().numpy() / abs(v)
            for v in (1, -1, 0.5, -0.5)
        ]
        expected = np.quantile(np.max(steep, 0), 0.8)
        assert float(found[r, j]) == pytest.approx(expected, abs=1e-12)
    every = torch.ones_like(A, dtype=torch.bool)
    slack = 2 / D**0.5
    assert bool((found <= lipschitz_bound(A, every, 2) - slack + 1e-12).all())
    torch.testing.assert_close(lipschitz_bound(A, every, 2) - slack, A.abs().sum(1))
    none = lipschitz_bound(A, ~every, 2)
    torch.testing.assert_close(none, torch.full_like(none, slack))


def test_growth_rates_are_means_over_points_and_noise():
    model, x, y, z, M, _ = problem(0.4, sx=0.5)
    nets = Nets.of(model)
    slope = loss_slope(nets, x, y)
    first, second = growth_rates(nets, x, y, z, M), growth_rates(nets, x, y, z, M, slope)
    rho = 0.4 * torch.randn(20_000, generator=generator("rho"), dtype=torch.float64)
    xi = x - z @ M.mT
    for r, i in itertools.product(range(R), range(3)):
        u = x[r] @ nets.weight[r, i]
        gate = ((u[:, None] + rho) >= 0.3).double().mean(1) * y[r]
        for rates, pull in ((first, gate), (second, gate * slope[r])):
            signal = (pull[:, None] * z[r]).mean(0)
            noise = (pull[:, None] * (xi[r] @ M[r])).mean(0)
            torch.testing.assert_close(rates.signal[r, i], signal, atol=5e-3, rtol=0)
            torch.testing.assert_close(rates.noise[r, i], noise, atol=5e-3, rtol=0)
    assert float(second.signal.abs().max()) > 0.01


@pytest.mark.parametrize("sigma", [0.0, 0.2])
def test_the_growth_identity_is_exact_without_noise_and_measured_is_the_gradient(sigma):
    for noise, exact in (({}, True), ({"sx": 1.0}, False)):
        model, x, y, z, M, w = problem(sigma, **noise)
        sides = growth_identity(Nets.of(model), x, y, z, M, w)
        for r in range(R):
            net = model.replicate(r)
            net.requires_grad_()
            logistic(net(x[r]), y[r]).mean().backward()
            expected = -net.weight.grad @ M[r] @ w[r]
            torch.testing.assert_close(sides.measured[r], expected)
        same = torch.allclose(sides.measured, sides.predicted, rtol=1e-10, atol=1e-12)
        assert same == exact
        assert bool((sides.predicted >= 0).all())


def test_the_log_watches_a_run():
    model, x, y, z, M, w = problem()
    direction = label_direction(M, w)
    log, seen = GrowthLog(direction), []

    def probe(net):
        sides = growth_identity(Nets.of(net), x, y, z, M, w)
        keep = alive(net.weight)
        seen.append((sides.measured, keep))
        return torch.zeros(R)

    before = model.get_parameter("weight").detach().clone()
    fit(model, x, y, steps=5, lr=0.3, loss="logistic", hooks=[log, Probe({"see": probe})])
    assert log.positive.shape == (5, R)
    for step, (value, keep) in enumerate(seen[:5]):
        share = ((value > 0) & keep).sum(1) / keep.sum(1)
        torch.testing.assert_close(log.positive[step], share.double())
    torch.testing.assert_close(log.total, sum(value for value, _ in seen[:5]))
    assert torch.equal(log.every, log.positive == 1)
    moved = (model.get_parameter("weight").detach() - before) @ direction[:, :, None]
    torch.testing.assert_close(0.3 * log.total, moved[:, :, 0])


def test_the_log_of_one_network_leaves_the_penalty_out():
    model, x, y, z, M, w = problem()
    alone = model.replicate(0)
    alone.requires_grad_()
    log = GrowthLog(label_direction(M[0], w[0]))
    sides = growth_identity(Nets.of(alone), x[0], y[0], z[0], M[0], w[0])
    hooks = [log, Penalize(L2(weight=0.5))]
    fit(alone, x[0], y[0], steps=1, lr=0.3, loss="logistic", hooks=hooks)
    torch.testing.assert_close(log.total, sides.measured)


def test_a_log_of_nothing_and_of_other_networks():
    model, x, y, _, M, w = problem()
    with pytest.raises(AdvlabError, match="at least one step"):
        _ = GrowthLog(M[0, 0]).total
    log = GrowthLog(label_direction(M, w)[0])
    with pytest.raises(AdvlabError, match="one direction for each"):
        fit(model, x, y, steps=1, lr=0.1, loss="logistic", hooks=[log])


def growing_problem() -> SparseProblem:
    """A small problem with noise outside and inside."""
    full = scaled(24)
    few = full.clean.model_copy(update={"steps": 4})
    law = full.data.model_copy(update={"n": 200})
    preset = noisy(full.model_copy(update={"clean": few, "data": law}))
    return SparseProblem.draw(preset, range(2), "growing", 400)


def test_growth_lemmas_have_the_sides_that_plain_loops_find():
    problem = growing_problem()
    nets = Nets.of(problem.networks())
    d, sx = 24, problem.preset.data.sx
    found = {lemma: (one.left, one.right) for lemma, one in sides(problem, nets, 1)}
    found |= {lemma: (one.left, one.right) for lemma, one in sides(problem, nets, 2)}
    assert set(found) == set(LEMMAS)
    x, y, z = problem.test_x, problem.test_y, problem.test_z
    for r in range(2):
        b, rho, W = nets.bias[r], nets.sigma[r], nets.weight[r]
        gate = torch.special.ndtr((x[r] @ W.mT - b) / rho) * y[r][:, None]
        signal = gate.mT @ z[r] / len(x[r])
        A = W @ problem.M[r]
        noise = gate.mT @ (x[r] @ problem.M[r] - z[r]) / len(x[r])
        left, right = found["C.9"]
        torch.testing.assert_close(left[r], signal.abs().max())
        assert float(right[r]) == pytest.approx(1 / d)
        # Lemma C.7's Gamma: the neuron that is most often above b/10, or the noise inside.
        often = max(float(((x[r] @ neuron).abs() >= b / 10).double().mean()) for neuron in W)
        gamma = max(often, 2 * float(torch.special.ndtr(-b / 10 / rho)))
        left, right = found["C.7/I"]
        assert float(left[r]) == pytest.approx(gamma)
        assert float(right[r]) == pytest.approx(problem.preset.data.k / d)
        worst = max(
            float((noise[i] @ A[i]).abs() / (gamma * sx**2 / d / rho * (A[i] @ A[i])))
            for i in range(len(W))
            if bool(alive(W)[i])
        )
        left, right = found["C.11"]
        assert float(left[r] / right[r]) == pytest.approx(worst, rel=1e-3)


def test_the_noise_summed_over_atoms_is_that_of_a_plain_loop():
    problem = growing_problem()
    nets = Nets.of(problem.networks())
    found = dict(sides(problem, nets, 2))["C.17b"]
    law, x, y, z = problem.preset.data, problem.test_x, problem.test_y, problem.test_z
    slope = loss_slope(nets, x, y)
    for r in range(2):
        gate = torch.special.ndtr((x[r] @ nets.weight[r].mT - nets.bias[r]) / nets.sigma[r])
        total = []
        for i in range(len(nets.weight[r])):
            pull = y[r] * slope[r] * gate[:, i]
            parts = [(pull * (x[r] @ problem.M[r][:, j] - z[r][:, j])).mean().abs()
                     for j in range(law.d)]  # fmt: skip
            total.append(torch.stack(parts).sum())
        keep = alive(nets.weight[r])
        assert float(found.left[r]) == pytest.approx(
            float(torch.stack(total)[keep].max()), rel=1e-3
        )
    assert float(found.right[0]) == pytest.approx(law.k**3 * law.sx**2 / law.d**2)


def test_the_constant_of_a_band_is_the_least_that_holds_the_value():
    main = 0.01
    left = torch.tensor([0.0, 1e-4, 0.02, -0.03, 0.3])
    slack = torch.tensor([0.1, 0.004, 0.004, 0.004, 0.1])
    found = band_constant(left, main, slack)
    for value, e, C in zip(left, slack, found, strict=True):

        def holds(c, value=value, e=e):
            return main / c - c * e <= value <= c * (main + e)

        assert holds(C * 1.0001)
        assert not holds(C * 0.9999)
    # From the root of 1/(d e) on the band holds 0, whatever grows or does not.
    zero = band_constant(torch.zeros(1), main, torch.tensor([0.004]))
    assert float(zero) == pytest.approx((main / 0.004) ** 0.5)


def test_each_side_says_from_which_constant_on_it_is_of_no_use():
    problem = growing_problem()
    nets = Nets.of(problem.networks())
    found = dict(sides(problem, nets, 2))
    longest, way = nets.weight.norm(dim=-1).amax(-1), problem.direction.norm(dim=-1)
    torch.testing.assert_close(found["E.2/each"].speaks, longest * way / found["E.2/each"].right)
    e = found["C.14"].right - 1 / 24
    torch.testing.assert_close(found["C.14"].speaks, (24 * e) ** -0.5)
    assert all(found[label].speaks is None for label in ("C.15", "C.16", "C.17", "C.17b"))


def test_growth_is_measured_at_the_steps_of_its_phase():
    preset = growing_problem().preset
    table = growth(preset, range(2), "growing", 50)
    parts = table.partition_by("lemma", as_dict=True)
    steps = {lemma: set(rows["step"]) for (lemma,), rows in parts.items()}
    first = {lemma for lemma, its in steps.items() if its == {0}}
    assert first == {"C.7/I", "C.8", "C.9", "C.10", "C.11"}
    assert all(steps[lemma] == {0, 2, 4} for lemma in ("C.14", "C.15", "C.16", "C.17", "C.17b"))
    # The shares of the hypotheses stand beside every side, at the same step.
    assert not table.select("ept", "ept+", "ept++").null_count().sum_horizontal().item()
    whole = table.filter(pl.col("constant").is_finite(), pl.col("lemma") != "C.14")
    torch.testing.assert_close(
        (whole["left"] / whole["right"]).to_torch(), whole["constant"].to_torch(), rtol=1e-4, atol=0
    )
