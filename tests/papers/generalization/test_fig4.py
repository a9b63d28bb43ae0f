"""Figure 4 at smoke scale on the stand-in and on files of MNIST's format, verdicts both ways."""

import numpy as np
import polars as pl
import pytest
import torch

from advlab import lab
from advlab.core.randomness import generator
from advlab.data import zeros_and_ones
from advlab.papers.generalization.experiments import fig4
from advlab.papers.generalization.experiments._parts.penalty_runs import samples


def table(
    gain=(3.0, 2.0, 4.0), cost=(0.1, -0.2, 0.0), source="mnist", fitted=100.0
) -> pl.DataFrame:
    noise = 0.1 * np.random.default_rng(0).standard_normal((2, 10))
    rows = []
    for i, n in enumerate((10, 50, 200)):
        for seed in range(10):
            row = {"n": n, "seed": seed, "source": source}
            row |= {"train_standard": 100.0, "train_adversarial": fitted}
            rows.append({**row, "penalty": 0.0, "standard": 99.0, "adversarial": 80.0})
            better = {"standard": 99 + cost[i] + noise[0, seed]}
            better["adversarial"] = 80 + gain[i] + noise[1, seed]
            rows.append({**row, "penalty": 0.001, **better})
    return pl.DataFrame(rows)


def outcomes(rows: pl.DataFrame) -> list[str]:
    found = fig4.verdicts(rows)
    assert [verdict.id for verdict in found] == list(fig4.ABOUT.claims)
    return [verdict.outcome for verdict in found]


def test_verdicts_support_a_table_in_which_the_claims_hold():
    assert outcomes(table()) == ["supported"] * 3


def test_a_loss_at_one_n_is_forgiven_and_a_loss_at_most_n_is_not():
    assert outcomes(table(gain=(3.0, -2.0, 4.0))) == ["supported"] * 3
    assert outcomes(table(gain=(3.0, -2.0, -4.0))) == ["refuted", "supported", "supported"]


def test_two_points_of_standard_accuracy_at_one_n_are_too_many():
    assert outcomes(table(cost=(0.0, -2.0, 0.0))) == ["supported", "refuted", "supported"]


def test_training_accuracy_below_the_printed_100_refutes():
    assert outcomes(table(fitted=99.0)) == ["supported", "supported", "refuted"]


@pytest.mark.parametrize(("source", "words"), [("mnist", "MNIST 0"), ("stand-in", "stand-in")])
def test_figure_and_verdicts_say_which_data_they_are_about(source, words):
    rows = table(source=source)
    assert words in fig4.figure(rows).to_dict()["title"]
    assert all(words in verdict.note for verdict in fig4.verdicts(rows))


def test_the_stand_in_is_two_classes_of_images_that_the_attack_cannot_swap():
    x, y = zeros_and_ones.blobs(400, generator("blobs"))
    assert x.shape == (400, 784)
    assert float(x.min()) >= 0
    assert float(x.max()) <= 1
    assert 0.4 < float(y.double().mean()) < 0.6
    centres = [x[y == label].mean(0) for label in (0, 1)]
    assert float((centres[0] - centres[1]).norm()) > 2 * 3
    # The nearest centre is nearly always right, so the classes can be told apart.
    nearest = torch.stack([(x - centre).norm(dim=1) for centre in centres]).argmin(0)
    assert float((nearest == y).double().mean()) > 0.98


def test_a_heavy_penalty_unlearns_and_samples_do_not_depend_on_it():
    cases = [
        fig4.Case(n=20, penalty=lam, source="stand-in", width=16, steps=60, tested=200, radius=1.0)
        for lam in (0.0, 1.0)
    ]
    drawn = [samples(case) for case in cases]
    assert torch.equal(drawn[0][0], drawn[1][0])
    without, heavy = (fig4.compute(case)["standard"].item() for case in cases)
    assert without > 95
    assert heavy < 80


def test_attacked_accuracy_is_never_above_the_standard_one():
    case = fig4.Case(
        n=20, penalty=0.0, source="stand-in", width=8, steps=20, tested=40, replicates=2
    )
    rows = fig4.compute(case)
    assert (rows["adversarial"] <= rows["standard"]).all()
    assert (rows["train_adversarial"] <= rows["train_standard"]).all()


@pytest.mark.parametrize("source", ["mnist", "stand-in"])
def test_smoke_runs_end_to_end(source, tmp_path, small_mnist, monkeypatch):
    monkeypatch.setenv("ADVLAB_DATA", str(small_mnist if source == "mnist" else tmp_path))
    zeros_and_ones.digits.cache_clear()
    cases = fig4.recipe("smoke")
    assert {case.source for case in cases} == {source}
    if source == "mnist":  # the small files have too few zeros and ones for the recipe's sizes
        monkeypatch.setattr(fig4, "recipe", lambda scale, seeds: [_few(case) for case in cases])
    result = lab.run("generalization/fig4", scale="smoke", jobs=1, out=tmp_path / "runs")
    zeros_and_ones.digits.cache_clear()
    assert result.failed == []
    assert {verdict.outcome for verdict in result.verdicts} == {"undecided"}
    assert zeros_and_ones.TITLES[source] in result.chart["title"]


def _few(case: fig4.Case) -> fig4.Case:
    return case.model_copy(update={"n": case.n // 5, "tested": 4})
