"""The laws of threat sets."""

import torch
from torch import Tensor

from ..core.inputs import Given, instance
from ..core.randomness import generator, normal
from ..threats import Threat
from ..threats.base import check_finite
from .law import Laws

SCALES = (0.01, 1.0, 100.0)
"""How far from the center points are taken, as multiples of the radius."""
DRAWS = 10
MANY = 64
"""Features up to which intervals are held against the support function, axis by axis."""


def check_threat(
    threat: Given[Threat], center: Given[Tensor], *, seed: int = 0, most: int = 300
) -> None:
    """Hold a threat set to the laws that attacks and certificates rely on.

    A point of the set is what `contains` says. Projections are inside, stay where they are and have
    no draw of the set nearer; the maximiser is inside and no draw is larger; draws are inside and
    repeat with their generator; the support function, where it is stated, is attained by the
    maximiser and passed by nothing; a row does not depend on its company; nothing that is handed in
    is changed. Sets that list all their `points` are held against brute force.

    Args:
        threat: The set.
        center: Some centers of it, at least two rows, floating point.
        seed: Of the points that are tried.
        most: How many points a set may have for brute force.

    Raises:
        LawBroken: Naming the law, with numbers. It is an AssertionError too.

    Example:
        >>> import torch
        >>> from advlab.testing import check_threat
        >>> check_threat(MySet(radius=0.3), torch.rand(4, 10))
    """
    instance("a threat set", threat, Threat, "for example check_threat(Ball('l2', 0.3), x)")
    instance("centers as a tensor", center, Tensor, "")
    laws = Laws(threat)
    check_finite(center, "centers")
    laws.holds("at least two centers, to see that rows are independent", len(center) > 1)
    threat.check_center(center)
    for dtype in (torch.float32, torch.float64):
        some = center.to(dtype)
        for number, scale in enumerate(SCALES):
            rng = generator("check_threat", seed, number)
            length = scale * (threat.radius or 1.0)
            point = some + length * normal(some, rng)
            if number == 1:
                point = threat.sample(some, rng=rng) + 0.1 * (point - some)
            _projection(laws, threat, point, some, dtype)
            if dtype == torch.float64:
                _extremes(laws, threat, point, some, rng)
                _company(laws, threat, point, some)
        _draws(laws, threat, some, seed)
    wide = center.double()
    _statements(laws, threat, wide, seed)
    _radii(laws, threat, wide, seed)
    _brute_force(laws, threat, wide, seed, most)


def _slack(center: Tensor, radius: float, *others: Tensor) -> Tensor:
    size = sum((one.flatten(1).norm(dim=1) for one in others), center.flatten(1).norm(dim=1))
    return 1e4 * torch.finfo(center.dtype).eps * (radius + 1e-3 + size)


def _projection(laws: Laws, threat: Threat, point: Tensor, center: Tensor, dtype: object) -> None:
    given = point.clone(), center.clone()
    nearest = threat.project(point, center)
    laws.same("project leaves points and centers as they were", torch.stack([point, center]),
              torch.stack(given))  # fmt: skip
    laws.holds("project keeps shape and dtype",
               nearest.shape == center.shape and nearest.dtype == dtype,
               f"{tuple(nearest.shape)} {nearest.dtype}")  # fmt: skip
    laws.holds("projections are in the set", threat.contains(nearest, center))
    again = (threat.project(nearest, center) - nearest).flatten(1).norm(dim=1)
    slack = _slack(center, threat.radius)
    laws.at_least("a projection stays where it is", torch.zeros_like(again), again, slack)
    through = (threat.projector(center)(point) - nearest).flatten(1).norm(dim=1)
    laws.at_least("projector is project", torch.zeros_like(through), through, slack)
    away = (nearest - point).flatten(1).norm(dim=1)
    far = away > 1e-3 * (threat.radius + center.flatten(1).norm(dim=1)) + slack
    wrong = far & threat.contains(point, center)
    law = "contains refuses points whose projection is elsewhere"
    laws.holds(law, ~wrong, f"projections up to {float(away.max()):.4g} away")


def _extremes(laws: Laws, threat: Threat, point: Tensor, center: Tensor, rng: object) -> None:
    nearest = threat.project(point, center)
    grad = point - center
    best = threat.maximiser(grad, center)
    laws.holds("the maximiser is in the set", threat.contains(best, center))
    length = grad.flatten(1).norm(dim=1)
    slack = _slack(center, threat.radius) * (1 + length)
    distance = (nearest - point).flatten(1).norm(dim=1)
    others = [center, best, *(threat.sample(center, rng=rng) for _ in range(DRAWS))]  # type: ignore[arg-type]
    for other in [*others, nearest]:
        there = (other - point).flatten(1).norm(dim=1)
        laws.at_least("no point of the set is nearer than the projection", there, distance, slack)
        gain = ((other - best) * grad).flatten(1).sum(1)
        laws.at_least("no point of the set is larger than the maximiser", -gain,
                      torch.zeros_like(gain), slack)  # fmt: skip
    step = threat.steepest(grad)
    laws.holds(
        "steepest keeps shape and dtype", step.shape == grad.shape and step.dtype == grad.dtype
    )
    laws.at_least("steepest does not go down", (step * grad).flatten(1).sum(1),
                  torch.zeros_like(length), slack)  # fmt: skip
    if threat.states_support:
        support = threat.support(grad, center)
        attained = (grad * best).flatten(1).sum(1)
        laws.close("the support function is attained by the maximiser", support, attained, slack)
        for other in others:
            value = (grad * other).flatten(1).sum(1)
            laws.at_least("the support function is passed by no point", support, value, slack)
        bound = threat.support_bound(grad, center)
        laws.at_least("support_bound is at least the support function", bound, support, slack)


def _company(laws: Laws, threat: Threat, point: Tensor, center: Tensor) -> None:
    """Rows alone and in another order."""
    order = torch.arange(len(center) - 1, -1, -1, device=center.device)
    slack = _slack(center, threat.radius, point)[order][:1].max()
    for name in ("project", "maximiser"):
        whole = getattr(threat, name)(point, center)
        law = f"{name} of a row does not depend on other rows"
        laws.close(law, getattr(threat, name)(point[order], center[order]), whole[order], slack)
        laws.close(law, getattr(threat, name)(point[:1], center[:1]), whole[:1], slack)
    inside, turned = threat.contains(point, center), threat.contains(point[order], center[order])
    laws.same("contains of a row does not depend on other rows", turned, inside[order])


def _draws(laws: Laws, threat: Threat, center: Tensor, seed: int) -> None:
    def rng() -> torch.Generator:
        return generator("check_threat", "draws", seed)

    before, given = torch.get_rng_state(), center.clone()
    drawn = threat.sample(center, rng=rng())
    laws.same("sample leaves the centers as they were", center, given)
    laws.holds("sample keeps shape and dtype",
               drawn.shape == center.shape and drawn.dtype == center.dtype)  # fmt: skip
    laws.holds("draws are in the set", threat.contains(drawn, center))
    laws.same("the same generator gives the same draws", threat.sample(center, rng=rng()), drawn)
    laws.same("draws come from the generator that was given, not the global one",
              torch.get_rng_state(), before)  # fmt: skip
    pair = center[:1].repeat(2, *[1] * (center.ndim - 1))
    together, alone = [rng(), generator("check_threat", "other", seed)], [rng()]
    for _ in range(2):  # the second draw tells whether the first took more for its company
        both = threat.sample(pair, rng=together)
        laws.same("a replicate draws with its own generator only", both[:1],
                  threat.sample(pair[:1], rng=alone))  # fmt: skip


def _statements(laws: Laws, threat: Threat, center: Tensor, seed: int) -> None:
    """Intervals, norms, ends: what is said of the set as a whole."""
    rng = generator("check_threat", "statements", seed)
    drawn = [center, *(threat.sample(center, rng=rng) for _ in range(DRAWS))]
    edge = _slack(center, threat.radius)
    laws.holds("the center is in its own set", threat.contains(center, center))
    if threat.states_support:
        low, high = threat.interval(center)
        wide = edge.reshape(-1, *[1] * (center.ndim - 1))
        for point in drawn:
            inside = (point >= low - wide) & (point <= high + wide)
            laws.holds("no point leaves the interval of a coordinate", inside.flatten(1).all(1))
        if center[0].numel() <= MANY:
            slack = 1e-7 * (1 + threat.radius + float(center.abs().max()))
            for end, by_support in zip((low, high), Threat.interval(threat, center), strict=True):
                laws.close(
                    "interval is the support function along the axes", end, by_support, slack
                )
    for point in drawn:
        if threat.within_radius:
            norm = threat.norm_of(point - center)
            radius = torch.full_like(norm, threat.radius)
            laws.at_least("no point is further than the radius, in norm_of", radius, norm, edge)
        if threat.convex:
            between = center + 0.5 * (point - center)
            laws.holds("a convex set holds what is between its points",
                       threat.contains(between, center))  # fmt: skip
    ends = threat.ends(center)
    if ends is not None:
        corner = torch.where(normal(center, rng) > 0, ends[1], ends[0])
        laws.holds("the corners between the ends are in the set", threat.contains(corner, center))
        far = threat.project(center + 1e6 * (1 + threat.radius), center)
        laws.close("the upper end is where projections from far above land", far, ends[1],
                   float(edge.max()))  # fmt: skip
    _box_and_ball(laws, threat, center, rng)


def _box_and_ball(laws: Laws, threat: Threat, center: Tensor, rng: torch.Generator) -> None:
    parts = threat.box_and_ball(center)
    if parts is None:
        return
    interval, radius = parts
    move = normal(center, rng)
    length = move.flatten(1).norm(dim=1).clamp(min=1e-12)
    for share in (0.5, 0.99, 1.01, 2.0):
        point = center + move * (share * threat.radius / length).reshape(-1, *[1] * (move.ndim - 1))
        inside = torch.ones(len(center), dtype=torch.bool, device=center.device)
        if interval is not None:
            inside &= ((point >= interval[0]) & (point <= interval[1])).flatten(1).all(1)
        if radius is not None:
            inside &= (point - center).flatten(1).norm(dim=1) <= radius
        laws.same("box_and_ball describes the set", inside, threat.contains(point, center))


def _radii(laws: Laws, threat: Threat, center: Tensor, seed: int) -> None:
    rng = generator("check_threat", "radii", seed)
    still = threat.with_radius(0.0)
    point = center + normal(center, rng)
    for name, found in (
        ("project", still.project(point, center)),
        ("maximiser", still.maximiser(point, center)),
        ("sample", still.sample(center, rng=rng)),
    ):
        laws.close(f"at radius 0 {name} is the center", found, center,
                   1e-12 * (1 + float(center.abs().max())))  # fmt: skip
    half = threat.with_radius(threat.radius / 2)
    laws.holds("with_radius keeps the kind of set", type(half) is type(threat))
    for _ in range(3):
        inner = half.sample(center, rng=rng)
        laws.holds("a larger radius holds a smaller one's points", threat.contains(inner, center))


def _brute_force(laws: Laws, threat: Threat, center: Tensor, seed: int, most: int) -> None:
    found = threat.points(center, most)
    if found is None:
        return
    every = list(found)
    laws.holds("`points` lists at most as many as asked", len(every) <= most, len(every))
    for point in every:
        laws.holds("listed points are in the set", threat.contains(point, center))
    rng = generator("check_threat", "brute force", seed)
    rows = torch.stack(every).flatten(2)
    for scale in (0.3, 1.0, 3.0):
        point = center + scale * (threat.radius or 1.0) * normal(center, rng)
        away = (threat.project(point, center) - point).flatten(1).norm(dim=1)
        least = (rows - point.flatten(1)).norm(dim=2).amin(0)
        slack = _slack(center, threat.radius, point)
        laws.close("project is the nearest of all points", away, least, slack)
        grad = (point - center).flatten(1)
        best = (threat.maximiser(point - center, center).flatten(1) * grad).sum(1)
        laws.close("maximiser is the largest of all points", best, (rows * grad).sum(2).amax(0),
                   slack * (1 + grad.norm(dim=1)))  # fmt: skip
    for _ in range(DRAWS):
        drawn = threat.sample(center, rng=rng).flatten(1)
        near = (rows - drawn).norm(dim=2).amin(0)
        laws.at_least("draws are among the listed points", torch.zeros_like(near), near,
                      _slack(center, threat.radius))  # fmt: skip
