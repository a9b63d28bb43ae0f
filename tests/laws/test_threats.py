"""Laws every threat set obeys."""

import math

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats

from advlab.core.errors import AdvlabError
from advlab.threats import Ball, Cap, Threat

boxes = st.sampled_from([None, (0.0, 1.0)])
balls = st.builds(
    Ball, norm=st.sampled_from(["l1", "l2", "linf"]), radius=st.floats(0, 2), box=boxes
)
caps = st.builds(Cap, radius=st.floats(0, 2))
threats = st.one_of(balls, caps)
norms = st.sampled_from(["l1", "l2", "linf"])
shapes = st.sampled_from([(3,), (2, 2), (1, 3, 2), (50,)])
dtypes = st.sampled_from([torch.float32, torch.float64])


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


@given(threats, shapes, st.integers(0, 1000), dtypes)
@settings(max_examples=200, deadline=None)
def test_project_lands_inside_and_stays_there(threat, shape, seed, dtype):
    center, point, _ = scene(threat, shape, seed, dtype)
    once = threat.project(point, center)
    assert once.dtype == dtype
    assert threat.contains(once, center).all()
    tolerance = 1e-12 if dtype == torch.float64 else 1e-5
    torch.testing.assert_close(threat.project(once, center), once, atol=tolerance, rtol=tolerance)


@given(threats, shapes, st.integers(0, 1000))
@settings(max_examples=150, deadline=None)
def test_no_sampled_point_is_nearer_or_larger(threat, shape, seed):
    center, point, rng = scene(threat, shape, seed)
    nearest = threat.project(point, center)
    best = threat.maximiser(point, center)
    assert threat.contains(best, center).all()
    for _ in range(10):
        other = threat.sample(center, rng=rng)
        assert threat.contains(other, center).all()
        distance = (other - point).flatten(1).norm(dim=1)
        assert (distance >= (nearest - point).flatten(1).norm(dim=1) - 1e-9).all()
        gain = ((other - best) * point).flatten(1).sum(1)
        assert (gain <= 1e-9 * (1 + point.flatten(1).norm(dim=1))).all()


@given(threats, shapes, st.integers(0, 1000))
@settings(max_examples=150, deadline=None)
def test_the_support_function_is_the_largest_value_and_intervals_are_its_ends(threat, shape, seed):
    center, direction, rng = scene(threat, shape, seed)
    support = threat.support(direction, center)
    slack = 1e-9 * (1 + direction.flatten(1).norm(dim=1))
    attained = (direction * threat.maximiser(direction, center)).flatten(1).sum(1)
    assert ((support - attained).abs() <= slack).all()
    assert (threat.support_bound(direction, center) >= support - slack).all()
    one = threat.support_bound(direction, center[:1])
    torch.testing.assert_close(one[0], threat.support_bound(direction[:1], center[:1])[0])
    low, high = threat.interval(center)
    for end, by_support in zip((low, high), Threat.interval(threat, center), strict=True):
        torch.testing.assert_close(end, by_support, atol=1e-7, rtol=0)
    for _ in range(5):
        point = threat.sample(center, rng=rng)
        assert ((direction * point).flatten(1).sum(1) <= support + slack).all()
        assert ((point >= low - 1e-9) & (point <= high + 1e-9)).all()
        if threat.within_radius:
            assert (threat.norm_of(point - center) <= threat.radius + 1e-9).all()


@given(balls, shapes, st.integers(0, 1000))
@settings(max_examples=60, deadline=None)
def test_box_and_ball_describe_the_set(ball, shape, seed):
    center, point, _ = scene(ball, shape, seed)
    parts = ball.box_and_ball(center)
    if parts is None:
        assert ball.norm == "l1"
        return
    interval, radius = parts
    inside = torch.ones(len(center), dtype=torch.bool)
    if interval is not None:
        inside &= ((point >= interval[0]) & (point <= interval[1])).flatten(1).all(1)
    if radius is not None:
        inside &= (point - center).flatten(1).norm(dim=1) <= radius
    assert torch.equal(inside, ball.contains(point, center))
    assert ball.ball_norm == (ball.norm if ball.box is None else None)


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


@given(st.one_of(balls, caps), shapes, st.integers(0, 1000))
@settings(max_examples=60, deadline=None)
def test_radius_zero_is_the_identity(threat, shape, seed):
    still = threat.with_radius(0.0)
    center, point, rng = scene(still, shape, seed)
    for result in (
        still.project(point, center),
        still.maximiser(point, center),
        still.sample(center, rng=rng),
    ):
        torch.testing.assert_close(result, center, rtol=0, atol=0)


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
