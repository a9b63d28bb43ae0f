"""The trainings behind the figures on images: phases follow each other, and nothing else moves."""

from typing import Any

import numpy as np
import pytest
import torch

from advlab import lab
from advlab.core.errors import AdvlabError
from advlab.measure.dictionaries import ConvolutionalDictionary
from advlab.papers.purification.data.images import image_parts
from advlab.papers.purification.experiments import fig11
from advlab.papers.purification.experiments._parts.image_reconstructions import outside_span
from advlab.papers.purification.experiments._parts.image_runs import (
    ImageSettings,
    Trainings,
    start_network,
    state_of,
)
from advlab.papers.purification.experiments._parts.image_scales import SMOKE

TINY: dict[str, Any] = SMOKE | {"images": 64, "tested": 16, "clean_epochs": 1}
LAYER = "model.layers.conv4"


@pytest.fixture(scope="module")
def trainings() -> Trainings:
    return Trainings(ImageSettings(**TINY, seed=3))


def test_each_phase_starts_where_the_one_before_it_ended(trainings):
    attacker = trainings.settings.attacker
    start = start_network(trainings.settings).get_parameter("model.layers.conv1.weight")
    clean = trainings.run("clean")
    assert np.array_equal(clean.arrays["filters"][0], start.detach().numpy())
    for later in ((attacker,), ("clean",)):
        run = trainings.run("clean", *later)
        assert np.array_equal(run.arrays["filters"][0], clean.arrays["filters"][-1])
        assert not np.array_equal(run.arrays["filters"][-1], clean.arrays["filters"][-1])
    random = trainings.run(attacker)
    assert np.array_equal(random.arrays["filters"][0], start.detach().numpy())


def test_perturbations_are_in_the_ball_and_accuracies_are_in_order(trainings):
    attacker = trainings.settings.attacker
    run, (images, _) = trainings.run("clean", attacker), trainings.held_out
    delta = trainings.perturbations("clean", attacker)
    assert float(delta.abs().max()) <= 8 / 255 + 1e-6
    moved = images[: len(delta)] + delta
    assert float(moved.min()) >= -1e-6
    assert float(moved.max()) <= 1 + 1e-6
    rows = run.table.filter(part="accuracy")
    assert (rows["robust"] <= rows["clean"]).all()


def test_layers_below_stand_still_and_the_rest_starts_anew(trainings):
    attacker = trainings.settings.attacker
    history = (attacker, f"clean above {LAYER}")
    first, second = state_of(trainings.run(attacker)), state_of(trainings.run(*history))
    third = state_of(trainings.run(*history, f"{attacker} above {LAYER}"))
    below = [name for name in first if any(f"{kind}{n}." in name for kind in ("conv", "norm")
                                           for n in (1, 2, 3))]  # fmt: skip
    assert len(below) == 3 * 7
    for name in below:
        assert torch.equal(first[name], second[name]), name
        assert torch.equal(first[name], third[name]), name
    weight = f"{LAYER}.weight"
    case = fig11.Case(**trainings.settings.of_runs())
    anew = fig11._drawn_anew(case, trainings, history, LAYER).get_parameter(weight)
    assert not torch.allclose(anew, first[weight])
    # One epoch at a small rate: still nearer to where it was drawn than to the first stage.
    assert (second[weight] - anew).norm() < (second[weight] - first[weight]).norm()
    assert not torch.equal(second[weight], third[weight])


def test_what_is_outside_of_the_span_is_the_rest_of_least_squares():
    rng = torch.Generator().manual_seed(0)
    few = ConvolutionalDictionary(torch.randn(2, 3, 5, 5, generator=rng), (4, 4), (2, 2))
    x = torch.randn(3, 3, 8, 8, generator=rng)
    W = few.for_images(x)
    codes = torch.eye(2 * 2 * 2).reshape(8, 2, 2, 2)
    matrix = W.synthesize(codes).flatten(1).T.double().numpy()
    flat = x.flatten(1).T.double().numpy()
    best = matrix @ np.linalg.lstsq(matrix, flat, rcond=None)[0]
    expected = ((flat - best) ** 2).sum(0) / (flat**2).sum(0)
    assert np.allclose(outside_span(few, x, steps=40).numpy(), expected, atol=1e-8)
    assert expected.min() > 0.5


def test_stand_in_images_are_images_of_ten_classes_and_parts_differ():
    train, held_out = image_parts("stand-in", 40, 20, seed=0)
    assert train.x.shape == (40, 3, 32, 32)
    assert set(train.y.tolist()) == set(range(10))
    assert 0 <= float(train.x.min()) < float(train.x.max()) <= 1
    assert not torch.equal(train.x[:20], held_out.x)


@pytest.mark.parametrize("name", ["purification/fig1", "purification/table1"])
def test_without_the_images_one_line_says_how_to_get_them_and_nothing_is_written(
    name, tmp_path, monkeypatch
):
    monkeypatch.setenv("ADVLAB_DATA", str(tmp_path / "empty"))
    with pytest.raises(AdvlabError, match="advlab data fetch cifar10") as error:
        lab.run(name, scale="laptop", out=tmp_path / "runs")
    assert "\n" not in str(error.value)
    assert not (tmp_path / "runs").exists()
