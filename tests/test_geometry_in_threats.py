"""Geometry lives in threats: nobody else asks what kind of set it is, or in which norm."""

import ast
from collections.abc import Iterator
from pathlib import Path

import advlab

ROOT = Path(advlab.__file__).parent
NORMS = {"l1", "l2", "linf"}
SETS = {"Ball", "Cap", "FeatureBall", "Integers", "OneHot", "Patch", "Product", "Union"}

WRITES_A_NORM = {
    "testing/attacks.py": "the sets that attacks are tried in",
    "testing/certificates.py": "the sets that certificates are tried with",
    "cli/attack.py": "the user's option; help must not import torch",
    "cli/fit_linear.py": "the user's option; help must not import torch",
    "cli/compare.py": "the user's option; help must not import torch",
    "cli/train.py": "the user's option; help must not import torch",
    "cli/training_plan.py": "the default of a user's option",
    "evaluation/attack.py": "the default of a user's argument",
    "evaluation/curve.py": "the default of a user's argument",
    "training/objectives.py": "no attack is the ball of radius zero",
    "linear/solve.py": "the default of a user's argument",
    "linear/adversarial_path.py": "the default of a user's argument",
    "linear/default_radius.py": "the default of a user's argument",
    "linear/data_risks.py": "the default of a user's argument",
    "linear/estimators.py": "the default of a user's argument",
    "linear/estimators_cv.py": "the default of a user's argument",
    "linear/risks.py": "the default of a user's argument",
    "linear/minimiser.py": "the default of a user's argument",
    "papers/benign/measures/good_run.py": "the paper is about l2 balls",
    "papers/benign/reductions/random_starts.py": "holds for l2 balls only",
    "papers/benign/reductions/reduced.py": "holds for l2 balls only",
    "papers/benign/reductions/two_layer_training.py": "holds for l2 balls only",
    "papers/cgro/theory/explicit_network.py": "the construction is stated for l2 and for linf",
    "papers/convergence/theory/capacity/robust_l2.py": "a theorem about l2",
    "papers/convergence/theory/capacity/robust_linf.py": "a theorem about linf",
    "papers/generalization/theory/algorithm_limit.py": "a theorem about l2",
    "papers/generalization/theory/adversarial_lasso.py": "a theorem about l2",
    "papers/generalization/theory/lasso_cone.py": "a theorem about l2, carried over to linf",
    "papers/generalization/reductions/linear_training.py": "holds for l2 and linf balls only",
    "papers/generalization/reductions/lazy_training.py": "holds for l2 balls only",
    "papers/purification/theory/regime.py": "theorems stated for l2 and for linf",
    "papers/purification/theory/run_conditions.py": "theorems stated for l2 and for linf",
}
"""Files that write a norm down as a user would, and why."""


def files() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(ROOT.rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        if not name.startswith("threats/"):
            yield name, ast.parse(path.read_text())


def kinds_asked_for(tree: ast.AST) -> list[int]:
    """Lines of isinstance and issubclass with Ball or Cap, however they are joined."""
    return [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("isinstance", "issubclass")
        and any(name in SETS for part in node.args[1:] for name in _names(part))
    ]


def norms_written(tree: ast.AST) -> list[int]:
    """Lines of strings that are the name of a norm."""
    return [node.lineno for node in ast.walk(tree) if _is_norm(node)]  # type: ignore[attr-defined]


def norms_compared(tree: ast.AST) -> list[int]:
    """Lines that decide by the name of a norm: comparisons with it, and tables by norm."""
    return [node.lineno for node in ast.walk(tree) if any(map(_is_norm, _decided_by(node)))]


def _decided_by(node: ast.AST) -> Iterator[ast.AST | None]:
    if isinstance(node, ast.Dict):
        yield from node.keys
    if isinstance(node, ast.Compare):
        for side in (node.left, *node.comparators):
            yield from side.elts if isinstance(side, ast.Tuple | ast.List | ast.Set) else (side,)


def _is_norm(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Constant) and node.value in NORMS


def _names(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr


def is_experiment(name: str) -> bool:
    return name.startswith("papers/") and "/experiments/" in name


def test_the_readers_read():
    tree = ast.parse("isinstance(b, Ball | int)\nissubclass(c, (threats.Cap,))\nx.norm == 'l2'\n")
    assert kinds_asked_for(tree) == [1, 2]
    assert norms_written(tree) == [3]
    assert norms_compared(tree) == [3]
    assert norms_compared(ast.parse("{'linf': 1}[norm]")) == [1]
    assert norms_compared(ast.parse("norm in ('l1', 'l2')")) == [1]
    assert norms_compared(ast.parse("ball == Ball('l2', 1)")) == []


def test_nobody_asks_what_kind_of_set_it_is():
    found = {name for name, tree in files() if kinds_asked_for(tree)}
    assert found == set()


def test_norms_are_written_where_a_user_would_write_them():
    """Experiments choose norms; elsewhere each file that names one is listed with its reason."""
    found = {name for name, tree in files() if norms_written(tree) and not is_experiment(name)}
    assert found == set(WRITES_A_NORM)


def test_sets_are_not_told_apart_by_their_norm():
    """Only theory that is stated norm by norm decides by the norm that its user named."""
    stated = {name for name in WRITES_A_NORM if "/theory/" in name}
    found = {name for name, tree in files() if norms_compared(tree) and not is_experiment(name)}
    assert found - stated == set()
