"""Folders of images: the pixels that were written, one folder per class."""

import numpy as np
import pytest
import torch
from torch import nn

import advlab
from advlab.core.errors import AdvlabError
from advlab.data import ImageFolder
from advlab.threats import Ball

Image = pytest.importorskip("PIL.Image")


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    for name in ("dog", "cat"):
        (tmp_path / name / "deep").mkdir(parents=True)
        for number in range(3):
            pixels = rng.integers(0, 256, (6, 5, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(tmp_path / name / "deep" / f"{number}.png")
    (tmp_path / "empty").mkdir()
    (tmp_path / "dog" / "notes.txt").write_text("no image")
    return tmp_path


def net() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(90, 2))


def test_pixels_and_classes_are_those_that_were_written(folder):
    data = ImageFolder(folder)
    assert data.classes == ("cat", "dog")
    assert data.targets.tolist() == [0, 0, 0, 1, 1, 1]
    x, label = data[4]
    written = np.asarray(Image.open(folder / "dog" / "deep" / "1.png"))
    assert label == 1
    assert x.shape == (3, 6, 5)
    assert np.array_equal((x * 255).round().numpy(), written.transpose(2, 0, 1))


def test_a_folder_is_attacked_by_its_name(folder):
    data = ImageFolder(folder)
    x = torch.stack([image for image, _ in data])
    ball = Ball("linf", 8 / 255, box=(0, 1))
    found = advlab.evaluate(net(), str(folder), ball=ball, attack="fast")
    same = advlab.evaluate(net(), x, data.targets, ball, "fast")
    assert found.broken_by == same.broken_by
    assert torch.equal(
        advlab.attack(net(), folder, eps=8 / 255, quiet=True).x,
        advlab.attack(net(), x, data.targets, eps=8 / 255, quiet=True).x,
    )


def test_grey_images_other_sizes_and_jpeg(folder):
    grey = np.random.default_rng(1).integers(0, 256, (12, 10), dtype=np.uint8)
    Image.fromarray(grey).save(folder / "cat" / "grey.jpeg")
    data = ImageFolder(folder, size=(6, 5))
    assert data[len(data) - 1][0].shape == (3, 6, 5)
    with pytest.raises(AdvlabError, match=r"images of one shape, \(3, 6, 5\).*\(1, 6, 5\)"):
        [data[row] for row in range(len(data))]
    with pytest.raises(AdvlabError, match="give ImageFolder a size"):
        advlab.evaluate(net(), folder, ball=Ball("linf", 0.1))


def test_what_is_no_folder_of_images_is_refused(folder, tmp_path):
    (folder / "cat" / "bad.png").write_bytes(b"\x89PNG\r\n\x1a\nnothing")
    with pytest.raises(AdvlabError, match=r"bad\.png as a PNG or JPEG image"):
        advlab.evaluate(net(), folder, ball=Ball("linf", 0.1))
    with pytest.raises(AdvlabError, match="which is no folder"):
        ImageFolder(folder / "nowhere")
    with pytest.raises(AdvlabError, match="where no folder has any"):
        ImageFolder(folder / "empty")
    with pytest.raises(AdvlabError, match=r"size as \(height, width\)"):
        ImageFolder(folder, size=32)


def test_pictures_of_another_library(folder):
    """Examples as other libraries of data have them: dicts of pictures and labels."""
    files = ImageFolder(folder).files
    rows = [{"image": Image.open(one), "label": n % 2} for n, one in enumerate(files)]
    found = advlab.evaluate(net(), rows, ball=Ball("linf", 0.1), attack="fast", checks=False)
    assert found.n == 6
