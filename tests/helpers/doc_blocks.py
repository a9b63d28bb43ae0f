"""The code of Markdown pages: its blocks, the commands in them, the times beside these."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product

from markdown_it import MarkdownIt

KINDS = ("python", "sh", "toml", "text")
"""What a fence may be: run, checked command by command, parsed, or shown (output, formulas)."""

_MARKDOWN = MarkdownIt("commonmark")
_SETUP = re.compile(r"<!-- setup\n(.*?)^-->", re.M | re.S)
_NOT_RUN = re.compile(r"<!-- not run: .+ -->\s*$")
_BAR = re.compile(r"(?<!\\)\|")
_RULE = re.compile(r"\s*\|(\s*:?-+:?\s*\|)+\s*")
_WORDS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_COUNTS = {"a": 1} | {word: count for count, word in enumerate(_WORDS, 1)}
_UNITS = {"second": 1.0, "minute": 60.0, "hour": 3600.0}
_COUNT = rf"(?:\d+(?:\.\d+)?|{'|'.join(_COUNTS)})"
_TIME = re.compile(
    rf"(?P<under>\b(?:under|below|less than) )?"
    rf"\b(?P<low>{_COUNT})(?: (?:to|or) (?P<high>{_COUNT}))?"
    rf" (?P<unit>{'|'.join(_UNITS)})s?\b",
    re.I,
)


@dataclass(frozen=True)
class Block:
    """A block of code: of a kind in `KINDS`, "setup" for what stands before code in a comment, or
    the word that somebody wrote behind the fence.

    Args:
        kind: as above; an indented block is of commands.
        code: its text.
        line: where the text begins.
        run: not after a comment that says why not.
        after: the kind of the block before it, if nothing stands between the two.
    """

    kind: str
    code: str
    line: int
    run: bool = True
    after: str = ""


@dataclass(frozen=True)
class Command:
    """A command as a shell would split it.

    Args:
        words: program and arguments.
        line: where it begins.
        comment: what stands behind it.
        inline: it stands in the text of a page, where a verb alone may be meant.
    """

    words: list[str] = field(hash=False)
    line: int
    comment: str = ""
    inline: bool = False


def blocks(text: str) -> list[Block]:
    """All blocks of a page, from top to bottom."""
    found: list[Block] = []
    before, not_run = "", False
    for token in _MARKDOWN.parse(text):
        line = 1 + (token.map or [0])[0]
        if token.type == "html_block":
            found += [Block("setup", code, line + 1) for code in _SETUP.findall(token.content)]
            not_run = bool(_NOT_RUN.search(token.content))
            before = ""
            continue
        if token.type == "fence":
            kind = token.info.strip()
            found.append(Block(kind, token.content, line + 1, not not_run, before))
        elif token.type == "code_block":
            kind = "sh"
            found.append(Block(kind, token.content, line))
        else:
            kind = ""
        before, not_run = kind, False
    return found


def table_rows(text: str) -> Iterator[tuple[int, int, int]]:
    """Line, cells and wanted cells of each row of the tables of a page, read as GitHub reads them.

    A bar parts two cells in code too, where no backslash stands before it.
    """
    hidden = {
        line
        for token in _MARKDOWN.parse(text)
        if token.type in ("fence", "code_block") and token.map
        for line in range(*token.map)
    }
    lines, wanted = text.split("\n"), 0
    for number, line in enumerate(lines):
        if number in hidden or not line.strip().startswith("|"):
            wanted = 0
        elif wanted == 0 and _RULE.fullmatch("".join(lines[number + 1 : number + 2])):
            wanted = _cells(lines[number + 1])
        if wanted:
            yield number + 1, _cells(line), wanted


def _cells(row: str) -> int:
    return len(_BAR.split(row.strip().removeprefix("|").removesuffix("|")))


def commands(code: str, line: int = 1) -> Iterator[Command]:
    """The commands of a block: lines that go on are joined, `a && b` is two, `a|b` is either."""
    waiting, began = "", line
    for number, text in enumerate(code.splitlines(), line):
        if not waiting:
            began = number
        waiting += text
        if text.endswith("\\"):
            waiting = waiting[:-1]
            continue
        try:
            words = shlex.split(waiting, comments=True)
        except ValueError:  # a quotation that goes on
            waiting += "\n"
            continue
        comment = "" if "\n" in waiting else waiting.partition("#")[2].strip()
        waiting = ""
        for part in _parts(words):
            for chosen in product(*map(_alternatives, part)):
                yield Command(list(chosen), began, comment)
    if waiting.strip():
        yield Command([waiting.strip()], began)


def _parts(words: list[str]) -> Iterator[list[str]]:
    part: list[str] = []
    for word in [*words, "&&"]:
        if word in ("&&", "||", ";", "|"):
            if part:
                yield part
            part = []
        else:
            part.append(word)


def _alternatives(word: str) -> list[str]:
    return word.split("|") if re.fullmatch(r"\w+(\|\w+)+", word) else [word]


def shell(text: str) -> list[Command]:
    """The commands of all blocks of a page that are for a shell."""
    shells = [block for block in blocks(text) if block.kind == "sh"]
    return [command for block in shells for command in commands(block.code, block.line)]


def inline(text: str, programs: tuple[str, ...]) -> list[Command]:
    """The commands that stand in the text between backticks: a program with what it is to do."""
    found = []
    for token in _MARKDOWN.parse(text):
        for child in token.children or ():
            if child.type != "code_inline" or " " not in child.content:
                continue
            if child.content.split()[0].rpartition("/")[2] in programs:
                line = 1 + (token.map or [0])[0]
                parts = commands(child.content, line)
                found += [Command(part.words, line, inline=True) for part in parts]
    return found


def sentences(text: str) -> Iterator[tuple[int, str]]:
    """Line of the paragraph, and each sentence of it, with code between backticks."""
    for token in _MARKDOWN.parse(text):
        if token.type == "inline":
            for one in re.split(r"(?<=[.;:])\s+", token.content):
                yield 1 + (token.map or [0])[0], " ".join(one.split())


def times(words: str) -> list[tuple[float, float]]:
    """Every time in words, as the least and the most seconds that a run of it may take.

    "8 minutes" is true within a factor of two; "under a minute" up to one.
    """
    found = []
    for one in _TIME.finditer(words):
        low, high = _count(one["low"]), _count(one["high"] or one["low"])
        unit = _UNITS[one["unit"].lower()]
        found.append((0.0, high * unit) if one["under"] else (low * unit / 2, 2 * high * unit))
    return found


def _count(word: str) -> float:
    return float(_COUNTS.get(word.lower(), 0) or word)
