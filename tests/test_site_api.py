"""The reference: the examples of docstrings are blocks of code, all of them."""

import ast
import re
import warnings
from pathlib import Path

import pytest

griffe = pytest.importorskip("griffe", reason="the site's packages are not installed")
ROOT = Path(__file__).parents[1]
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef)


@pytest.fixture(autouse=True)
def _site(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "scripts" / "site"))


@pytest.fixture
def fenced():
    from griffe_examples import fenced

    return fenced


def docstrings():
    """All docstrings with an example, by the file that they stand in."""
    for file in sorted((ROOT / "src" / "advlab").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            text = ast.get_docstring(node) if isinstance(node, DOCUMENTED) else None
            if text and re.search(r"^Example:$", text, re.MULTILINE):
                yield f"{file.name}: {getattr(node, 'name', '')}", text


def test_every_example_is_one_block_of_code_that_parses(fenced):
    found = dict(docstrings())
    assert len(found) > 200
    for where, text in found.items():
        sections = griffe.Docstring(fenced(text)).parse("google", warnings=False)
        shown = [one.value for one in sections if one.kind.value == "admonition"]
        (example,) = [one.contents for one in shown if one.kind == "example"]
        first, *code, last = example.splitlines()
        assert (first, last) in (("```python", "```"), ("```pycon", "```")), where
        assert not any(line.startswith("```") for line in code), where
        if first == "```pycon":
            assert code[0].startswith(">>> "), where
            continue
        with warnings.catch_warnings():  # a backslash in a formula
            warnings.simplefilter("ignore")
            ast.parse("\n".join(code))


def test_the_reference_is_read_with_the_extension():
    place = "scripts/site/griffe_examples.py"
    assert f"extensions: [{place}, scripts/site/griffe_settings.py]" in (
        ROOT / "mkdocs.yml"
    ).read_text(encoding="utf-8")
    ball = griffe.load(
        "advlab.threats.ball",
        search_paths=[ROOT / "src"],
        extensions=griffe.load_extensions(str(ROOT / place)),
        docstring_parser="google",
    )
    assert "Example:\n    ```python\n" in ball["Ball"].docstring.value


def test_prompts_are_left_out_where_nothing_is_printed(fenced):
    rest = "\n\nReturns:\n    A sum."
    text = "It adds.\n\nExample:\n    >>> a = (\n    ...     1)" + rest
    block = "It adds.\n\nExample:\n    ```python\n    a = (\n        1)\n    ```"
    assert fenced(text) == block + rest


def test_what_is_printed_stays_below_its_prompt(fenced):
    found = fenced("Example:\n    >>> 1 + 1\n    2")
    assert found == "Example:\n    ```pycon\n    >>> 1 + 1\n    2\n    ```"


def test_a_docstring_without_an_example_stays(fenced):
    text = "An Example: of words.\n\nArgs:\n    x: a tensor."
    assert fenced(text) == text


def test_settings_have_their_types_and_defaults():
    from griffe_settings import parameters

    from advlab.attacks import PGD

    found = {one.name: (one.annotation, one.default) for one in parameters(PGD)}
    assert found["steps"] == ("PositiveInt", "20")
    assert found["step_size"] == ("PositiveFloat", "0.1")
    assert found["random_start"] == ("bool", "True")
    assert list(found) == list(PGD.model_fields)


def test_a_required_setting_has_no_default_and_a_factory_is_called():
    from griffe_settings import parameters

    from advlab.attacks import Transfer
    from advlab.lab import About

    found = {one.name: one for one in parameters(About)}
    assert found["title"].default is None
    assert found["reduced"].default == "{}"
    inner = {one.name: one.annotation for one in parameters(Transfer)}
    assert not any("SerializeAsAny" in str(one) for one in inner.values())


def test_the_reference_lists_every_verb_and_no_helper():
    from api_pages import pages, public

    import advlab

    front = pages()["api/advlab.md"][1]
    assert re.findall(r"^- \[`advlab\.(\w+)`\]", front, re.MULTILINE) == sorted(advlab._OBJECTS)
    assert public("advlab.attacks.base") == ["Loss", "Attacked", "Attack", "BestSoFar"]
    assert public("advlab.lab.verify") == [], "not exported: imported from its module, shown whole"
    attacks = pages()["api/attacks.md"][1]
    assert "- BestSoFar" in attacks
    assert "checked_call" not in attacks
