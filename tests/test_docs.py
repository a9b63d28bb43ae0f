"""The code of the docs works, page by page: Python runs, commands are read, output is compared.

Python runs top to bottom in one session, as a reader would. What a block needs and a reader has (a
model, data) stands before it in a comment, `<!-- setup ... -->`. A block after
`<!-- not run: reason -->` is left out. CONTRIBUTING.md says which kinds of blocks there are.
"""

import io
import re
import sys
import tomllib
from contextlib import redirect_stdout
from pathlib import Path

import doc_commands
import pytest
from doc_blocks import KINDS, Command, blocks, commands, inline, sentences, shell, table_rows, times

from advlab.cli import main

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    page.relative_to(ROOT).as_posix()
    for place in (
        "*.md",
        ".github/**/*.md",
        "benchmarks/**/*.md",
        "docs/**/*.md",
        "src/advlab/papers/*/README.md",
    )
    for page in ROOT.glob(place)
)
HISTORY = "CHANGELOG.md"
"""Its sentences may name commands that are gone."""
PROGRAMS = tuple(doc_commands.PROGRAMS)
QUICK = (("list",), ("data", "path"))
"""Verbs that are done at once and need nothing."""
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")
SHORTER = {
    "d=18000": "d=400, width=20, tested=50",
    "steps=200": "steps=2",
    "steps=1500": "steps=2",
    "replicates=10": "replicates=1",
    "restarts=20": "restarts=1",
}
"""What a long `python -c` is run with instead; the whole one is a nightly test."""


def text_of(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def with_kind(*kinds: str) -> list[str]:
    return [page for page in PAGES if any(one.kind in kinds for one in blocks(text_of(page)))]


def run_code(code: str, page: str, line: int, session: dict) -> str:
    """What a block prints; its lines are numbered as on the page."""
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(compile("\n" * (line - 1) + code, page, "exec"), session)
    return printed.getvalue()


def differs(shown: str, printed: str) -> bool:
    """Whether output has other words, or numbers that are off by more than a thousandth."""
    if NUMBER.sub("#", shown).split() != NUMBER.sub("#", printed).split():
        return True
    numbers = [[float(one) for one in NUMBER.findall(text)] for text in (shown, printed)]
    return numbers[0] != pytest.approx(numbers[1], rel=1e-3)


def unmarked(text: str) -> list[str]:
    """The blocks of kinds that nobody runs or reads."""
    known = (*KINDS, "setup")
    return [f"line {one.line}: {one.kind!r}" for one in blocks(text) if one.kind not in known]


def wrong_commands(text: str, in_words: bool = True) -> list[str]:
    """What is wrong with the commands of blocks, and with those between backticks in a sentence."""
    written = [*shell(text), *(inline(text, PROGRAMS) if in_words else ())]
    found = [(one, doc_commands.trouble(one)) for one in written]
    return [f"line {one.line}: {' '.join(one.words)}: {why}" for one, why in found if why]


def claimed_times(text: str) -> list[tuple[int, list[str], float, float]]:
    """Line, command, least and most seconds: of times beside a command, or in a sentence of one."""
    found = [(one, times(one.comment)) for one in shell(text)]
    for line, sentence in sentences(text):
        codes = [
            one
            for code in re.findall(r"`([^`]+)`", sentence)
            for one in commands(code, line)
            if one.words[0].rpartition("/")[2] in ("advlab", "make")
            and one.words[1:2]
            and (one.words[0] == "make" or one.words[1] == "run")
        ]
        if len(codes) == 1:
            found.append((codes[0], times(re.sub(r"`[^`]+`", "", sentence))))
    return [(one.line, one.words, *claimed[0]) for one, claimed in found if len(claimed) == 1]


def wrong_times(text: str) -> list[str]:
    wrong = []
    for line, words, least, most in claimed_times(text):
        takes = doc_commands.estimate(words)
        if takes is not None and not least <= takes <= most:
            wrong.append(f"line {line}: {' '.join(words)} takes {takes:.0f} s")
    return wrong


def test_pages_are_found():
    assert {"README.md", "docs/attack.md", "docs/extend.md"} <= set(with_kind("python"))
    assert {"README.md", "docs/findings.md", "CONTRIBUTING.md"} <= set(with_kind("sh"))


@pytest.mark.parametrize("page", with_kind("python"))
def test_the_code_of_a_page_runs_and_prints_what_is_shown(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    session, printed = {"__name__": "docs_page"}, ""
    for block in blocks(text_of(page)):
        if block.kind in ("setup", "python"):
            if block.run:
                printed = run_code(block.code, page, block.line, session)
            else:
                compile(block.code, page, "exec")
        elif block.kind == "text" and block.after == "python":
            assert not differs(block.code, printed), f"{page}:{block.line}: prints {printed}"


@pytest.mark.parametrize("page", PAGES)
def test_every_block_of_a_page_is_marked(page):
    assert unmarked(text_of(page)) == []
    for block in blocks(text_of(page)):
        if block.kind == "toml":
            tomllib.loads(block.code)


def torn(text: str) -> list[str]:
    """The rows of tables that have not as many cells as their heads: what is over is not shown."""
    rows = table_rows(text)
    return [f"line {line}: {cells} cells, not {wanted}" for line, cells, wanted in rows
            if cells != wanted]  # fmt: skip


@pytest.mark.parametrize("page", PAGES)
def test_every_row_of_a_table_has_as_many_cells_as_its_head(page):
    assert torn(text_of(page)) == []


def test_a_row_with_bars_that_are_not_escaped_is_found():
    table = "| a | b |\n|---|:-:|\n"
    assert torn(table + "| `\\|\\|x\\|\\|` | y |") == []
    assert torn(table + "| `||x||` | y |") == ["line 3: 6 cells, not 2"]
    assert torn(table + "| x |\n\nWords | and | more") == ["line 3: 1 cells, not 2"]
    assert torn("```text\n" + table + "| x |\n```") == []


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_page_are_read_by_the_command_line(page):
    assert wrong_commands(text_of(page), in_words=page != HISTORY) == []


@pytest.mark.parametrize("page", PAGES)
def test_times_beside_commands_are_those_of_the_experiments(page):
    assert wrong_times(text_of(page)) == []


def quick_commands() -> list[str]:
    found = [one.words for page in PAGES for one in shell(text_of(page))]
    ours = [words[1:] for words in found if words[0].rpartition("/")[2] == "advlab"]
    quick = [one for one in ours if "--help" in one or any(one[: len(v)] == [*v] for v in QUICK)]
    return [" ".join(one) for one in quick if not doc_commands.OWN & {*one}]


@pytest.mark.parametrize("line", sorted(set(quick_commands())))
def test_quick_commands_run(line, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main(line.split())
    assert not ended.value.code
    assert capsys.readouterr().out


def snippets() -> list[tuple[str, Command]]:
    found = [(page, one) for page in PAGES for one in shell(text_of(page))]
    return [(page, one) for page, one in found if one.words[:2] == ["python", "-c"]]


@pytest.mark.parametrize("nth", range(len(snippets())))
def test_a_snippet_runs_at_a_smaller_size(nth, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page, command = snippets()[nth]
    code = command.words[2]
    for long, short in SHORTER.items():
        code = code.replace(long, short)
    printed = run_code(code, page, command.line, {"__name__": "docs_page"})
    assert printed
    if code == command.words[2]:
        assert not_printed(section(page, command.line), printed) == []


@pytest.mark.nightly
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("nth", range(len(snippets())))
def test_a_snippet_runs(nth, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page, command = snippets()[nth]
    printed = run_code(command.words[2], page, command.line, {"__name__": "docs_page"})
    assert printed
    assert not_printed(section(page, command.line), printed) == []


def section(page: str, line: int) -> str:
    """What stands on a page between the heading above a line and the line."""
    above = "\n".join(text_of(page).split("\n")[:line])
    return re.split(r"^#+ ", above, flags=re.MULTILINE)[-1]


def not_printed(text: str, printed: str) -> list[str]:
    """Numbers with `<!-- printed -->` behind them that an output, rounded, does not have."""
    found = [float(one) for one in NUMBER.findall(printed)]
    claimed = re.findall(rf"({NUMBER.pattern})<!-- printed -->", text)
    room = {one: 0.501 * 10.0 ** -len(one.partition(".")[2]) for one in claimed}
    return [one for one in claimed if all(abs(float(one) - x) > room[one] for x in found)]


def test_a_number_that_a_snippet_does_not_print_is_found():
    text = "0.45<!-- printed --> and 0.3<!-- printed -->, of 7"
    assert not_printed(text, "0.4532 0.27") == []
    assert not_printed(text, "0.4432 0.3") == ["0.45"]
    assert "At large d" not in section("docs/findings.md", 10)


@pytest.mark.parametrize("long", SHORTER)
def test_no_shorter_size_is_left_over(long):
    assert any(long in command.words[2] for _, command in snippets())


def test_commands_are_split_as_a_shell_would():
    code = (
        'git clone A b && cd b   # c\nadvlab run x \\\n  --seeds 2\npython -c "\nprint(1)"\na p|q'
    )
    assert [(one.words, one.line, one.comment) for one in commands(code)] == [
        (["git", "clone", "A", "b"], 1, "c"),
        (["cd", "b"], 1, "c"),
        (["advlab", "run", "x", "--seeds", "2"], 2, ""),
        (["python", "-c", "\nprint(1)"], 4, ""),
        (["a", "p"], 6, ""),
        (["a", "q"], 6, ""),
    ]


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("```\nadvlab list\n```", [""]),
        ("```bash\nadvlab list\n```", ["bash"]),
        ("~~~\nx\n~~~", [""]),
        ("- item\n\n  ```json\n  {}\n  ```", ["json"]),
    ],
)
def test_an_unmarked_fence_is_found(text, kinds):
    assert [one.kind for one in blocks(text)] == kinds
    assert len(unmarked(text)) == 1


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("advlab rnu generalization/fig5", "No such command"),
        ("advlab run generalization/fig5 --data .", "--data"),
        ("advlab run generalization/fig5 --scale huge", "huge"),
        ("advlab run generalization/fig5 --scale smoke|huge", "huge"),
        ("advlab run generalization/fgi5", "fgi5"),
        ("advlab run 'generalisation/*'", "generalisation"),
        ("advlab run their_figure.py", "no experiment their_figure.py"),
        ("advlab run", "Missing"),
        ("advlab list cgro/phase", "cgro/phase"),
        ("advlab --verison", "--verison"),
        ("advlab data get mnist", "No such command"),
        ("advlab data fetch svhn", "svhn"),
        ("advlab attack my_nets:net mnits --eps 0.1", "no data mnits"),
        ("advlab attack net mnist --eps 0.1", "no model net"),
        ("advlab attack my_nets:net mnist --eps eight", "eight"),
        ("advlab attack my_nets:net mnist --eps 0.1 --box 1,0", "box"),
        ("advlab attack my_nets:net mnist --eps 0.1 --attack quick", "quick"),
        ("advlab train --model resnet8 --data mnist", "no network resnet8"),
        ("advlab train --model resnet9 --data mnist --recipe trade", "trade"),
        ("advlab train --model resnet9 --data mnist --recipe trades --set betta=3", "betta"),
        ("advlab verify runs --against result", "no folder result"),
        ("make tests", "no target tests"),
        ("make SEED=1 demo", "no variable SEED"),
        ("python scripts/result.py take runs", "no script"),
        ("python -m benchmarks.peeers", "no module"),
        ('python -c "print("', "python -c"),
        ("python -m advlab rnu", "No such command"),
        ("torchrun --nproc-per-node 2 -m advlab train --epoch 2", "--epoch"),
        ("pip install 'advlab[scikit]'", "no extra scikit"),
        ("pip install -r requirements.txt", "no file requirements.txt"),
        (".venv/bin/pytest -m slow", "no marker slow"),
        ("x = advlab.fit(model)", "is no program"),
        ("True", "is no program"),
        ("advlab run 'generalization/fig5", "is no program"),
    ],
)
def test_a_wrong_command_is_found(line, why):
    for text in (f"Words.\n\n    {line}\n", f"```sh\n{line}\n```\n"):
        found = wrong_commands(text)
        assert len(found) == 1, found
        assert why in found[0]
    if line.partition(" ")[0] == "advlab" and why != "Missing" and line.count("'") != 1:
        assert wrong_commands(f"Or `{line}` does it.")


@pytest.mark.parametrize(
    "line",
    [
        "advlab run my_package.my_figure path/to/my_figure.py",
        "advlab run NAME... --scale smoke|laptop|paper --seeds N --jobs N --out DIR",
        "advlab run 'cgro/*' benign",
        "advlab --install-completion",
        "advlab data --help",
        "advlab run --help",
        "ADVLAB_DATA=/data .venv-peers/bin/python -m benchmarks.peers",
    ],
)
def test_a_right_command_is_let_through(line):
    assert wrong_commands(f"    {line}\n") == []


@pytest.mark.parametrize(
    ("words", "seconds"),
    [
        ("takes 8 minutes", [(240, 960)]),
        ("Under a minute", [(0, 60)]),
        ("2 to 3 minutes", [(60, 360)]),
        ("in seven minutes or half of 90 seconds", [(210, 840), (45, 180)]),
        ("seconds: does it run", []),
    ],
)
def test_times_are_read(words, seconds):
    assert times(words) == seconds


def test_a_wrong_time_is_found():
    assert wrong_times("    advlab run cgro/phases  # an hour: 60 minutes\n")
    assert wrong_times("Then `advlab run cgro/phases` decides\nthem in 7 minutes.")
    assert not wrong_times("    advlab run cgro/phases  # under a minute\n")
    assert not wrong_times("Then `advlab run cgro/phases` decides them in 30 seconds.")
    assert wrong_times("    make demo  # under one minute\n")


def test_other_output_is_found():
    assert not differs("loss 0.2366 <= 0.8041; none", "loss 0.23661 <=  0.8041; none\n")
    assert differs("loss 0.2366", "loss 0.2376")
    assert differs("loss 0.2366", "gain 0.2366")
    assert differs("True", "False")
