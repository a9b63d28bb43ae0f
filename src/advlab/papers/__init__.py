"""One folder per paper, one file per figure, table or question; the names below run them."""

from difflib import get_close_matches
from fnmatch import fnmatchcase

from ..core.errors import AdvlabError
from ..core.registry import installed

ITEMS: dict[str, tuple[str, ...]] = {
    "benign": (
        "lemmas",
        "theory_regime",
        "scaling_law",
        "other_clusters",
        "appendix_bounds",
        "fig1",
        "exponents",
        "fig2",
        "fig3",
        "fig4",
        "fig5",
        "fig6",
    ),
    "convergence": (
        "any_attack",
        "best_in_ball",
        "projected_deep",
        "start_norms",
        "gradient_drift",
        "lazy_regime",
        "robust_interpolation",
        "mnist_pairs",
        "corollary_end_to_end",
        "tangent_kernels",
        "quadratic_relu",
        "kernel_parity",
        "robust_capacity",
        "regret_audit",
    ),
    "cgro": (
        "phases",
        "race",
        "adversarial_weight",
        "phase_times",
        "growth_lemmas",
        "lemma_hypotheses",
        "other_attacks",
        "explicit_classifier",
        "explicit_on_images",
        "distance_to_explicit",
        "exponential_lower_bound",
        "linear_regions",
        "trained_lower_bound",
        "flatness_bound",
        "flatness_rate",
        "network_attacks",
        "pgd_phases",
        "fig1",
        "fig2",
        "fig3",
    ),
    "generalization": (
        "fig1",
        "fig2",
        "fig3",
        "fig4",
        "fig5",
        "fig6",
        "fig7",
        "fig8",
        "fig9",
        "fig10",
        "fig11",
        "fig12",
        "fig13",
        "fig14",
        "fig15",
        "fig16",
        "table1",
        "table2",
        "lasso",
        "sparse_recovery",
        "proportional_regime",
        "linf_attacks",
        "linf_iterations",
        "paths",
        "closed_forms",
        "surrogate_limit",
        "descent_schedule",
        "other_laws",
        "lazy_expansion",
        "network_schedules",
        "stopping_times",
    ),
    "purification": (
        "clean_then_adversarial",
        "radius_curves",
        "any_attacker",
        "causality",
        "noise_and_dictionaries",
        "pure_start",
        "random_start",
        "lottery_tickets",
        "dimension_trends",
        "lemmas",
        "linear_and_ntk",
        "linf_threats",
        "lemmas_linf",
        "fig1",
        "fig2",
        "fig3",
        "fig4",
        "fig5",
        "fig6",
        "fig7",
        "fig8",
        "fig9",
        "fig10",
        "fig11",
        "fig12",
        "fig13",
        "table1",
    ),
}
"""Each paper's experiments, in the order of its story."""

EXPERIMENTS: dict[str, str] = {
    f"{paper}/{item}": f"advlab.papers.{paper}.experiments.{item}"
    for paper, items in ITEMS.items()
    for item in items
}


def select(*wanted: str) -> list[str]:
    """The experiments meant by names, papers and globs, in order and each once.

    A module ("package.module", "package.module:object") or a file ("my_figure.py") is someone's own
    experiment and is passed on as it is. A name that an installed package gives to one of its own
    (an entry point of the group "advlab.experiments") stands for its module. Without its paper a
    name is enough where only one paper has it.
    """
    chosen: dict[str, None] = {}
    for text in wanted:
        name = text.removesuffix("/")
        if name in EXPERIMENTS or _is_own(text):
            chosen[name] = None
            continue
        theirs = installed("advlab.experiments")
        if name in theirs:
            chosen[theirs[name].value] = None
            continue
        found = [known for known in EXPERIMENTS if fnmatchcase(known, name)]
        if len(same := [known for known in EXPERIMENTS if known.endswith(f"/{name}")]) == 1:
            found = same
        found = found or [known for known in EXPERIMENTS if known.startswith(f"{name}/")]
        if not found:
            raise AdvlabError("the name of an experiment", repr(text), _advice(name))
        chosen.update(dict.fromkeys(found))
    return list(chosen)


def _is_own(text: str) -> bool:
    return text.endswith(".py") or ("/" not in text and ("." in text or ":" in text))


def _advice(name: str) -> str:
    """Every paper's experiment of that name, or else those that are spelt alike."""
    short: dict[str, list[str]] = {}
    for known in EXPERIMENTS:
        short.setdefault(known.rpartition("/")[2], []).append(known)
    item = name.rpartition("/")[2]
    near = short.get(item) or [
        *get_close_matches(name, EXPERIMENTS, n=3),
        *(known for one in get_close_matches(item, short, n=3) for known in short[one]),
    ]
    if not near:
        return "`advlab list` shows the names"
    return f"did you mean {' or '.join(list(dict.fromkeys(near))[:5])}?"
