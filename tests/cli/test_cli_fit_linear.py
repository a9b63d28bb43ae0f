"""advlab fit-linear: tables in, a model with its certificate and a report out."""

import json

import numpy as np
import polars as pl
import pytest

from advlab.cli import main
from advlab.linear import AdversarialRegressor


def called(*arguments) -> int:
    with pytest.raises(SystemExit) as left:
        main([str(one) for one in arguments])
    return left.value.code or 0


@pytest.fixture
def table() -> pl.DataFrame:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 3)) * [1.0, 10.0, 0.1]
    y = x[:, 0] - 0.1 * x[:, 1] + 0.5 * rng.normal(size=60)
    return pl.DataFrame({"a": x[:, 0], "b": x[:, 1], "c": x[:, 2], "price": y})


@pytest.mark.parametrize("kind", ["csv", "parquet", "npz"])
def test_each_kind_of_file_gives_the_estimators_model(table, kind, tmp_path, capsys):
    path = tmp_path / f"data.{kind}"
    x, y = table.drop("price").to_numpy(), table["price"].to_numpy()
    if kind == "npz":
        np.savez(path, x=x, price=y)
    else:
        getattr(table, f"write_{kind}")(path)
    code = called(
        "fit-linear", path, "--target", "price", "--eps", 0.1, "--out", tmp_path, "--json"
    )
    assert code == 0
    about = json.loads(capsys.readouterr().out)
    model = AdversarialRegressor(eps=0.1, scales="std").fit(x, y)
    np.testing.assert_allclose(about["coef"][0], model.coef_, rtol=1e-6)
    assert about["gap"] <= 1e-8
    page = (tmp_path / "report.html").read_text()
    assert "Relative duality gap" in page
    assert page.count('<div class="chart"') == 3
    assert page.count('<script type="application/gzip">') == page.count("<noscript><svg") == 3
    at_fit = [row for row in about["curve"] if row["eps"] == pytest.approx(0.1)]
    worse, better = (
        next(row["value"] for row in at_fit if row["model"] == name) for name in ("clean", "robust")
    )
    assert better <= worse


def test_classes_in_words_and_the_default_radius(table, tmp_path, capsys):
    labels = table.with_columns(
        price=pl.when(pl.col("price") > 0.2).then(pl.lit("high")).otherwise(pl.lit("low"))
    )
    labels.write_csv(tmp_path / "data.csv")
    assert called("fit-linear", tmp_path / "data.csv", "--target", "price", "--out", tmp_path) == 0
    said = capsys.readouterr().out
    assert "logistic loss, linf attack" in said
    assert "relative duality gap" in said


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("no.csv",), "does not exist"),
        (("data.csv", "--target", "cost"), "--target as one of"),
        (("data.csv", "--target", "price", "--eps", "much"), "--eps as a number"),
        (("data.csv", "--target", "price", "--eps", "-1"), "must not be negative"),
        (("data.csv", "--target", "price", "--norm", "l9"), "l1, l2 or linf"),
        (("words.csv", "--target", "price"), "columns of numbers"),
        (("gaps.csv", "--target", "price"), "without gaps"),
    ],
)
def test_what_it_cannot_take_is_refused_in_one_line(
    table, arguments, words, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    table.write_csv("data.csv")
    table.with_columns(a=pl.lit("x")).write_csv("words.csv")
    table.with_columns(a=pl.when(pl.col("a") > 0).then(pl.col("a"))).write_csv("gaps.csv")
    assert called("fit-linear", *arguments) == 2
    said = capsys.readouterr().err
    assert words in said
    assert said.count("\n") == 1
