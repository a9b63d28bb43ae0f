"""Figures 1 to 3: one training for three figures, held-out images choose, others are judged."""

import polars as pl
import pytest
import torch
from specimens_cgro_images import runs

from advlab import lab
from advlab.papers.cgro.experiments import fig1, fig2, fig3
from advlab.papers.cgro.experiments._parts import image_runs

SMALL = image_runs.Case(**{**image_runs.SMOKE, "epochs": 2})


@pytest.fixture(scope="module")
def computed() -> pl.DataFrame:
    return image_runs.compute(SMALL)


def test_rows_are_of_each_snapshot_part_and_radius(computed):
    accuracies = computed.filter(share=1.0)
    assert accuracies.height == 2 * 3
    assert (accuracies["robust"] <= accuracies["clean"]).all()
    assert (accuracies["robust_loss"] >= accuracies["loss"]).all()
    looked = computed.filter(pl.col("part") != "held-out").sort("part", "step", "share")
    for _, rows in looked.group_by("part", "step"):
        assert rows["sharp"].is_sorted()
        assert rows["rise"].is_sorted()
        assert (rows["sharp"] > 0).all()


def test_no_image_is_in_two_parts_and_seeds_have_their_own(monkeypatch):
    rows = torch.arange(2600).float().reshape(-1, 1, 1, 1).expand(-1, 1, 12, 12)
    pool = image_runs.Arrays(rows, torch.zeros(2600, dtype=torch.int64))
    monkeypatch.setattr(image_runs, "pixels", lambda data, split: pool)
    case = image_runs.Case(**{**image_runs.MNIST, "held": 300, "tested": 500})
    train, held, test = (
        [int(one) for one in part.x[:, 0, 0, 0]] for part in image_runs.images(case)
    )
    assert (len(set(train)), len(set(held)), len(set(test))) == (1000, 300, 500)
    assert not set(train) & set(held)
    assert min(test) >= image_runs.TRIALS
    other = image_runs.images(case.model_copy(update={"seed": 1}))[0]
    assert set(train) != {int(one) for one in other.x[:, 0, 0, 0]}


def test_three_figures_train_once(tmp_path):
    names = ("cgro/fig1", "cgro/fig2", "cgro/fig3")
    codes = {lab.load(name).code("laptop") for name in names}
    assert len(codes) == 1
    keys = [{case.key() for case in lab.load(name).cases("laptop")} for name in names]
    assert keys[2] <= keys[0]
    assert keys[2] <= keys[1]
    first = lab.run(names[0], scale="smoke", seeds=1, jobs=1, out=tmp_path)
    shared = tmp_path / "cgro" / "image_runs"
    trained = {one.parent.name: one.read_bytes() for one in shared.glob("*/run.json")}
    assert len(trained) == 1
    second = lab.run(names[1], scale="smoke", seeds=1, jobs=1, out=tmp_path)
    assert {one.parent.name: one.read_bytes() for one in shared.glob("*/run.json")} == trained
    assert first.runs.keys() == second.runs.keys() == trained.keys()
    assert first.failed == second.failed == []
    assert {one.outcome for one in [*first.verdicts, *second.verdicts]} == {"undecided"}


def test_the_peak_is_chosen_on_held_out_images_and_judged_on_others():
    table = runs("cifar10", 1000, 2)
    # Held-out images peak at epoch 16 whatever the test images do.
    peak = pl.when(pl.col("step") == 16).then(0.9).otherwise(0.1)
    table = table.with_columns(
        robust=pl.when(pl.col("part") == "held-out").then(peak).otherwise("robust")
    )
    found = fig1.falls(table)
    assert found["peak"].to_list() == [16, 16]
    test = table.filter(part="test", share=1.0, seed=1)
    wanted = test.filter(step=32)["robust"].item() - test.filter(step=16)["robust"].item()
    assert found.filter(seed=1)["robust test"].item() == pytest.approx(wanted)


@pytest.mark.parametrize("module", [fig1, fig2, fig3])
def test_charts_can_be_drawn(module):
    table = pl.concat([runs(data, 1000, 3) for data in ("mnist", "cifar10")])
    shown = table if module is fig2 else table.filter(data="cifar10")
    assert module.figure(shown).to_dict()["concat"]


def test_gap_and_flatness_are_paired_by_seed_and_epoch():
    rows = fig3.paired(runs("cifar10", 1000, 2))
    assert rows.height == 2 * 7
    late = rows.filter(step=32)
    assert (late["everywhere"] > late["local"]).all()
    assert (late["gap"] > 3).all()
