"""The events of a good run against loops in numpy, and where they must fail."""

import math

import numpy as np
import pytest
import torch

from advlab.core.errors import AdvlabError
from advlab.models import TwoLayer
from advlab.papers.benign.data.mixture import Clusters, NoisyMixture
from advlab.papers.benign.measures.good_run import C0, good_run
from advlab.reductions import Subspace
from advlab.threats import Ball

MODEL = NoisyMixture(n=20, d=3000, mu_norm=10.0, beta=0.1, flips="count")
OMEGA = 0.005 / math.sqrt(40 * 3000)
SETTING = {"d": 3000, "kappa": 1.0, "delta": 0.05, "alpha": 1.0, "beta": 0.1, "omega": OMEGA}


def rng(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def start(seed: int, d: int = 3000, omega: float = OMEGA) -> torch.Tensor:
    return TwoLayer.draw(d, 40, "relu", rng(seed), omega=omega).weight.detach()


def attack(data: Clusters, seed: int, alpha: float = 1.0) -> torch.Tensor:
    step = torch.randn(data.x.shape, generator=rng(seed), dtype=data.x.dtype)
    return data.x + alpha * step / step.norm(dim=-1, keepdim=True)


def rows(found) -> dict[tuple[str, str], tuple[float, float, bool]]:
    table = found.table().drop_nulls("holds")
    return {(row[1], row[2]): row[4:] for row in table.rows()}


def test_the_theory_preset_is_a_good_run_and_its_numbers_are_those_of_numpy():
    data, weight = MODEL.sample(rng(0)), start(1)
    attacked = attack(data, 2)
    found = good_run(data, weight, **SETTING, attacked=attacked, variance=1.0)
    assert found.holds
    assert found.skipped == {}
    x, y, y_c, xi = (part.numpy() for part in data)
    W, near = weight.numpy(), attacked.numpy()
    n, d, alpha, mu = 20, 3000, 1.0, np.r_[10.0, np.zeros(2999)]
    pairs = [(i, j) for i in range(n) for j in range(n) if i != j]
    long, spread = math.sqrt(10 * d), math.sqrt(d * math.log(n / 0.05))
    far = 10 * (100 + spread)
    norms, w2 = np.linalg.norm(x, axis=1), (W**2).sum(1)
    # The singular values of a matrix are the roots of the eigenvalues of its Gram matrix.
    values = np.linalg.svd(near, compute_uv=False) ** 2
    clean = [abs(y[i] * x[i] @ mu - 100) for i in range(n) if y[i] == y_c[i]]
    noisy = [abs(y[i] * x[i] @ mu + 100) for i in range(n) if y[i] != y_c[i]]
    outer = max(abs(x[i] @ x[j]) + norms[i] + norms[j] + 1 for i, j in pairs)
    expected = {
        ("start", "smallest |w_s|^2"): (w2.min(), OMEGA**2 * d / 2),
        ("start", "largest |w_s|^2"): (w2.max(), OMEGA**2 * d * 1.5),
        ("start", "|W|_2"): (np.linalg.norm(W, 2), C0 * OMEGA * (40**0.5 + d**0.5)),
        ("C1", "smallest |xi_i|^2"): ((xi**2).sum(1).min(), d / 2),
        ("C1", "largest |xi_i|^2"): ((xi**2).sum(1).max(), 3.5 * d),
        ("C1", "smallest |x_i|^2"): (norms.min() ** 2, d / 10),
        ("C1", "largest |x_i|^2"): (norms.max() ** 2, 10 * d),
        ("C1", "smallest |x~_i|^2"): ((norms.min() - 1) ** 2, (math.sqrt(d / 10) - 1) ** 2),
        ("C1", "largest |x~_i|^2"): ((norms.max() + 1) ** 2, (long + 1) ** 2),
        ("C1", "smallest <x~_i, x~_i'>"): ((norms.min() - 1) ** 2, (math.sqrt(d / 10) - 1) ** 2),
        ("C1", "alpha"): (alpha, math.sqrt(d / 10) / 2),
        ("C2", "largest |<xi_i, xi_j>|"): (max(abs(xi[i] @ xi[j]) for i, j in pairs), 10 * spread),
        ("C2", "largest |<x_i, x_j>|"): (max(abs(x[i] @ x[j]) for i, j in pairs), far),
        ("C2", "largest |<x_i, x~_j>|"): (
            max(abs(x[i] @ x[j]) + norms[i] for i, j in pairs),
            far + long,
        ),
        ("C2", "largest |<x~_i, x~_j>|"): (outer, far + 2 * long + 1),
        ("C3", "largest eigenvalue of the Gram of xi_i"): (np.linalg.norm(xi, 2) ** 2, 4 * d),
        ("C4", "smallest eigenvalue of the Gram of x~_i"): (values[-1], d / 80),
        ("C4", "largest eigenvalue of the Gram of x~_i"): (values[0], 80 * d),
        ("C5", "largest |<mu, y_i x_i> - |mu|^2| on C"): (max(clean), 50),
        ("C6", "largest |<mu, y_i x_i> + |mu|^2| on N"): (max(noisy), 50),
        ("C7", "|N|/n"): (0.1, 0.1 + math.sqrt(2 * math.log(800) / 20)),
        ("G", "|G|"): (d, d),
        ("start", "smallest mean of w_si^2 over G, over the mean over all i"): (1, 0.25),
    }
    assert {name: numbers[:2] for name, numbers in rows(found).items()} == {
        name: pytest.approx(numbers, rel=1e-9) for name, numbers in expected.items()
    }


def test_no_point_of_a_ball_passes_the_extremes():
    model = NoisyMixture(n=4, d=3, mu_norm=1.0)
    data, draws = model.sample(rng(3)), rng(4)
    for alpha in (0.3, 1.2, 5.0):
        found = rows(good_run(data, start(5, 3), **SETTING | {"d": 3, "alpha": alpha}))
        ball, x = Ball(norm="l2", radius=alpha), data.x.repeat_interleave(20_000, 0)
        one, other = (ball.sample(x, rng=draws).reshape(4, -1, 3) for _ in range(2))
        inner = (one * other).sum(-1)
        least = found["C1", "smallest <x~_i, x~_i'>"][0]
        assert least <= inner.min() <= least + 0.35 * max(1.0, alpha**2)
        assert found["C1", "smallest |x~_i|^2"][0] <= one.square().sum(-1).min()
        assert found["C1", "largest |x~_i|^2"][0] >= one.square().sum(-1).max()
        across = max(
            float((one[i] * other[j]).sum(-1).abs().max())
            for i in range(4)
            for j in range(4)
            if i != j
        )
        assert across <= found["C2", "largest |<x~_i, x~_j>|"][0]


def test_a_stack_is_its_replicates():
    singles = [MODEL.sample(rng(seed)) for seed in (0, 1, 2)]
    weights = torch.stack([start(seed) for seed in (3, 4, 5)])
    data = Clusters(*(torch.stack(part) for part in zip(*singles, strict=True)))
    attacked = attack(data, 6)
    variance = torch.linspace(0.2, 1.8, 3000, dtype=torch.float64)
    stack = good_run(data, weights, **SETTING, attacked=attacked, variance=variance)
    assert stack.holds.shape == (3,)
    table = stack.table()
    for r, single in enumerate(singles):
        alone = good_run(single, weights[r], **SETTING, attacked=attacked[r], variance=variance)
        for event, other in zip(stack.events, alone.events, strict=True):
            torch.testing.assert_close(event.measured[r], other.measured, rtol=1e-10, atol=0)
            torch.testing.assert_close(event.bound[r], other.bound, rtol=1e-10, atol=0)
        assert table.filter(replicate=r)["holds"].to_list() == alone.table()["holds"].to_list()


def failing(found) -> set[str]:
    return {event.label for event in found.events if not event.holds}


def test_a_signal_that_is_too_long_breaks_norms_and_eigenvalues():
    data = NoisyMixture(n=3, d=200, mu_norm=60.0).sample(rng(0))
    found = good_run(data, start(1, 200), **SETTING | {"d": 200})
    assert failing(found) == {"C1"}
    assert not rows(found)["C1", "largest |x_i|^2"][2]
    # Twenty examples add up along mu to 20 * 60^2, above 8 C1 d = 16000.
    data = NoisyMixture(n=20, d=200, mu_norm=60.0).sample(rng(0))
    assert failing(good_run(data, start(1, 200), **SETTING | {"d": 200})) == {"C1", "C4"}


def test_a_signal_that_is_too_short_is_lost_in_the_noise():
    data = NoisyMixture(n=20, d=3000, mu_norm=0.5, beta=0.1, flips="count").sample(rng(0))
    assert failing(good_run(data, start(1), **SETTING)) == {"C5", "C6"}


def test_too_many_flips():
    data = NoisyMixture(n=200, d=3000, mu_norm=10.0).sample(rng(0))
    for flips, good in ((0, True), (70, True), (75, False), (200, False)):
        y = data.y_clean.clone()
        y[:flips] *= -1
        found = good_run(data._replace(y=y), start(1), **SETTING)
        # beta + sqrt(2 log(800)/200) = 0.3585.
        assert bool(found.of("C7")) == good
        assert found.of("C5")
        assert found.of("C6")


def test_a_start_of_another_width_or_shape():
    data = MODEL.sample(rng(0))
    for factor in (0.6, 1.3):
        found = good_run(data, start(1, omega=factor * OMEGA), **SETTING)
        assert failing(found) == {"start"}
    # The same row 40 times: each is as long as it should be, together they are too wide.
    alike = good_run(data, start(1)[:1].repeat(40, 1), **SETTING)
    assert not rows(alike)["start", "|W|_2"][2]
    assert rows(alike)["start", "largest |w_s|^2"][2]
    weight = start(1)
    weight[:, :2000] = 0
    weight *= math.sqrt(3)
    variance = torch.cat([torch.ones(1990), torch.zeros(1010)])
    found = rows(good_run(data, weight, **SETTING | {"kappa": 0.6}, variance=variance))
    assert found["G", "|G|"] == pytest.approx((1990, 0.6 * 3000 / 1.4, True))
    assert not found["start", "smallest mean of w_si^2 over G, over the mean over all i"][2]
    few = good_run(data, weight, **SETTING | {"kappa": 0.6}, variance=variance.flip(0) * 0.2)
    assert not few.of("G")
    assert few.skipped == {"start on G": "G is empty"}


def test_attacked_points_may_be_dependent_where_the_inputs_are_not():
    data = NoisyMixture(n=2, d=40, mu_norm=1.0).sample(rng(0))
    middle = data.x.mean(0, keepdim=True).expand(2, -1)
    alpha = 1.001 * float((data.x - middle).norm(dim=1).max())
    setting = SETTING | {"d": 40, "alpha": alpha}
    assert good_run(data, start(1, 40), **setting).of("C4")
    assert not good_run(data, start(1, 40), **setting, attacked=middle).of("C4")


def test_a_reduction_changes_nothing_but_the_event_it_cannot_see():
    data, weight = MODEL.sample(rng(0)), start(1)
    space = Subspace.of(data.x[None], MODEL.mu(), *weight)
    into = [space.into(part[None])[0] for part in (data.x, data.noise, weight)]
    reduced = Clusters(into[0], data.y, data.y_clean, into[1])
    whole = good_run(data, weight, **SETTING, variance=1.0)
    found = good_run(reduced, into[2], **SETTING, variance=1.0)
    assert list(found.skipped) == ["start on G"]
    assert "61 reduced coordinates" in found.table()["quantity"][-1]
    assert found.table()["holds"][-1] is None
    for name, numbers in rows(found).items():
        assert numbers == pytest.approx(rows(whole)[name], rel=1e-9)
    assert set(good_run(data, weight, **SETTING).skipped) == {"|G|", "start on G"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kappa": 1.2}, "kappa must be"),
        ({"delta": 0.5}, "delta must lie"),
        ({"alpha": -1.0}, "a radius alpha"),
        ({"attacked": MODEL.sample(rng(9)).x}, "within alpha = 1.0"),
        ({"weight": start(1, 30)}, r"got \(20, 3000\) and \(40, 30\)"),
        ({"weight": start(1)[None]}, r"\(R, m, k\)"),
    ],
)
def test_bad_input_is_refused(change, message):
    given = {"data": MODEL.sample(rng(0)), "weight": start(1), **SETTING, **change}
    with pytest.raises(AdvlabError, match=message):
        good_run(**given)
    with pytest.raises(AdvlabError, match="C9"):
        good_run(MODEL.sample(rng(0)), start(1), **SETTING).of("C9")
