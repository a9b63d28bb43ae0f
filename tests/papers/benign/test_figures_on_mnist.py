"""Figures 4, 5 and 6 on made-up tables, true and false, on the stand-in and on small files."""

import polars as pl
import pytest
import torch
from specimens_benign import curves6, map4, map5

from advlab import lab
from advlab.core.errors import AdvlabError
from advlab.core.randomness import generator
from advlab.data import mnist, zeros_and_ones
from advlab.papers.benign.experiments import fig4, fig5, fig6
from advlab.papers.benign.experiments._parts import mnist_runs
from advlab.report import Verdict
from advlab.report.figure import svg

FIGURES = {"fig4": fig4, "fig5": fig5, "fig6": fig6}


def small(**other) -> mnist_runs.Case:
    settings = {"mu_norm": 5.0, "d": 49, "ratio": 0.1, "source": "stand-in", "n": 20, "width": 16}
    return mnist_runs.Case(**{**settings, "steps": 30, "tested": 80, "replicates": 2, **other})


def outcomes(verdicts: list[Verdict], about: lab.About) -> list[str]:
    assert [verdict.id for verdict in verdicts] == list(about.claims)
    return [verdict.outcome for verdict in verdicts]


@pytest.fixture
def files(monkeypatch, small_mnist, tmp_path):
    """Chooses between files of MNIST's format and none."""

    def choose(source: str) -> None:
        monkeypatch.setenv("ADVLAB_DATA", str(small_mnist if source == "mnist" else tmp_path))
        zeros_and_ones.digits.cache_clear()

    yield choose
    zeros_and_ones.digits.cache_clear()


# Data and runs


@pytest.mark.parametrize("side", [5, 28, 32])
def test_vectors_are_those_of_the_pair(side, files):
    files("mnist")
    case = small(source="mnist", d=side**2, mu_norm=3.0)
    mine = mnist_runs._vectors(case, "train", 7, generator("images"))
    x, y = mnist.pair((0, 1), side=side, norm=3.0, n=7, rng=generator("images"))
    assert torch.equal(mine.x[0], x)
    assert torch.equal(mine.y[0], y)


def test_a_run_learns_the_stand_in_and_attacks_only_hurt():
    rows = mnist_runs.compute(small(steps=200, measured_at=(0, 50), tested=200))
    assert rows["step"].unique().sort().to_list() == [0, 50, 200]
    last = rows.filter(step=200)
    assert (last["clean_accuracy"] > 0.95).all()
    assert (last["loss"] < 0.3 * rows.filter(step=0)["loss"]).all()
    assert (rows["robust_error"] >= rows["clean_error"]).all()
    assert ((rows["robust_error"] + rows["robust_accuracy"] - 1).abs() < 1e-12).all()


def test_without_an_attack_robust_errors_are_clean_errors():
    rows = mnist_runs.compute(small(ratio=0.0, measured_at=(1, 5)))
    assert rows["robust_error"].to_list() == rows["clean_error"].to_list()


def test_a_seed_gives_the_same_numbers_alone_and_in_company():
    both = mnist_runs.compute(small()).filter(seed=1)
    alone = mnist_runs.compute(small(seed=1, replicates=1))
    assert both["robust_error"].to_list() == alone["robust_error"].to_list()
    assert both["loss"].to_list() == pytest.approx(alone["loss"].to_list(), rel=1e-11)


def test_a_last_bit_does_not_change_what_is_measured(monkeypatch):
    """Kernels and stacks round differently; in float32 stacks moved a loss by 0.3 %."""
    case = small(d=100, ratio=0.4, width=100, steps=250, tested=200)
    vectors, plain = mnist_runs._vectors, mnist_runs.compute(case)

    def rounded_otherwise(*args):
        x, y = vectors(*args)
        return mnist_runs.LabelledStack(x * (1 + 2**-52), y)

    monkeypatch.setattr(mnist_runs, "_vectors", rounded_otherwise)
    again = mnist_runs.compute(case)
    assert plain["loss"].to_list() == pytest.approx(again["loss"].to_list(), rel=1e-9)
    assert plain["robust_error"].to_list() == again["robust_error"].to_list()


def test_images_are_no_mixture():
    rows = mnist_runs.compute(small(steps=3)).with_columns(
        mu_norm=pl.lit(5.0), d=pl.lit(49), ratio=pl.lit(0.1), beta=pl.lit(0.0), n=pl.lit(20),
        width=pl.lit(16),
    )  # fmt: skip
    found = {one.name: one.holds for one in fig5.assumptions(rows)}
    assert found == {
        "Assumption 1": False, "step size": False, "noisy mixture": False, "good run": None
    }  # fmt: skip


def test_labels_are_never_flipped():
    with pytest.raises(ValueError, match="beta"):
        small(beta=0.1)


@pytest.mark.parametrize("source", ["mnist", "stand-in"])
@pytest.mark.parametrize("name", FIGURES)
def test_smoke_runs_say_which_data_they_are_about(name, source, files, tmp_path, monkeypatch):
    files(source)
    module = FIGURES[name]
    cases = module.recipe("smoke")
    assert {case.source for case in cases} == {source}
    # The small files have too few zeros and ones for the recipe's sizes.
    few = {"n": 6, "tested": 4, "replicates": 2, "steps": 3, "measured_at": (1,)}
    fewer = [case.model_copy(update=few) for case in cases]
    monkeypatch.setattr(module, "recipe", lambda scale, seeds: fewer)
    result = lab.run(f"benign/{name}", scale="smoke", jobs=1, out=tmp_path / "runs")
    assert result.failed == []
    assert {verdict.outcome for verdict in result.verdicts} == {"undecided"}
    for verdict in result.verdicts:
        assert zeros_and_ones.TITLES[source] in verdict.note
        assert "lower bound" in verdict.note
    assert zeros_and_ones.TITLES[source] in str(result.chart["title"])


@pytest.mark.parametrize("name", FIGURES)
def test_without_mnist_nothing_is_decided_on_blobs(name, files, tmp_path):
    files("stand-in")
    with pytest.raises(AdvlabError, match="advlab data fetch mnist") as refused:
        lab.run(f"benign/{name}", scale="laptop", jobs=1, out=tmp_path / "runs")
    assert "\n" not in str(refused.value)
    assert {case.source for case in FIGURES[name].recipe("laptop")} == {"mnist"}


MAPS = {"fig4": (fig4, map4(4.0, 2.0)), "fig5": (fig5, map5(-0.2))}


@pytest.mark.parametrize(("module", "table"), MAPS.values(), ids=MAPS)
def test_a_map_without_contours_is_drawn(module, table):
    flat = table.with_columns(pl.lit(0.6).alias(name) for name in table.columns if "acc" in name)
    assert svg(module.figure(flat).to_dict()).startswith("<svg")


@pytest.mark.parametrize("module", FIGURES.values(), ids=FIGURES)
def test_the_paper_scale_is_the_papers(module):
    cases = module.recipe("paper")
    settings = {(case.mu_norm, case.d, case.ratio) for case in cases}
    count, seeds = {fig4: (160, 10), fig5: (72, 5), fig6: (10, 5)}[module]
    assert len(settings) == count
    assert sum(case.replicates for case in cases) == count * seeds
    assert {(case.n, case.width, case.steps, case.tested, case.beta) for case in cases} == {
        (100, 1000, 1000, 2115, 0.0)
    }


# Verdicts


def decided4(table: pl.DataFrame) -> list[str]:
    return outcomes(fig4.verdicts(table), fig4.ABOUT)


def test_figure_4_supports_the_papers_exponents():
    assert decided4(map4(clean=4, robust=2)) == ["supported"] * 5


def test_figure_4_refutes_other_exponents_each_by_itself():
    yes, no = "supported", "refuted"
    assert decided4(map4(clean=2.2, robust=2)) == [yes, yes, no, yes, yes]
    assert decided4(map4(clean=4, robust=3)) == [yes, yes, yes, no, yes]
    assert decided4(map4(clean=3.7, robust=4.2)) == [yes, yes, yes, no, no]


def test_figure_4_refutes_accuracies_that_fall_with_the_signal():
    assert decided4(map4(clean=4, robust=2, rising=False))[:2] == ["refuted", "refuted"]


def test_figure_4_does_not_decide_exponents_without_a_transition():
    flat = map4(clean=4, robust=2).with_columns(clean_accuracy=pl.lit(0.99))
    assert decided4(flat) == ["refuted", "supported", "undecided", "supported", "undecided"]


@pytest.mark.parametrize(
    ("slope", "noise", "outcome"),
    [(-0.05, 0.002, "supported"), (0.05, 0.002, "refuted"), (0.0, 0.01, "refuted")],
)
def test_figure_5_is_decided_by_how_contours_turn(slope, noise, outcome):
    assert outcomes(fig5.verdicts(map5(slope, noise)), fig5.ABOUT) == [outcome]


def test_figure_5_is_undecided_where_a_contour_is_missing():
    high = map5(-0.05).with_columns(0.2 + 0.8 * pl.col("robust_accuracy"))
    assert outcomes(fig5.verdicts(high.filter(ratio=0.05)), fig5.ABOUT) == ["undecided"]


def decided6(table: pl.DataFrame) -> list[str]:
    return outcomes(fig6.verdicts(table), fig6.ABOUT)


def test_figure_6_supports_a_table_in_which_both_go_to_zero():
    assert decided6(curves6()) == ["supported", "supported"]


def test_figure_6_refutes_a_loss_or_an_error_that_stays_in_one_setting():
    assert decided6(curves6(robust_error=0.05)) == ["supported", "refuted"]
    assert decided6(curves6(loss=0.02)) == ["refuted", "supported"]


def test_figure_6_has_each_column_of_the_papers_settings():
    found = {name: fig6._column(curves6(), name)[name].unique().sort() for name in fig6.COLUMNS}
    assert found["mu_norm"].to_list() == [3, 5, 7, 10]
    assert found["d"].to_list() == [289, 400, 784, 1024]
    assert found["ratio"].to_list() == [0.05, 0.1, 0.15, 0.2]
