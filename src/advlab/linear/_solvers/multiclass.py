"""The joint problem of several classes: the worst class under attack, exactly.

With scores s_k = x'theta_k + b_k the attacked margin of a sample of class y is

    m = min over k != y of  s_y - s_k - N(theta_y - theta_k),

because minima over the attack and over k change places. The objective is the mean of loss(m): the
hinge gives Crammer and Singer's support vector machine under attack, the logistic loss its smooth
companion (and binary logistic regression for two classes). Softmax cross entropy is another
problem: its inner maximum over a ball is one of a convex function, hard in general.
"""

from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from scipy import sparse

from ...core.checks import Array
from .cone_program import ConeProgram
from .problem import LinearProblem


@dataclass(frozen=True)
class JointFound:
    """theta (K, d), b (K,), the objective, a lower bound of the least one, and the steps."""

    theta: Array
    b: Array
    value: float
    least: float
    steps: int
    status: str


def joint_margins(problem: LinearProblem, codes: np.ndarray, theta: Array, b: Array) -> Array:
    """The attacked margin of each sample."""
    scores = np.asarray(problem.x @ theta.T) + b
    k = len(theta)
    attack = np.zeros((k, k))
    for i, j in combinations(range(k), 2):
        attack[i, j] = attack[j, i] = problem.attack(theta[i] - theta[j])
    rows = np.arange(len(codes))
    margins = scores[rows, codes][:, None] - scores - attack[codes]
    margins[rows, codes] = np.inf
    return margins.min(axis=1)


def joint_objective(problem: LinearProblem, codes: np.ndarray, theta: Array, b: Array) -> float:
    margins = joint_margins(problem, codes, theta, b)
    penalty = sum(problem.penalty(row) for row in theta)
    return float(problem.weights @ problem.loss.value(margins)) + penalty


def solve_joint(
    problem: LinearProblem, codes: np.ndarray, classes: int, hard: bool = False
) -> JointFound:
    """The minimiser by a cone programme.

    Args:
        problem: a classification; its labels do not matter.
        codes: the class of each sample, 0 to classes - 1.
        classes: how many.
        hard: the shortest model with margins of at least 1 under attack, in place of a loss.
    """
    p, (n, d) = problem, problem.shape
    program = ConeProgram()
    theta = program.variable("theta", classes * d)
    b = program.variable("b", classes)
    pairs = list(combinations(range(classes), 2))
    t = program.variable("t", len(pairs))
    m = program.variable("m", n)
    u = program.variable("u", n)
    x = sparse.csr_matrix(p.x)
    for i in range(classes):
        mine = np.flatnonzero(codes == i)
        for j in range(classes):
            if i == j or not len(mine):
                continue
            pick = sparse.csr_matrix((np.ones(len(mine)), (np.arange(len(mine)), mine)),
                                     shape=(len(mine), n))  # fmt: skip
            blocks = {
                theta: _at_class(x[mine], i, j, classes, d),
                m: -pick,
                t: _pair(len(mine), pairs, i, j),
            }
            if p.intercept:
                blocks[b] = _difference(len(mine), classes, i, j)
            program.at_least(blocks, np.zeros(len(mine)))
    for at, (i, j) in enumerate(pairs):
        image = {theta: _at_class(sparse.diags(p.radii).tocsr(), i, j, classes, d)}
        program.norm_at_most(f"norm {i} {j}", image, t, at, p.dual)
    eye = sparse.identity(n, format="csr")
    if hard:
        program.at_least({m: eye}, np.ones(n))
        program.at_least({u: eye}, np.zeros(n))
    elif p.loss.smooth:
        program.logistic_at_most({m: eye}, u, n)
    else:
        program.at_least({u: eye, m: eye}, np.ones(n))
        program.at_least({u: eye}, np.zeros(n))
    program.cost[u] = p.weights
    # Scores are the same up to a common shift: the least squares one is taken.
    least = 1.0 if hard else 0.0 if p.l2.any() else 1e-13
    program.square[theta] = np.tile(p.l2, classes) + least
    program.square[b] = np.full(classes, 1e-13)
    if p.l1.any():
        v, unit = program.variable("v", classes * d), sparse.identity(classes * d, format="csr")
        program.at_least({v: unit, theta: -unit}, np.zeros(classes * d))
        program.at_least({v: unit, theta: unit}, np.zeros(classes * d))
        program.cost[v] = np.tile(p.l1, classes)
    found = program.solve(1e-11)
    model = found.values[theta].reshape(classes, d)
    intercepts = found.values[b] if p.intercept else np.zeros(classes)
    if not p.penalised:
        model = model - model.mean(axis=0)
    intercepts = intercepts - intercepts.mean()
    value = joint_objective(p, codes, model, intercepts)
    # The solver's dual residuals are below 1e-11 of its data; count them ten times over.
    slack = 1e-10 * abs(found.dual)
    return JointFound(model, intercepts, value, min(found.dual - slack, value), found.steps,
                      found.status)  # fmt: skip


def _at_class(block, i: int, j: int, classes: int, d: int):
    parts = [sparse.csr_matrix((block.shape[0], d)) for _ in range(classes)]
    parts[i], parts[j] = block, -block
    return sparse.hstack(parts).tocsr()


def _pair(rows: int, pairs: list, i: int, j: int):
    at = pairs.index((min(i, j), max(i, j)))
    return sparse.csr_matrix((-np.ones(rows), (np.arange(rows), np.full(rows, at))),
                             shape=(rows, len(pairs)))  # fmt: skip


def _difference(rows: int, classes: int, i: int, j: int):
    entries = np.concatenate([np.ones(rows), -np.ones(rows)])
    where = (np.tile(np.arange(rows), 2), np.repeat([i, j], rows))
    return sparse.csr_matrix((entries, where), shape=(rows, classes))


def without_features(problem: LinearProblem, codes: np.ndarray, found: JointFound) -> JointFound:
    """The zero model, exactly, where it is as good as what was found."""
    zero = np.zeros_like(found.theta)
    for b in (np.zeros_like(found.b), found.b):
        value = joint_objective(problem, codes, zero, b)
        if value <= found.value * (1 + 1e-10):
            return replace(found, theta=zero, b=b, value=value, least=min(found.least, value))
    return found
