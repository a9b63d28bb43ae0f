"""The same problems as cone programmes for Clarabel: any norm, and many classes.

Slower than the structured methods and used where these do not apply: threat norms other than l1,
l2 and linf (power cones), the joint multi-class problem, small exact subproblems, and as a last
resort.
"""

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import clarabel as _clarabel
import numpy as np
from scipy import sparse

from ...core.checks import Array
from .certificate import DualPoint
from .problem import LinearProblem

clarabel: Any = _clarabel  # compiled, and without types


@dataclass
class ConeProgram:
    """minimise q'z + z'Pz/2 subject to slack_k = b_k - A_k z in cone_k; variables by name."""

    sizes: dict[str, int] = field(default_factory=dict)
    rows: list[tuple[dict[str, Any], Array]] = field(default_factory=list)
    cones: list[Any] = field(default_factory=list)
    cost: dict[str, Array] = field(default_factory=dict)
    square: dict[str, Array] = field(default_factory=dict)

    def variable(self, name: str, size: int) -> str:
        self.sizes[name] = size
        return name

    def add(self, cones: list[Any], blocks: dict[str, Any], right: Array) -> int:
        """Rows right - sum blocks @ variable in the cones; returns their number."""
        self.rows.append((blocks, np.asarray(right, dtype=np.float64)))
        self.cones += cones
        return len(self.rows) - 1

    def at_least(self, blocks: dict[str, Any], low: Array) -> int:
        """sum blocks @ variable >= low."""
        flipped = {name: -1.0 * block for name, block in blocks.items()}
        right = -np.asarray(low, dtype=np.float64)
        return self.add([clarabel.NonnegativeConeT(len(right))], flipped, right)

    def norm_at_most(self, name: str, image: dict[str, Any], bound: str, at: int, q: float) -> int:
        """||sum image @ variable||_q <= variable `bound` at an index; k rows inside.

        Returns the number of the rows that carry the vector, for its multipliers.
        """
        k = next(iter(image.values())).shape[0]
        pick = _column(k, self.sizes[bound], at)
        one = _column(1, self.sizes[bound], at)
        negative = {key: -1.0 * block for key, block in image.items()}
        if q == 2:
            blocks = {
                key: sparse.vstack([_zeros(1, b.shape[1]), -1.0 * b]) for key, b in image.items()
            }
            blocks[bound] = _sum(blocks.get(bound), sparse.vstack([-one, _zeros(k, one.shape[1])]))
            return self.add([clarabel.SecondOrderConeT(k + 1)], blocks, np.zeros(k + 1))
        if np.isinf(q):
            first = self.at_least(_plus(negative, bound, pick), np.zeros(k))
            self.at_least(_plus(image, bound, pick), np.zeros(k))
            return first
        parts = self.variable(name, k)
        eye = sparse.identity(k, format="csr")
        if q == 1:
            first = self.at_least(_plus(negative, parts, eye), np.zeros(k))
            self.at_least(_plus(image, parts, eye), np.zeros(k))
        else:
            # |z_j| <= part_j^(1/q) t^(1 - 1/q) and sum part <= t.
            order = np.arange(3 * k).reshape(3, k).T.ravel()
            blocks = {
                key: sparse.vstack([_zeros(2 * k, b.shape[1]), -1.0 * b]).tocsr()[order]
                for key, b in image.items()
            }
            blocks[parts] = sparse.vstack([-eye, _zeros(2 * k, k)]).tocsr()[order]
            middle = sparse.vstack([_zeros(k, pick.shape[1]), -pick, _zeros(k, pick.shape[1])])
            blocks[bound] = _sum(blocks.get(bound), middle.tocsr()[order])
            first = self.add([clarabel.PowerConeT(1 / q)] * k, blocks, np.zeros(3 * k))
        self.at_least({bound: one, parts: -np.ones((1, k))}, np.zeros(1))
        return first

    def logistic_at_most(self, margin: dict[str, Any], value: str, n: int) -> int:
        """log(1 + exp(-margin_i)) <= value_i."""
        eye, none = sparse.identity(n, format="csr"), _zeros(n, n)
        for part in ("first", "second"):
            self.variable(f"{value}.{part}", n)
        order = np.arange(3 * n).reshape(3, n).T.ravel()

        def stacked(top: Any, bottom: Any) -> Any:
            width = top.shape[1]
            return sparse.vstack([top, _zeros(n, width), bottom]).tocsr()[order]

        right = np.concatenate([np.zeros(n), np.ones(n), np.zeros(n)])[order]
        blocks = {
            key: stacked(sparse.csr_matrix(b), _zeros(n, b.shape[1])) for key, b in margin.items()
        }
        blocks[value] = stacked(eye, none)
        blocks[f"{value}.first"] = stacked(none, -eye)
        first = self.add([clarabel.ExponentialConeT()] * n, blocks, right)
        blocks = {value: stacked(eye, none), f"{value}.second": stacked(none, -eye)}
        self.add([clarabel.ExponentialConeT()] * n, blocks, right)
        self.at_least({f"{value}.first": -eye, f"{value}.second": -eye}, -np.ones(n))
        return first

    def solve(self, tolerance: float = 1e-10) -> "ConeAnswer":
        names = list(self.sizes)
        starts = dict(zip(names, np.cumsum([0, *self.sizes.values()]), strict=False))
        total = sum(self.sizes.values())
        columns = [
            [
                sparse.csr_matrix(blocks[name])
                if name in blocks
                else sparse.csr_matrix((len(right), self.sizes[name]))
                for name in names
            ]
            for blocks, right in self.rows
        ]
        matrix = sparse.csc_matrix(sparse.vstack([sparse.hstack(row) for row in columns]))
        right = np.concatenate([right for _, right in self.rows])
        cost, diagonal = np.zeros(total), np.zeros(total)
        for name, value in self.cost.items():
            cost[starts[name] : starts[name] + self.sizes[name]] += value
        for name, value in self.square.items():
            diagonal[starts[name] : starts[name] + self.sizes[name]] += value
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tolerance
        settings.max_iter = 200
        solver = clarabel.DefaultSolver(
            sparse.csc_matrix(sparse.diags(diagonal)), cost, matrix, right, self.cones, settings
        )
        found = solver.solve()
        z, dual = np.array(found.x), np.array(found.z)
        values = {name: z[starts[name] : starts[name] + self.sizes[name]] for name in names}
        edges = np.cumsum([0, *(len(r) for _, r in self.rows)])
        duals = [dual[a:b] for a, b in pairwise(edges)]
        return ConeAnswer(values, duals, float(found.obj_val), float(found.obj_val_dual),
                          int(found.iterations), str(found.status))  # fmt: skip


@dataclass(frozen=True)
class ConeAnswer:
    """What Clarabel found: variables by name, multipliers per block of rows."""

    values: dict[str, Array]
    duals: list[Array]
    primal: float
    dual: float
    steps: int
    status: str


def _zeros(rows: int, columns: int) -> Any:
    return sparse.csr_matrix((rows, columns))


def _column(rows: int, columns: int, at: int) -> Any:
    entries = (np.ones(rows), (np.arange(rows), np.full(rows, at)))
    return sparse.csr_matrix(entries, shape=(rows, columns))


def _sum(a: Any, b: Any) -> Any:
    return b if a is None else a + b


def _plus(blocks: dict[str, Any], name: str, block: Any) -> dict[str, Any]:
    return {**blocks, name: _sum(blocks.get(name), block)}


def solve_by_cones(
    problem: LinearProblem, tolerance: float = 1e-11
) -> tuple[Array, float, DualPoint, int]:
    """(theta, b, dual point, steps) of a problem with any norm."""
    p, loss, (n, d) = problem, problem.loss, problem.shape
    program = ConeProgram()
    theta, b = program.variable("theta", d), program.variable("b", 1)
    t, u = program.variable("t", 1), program.variable("u", n)
    x, ones = sparse.csr_matrix(p.x), np.ones((n, 1))
    intercept = ones if p.intercept else 0 * ones
    eye = sparse.identity(n, format="csr")
    if loss.classifies:
        label = sparse.diags(p.y).tocsr()
        margin = {theta: label @ x, b: label @ intercept, t: -ones}
        if loss.smooth:
            first = program.logistic_at_most(margin, u, n)
        else:
            first = program.at_least({**margin, u: eye}, np.ones(n))
            program.at_least({u: eye}, np.zeros(n))
        program.cost[u] = p.weights
    else:
        first = program.at_least({u: eye, t: -ones, theta: x, b: intercept}, p.y)
        second = program.at_least({u: eye, t: -ones, theta: -x, b: -intercept}, -p.y)
        if loss.bounded:
            c = program.variable("c", n)
            a = program.variable("a", n)
            program.add([clarabel.ZeroConeT(n)], {u: eye, a: -eye, c: -eye}, np.zeros(n))
            program.at_least({c: eye}, np.zeros(n))
            program.square[a], program.cost[c] = 2 * p.weights, loss.steepest * p.weights
        elif loss.curve:
            program.square[u] = 2 * p.weights
        else:
            program.cost[u] = p.weights
    if not p.intercept:
        program.add([clarabel.ZeroConeT(1)], {b: np.ones((1, 1))}, np.zeros(1))
    if p.attacked:
        scaled = {theta: sparse.diags(p.radii).tocsr()}
        program.norm_at_most("norm", scaled, t, 0, p.dual)
    else:
        program.add([clarabel.ZeroConeT(1)], {t: np.ones((1, 1))}, np.zeros(1))
    if p.l1.any():
        v, unit = program.variable("v", d), sparse.identity(d, format="csr")
        program.at_least({v: unit, theta: -unit}, np.zeros(d))
        program.at_least({v: unit, theta: unit}, np.zeros(d))
        program.cost[v] = p.l1
    if p.l2.any():
        program.square[theta] = p.l2
    found = program.solve(tolerance)
    if loss.smooth:
        alpha = -found.duals[first].reshape(n, 3)[:, 0]
        point = DualPoint(p.y * alpha, alpha)
    elif loss.classifies:
        point = DualPoint(p.y * found.duals[first], found.duals[first])
    else:
        one, two = found.duals[first], found.duals[second]
        point = DualPoint(one - two, one + two)
    return found.values[theta], float(found.values[b][0]), point, found.steps


def least_norm(fixed: Array, columns: Array, low: Array, high: Array, total: float | None,
               order: float) -> float:  # fmt: skip
    """min over low <= z <= high (and sum z = total) of ||fixed + columns z||_order."""
    k, m = columns.shape
    program = ConeProgram()
    z, t = program.variable("z", m), program.variable("t", 1)
    one = program.variable("one", 1)
    eye = sparse.identity(m, format="csr")
    program.at_least({z: eye}, low)
    program.at_least({z: -eye}, -high)
    program.add([clarabel.ZeroConeT(1)], {one: np.ones((1, 1))}, np.ones(1))
    if total is not None:
        program.add([clarabel.ZeroConeT(1)], {z: np.ones((1, m))}, np.array([total]))
    image = {z: sparse.csr_matrix(columns), one: sparse.csr_matrix(fixed.reshape(k, 1))}
    program.norm_at_most("norm", image, t, 0, order)
    program.cost[t] = np.ones(1)
    found = program.solve(1e-12)
    return float(np.linalg.norm(fixed + columns @ found.values[z], ord=order))
