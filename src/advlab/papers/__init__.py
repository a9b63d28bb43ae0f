"""One folder a paper, one file a figure or table; the names below run them."""

from difflib import get_close_matches
from fnmatch import fnmatchcase

from ..errors import AdvlabError

EXPERIMENTS: dict[str, str] = {
    "benign/lemmas": "advlab.papers.benign.lemmas",
    "benign/fig1": "advlab.papers.benign.fig1",
    "benign/fig2": "advlab.papers.benign.fig2",
    "benign/fig3": "advlab.papers.benign.fig3",
    "benign/fig4": "advlab.papers.benign.fig4",
    "benign/fig5": "advlab.papers.benign.fig5",
    "benign/fig6": "advlab.papers.benign.fig6",
    "convergence/a1": "advlab.papers.convergence.a1",
    "convergence/a2": "advlab.papers.convergence.a2",
    "convergence/a3": "advlab.papers.convergence.a3",
    "convergence/a4": "advlab.papers.convergence.a4",
    "convergence/a4b": "advlab.papers.convergence.a4b",
    "convergence/a5": "advlab.papers.convergence.a5",
    "convergence/a6": "advlab.papers.convergence.a6",
    "cgro/s1": "advlab.papers.cgro.s1",
    "cgro/s2": "advlab.papers.cgro.s2",
    "cgro/s3": "advlab.papers.cgro.s3",
    "cgro/s4": "advlab.papers.cgro.s4",
    "cgro/s5": "advlab.papers.cgro.s5",
    "cgro/s6": "advlab.papers.cgro.s6",
    "cgro/s7": "advlab.papers.cgro.s7",
    "cgro/s8": "advlab.papers.cgro.s8",
    "cgro/s9": "advlab.papers.cgro.s9",
    "generalization/fig1": "advlab.papers.generalization.fig1",
    "generalization/fig3": "advlab.papers.generalization.fig3",
    "generalization/fig4": "advlab.papers.generalization.fig4",
    "generalization/fig5": "advlab.papers.generalization.fig5",
    "generalization/fig6": "advlab.papers.generalization.fig6",
    "generalization/fig9": "advlab.papers.generalization.fig9",
    "generalization/fig10": "advlab.papers.generalization.fig10",
    "generalization/fig11": "advlab.papers.generalization.fig11",
    "generalization/fig12": "advlab.papers.generalization.fig12",
    "generalization/fig13": "advlab.papers.generalization.fig13",
    "generalization/lasso": "advlab.papers.generalization.lasso",
    "generalization/linf": "advlab.papers.generalization.linf",
    "generalization/closed_forms": "advlab.papers.generalization.closed_forms",
    "generalization/surrogate_limit": "advlab.papers.generalization.surrogate_limit",
    "purification/syn_a": "advlab.papers.purification.syn_a",
    "purification/syn_b": "advlab.papers.purification.syn_b",
    "purification/syn_c": "advlab.papers.purification.syn_c",
    "purification/syn_d": "advlab.papers.purification.syn_d",
    "purification/tickets": "advlab.papers.purification.tickets",
    "purification/trends": "advlab.papers.purification.trends",
    "purification/ntk": "advlab.papers.purification.ntk",
    "purification/linf": "advlab.papers.purification.linf",
}


def select(*wanted: str) -> list[str]:
    """The experiments meant by names, papers and globs, in order and each once.

    A module ("package.module", "package.module:object") or a file ("my_figure.py") is someone's own
    experiment and is passed on as it is.
    """
    chosen: dict[str, None] = {}
    for text in wanted:
        name = text.removesuffix("/")
        if name in EXPERIMENTS or _is_own(text):
            chosen[name] = None
            continue
        found = [known for known in EXPERIMENTS if fnmatchcase(known, name)]
        found = found or [known for known in EXPERIMENTS if known.startswith(f"{name}/")]
        if not found:
            raise AdvlabError("the name of an experiment", repr(text), _advice(name))
        chosen.update(dict.fromkeys(found))
    return list(chosen)


def _is_own(text: str) -> bool:
    return text.endswith(".py") or ("/" not in text and ("." in text or ":" in text))


def _advice(name: str) -> str:
    short = {known.rpartition("/")[2]: known for known in EXPERIMENTS}
    near = get_close_matches(name, EXPERIMENTS, n=3)
    near += [short[item] for item in get_close_matches(name.rpartition("/")[2], short, n=3)]
    if not near:
        return "`advlab list` shows the names"
    return f"did you mean {' or '.join(dict.fromkeys(near))}?"
