"""Recipes from TOML and from the command line: strict, and helpful about it."""

import pytest

from advlab.attacks import APGD, PGD
from advlab.core.errors import AdvlabError
from advlab.training.recipes import RECIPES, CleanRecipe, recipe, with_settings

FILE = """
recipe = "trades"
beta = 3
epochs = 0.5
drops = [0.3, 0.6]
awp = 0.005

[attack]
steps = 4
"""


def written(tmp_path, text):
    path = tmp_path / "mine.toml"
    path.write_text(text)
    return path


def test_a_file_changes_what_it_names_and_nothing_else(tmp_path):
    found = recipe(written(tmp_path, FILE))
    expected = recipe(
        "trades", beta=3.0, epochs=0.5, drops=(0.3, 0.6), awp=0.005, attack={"steps": 4}
    )
    assert found == expected
    assert found.attack == PGD(steps=4, step_size=0.25, jump=False, keep="last")
    assert recipe(str(written(tmp_path, FILE)), beta=1.0).beta == 1.0


def test_settings_of_a_command_line():
    found = with_settings(
        recipe("trades"),
        [
            "beta=3",
            "attack.steps=7",
            "schedule=cosine",
            "drops=[0.2]",
            "clip=1.5",
            'augment="none"',
        ],
    )
    assert (found.beta, found.attack.steps, found.schedule) == (3.0, 7, "cosine")
    assert (found.drops, found.clip, found.attack.step_size) == ((0.2,), 1.5, 0.25)
    assert with_settings(found, ["clip=none"]).clip is None
    assert with_settings(found, []) == found
    named = with_settings(recipe("pgd"), ["attack.steps=3", "attack.name=apgd"])
    assert named.attack == APGD(steps=3)
    assert with_settings(recipe("pgd"), ["attack=apgd", "attack.steps=3"]) == named
    assert recipe("pgd", attack=PGD(steps=3)).attack == PGD(steps=3)


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("bata=3", "a setting of the recipe trades; got 'bata'; did you mean beta"),
        (
            "attack.stepsize=1",
            "a setting of attack of the recipe trades; got 'stepsize'; did you mean step_size",
        ),
        ("weightdecay=1", "did you mean weight_decay"),
        ("zzz=1", "it has epochs, batch"),
        ("beta=big", "beta: input should be a valid number, got 'big'"),
        ("epochs=true", "epochs: must be a number, not a boolean, got True"),
        ("epochs=-1", "epochs: input should be greater than 0, got -1"),
        ("batch=2.5", "batch: must be a whole number, got 2.5"),
        ("attack.steps=2.5", "steps: must be a whole number, got 2.5"),
        ('attack.steps="2"', "steps of attack of the recipe trades as a number; got '2'"),
        ("schedule=cosin", "input should be 'constant', 'drops', 'steps', 'cosine' or 'cyclic'"),
        ("attack=pdg", "got 'pdg'; did you mean pgd"),
        ("lr.deep=1", "lr of the recipe trades as one value"),
        ("drops=[2.0]", "shares of the stage"),
        ("loss=xent", "loss must be one of"),
        ("beta", "settings as key=value; got 'beta'"),
        ("=3", "settings as key=value"),
        ("beta=1 2", "a value for beta as TOML writes it; got '1 2'"),
    ],
)
def test_wrong_settings_are_one_line_that_says_what_was_expected(setting, said):
    with pytest.raises(AdvlabError) as raised:
        with_settings(recipe("trades"), [setting])
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("beta = 3", 'recipe = "name" in'),
        ('recipe = "tradse"', "got 'tradse'; did you mean trades"),
        ('recipe = "trades"\nbeat = 1', "did you mean beta"),
        ('recipe = "trades"\nbeta = ', "must be TOML"),
        ('recipe = "trades"\n[attack]\nsteps = "many"', "as a number; got 'many'"),
        ('recipe = "smoothadv"\nattack = "pgd"', "SmoothPGD"),
    ],
)
def test_wrong_files_are_one_line(tmp_path, text, said):
    with pytest.raises(AdvlabError) as raised:
        recipe(written(tmp_path, text))
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


def test_what_is_no_recipe_is_refused(tmp_path):
    with pytest.raises(AdvlabError, match="must be a file"):
        recipe(tmp_path / "none.toml")
    with pytest.raises(AdvlabError, match="a recipe, its name or a TOML file; got 3"):
        recipe(3)
    with pytest.raises(AdvlabError, match="did you mean clean"):
        recipe("claen")
    assert RECIPES["clean"] is CleanRecipe
    smoothed = recipe("clean", loss="logistic", label_smoothing=0.1)
    with pytest.raises(AdvlabError, match="label_smoothing with the loss cross_entropy"):
        smoothed.stages(None, 1)
