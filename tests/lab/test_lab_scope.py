"""The scope of a verdict: assumptions that were reached, sizes, what was reduced, earlier looks."""

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
import toy_experiment as toy

from advlab import lab
from advlab.core.errors import AdvlabError
from advlab.lab.experiment import within_scope
from advlab.report import Assumption, Claims, Scope, theorem

TOY = lab.load(str(Path(toy.__file__)))
CLAIMS = {"mean": theorem("the mean square is 1", "large n")}


def decide(table: pl.DataFrame):
    return [Claims(CLAIMS).equal("mean", table["square"], 1.0, 0.2, what="mean square")]


def experiment(holds: bool | None, **about) -> lab.Experiment:
    large = Assumption(name="large n", condition="n >= 1000", reached=300.0, holds=holds)
    return replace(
        TOY,
        about=TOY.about.model_copy(update={"claims": CLAIMS, **about}),
        verdicts=decide,
        assumptions=lambda table: [large],
    )


@pytest.mark.parametrize(
    ("holds", "outcome"), [(True, "supported"), (None, "supported"), (False, "outside")]
)
def test_a_claim_is_outside_where_what_it_needs_does_not_hold(tmp_path, holds, outcome):
    (verdict,) = lab.run(experiment(holds), jobs=1, out=tmp_path).verdicts
    assert (verdict.outcome, verdict.kind) == (outcome, "theorem")
    assert verdict.measured is not None
    if outcome == "outside":
        assert "large n needs n >= 1000, reached 300" in verdict.note


def test_the_scope_says_sizes_what_was_reduced_and_how_often_it_was_looked_at(tmp_path):
    small = experiment(True, reduced={"laptop": "n 300 of 10,000"}, looks=2)
    (verdict,) = lab.run(small, jobs=1, out=tmp_path).verdicts
    assert verdict.scope.sizes == {"seeds": 4, "size": [200, 300]}
    assert (verdict.scope.reduced, verdict.scope.looks) == ("n 300 of 10,000", 2)
    assert [one.name for one in verdict.scope.assumptions] == ["large n"]


def test_each_look_has_seeds_of_its_own_and_smoke_runs_share_theirs():
    seeds = []
    for looks in (0, 1, 2):
        cases = experiment(True, looks=looks).cases("laptop", 100)
        seeds.append({seed for case in cases for seed in case.seeds})
        assert [case.seed for case in experiment(True, looks=looks).cases("smoke")] == [0, 2] * 2
    assert not seeds[0] & seeds[1]
    assert not seeds[1] & seeds[2]
    assert [len(one) for one in seeds] == [100] * 3


def test_a_verdict_on_some_of_the_runs_keeps_its_own_assumptions():
    inside = Assumption(name="large n", condition="n >= 1000", reached=2000.0, holds=True)
    (verdict,) = decide(pl.DataFrame({"square": [1.0, 1.01, 0.99, 1.0]}))
    own = verdict.model_copy(update={"scope": Scope(assumptions=[inside])})
    outer = Scope(assumptions=[inside.model_copy(update={"holds": False})], looks=1)
    found = within_scope(own, outer, ("large n",))
    assert (found.outcome, found.scope.looks) == ("supported", 1)
    assert within_scope(verdict, outer, ("large n",)).outcome == "outside"


def test_a_need_that_nobody_checks_is_refused():
    (verdict,) = decide(pl.DataFrame({"square": [1.0, 1.01, 0.99, 1.0]}))
    outer = Scope(assumptions=[Assumption(name="width", condition="m >= 1", holds=True)])
    with pytest.raises(AdvlabError, match="an assumption of mean: width; got large n"):
        within_scope(verdict, outer, ("large n",))
