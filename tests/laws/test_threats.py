"""Laws every threat set obeys."""

import math

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats
from threat_specimens import KINDS, threat_and_center

from advlab.core.errors import AdvlabError
from advlab.testing import check_threat
from advlab.threats import Ball, Cap, Threat

boxes = st.sampled_from([None, (0.0, 1.0)])
balls = st.builds(
    Ball, norm=st.sampled_from(["l1", "l2", "linf"]), radius=st.floats(0, 2), box=boxes
)
shapes = st.sampled_from([(3,), (2, 2), (1, 3, 2), (50,)])


def scene(threat: Threat, shape: tuple, seed: int, dtype=torch.float64):
    rng = torch.Generator().manual_seed(seed)
    center = torch.rand(6, *shape, generator=rng, dtype=dtype)
    if seed % 3 == 0:
        center = center.round()
    if isinstance(threat, Cap):
        center = center + 0.1
        center = center / center.flatten(1).norm(dim=1).reshape(-1, *[1] * len(shape))
    point = center + torch.randn(6, *shape, generator=rng, dtype=dtype) * 10 ** (seed % 4 - 2)
    return center, point, rng


@pytest.mark.parametrize("kind", KINDS)
@given(seed=st.integers(0, 10_000))
@settings(max_examples=5, deadline=None)
def test_every_set_keeps_the_laws(kind, seed):
    """Projection, maximiser, draws, support function, brute force: `advlab.testing` has them."""
    threat, center = threat_and_center(kind, seed)
    check_threat(threat, center, seed=seed)


def test_every_set_of_the_package_is_held_to_the_laws():
    def below(kind: type) -> set[type]:
        return {kind, *(one for child in kind.__subclasses__() for one in below(child))}

    ours = {one for one in below(Threat) if one.__module__.startswith("advlab.threats")} - {Threat}
    assert ours == {type(threat_and_center(kind, 0)[0]) for kind in KINDS}


def test_a_subclass_that_changes_the_set_inherits_no_statement_about_it():
    class Larger(Ball):
        def contains(self, point, center, slack=None):
            return torch.ones(len(point), dtype=torch.bool)

    class Stated(Larger):
        def support(self, direction, center):
            return 3 * super(Larger, self).support(direction, center)

    class Named(Ball):
        name: str = ""

    center = torch.zeros(2, 3)
    larger, stated, named = Larger("l2", 1.0), Stated("l2", 1.0), Named("l2", 1.0, name="mine")
    assert (larger.states_support, stated.states_support, named.states_support) == (0, 1, 1)
    assert (larger.within_radius, stated.within_radius, named.within_radius) == (0, 0, 1)
    assert (larger.ball_norm, stated.ball_norm, named.ball_norm) == (None, None, "l2")
    with pytest.raises(AdvlabError, match=r"support function.*Larger"):
        larger.interval(center)
    with pytest.raises(AdvlabError, match="when two of them meet"):
        stated.meeting_radius(center, center)
    assert torch.equal(stated.interval(center)[1], torch.full((2, 3), 3.0))
    assert stated.box_and_ball(center) is None
    # What attacks use is inherited as always.
    assert torch.equal(
        larger.project(center + 9, center), Ball("l2", 1.0).project(center + 9, center)
    )


def test_settings_by_position_or_by_name():
    assert Ball("linf", 0.5, (0.0, 1.0)) == Ball(norm="linf", radius=0.5, box=(0.0, 1.0))
    assert repr(Ball("l2", 1)) == "Ball(radius=1.0, norm='l2', box=None)"
    assert Ball("l2", 1).canonical() == '{"box":null,"norm":"l2","radius":1.0}'
    assert Cap(0.1) == Cap(radius=0.1)
    with pytest.raises(AdvlabError, match="radius: field required"):
        Ball("l2")
    with pytest.raises(AdvlabError, match="one value for norm"):
        Ball("l2", 1.0, norm="l1")
    with pytest.raises(AdvlabError, match="at most 1 settings"):
        Cap(0.1, 0.2)


@given(balls, shapes, st.integers(0, 1000), st.integers(-300, 100))
@settings(max_examples=100, deadline=None)
def test_steepest_attains_the_dual_norm_at_any_scale(ball, shape, seed, exponent):
    _, point, _ = scene(ball, shape, seed)
    grad = point * 2.0**exponent
    step = ball.steepest(grad)
    gain = (step * grad).flatten(1).sum(1)
    torch.testing.assert_close(gain, ball.dual_norm(grad), rtol=1e-10, atol=0)
    torch.testing.assert_close(ball.norm_of(step), torch.ones(6, dtype=step.dtype))


def test_steepest_normalises_the_smallest_float32_gradients():
    grad = torch.full((1, 40), 1e-38)
    for norm in ("l1", "l2", "linf"):
        ball = Ball(norm=norm, radius=1.0)
        torch.testing.assert_close(ball.norm_of(ball.steepest(grad)), torch.ones(1))
        assert (ball.steepest(torch.zeros(2, 40)) == 0).all()


def uniformity(values, cdf):
    return stats.kstest(values, cdf).pvalue


@pytest.mark.parametrize(("norm", "power"), [("l1", 3), ("l2", 3), ("linf", 3)])
def test_norms_of_samples_follow_the_uniform_law(norm, power):
    ball = Ball(norm=norm, radius=0.7)
    center = torch.zeros(4000, 3, dtype=torch.float64)
    move = ball.sample(center, rng=torch.Generator().manual_seed(1))
    assert uniformity((ball.norm_of(move) / 0.7).numpy(), lambda r: r**power) > 1e-3
    assert move.mean(0).abs().max() < 0.03


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_samples_of_a_cut_ball_match_plain_rejection(norm):
    ball = Ball(norm=norm, radius=0.8, box=(0.0, 1.0))
    center = torch.tensor([[0.0, 0.1, 0.95]], dtype=torch.float64).expand(3000, 3).contiguous()
    rng = torch.Generator().manual_seed(2)
    ours = ball.sample(center, rng=rng)
    wide = Ball(norm=norm, radius=0.8).sample(center.repeat(20, 1), rng=rng)
    kept = wide[((wide >= 0) & (wide <= 1)).all(1)]
    for i in range(3):
        assert stats.ks_2samp(ours[:, i].numpy(), kept[:, i].numpy()).pvalue > 1e-3


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_samples_far_beyond_rejection_have_the_right_coordinates(norm):
    """A Gibbs chain (exact conditionals, run long) is the independent answer in 60 dimensions."""
    d, radius = 60, {"l1": 8.0, "l2": 1.6}[norm]
    rng = torch.Generator().manual_seed(3)
    one = torch.rand(d, generator=rng, dtype=torch.float64)
    center = one.expand(400, d).contiguous()
    ball = Ball(norm=norm, radius=radius, box=(0.0, 1.0))
    ours = ball.sample(center, rng=rng)
    assert ball.contains(ours, center).all()
    power = 1 if norm == "l1" else 2
    move = torch.zeros_like(center)
    for _ in range(60):
        for i in range(d):
            rest = move.abs().pow(power).sum(1) - move[:, i].abs() ** power
            reach = (radius**power - rest).clamp(min=0) ** (1 / power)
            low, high = torch.maximum(-reach, -center[:, i]), torch.minimum(reach, 1 - center[:, i])
            u = torch.rand(400, generator=rng, dtype=torch.float64)
            move[:, i] = low + u * (high - low)
    spread = move.abs().mean(0), (ours - center).abs().mean(0)
    torch.testing.assert_close(*spread, atol=0.05, rtol=0)
    assert float((spread[0] - spread[1]).mean().abs()) < 0.01


@pytest.mark.parametrize(("d", "radius"), [(2, 0.5), (3, 1.9), (30, 0.6)])
def test_cap_samples_match_rejection_from_the_sphere(d, radius):
    cap = Cap(radius=radius)
    center = torch.zeros(2000, d, dtype=torch.float64)
    center[:, 0] = 1.0
    rng = torch.Generator().manual_seed(4)
    height = cap.sample(center, rng=rng)[:, 0].numpy()
    lowest = 1 - radius**2 / 2
    a = (d - 1) / 2
    law = stats.beta(a, a)
    below, above = law.cdf((1 + lowest) / 2), 1.0
    assert uniformity(height, lambda t: (law.cdf((1 + t) / 2) - below) / (above - below)) > 1e-3


def test_cap_samples_deep_in_the_tail():
    cap = Cap(radius=0.3)
    center = torch.zeros(500, 4000, dtype=torch.float64)
    center[:, 0] = 1.0
    point = cap.sample(center, rng=torch.Generator().manual_seed(5))
    assert cap.contains(point, center).all()
    distance = (point - center).norm(dim=1)
    # Nearly all of a cap in high dimension is its rim: E(1 - distance/radius) is about 1/(2a).
    assert distance.mean() == pytest.approx(0.3 * (1 - 1 / 4000), abs=1e-4)


def test_cap_moves_along_the_great_circle():
    c = torch.tensor([[1.0, 0.0, 0.0]], dtype=torch.float64)
    radius = 2 * math.sin(0.4 / 2)
    rim = Cap(radius=radius).maximiser(torch.tensor([[-1.0, 2.0, 0.0]], dtype=torch.float64), c)
    expected = torch.tensor([[math.cos(0.4), math.sin(0.4), 0.0]], dtype=torch.float64)
    torch.testing.assert_close(rim, expected)
    opposite = Cap(radius=radius).maximiser(-c, c)
    assert Cap(radius=radius).contains(opposite, c).all()
    assert float((opposite - c).norm()) == pytest.approx(radius)


@given(st.integers(0, 50), balls)
@settings(max_examples=40, deadline=None)
def test_draws_of_a_replicate_do_not_depend_on_the_others(seed, ball):
    assume(ball.radius > 0)
    center, _, _ = scene(ball, (4,), seed)
    rngs = [torch.Generator().manual_seed(s) for s in range(3)]
    together = ball.sample(center, rng=rngs)
    alone = ball.sample(center[2:4], rng=[torch.Generator().manual_seed(1)])
    torch.testing.assert_close(together[2:4], alone, rtol=0, atol=0)


@pytest.mark.parametrize("radius", [-0.1, float("nan"), float("inf")])
def test_a_bad_radius_is_refused(radius):
    with pytest.raises(AdvlabError, match="radius"):
        Ball(norm="l2", radius=radius)
    with pytest.raises(AdvlabError, match="radius"):
        Cap(radius=radius)


def test_bad_boxes_norms_and_centers_are_refused():
    with pytest.raises(AdvlabError, match="low must be below high"):
        Ball(norm="l2", radius=1, box=(1.0, 0.0))
    with pytest.raises(AdvlabError, match="norm"):
        Ball(norm="l3", radius=1)
    with pytest.raises(AdvlabError, match="unknown setting"):
        Ball(norm="l2", radius=1, clip=True)
    with pytest.raises(AdvlabError, match="declared box"):
        Ball(norm="l2", radius=1, box=(0, 1)).check_center(torch.full((2, 3), 1.5))
    with pytest.raises(AdvlabError, match="row 1"):
        Ball(norm="l2", radius=1).check_center(torch.tensor([[0.0], [float("nan")]]))
    with pytest.raises(AdvlabError, match="unit sphere"):
        Cap(radius=0.1).check_center(torch.ones(2, 3))
