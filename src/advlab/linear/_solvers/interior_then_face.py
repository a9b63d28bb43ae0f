"""Interior point until the face of the solution shows, then the face, exactly."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...core.checks import Array
from .active_face import Vertex, face_of, follow_faces
from .certificate import DualPoint, lower_bound
from .interior_point import InteriorPoint, Iterate
from .problem import LinearProblem
from .squared_faces import follow_squared, has_squared_faces


@dataclass(frozen=True)
class Found:
    """A model, its dual point, and the bracket of the least objective."""

    theta: Array
    b: float
    point: DualPoint
    value: float
    least: float
    steps: int
    method: str
    unbounded: bool = False
    """Whether the infimum is not attained: every sample keeps its side under attack."""
    step: Any = None
    """Where `squared_faces` ended, for the next radius of a path."""
    reach: float = 0.0
    """On a path: the sum of the radii."""

    @property
    def relative(self) -> float:
        """The gap as a share of the objective."""
        gap = max(self.value - self.least, 0.0)
        return gap / self.value if self.value > 0 else 0.0


def from_vertex(at: Vertex, steps: int, method: str) -> Found:
    return Found(at.theta, at.b, at.point, at.value, at.least, steps, method, step=at.step)


def measured(
    problem: LinearProblem, theta: Array, b: float, point: DualPoint, steps: int, method: str,
    inner: DualPoint | None = None,
) -> Found:  # fmt: skip
    """A model with its objective and certificate."""
    value = problem.objective(theta, b)
    least = lower_bound(problem, point, theta, inner)
    return Found(theta, b, point, value, min(least, value), steps, method)


def separated(problem: LinearProblem, theta: Array, b: float, tolerance: float) -> Found | None:
    """If a model keeps every sample on its side under attack, the infimum of the loss is 0.

    The hinge attains it at a multiple of the model. The logistic loss does not: what comes back has
    an objective of at most `tolerance` of that of no model.
    """
    loss = problem.loss
    if not loss.classifies or problem.penalised:
        return None
    margin = problem.arguments(problem.scores(theta, b), problem.attack(theta))
    used = problem.weights > 0
    least = float(margin[used].min())
    if not least > 1e-12 * float(np.abs(margin[used]).max()):
        return None
    reach = 1 + 1e-9 if not loss.smooth else -np.log(np.expm1(tolerance * np.log(2)))
    scale = reach / least
    point = DualPoint(np.zeros(len(problem.y)), np.zeros(len(problem.y)))
    value = problem.objective(scale * theta, scale * b)
    return Found(scale * theta, scale * b, point, value, 0.0, 0, "separable", loss.smooth)


def interior_then_face(
    problem: LinearProblem, tolerance: float, max_steps: int = 80, first_try: float = 3e-3
) -> Found:
    """The minimiser for q = 1, 2 or infinity.

    Args:
        problem: the problem.
        tolerance: the relative gap to stop at.
        max_steps: of the interior point method.
        first_try: the relative accuracy at which the face is guessed for the first time.
    """
    method = InteriorPoint(problem)
    best: Found | None = None
    inner: DualPoint | None = None
    attempt, merit, lowest, stale = first_try, np.inf, np.inf, 0
    closest: Iterate | None = None
    # Faces of wide problems cost as much as a step of the interior point method: two at a time.
    wide = problem.shape[1] > problem.shape[0] and not problem.loss.smooth
    while method.steps < max_steps:
        try:
            at = method.advance()
        except (np.linalg.LinAlgError, FloatingPointError):
            break
        if not _sound(at):
            break
        apart = separated(problem, at.theta, at.b, tolerance)
        if apart is not None:
            return apart
        close = problem.loss.classifies or at.complementarity < 1e-5 * at.value
        here = None
        if close or best is None or stale >= 3:
            here = measured(
                problem, at.theta, at.b, at.point, method.steps, "interior point", inner
            )
            if problem.loss.classifies and here.least > 0:
                inner = at.point
            if best is None or here.relative < best.relative:
                best = here
        value = at.value if here is None else here.value
        now = at.complementarity / max(value, 1e-300) + min(at.residual, 1.0)
        falls = now < 0.9 * merit or value < 0.99 * lowest
        stale = 0 if falls else stale + 1
        closest = at if now <= merit else closest
        merit, lowest = min(merit, now), min(lowest, value)
        if now < attempt or stale in (3, 6):
            best = _polished(problem, at, best, tolerance, method.steps, inner, 2 if wide else 8)
            attempt = min(attempt, now) / (4 if wide else 30)
        if best.relative <= tolerance and best.method == "interior point":
            # Good enough, but a face has exact zeros.
            face = _polished(
                problem, at, replace(best, least=-np.inf), tolerance, best.steps, inner, 8
            )
            best = face if face.relative <= tolerance else best
        if best.relative <= tolerance or stale >= 8:
            break
    if best is None:
        zero = np.zeros(problem.shape[1])
        point = DualPoint(np.zeros(len(problem.y)), np.zeros(len(problem.y)))
        return measured(problem, zero, problem.constant_fit, point, 0, "interior point")
    if best.relative > tolerance and closest is not None and wide:
        best = _polished(problem, closest, best, tolerance, method.steps, inner, 12)
    return best


def _sound(at: Iterate) -> bool:
    return bool(
        np.isfinite(at.theta).all() and np.isfinite(at.complementarity) and np.isfinite(at.b)
    )


def _polished(
    problem: LinearProblem, at: Iterate, best: Found, tolerance: float, steps: int,
    inner: DualPoint | None, rounds: int,
) -> Found:  # fmt: skip
    with np.errstate(all="ignore"):
        target = 0.1 * tolerance * best.value
        face = face_of(problem, at)
        vertex = None
        quick = has_squared_faces(problem) and problem.shape[1] > 2 * len(problem.y)
        if quick:
            vertex = follow_squared(problem, face, at.theta, at.b, target)
        if vertex is None and not (quick and rounds <= 2):
            vertex = follow_faces(problem, face, at.theta, at.b, target, rounds, inner)
    if vertex is None or not np.isfinite(vertex.value):
        return best
    found = from_vertex(vertex, steps, "interior point and face")
    return found if found.relative < best.relative else best
