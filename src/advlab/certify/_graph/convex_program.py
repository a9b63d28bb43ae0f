"""The concave problem that is left when undecided convex units are put under their chords."""

from dataclasses import dataclass

import clarabel  # compiled, without types: hence the comments below
import numpy as np
from jaxtyping import Float
from scipy import sparse

from .one_hidden_layer import ExampleSet, Score

Signs = dict[int, bool]
"""Units whose sign is decided in this part of the set."""
INFEASIBLE = -np.inf


@dataclass(frozen=True)
class NodeBound:
    bound: float
    """No point of this part of the set scores more: weak duality, whatever the solver did."""
    value: float
    """The score of a point of the threat set."""
    split: int | None
    """The unit whose chord lost most; None where nothing is lost."""


class ConcaveRelaxation:
    """max over x of the score's relaxation, in parts of the threat set where signs are decided."""

    def __init__(self, score: Score, threat: ExampleSet):
        self.score, self.threat = score, threat
        active, inactive = score.low >= 0, score.high <= 0
        self.slope = score.slope + (score.weights * active) @ score.rows
        self.constant = score.constant + float((score.weights * active) @ score.shift)
        free = ~(active | inactive)
        self.convex = np.flatnonzero(free & (score.weights > 0))
        self.concave = np.flatnonzero(free & (score.weights < 0))

    def solve(self, signs: Signs) -> NodeBound:
        score = self.score
        g, constant = self._linear_part(signs)
        decided = np.array(sorted(signs), dtype=int)
        sides = np.array([1.0 if signs[k] else -1.0 for k in sorted(signs)])
        x, slopes, multipliers, infeasible = self._optimum(g, decided, sides)
        # relu(z) >= beta z for beta in [0, 1], and multiplier * (+-z) >= 0: a linear bound.
        factors = np.concatenate([score.weights[self.concave] * slopes, multipliers * sides])
        units = np.concatenate([self.concave, decided])
        if infeasible and self._proves_empty(decided, multipliers * sides):
            return NodeBound(INFEASIBLE, INFEASIBLE, None)
        bound = self.threat.support(g + factors @ score.rows[units])
        bound += constant + float(factors @ score.shift[units])
        return NodeBound(bound, score.value(x), self._branching_unit(x, signs))

    def _linear_part(self, signs: Signs) -> tuple[Float[np.ndarray, " d"], float]:
        """Decided units as they are, undecided convex ones by their chords."""
        score, g, constant = self.score, self.slope, self.constant
        for k in self.convex.tolist():
            if k in signs:
                rate, start = float(signs[k]), 0.0
            else:
                rate = score.high[k] / (score.high[k] - score.low[k])
                start = -rate * score.low[k]
            g = g + score.weights[k] * rate * score.rows[k]
            constant += score.weights[k] * (rate * score.shift[k] + start)
        return g, constant

    def _branching_unit(self, x: np.ndarray, signs: Signs) -> int | None:
        score = self.score
        still = np.array([k for k in self.convex.tolist() if k not in signs], dtype=int)
        if len(still) == 0:
            return None
        z, low, high = (
            score.rows[still] @ x + score.shift[still],
            score.low[still],
            score.high[still],
        )
        chord = high * (z - low) / (high - low)
        loss = score.weights[still] * (chord - np.maximum(z, 0))
        return int(still[loss.argmax()])

    def _proves_empty(self, decided: np.ndarray, factors: np.ndarray) -> bool:
        """Whether these multipliers prove that no point of the set has the decided signs."""
        most = self.threat.support(factors @ self.score.rows[decided])
        most += float(factors @ self.score.shift[decided])
        return most < -1e-9 * float(np.abs(factors) @ np.abs(self.score.rows[decided]).sum(1))

    def _optimum(
        self, g: np.ndarray, decided: np.ndarray, sides: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, bool]:
        """A best point, slopes of the concave units, multipliers of the decided signs, and whether
        the solver thinks that nothing is there."""
        score, threat = self.score, self.threat
        if len(decided) == 0 and len(self.concave) == 0:
            return threat.maximiser(g), np.zeros(0), np.zeros(0), False
        w, d, t = score.rows[self.concave], len(g), len(self.concave)
        at = score.rows @ threat.center + score.shift
        weights = -score.weights[self.concave]
        # Variables: move, heights. Rows: height >= z, height >= 0, decided signs, the set.
        rows = [
            np.hstack([w, -np.eye(t)]),
            np.hstack([np.zeros((t, d)), -np.eye(t)]),
            np.hstack([-sides[:, None] * score.rows[decided], np.zeros((len(decided), t))]),
        ]
        right = [-at[self.concave], np.zeros(t), sides * at[decided]]
        of_set, right_of_set, cones = set_constraints(threat, d, t)
        solution = clarabel_solution(
            np.concatenate([-g, weights]),
            np.vstack([*rows, of_set]),
            np.concatenate([*right, right_of_set]),
            sum(len(r) for r in right),
            cones,
        )
        z = np.maximum(np.asarray(solution.z), 0)
        slopes = np.clip(z[:t] / weights, 0, 1)
        x = threat.project(threat.center + np.nan_to_num(np.asarray(solution.x)[:d]))
        multipliers = np.nan_to_num(z[2 * t : 2 * t + len(decided)])
        return x, np.nan_to_num(slopes), multipliers, "Infeasible" in str(solution.status)


def set_constraints(
    threat: ExampleSet, d: int, t: int
) -> tuple[np.ndarray, np.ndarray, tuple[int, int]]:
    """Rows and right sides for the move, and how many are inequalities and how many a cone."""
    eye = np.hstack([np.eye(d), np.zeros((d, t))])
    box, room = np.zeros((0, d + t)), np.zeros(0)
    if threat.interval is not None:
        low, high = threat.interval
        box = np.vstack([eye, -eye])
        room = np.concatenate([high - threat.center, threat.center - low])
    if threat.radius is None:
        return box, room, (len(box), 0)
    cone = np.vstack([np.zeros((1, d + t)), -eye])
    length = np.concatenate([[threat.radius], np.zeros(d)])
    return np.vstack([box, cone]), np.concatenate([room, length]), (len(box), len(cone))


def clarabel_solution(
    q: np.ndarray, a: np.ndarray, b: np.ndarray, plain: int, cones: tuple[int, int]
):
    """min q'v with b - a v >= 0 in the first rows and in the second-order cone in the last."""
    settings = clarabel.DefaultSettings()  # pyright: ignore[reportAttributeAccessIssue]
    settings.verbose = False
    kinds = [clarabel.NonnegativeConeT(plain + cones[0])]  # pyright: ignore[reportAttributeAccessIssue]
    if cones[1]:
        kinds.append(clarabel.SecondOrderConeT(cones[1]))  # pyright: ignore[reportAttributeAccessIssue]
    solver = clarabel.DefaultSolver(  # pyright: ignore[reportAttributeAccessIssue]
        sparse.csc_matrix((len(q), len(q))), q, sparse.csc_matrix(a), b, kinds, settings
    )
    return solver.solve()
