"""Makes the site's generated pages, and reads our Markdown as GitHub does (mkdocs events)."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import addresses
import api_pages
import built_checks
import cite_page
import claim_cells
import claims_pages
import cli_page
import finding_tables
import gallery_pages
import home_page
import notebook_pages
import paper_pages
from markdown_parts import Readable, slug, symbols
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File
from prose_numbers import plain

from advlab.papers import ITEMS

ROOT = addresses.ROOT
TYPESET = ("gallery/", "findings", "claims", "index", *ITEMS)
"""Pages whose formulas are typed with letters of a keyboard."""
GUIDE = 2
"""How much a guide counts in a search; other pages count 1, but for these:"""
RANKS = {
    "benchmarks": "boost: 0.5",
    "api/": "boost: 0.3",
    "gallery/": "boost: 0.5",
    "changelog": "boost: 0.5",
    "claims": "exclude: true",
}
"""How generated pages count in a search, by how their addresses begin."""


def on_config(config):
    """Our Markdown, GitHub's anchors, and the pages of the reference in the menu."""
    config.markdown_extensions.append(Readable())
    config.mdx_configs.setdefault("toc", {})["slugify"] = slug
    pages = {title: uri for uri, (title, _) in api_pages.pages().items()}
    papers = {title: uri for title, uri in pages.items() if ": " in title}
    rooms = {title: uri for title, uri in pages.items() if ": " not in title}
    reference = next(part["Reference"] for part in config.nav if "Reference" in part)
    reference += [{"API": [{title: uri} for title, uri in rooms.items()]}]
    reference += [{"API of the papers": [{title: uri} for title, uri in papers.items()]}]
    return config


def on_files(files, config):
    """Add what is made from other files of the repository."""
    made: dict[str, str | bytes] = {uri: text for uri, (_, text) in api_pages.pages().items()}
    made |= gallery_pages.pages() | home_page.pictures()
    made |= {"cli.md": cli_page.page(), "cite.md": cite_page.page()}
    made |= {claims_pages.PAGE: claims_pages.page()}
    made |= notebook_pages.pages()
    for path, uri in addresses.PAGES.items():
        if path.endswith(".md") and path not in ("README.md", "benchmarks/peers/README.md"):
            made[uri] = addresses.relinked((ROOT / path).read_text("utf-8"), ROOT / path, uri)
    for uri, content in made.items():
        if isinstance(content, str):
            content = _ranked(uri, content)
        files.append(File.generated(config, uri, content=content))
    return files


def _ranked(uri: str, text: str) -> str:
    """A page with how much it counts in a search: below the guides, if it is a list of parts."""
    rank = next((one for start, one in RANKS.items() if uri.startswith(start)), "")
    return f"---\nsearch:\n  {rank}\n---\n\n{text}" if rank else text


def on_page_markdown(markdown, page, config, files):
    """Links of docs as they are on the site; a paper's page whole."""
    uri = page.file.src_uri
    if page.file.generated_by:
        return markdown
    if not uri.startswith(("findings", *ITEMS)):
        page.meta.setdefault("search", {"boost": GUIDE})
    source = home_page.with_tiles(markdown) if uri == "index.md" else markdown
    text = addresses.relinked(plain(source), ROOT / "docs" / uri, uri)
    if uri == "index.md":
        text = text.replace("<!-- counts -->", paper_pages.totals())
    if uri == "findings.md":
        text = finding_tables.with_tables(text)
    paper = uri.removesuffix(".md")
    return paper_pages.page(paper, text) if paper in ITEMS else text


def on_page_content(html, page, config, files):
    """Formulas of the papers with their symbols, in the table of contents too."""
    html = claim_cells.opened(html)
    if not page.file.src_uri.startswith(TYPESET):
        return html
    links = list(page.toc)
    while links:
        link = links.pop()
        link.title = symbols(link.title)
        links += link.children
    return symbols(html)


def on_post_build(config):
    """No page may ask a network for anything, show a raw formula, or lead to nothing."""
    found = built_checks.problems(Path(config.site_dir))
    if found:
        raise PluginError("\n".join([f"{len(found)} problems of pages:", *found[:20]]))
