"""What must start at once imports nothing heavy."""

import subprocess
import sys

import pytest

HEAVY = ("torch", "polars", "altair", "scipy", "joblib")
HELP = "from advlab.cli import main\ntry:\n    main({arguments})\nexcept SystemExit: pass\n"


def loaded(code: str) -> set[str]:
    code += "\nimport sys; print('loaded', *sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


@pytest.mark.parametrize(
    "code",
    [
        "import advlab; dir(advlab)",
        "import advlab.papers",
        HELP.format(arguments=["--help"]),
        HELP.format(arguments=["--version"]),
        HELP.format(arguments=["run", "--help"]),
        HELP.format(arguments=["run", "generalization/nothing"]),
    ],
)
def test_starts_light(code):
    assert loaded(code).isdisjoint(HEAVY)


@pytest.mark.parametrize("room", ["report", "theory", "lab"])
def test_never_imports_torch(room):
    assert "torch" not in loaded(f"import advlab.{room}")


def test_rooms_and_names_come_when_asked_for():
    code = "import advlab; advlab.lab.Case; advlab.threats.Ball; advlab.attacks.PGD"
    assert {"advlab.lab", "advlab.threats", "advlab.attacks", "torch"} <= loaded(code)


def test_an_unknown_name_is_an_attribute_error():
    import advlab

    with pytest.raises(AttributeError, match="nonsense"):
        advlab.nonsense  # noqa: B018
    assert {"evaluate", "fit", "attacks", "lab"} <= set(dir(advlab))
