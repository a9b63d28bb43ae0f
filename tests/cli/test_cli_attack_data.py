"""advlab attack on folders of images, words, many labels and numbers."""

import json

import numpy as np
import pytest

from advlab.cli import main
from advlab.lab.verify import verify

NETS = """
import numpy as np
import torch
from torch import nn

torch.manual_seed(0)
images = nn.Sequential(nn.Flatten(), nn.Linear(3 * 4 * 4, 2))
line = nn.Linear(4, 1)
sigmoid = nn.Sequential(line, nn.Sigmoid())
tags = nn.Linear(4, 4)


class Majority:
    classes_ = np.array(["no", "yes"])

    def predict(self, x):
        return self.classes_[(x.sum(1) > 2).astype(int)]


majority = Majority()
"""
QUICK = ("--eps", "0.1", "--attack", "fast", "--no-checks", "--json")


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nets_of_data.py").write_text(NETS)
    x = np.random.default_rng(0).random((20, 4)).astype(np.float32)
    np.savez("words.npz", x=x, y=np.where(x.sum(1) > 2, "yes", "no"))
    np.savez("tags.npz", x=x, y=(x > 0.5).astype(np.int64))
    np.savez("numbers.npz", x=x, y=x.sum(1))
    return tmp_path


def called(capsys, *arguments: str) -> tuple[int, dict, str]:
    with pytest.raises(SystemExit) as stop:
        main(["attack", *arguments])
    captured = capsys.readouterr()
    about = json.loads(captured.out) if captured.out else {}
    return stop.value.code or 0, about, captured.err


def test_a_folder_of_images(here, capsys):
    image = pytest.importorskip("PIL.Image")
    rng = np.random.default_rng(0)
    for name in ("cat", "dog"):
        (here / "photos" / name).mkdir(parents=True)
        for number in range(6):
            pixels = rng.integers(0, 256, (4, 4, 3), dtype=np.uint8)
            image.fromarray(pixels).save(here / "photos" / name / f"{number}.png")
    command = ("nets_of_data.py:images", "photos", *QUICK, "--n", "8", "--out", "found")
    code, about, told = called(capsys, *command, "--save", "adv.npz")
    assert code == 0, told
    assert about["n"] == 8
    assert about["box"] == [0.0, 1.0]
    assert len(about["broken_by"]) == 8
    with np.load("adv.npz") as saved:
        assert saved["x"].shape == (8, 3, 4, 4)
        assert saved["rows"].tolist() == about["rows"]
    assert [one.problems for one in verify("found")] == [[]]
    (here / "photos" / "cat" / "0.png").write_bytes((here / "photos/dog/0.png").read_bytes())
    (here / "photos" / "dog" / "1.png").write_bytes((here / "photos/dog/0.png").read_bytes())
    (problem,) = verify("found")[0].problems
    assert "made from other data" in problem.why


def test_words_many_labels_and_numbers(here, capsys):
    code, about, told = called(capsys, "nets_of_data.py:sigmoid", "words.npz", *QUICK)
    assert code == 0, told
    assert "one probability per example, judged at 0.5; labels 'no' is class 0" in about["reading"]
    other = ("--classes", "yes,no")
    code, turned, _ = called(capsys, "nets_of_data.py:sigmoid", "words.npz", *QUICK, *other)
    assert turned["clean_error"] == pytest.approx(1 - about["clean_error"])
    code, about, told = called(capsys, "nets_of_data.py:tags", "tags.npz", *QUICK)
    assert code == 0, told
    assert about["reading"].startswith("4 labels per example")
    code, about, told = called(capsys, "nets_of_data.py:line", "numbers.npz", *QUICK)
    assert code == 0, told
    assert about["robust_error"] is None
    assert about["clean_loss"] < about["robust_loss"] <= about["certified_loss"] * 1.001
    page = (here / about["folder"] / "report.html").read_text()
    assert "Robust loss between" in page
    code, about, told = called(capsys, "nets_of_data.py:majority", "words.npz", *QUICK)
    assert code == 0, told
    assert about["clean_error"] == 0
    assert "Majority.predict" in about["reading"]


def test_what_does_not_fit_is_one_line(here, capsys):
    for words, says in {
        ("nets_of_data.py:sigmoid", "words.npz", "--output", "sigmoid"): "output as one of",
        ("nets_of_data.py:sigmoid", "words.npz", "--classes", "a,b"): "labels among",
        ("nets_of_data.py:sigmoid", "words.npz", "--classes", "a"): "two or more different",
        ("nets_of_data.py:line", "tags.npz"): "labels|one number|y of shape",
        ("nets_of_data.py:line", "nowhere"): "a folder of images",
        ("nets_of_data.py:line", "."): "one folder per class|Pillow",
    }.items():
        code, _, told = called(capsys, *words, *QUICK)
        lines = [line for line in told.splitlines() if not line.startswith("note:")]
        assert code == 2, told
        assert len(lines) == 1
        assert any(part in lines[0] for part in says.split("|")), lines
