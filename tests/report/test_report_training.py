"""The page of one training: curves, bracket, and no stranger's text that runs."""

import polars as pl

from advlab.report.training import _curves, _line, render_training

EVIL = "<script>alert(1)</script>"


def about(**changes) -> dict:
    return {
        "plan": {"model": EVIL, "data": f"x{EVIL}.npz", "settings": [EVIL], "limit": None},
        "recipe": {"recipe": "pgd", "formula": f"loss {EVIL}", "citation": "Madry et al."},
        "settings": {"lr": 0.1, "attack": {"steps": 7}},
        "status": "finished",
        "reason": None,
        "best": {"epoch": 2.0, "validation_robust_error": 0.25},
        "versions": {"torch": "2"},
        "finished": "2026-01-01",
    } | changes


def log(**columns) -> pl.DataFrame:
    usual = {
        "stage": [EVIL, "adversarial"],
        "epoch": [1.0, 2.0],
        "lr": [0.1, 0.01],
        "objective": [1.5, 1.25],
        "train_clean_error": [0.2, 0.1],
        "validation_robust_error": [0.5, 0.25],
        "seconds": [61.0, 59.0],
    }
    return pl.DataFrame(usual | columns)


def test_no_text_of_a_stranger_becomes_code():
    evaluation = {
        "robust_error": 0.3,
        "certified_error": None,
        "clean_error": 0.1,
        "n": 10,
        "threat_words": EVIL,
    }
    page = render_training(
        about(status="stopped", reason=EVIL, evaluation=evaluation), log(**{"more": [EVIL, EVIL]})
    )
    assert EVIL not in page
    assert page.count("&lt;script&gt;alert(1)") >= 7
    assert "default-src 'none'" in page


def test_the_page_says_the_curves_the_kept_epoch_and_the_bracket():
    evaluation = {
        "robust_error": 0.3,
        "certified_error": 0.625,
        "clean_error": 0.1,
        "n": 10,
        "threat_words": "linf perturbations up to 8/255",
    }
    page = render_training(about(evaluation=evaluation), log(sharpness_validation=[3.0, 2.0]))
    for part in ("30.0&nbsp;%", "62.5&nbsp;%", "10 test examples", "epoch 2 were kept",
                 "Error after each epoch", "Sharpness on validation", "50.0&nbsp;%"):  # fmt: skip
        assert part in page, part
    assert "http://" not in page.split("<main>")[1].split("<footer>")[0]


def test_a_run_that_ended_before_its_first_epoch_has_a_page_too():
    page = render_training(about(status="diverged", reason="not finite", best=None), pl.DataFrame())
    assert "<b>diverged</b>: not finite" in page
    assert "Learning curves" not in page


def test_the_axis_of_epochs_ends_at_the_first_and_the_last_and_names_whole_ones():
    spec = _curves(log(), "error", "Error", None, None).to_dict()
    x = spec["layer"][0]["encoding"]["x"]
    assert x["scale"]["domain"] == [1.0, 2.0]
    assert x["axis"]["values"] == [1, 2]
    many = pl.DataFrame({"epoch": [0.5 * k for k in range(1, 201)], "lr": 0.1})
    found = _line(many, "lr", "Learning rate", "learning rate").to_dict()
    assert found["encoding"]["x"]["axis"]["values"] == list(range(1, 101, 17))
    assert found["encoding"]["y"]["title"] == "learning rate"
