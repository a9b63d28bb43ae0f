"""Where a file of the repository is on the site."""

import posixpath
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "advlab"
PAGES = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "CODE_OF_CONDUCT.md": "conduct.md",
    "CITATION.cff": "cite.md",
    "benchmarks/results.md": "benchmarks.md",
    "benchmarks/peers/results.md": "benchmarks-peers.md",
    "benchmarks/peers/README.md": "benchmarks-peers.md",
}
"""Files outside docs/ that are pages, or stand in one."""
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s]+)\)")
_PATH = re.compile(r"(?<![\[`\w])`([\w/]+\.py)`(?![\]\w])")
_NAME = re.compile(r"(?<![\[`\w])`(\w+)`(?![\]\w])")


def api_page(module: Path) -> str | None:
    """The page and the anchor of a module or package; None for what users never import."""
    inner = module.relative_to(PACKAGE).with_suffix("")
    if any(part.startswith("_") and part != "__init__" for part in inner.parts):
        return None
    parts = [part for part in inner.parts if part != "__init__"]
    if not parts:
        return "api/advlab.md"
    dotted = ".".join(("advlab", *parts))
    is_paper = parts[0] == "papers" and len(parts) > 2
    page = f"api/{parts[1]}-{parts[2]}.md" if is_paper else f"api/{parts[0]}.md"
    return f"{page}#{dotted}"


def experiment_anchor(name: str) -> str:
    """Where an experiment stands in its paper's gallery."""
    paper, _, item = name.partition("/")
    return f"gallery/{paper}.md#{item}"


def address(path: Path) -> str | None:
    """The page of a file of the repository, with an anchor where it needs one; None without."""
    inner = path.relative_to(ROOT).as_posix()
    if inner.startswith("docs/notebooks/"):
        return f"notebooks/{path.stem}.md"
    if inner == "src/advlab/cli/__init__.py":
        return "cli.md"
    if inner.startswith("docs/"):
        return inner.removeprefix("docs/")
    paper = re.fullmatch(r"src/advlab/papers/(\w+)/README\.md", inner)
    if paper:
        return f"{paper[1]}.md"
    item = re.fullmatch(r"src/advlab/papers/(\w+)/experiments/([a-z]\w*)\.py", inner)
    if item:
        return experiment_anchor(f"{item[1]}/{item[2]}")
    if inner.startswith("src/advlab/") and (path.suffix == ".py" or path.is_dir()):
        return api_page(path / "__init__.py" if path.is_dir() else path) if path.exists() else None
    return PAGES.get(inner)


def relinked(text: str, source: Path, page: str) -> str:
    """Markdown with links as they are on the site; a link to what is not there is only its words.

    Args:
        text: the Markdown.
        source: the file it came from, to which its links are relative.
        page: the page that it stands in.
    """

    def link(found: re.Match[str]) -> str:
        image, words, target = found.groups()
        if re.match(r"https?:|mailto:|#", target):
            return found[0]
        file, _, anchor = target.partition("#")
        place = (source.parent / file).resolve()
        if not place.is_relative_to(ROOT):
            return words
        found_address = address(place)
        if found_address is None:
            return words
        whole = found_address if "#" in found_address or not anchor else f"{found_address}#{anchor}"
        return f"{image}[{words}]({relative(whole, page)})"

    return outside_code(text, lambda part: _LINK.sub(link, part))


def paths_linked(text: str, paper: Path, page: str, items: tuple[str, ...]) -> str:
    """Files and experiments of a paper that stand as code in its tables become links."""

    def path(found: re.Match[str]) -> str:
        place = paper / found[1]
        where = address(place) if place.exists() else None
        return f"[{found[0]}]({relative(where, page)})" if where else found[0]

    def name(found: re.Match[str]) -> str:
        if found[1] not in items:
            return found[0]
        return f"[{found[0]}]({relative(experiment_anchor(f'{paper.name}/{found[1]}'), page)})"

    return "\n".join(
        _NAME.sub(name, _PATH.sub(path, line)) if line.startswith("|") else line
        for line in text.split("\n")
    )


def relative(target: str, page: str) -> str:
    """A link from one page to another."""
    file, mark, anchor = target.partition("#")
    return posixpath.relpath(file, posixpath.dirname(page) or ".") + mark + anchor


def outside_code(text: str, change) -> str:
    """Change a Markdown text but not its fenced blocks."""
    parts = re.split(r"(^```.*?^```$)", text, flags=re.MULTILINE | re.DOTALL)
    return "".join(part if place % 2 else change(part) for place, part in enumerate(parts))
