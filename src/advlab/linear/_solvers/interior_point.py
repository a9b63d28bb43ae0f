"""A primal-dual interior point method with the structure of robust linear models.

Mehrotra's predictor and corrector, from a primal feasible start. Auxiliary variables:
t >= N(theta); u per sample for losses with kinks (and c for Huber's); v_j >= |theta_j| where the l1
norm occurs. They are eliminated one by one, which leaves `NewtonSystem`. For the l2 norm
t and theta are in a second-order cone with Nesterov-Todd scaling.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...core.checks import Array
from . import second_order_cone as cone
from .certificate import DualPoint
from .newton_system import NewtonSystem
from .problem import LinearProblem


@dataclass
class Iterate:
    """Where the method stands."""

    theta: Array
    b: float
    t: float
    point: DualPoint
    value: float
    """At least the objective at theta and b; the same in the limit."""
    complementarity: float
    """sum of slack * multiplier: the duality gap once the dual residual is 0."""
    residual: float
    """The dual residual, relative."""
    kinked: np.ndarray
    """Samples at the kink of the loss, as the multipliers see it."""
    support: np.ndarray
    """Features off zero (l1 norm), or inside the bound (l-infinity norm), as they see it."""
    steps: int


class InteriorPoint:
    """Iterates towards the solution; `advance` makes one step.

    Args:
        problem: q must be 1, 2 or infinity.
    """

    def __init__(self, problem: LinearProblem):
        self.p, self.steps = problem, 0
        self.rest: Any = None
        self.late = False
        """Whether Newton systems are refined: early ones need not be solved to rounding."""
        loss, n, d = problem.loss, *problem.shape
        self.has_t = problem.attacked
        q = problem.dual
        self.kinks = not loss.smooth
        self.linear_norm = self.has_t and q == 1
        self.bound_norm = self.has_t and np.isinf(q)
        self.round_norm = self.has_t and q == 2
        costly = problem.l1 > 0
        if self.linear_norm:
            costly = costly | (problem.radii > 0)
        self.all_v = bool(costly.all())
        self.v_at = np.arange(d) if self.all_v else np.flatnonzero(costly)
        self.has_v = bool(len(self.v_at))
        self.s_v = problem.radii[self.v_at] if self.linear_norm else np.zeros(len(self.v_at))
        self.l1_v = problem.l1[self.v_at]
        y = problem.y
        if loss.classifies:
            self.offset, self.sign = (np.ones(n), np.zeros(n)), (-y, np.zeros(n))
            self.pull = (1.0, 0.0)
        else:
            self.offset, self.sign = (y, -y), (-np.ones(n), np.ones(n))
            self.pull = (1.0, 1.0)
        if not self.has_t:
            self.pull = (0.0, 0.0)
        self._slices()
        self._start()

    # Layout of the linear slacks: samples twice, c, features twice, t - s'v, t -+ s theta.

    def _slices(self) -> None:
        n, d = self.p.shape
        sizes = {
            "first": n if self.kinks else 0,
            "second": n if self.kinks else 0,
            "cut": n if self.p.loss.bounded else 0,
            "up": len(self.v_at),
            "down": len(self.v_at),
            "sum": 1 if self.linear_norm else 0,
            "upper": d if self.bound_norm else 0,
            "lower": d if self.bound_norm else 0,
        }
        edges = np.cumsum([0, *sizes.values()])
        self.at = {
            name: slice(a, b) for name, a, b in zip(sizes, edges[:-1], edges[1:], strict=True)
        }
        self.m = int(edges[-1])

    def _start(self) -> None:
        p, n, d = self.p, *self.p.shape
        w, loss = p.weights, p.loss
        self.theta, self.b = np.zeros(d), p.constant_fit
        r = p.y - self.b
        level = max(p.loss.inverse(p.zero_objective), 1e-300) if not loss.classifies else 1.0
        self.t = level if self.has_t else 0.0
        scale = np.sqrt(np.maximum(_mean_squares(p), 1e-300))
        self.sizes = np.maximum(scale, 1e-12 * float(scale.max(initial=1e-300)))
        count = len(self.v_at) + 1
        if self.linear_norm:
            s = np.where(self.s_v > 0, self.s_v, scale[self.v_at])
            self.v = self.t / (s * count)
        else:
            self.v = level / (scale[self.v_at] * count)
        self.dual = np.zeros(self.m)
        at = self.at
        self.u = self.c = np.zeros(0)
        if self.kinks:
            if loss.classifies:
                self.u = np.maximum(1 - p.y * self.b + self.t, 0) + 1.0
                total = w / 2
            else:
                self.u = np.abs(r) + self.t + level
                total = np.full(n, 0.0)
            if loss.bounded:
                edge = loss.steepest / 2
                self.c = np.maximum(self.u - edge / 2, 0.1 * edge)
                part = np.minimum(2 * (self.u - self.c), 0.9 * loss.steepest)
                part = np.maximum(part, 0.1 * loss.steepest)
                self.dual[at["cut"]] = w * (loss.steepest - part)
                total = w * part
            elif loss.curve:
                total = 2 * w * self.u
            elif not loss.classifies:
                total = w
            if loss.classifies:
                self.dual[at["first"]] = w / 2
                self.dual[at["second"]] = w / 2
            else:
                self.dual[at["first"]] = self.dual[at["second"]] = np.maximum(total, 1e-300) / 2
            pulled = self.pull[0] * float(self.dual[at["first"]].sum())
            pulled += self.pull[1] * float(self.dual[at["second"]].sum())
        else:
            pulled = float(w @ loss.slope(p.arguments(np.full(n, self.b), self.t)))
        nu = max(pulled, 1e-300)
        if self.linear_norm:
            self.dual[at["sum"]] = nu
            weight = (self.l1_v + nu * self.s_v) / 2
        else:
            weight = self.l1_v / 2
        self.dual[at["up"]] = self.dual[at["down"]] = weight
        if self.bound_norm:
            self.dual[at["upper"]] = self.dual[at["lower"]] = nu / (2 * d)
        self.cone_dual = np.concatenate([[nu], np.zeros(d)]) if self.round_norm else np.zeros(0)
        self.scores = np.full(n, self.b)
        self.slack = self._slacks(self.scores, self.theta, self.t, self.u, self.c, self.v, True)

    def _slacks(self, f, theta, t, u, c, v, constant: bool) -> Array:
        parts: list[Any] = []
        if self.kinks:
            for offset, sign, pull in zip(self.offset, self.sign, self.pull, strict=True):
                row = u - pull * t - sign * f
                parts.append(row - offset if constant else row)
            if self.p.loss.bounded:
                parts.append(c)
        if self.has_v:
            inner = theta if self.all_v else theta[self.v_at]
            parts += [v - inner, v + inner]
        if self.linear_norm:
            parts.append([t - float(self.s_v @ v)])
        if self.bound_norm:
            moved = self.p.radii * theta
            parts += [t - moved, t + moved]
        return np.concatenate(parts) if parts else np.zeros(0)

    def _cone_slack(self, theta: Array, t: float) -> Array:
        return np.concatenate([[t], self.p.radii * theta])

    def _pull_back(self, dual: Array, cone_dual: Array):
        """G'dual in each block of variables: samples' scores, theta, t, u, c, v."""
        at, n = self.at, len(self.p.y)
        f, theta, t = np.zeros(n), np.zeros(len(self.theta)), 0.0
        u = c = v = np.zeros(0)
        if self.kinks:
            first, second = dual[at["first"]], dual[at["second"]]
            f = -self.sign[0] * first - self.sign[1] * second
            t -= self.pull[0] * float(first.sum()) + self.pull[1] * float(second.sum())
            u = first + second
            if self.p.loss.bounded:
                c = dual[at["cut"]]
        if self.has_v:
            up, down = dual[at["up"]], dual[at["down"]]
            theta[self.v_at] += down - up
            v = up + down
        if self.linear_norm:
            nu = float(dual[at["sum"]][0])
            t += nu
            v = v - nu * self.s_v
        if self.bound_norm:
            upper, lower = dual[at["upper"]], dual[at["lower"]]
            theta += self.p.radii * (lower - upper)
            t += float(upper.sum() + lower.sum())
        if self.round_norm:
            t += float(cone_dual[0])
            theta += self.p.radii * cone_dual[1:]
        return f, theta, t, u, c, v

    def _gradient(self):
        """The gradient of the objective in the same blocks."""
        p, loss, n = self.p, self.p.loss, len(self.p.y)
        w, f, t = p.weights, np.zeros(n), 0.0
        u = c = np.zeros(0)
        if self.kinks:
            if loss.bounded:
                core = 2 * w * (self.u - self.c)
                u, c = core, w * loss.steepest - core
            else:
                u = w * (2 * loss.curve * self.u + loss.linear)
        else:
            slope = w * loss.slope(p.arguments(self.scores, self.t))
            f, t = -p.y * slope, float(slope.sum()) if self.has_t else 0.0
        return f, p.l2 * self.theta, t, u, c, self.l1_v

    def _rest(self):
        """Dual residuals: gradient - G'dual, with the samples' part carried to theta and b."""
        grad, back = self._gradient(), self._pull_back(self.dual, self.cone_dual)
        f, theta, t, u, c, v = (a - b for a, b in zip(grad, back, strict=True))
        image = np.asarray(self.p.x.T @ f)
        b = float(np.sum(f)) if self.p.intercept else 0.0
        return image + theta, b, t, u, c, v

    def _factor(self) -> None:
        """Eliminate u, c and v, and factor what is left."""
        p, loss, at, n = self.p, self.p.loss, self.at, len(self.p.y)
        weight = self.dual / self.slack
        w, d = p.weights, len(self.theta)
        if self.kinks:
            k1, k2 = weight[at["first"]], weight[at["second"]]
            (s1, s2), (a1, a2) = self.sign, self.pull
            curve = 2 * loss.curve * w
            if loss.bounded:
                self.k3 = weight[at["cut"]]
                self.mix = curve / (curve + self.k3)
                curve = self.mix * self.k3
            self.total = curve + k1 + k2
            both = k1 * k2
            alpha = curve * (k1 * s1**2 + k2 * s2**2) + both * (s1 - s2) ** 2
            beta = curve * (k1 * s1 * a1 + k2 * s2 * a2) + both * (s1 - s2) * (a1 - a2)
            # The form alpha f^2 + 2 beta f t + gamma t^2 as alpha (f + tilt t)^2 + left t^2.
            tilt = np.divide(beta, alpha, out=np.zeros_like(beta), where=alpha > 0)
            apart = curve * both * (s1 * a2 - s2 * a1) ** 2
            left = float(np.divide(apart, alpha, out=np.zeros_like(beta), where=alpha > 0).sum())
            alpha = alpha / self.total
            self.by_f = (k1 * s1 + k2 * s2) / self.total
            self.by_t = (k1 * a1 + k2 * a2) / self.total
            self.k1, self.k2 = k1, k2
        else:
            alpha = w * loss.curvature(p.arguments(self.scores, self.t))
            tilt, left = -p.y, 0.0
        self.has_rho = self.linear_norm or self.round_norm
        size = int(p.intercept) + int(self.has_t) + int(self.has_rho)
        ridge = np.array(p.l2, dtype=np.float64)
        border, corner = np.zeros((d, size)), np.zeros((size, size))
        if self.has_v:
            j1, j2 = weight[at["up"]], weight[at["down"]]
            self.j = j1 + j2
            self.tilt = (j2 - j1) / self.j
            ridge[self.v_at] += 4 * j1 * j2 / self.j
        it, reduced = int(p.intercept), None
        samples = np.zeros((n, size))
        if p.intercept:
            samples[:, 0] = 1.0
        if self.has_t:
            samples[:, it] = tilt
            corner[it, it] = left
        if self.linear_norm:
            k = float(weight[at["sum"]][0])
            border[self.v_at, it + 1] = self.s_v * self.tilt
            corner[it, it + 1] = corner[it + 1, it] = 1.0
            corner[it + 1, it + 1] = -(float((self.s_v**2 / self.j).sum()) + 1 / k)
        if self.bound_norm:
            l1, l2 = weight[at["upper"]], weight[at["lower"]]
            ridge += p.radii**2 * (l1 + l2)
            border[:, it] += p.radii * (l2 - l1)
            corner[it, it] += float(l1.sum() + l2.sum())
            if not p.penalised and p.radii.all():
                reduced = np.zeros((size, size))
                reduced[it, it] = left + float((4 * l1 * l2 / (l1 + l2)).sum())
        if self.round_norm:
            self.nt = cone.scaling(self._cone_slack(self.theta, self.t), self.cone_dual)
            squared = self.nt.eta**2
            ridge += p.radii**2 / squared
            corner[it, it] -= 1 / squared
            corner[it, it + 1] = corner[it + 1, it] = self.nt.w[0]
            border[:, it + 1] = -p.radii * self.nt.w[1:]
            corner[it + 1, it + 1] = -squared / 2
        self.system = NewtonSystem(
            p.x, alpha, samples, ridge, border, corner, reduced, int(self.late)
        )

    def _direction(self, rest, target: Array, cone_target: Array):
        """The Newton direction towards slack * dual = slack * dual + target."""
        p = self.p
        back = self._pull_back(
            target / self.slack, self.nt.undo(cone_target) if self.round_norm else cone_target
        )
        image = np.asarray(p.x.T @ back[0])
        r_theta = -rest[0] + image + back[1]
        r_b = -rest[1] + (float(back[0].sum()) if p.intercept else 0.0)
        r_t = -rest[2] + back[2]
        r_u, r_c, r_v = (b - a for a, b in zip(rest[3:], back[3:], strict=True))
        if self.kinks:
            if p.loss.bounded:
                r_u = r_u + self.mix * r_c
            through = self.by_f * r_u
            r_theta = r_theta + p.x.T @ through
            r_b += float(through.sum())
            r_t += float(self.by_t @ r_u)
        side = []
        if p.intercept:
            side.append(r_b)
        if self.has_v:
            r_theta = np.array(r_theta)
            r_theta[self.v_at] -= self.tilt * r_v
        if self.has_t:
            side.append(r_t)
        if self.linear_norm:
            side.append(float((self.s_v * r_v / self.j).sum()))
        elif self.round_norm:
            side.append(0.0)
        theta, e = self.system.solve(r_theta, np.array(side))
        b = float(e[0]) if p.intercept else 0.0
        t = float(e[int(p.intercept)]) if self.has_t else 0.0
        f = p.x @ theta + b
        u = c = v = np.zeros(0)
        if self.kinks:
            pulled = self.k1 * (self.pull[0] * t + self.sign[0] * f)
            pulled += self.k2 * (self.pull[1] * t + self.sign[1] * f)
            u = (r_u + pulled) / self.total
            if p.loss.bounded:
                curve = 2 * p.weights
                c = (r_c + curve * u) / (curve + self.k3)
        if self.has_v:
            inner = theta if self.all_v else theta[self.v_at]
            v = r_v / self.j - self.tilt * inner
            if self.linear_norm:
                v = v + self.s_v * float(e[-1]) / self.j
        slack = self._slacks(f, theta, t, u, c, v, False)
        dual = (target - self.dual * slack) / self.slack
        cone_slack = cone_dual = np.zeros(0)
        if self.round_norm:
            cone_slack = self._cone_slack(theta, t)
            cone_dual = self.nt.undo(cone_target - self.nt.undo(cone_slack))
        return theta, b, t, u, c, v, f, slack, dual, cone_slack, cone_dual

    def _longest(self, step) -> float:
        slack, dual, cone_slack, cone_dual = step[7:]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            found = 1e300
            for value, change in ((self.slack, slack), (self.dual, dual)):
                if len(value):
                    found = min(found, -1 / min(float((change / value).min()), -1e-300))
        if self.round_norm:
            here = self._cone_slack(self.theta, self.t)
            found = min(found, cone.longest_step(here, cone_slack))
            found = min(found, cone.longest_step(self.cone_dual, cone_dual))
        return found

    def _product(self, slack, dual, cone_slack, cone_dual) -> float:
        return float(slack @ dual) + (float(cone_slack @ cone_dual) if self.round_norm else 0.0)

    def advance(self) -> Iterate:
        """One predictor-corrector step."""
        rest = self._rest() if self.rest is None else self.rest
        self._factor()
        here = self._cone_slack(self.theta, self.t) if self.round_norm else np.zeros(0)
        total = self._product(self.slack, self.dual, here, self.cone_dual)
        mean = total / max(self.m + int(self.round_norm), 1)
        plain = -self.slack * self.dual
        lam = self.nt.point if self.round_norm else np.zeros(0)
        cone_plain = -lam
        first = self._direction(rest, plain, cone_plain)
        a = min(1.0, self._longest(first))
        after = self._product(
            self.slack + a * first[7], self.dual + a * first[8],
            here + a * first[9] if self.round_norm else here,
            self.cone_dual + a * first[10] if self.round_norm else here,
        )  # fmt: skip
        centre = (max(after, 0.0) / total) ** 3 * mean if total > 0 else 0.0
        target = plain + centre - first[7] * first[8]
        cone_target = cone_plain
        if self.round_norm:
            bend = cone.product(self.nt.undo(first[9]), self.nt.apply(first[10]))
            wanted = -cone.product(lam, lam) - bend
            wanted[0] += centre
            cone_target = self.nt.divide(wanted)
        step = self._direction(rest, target, cone_target)
        size = min(1.0, 0.995 * self._longest(step))
        before = self._size_of(rest)
        self._move(step, size)
        if not self.kinks:
            # The logistic loss bends: a step that leaves more residual than it found is halved.
            for _ in range(12):
                if self._size_of(self._rest()) <= max((1 - 0.05 * size) * before, 1e-11):
                    break
                self._move(step, -size / 2)
                size /= 2
        self.steps += 1
        self.rest = None
        return self.iterate()

    def _size_of(self, rest) -> float:
        size = float((np.abs(rest[0]) / self.sizes).max(initial=0.0))
        return max(size, abs(rest[1]), abs(rest[2]))

    def _move(self, step, size: float) -> None:
        theta, b, t, u, c, v, f, slack, dual, _, cone_dual = step
        self.theta = self.theta + size * theta
        self.b += size * b
        self.t += size * t
        if self.kinks:
            self.u = self.u + size * u
            if self.p.loss.bounded:
                self.c = self.c + size * c
        if self.has_v:
            self.v = self.v + size * v
        self.scores = self.scores + size * f
        self.slack = self.slack + size * slack
        self.dual = self.dual + size * dual
        if self.round_norm:
            self.cone_dual = self.cone_dual + size * cone_dual

    def iterate(self) -> Iterate:
        p, at = self.p, self.at
        if self.kinks:
            first, second = self.dual[at["first"]], self.dual[at["second"]]
            if p.loss.classifies:
                point = DualPoint(p.y * first, first)
            else:
                point = DualPoint(first - second, first + second)
            scale = p.weights
            near = (self.slack[at["first"]] * scale < first) & (
                self.slack[at["second"]] * scale < second
            )
        else:
            alpha = p.weights * p.loss.slope(p.arguments(self.scores, self.t))
            point, near = DualPoint(p.y * alpha, alpha), np.zeros(len(p.y), dtype=bool)
        here = self._cone_slack(self.theta, self.t) if self.round_norm else np.zeros(0)
        total = self._product(self.slack, self.dual, here, self.cone_dual)
        residual = self._relative_rest(point.mu)
        value = self._value()
        self.late = total < 1e-3 * value or residual > 1e-6
        return Iterate(
            self.theta, self.b, self.t, point, value, total, residual, near, self._support(),
            self.steps,
        )  # fmt: skip

    def _value(self) -> float:
        """The objective in the auxiliary variables, which are nowhere too small."""
        p = self.p
        z = self.u if self.kinks and not p.loss.classifies else None
        if z is None:
            return p.objective(self.theta, self.b)
        return float(p.weights @ p.loss.value(z)) + p.penalty(self.theta)

    def _relative_rest(self, mu: Array) -> float:
        rest = self.rest = self._rest()
        total = max(float(np.abs(mu).sum()), 1e-300)
        # Each entry in the units of what is summed there: a column's size times the multipliers.
        size = float((np.abs(rest[0]) / self.sizes).max(initial=0.0)) / total
        return max(size, abs(float(rest[1])) / total, float(abs(rest[2])) / total)  # type: ignore[arg-type]

    def _support(self) -> np.ndarray:
        at, d = self.at, len(self.theta)
        off = np.ones(d, dtype=bool)
        if self.has_v:
            # A feature is at zero if neither of its multipliers vanishes.
            up, down = self.dual[at["up"]], self.dual[at["down"]]
            least = np.minimum(up, down) / np.maximum(up + down, 1e-300)
            off[self.v_at] = least < self.v / max(float(self.v.max()), 1e-300)
        if self.bound_norm:
            low = np.minimum(self.slack[at["upper"]], self.slack[at["lower"]]) / max(self.t, 1e-300)
            high = np.maximum(self.dual[at["upper"]], self.dual[at["lower"]])
            off &= ~((low < 0.1) & (high / max(float(high.sum()), 1e-300) > low))
        return off


def _mean_squares(problem: LinearProblem) -> Array:
    x = problem.x
    squares = x.multiply(x) if not isinstance(x, np.ndarray) else x**2
    return np.asarray(problem.weights @ squares).ravel()
