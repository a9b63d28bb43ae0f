"""How to cite advlab and the papers, from CITATION.cff."""

from typing import Any

import yaml
from addresses import ROOT


def page() -> str:
    """The Markdown of the page."""
    about = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    lines = ["# How to cite", "", about["message"], "", "```bibtex", *_software(about)]
    for reference in about["references"]:
        lines += ["", *_paper(reference)]
    return (
        "\n".join([*lines, "```", "", "`CITATION.cff` in the repository has the same for tools."])
        + "\n"
    )


def _software(about: dict[str, Any]) -> list[str]:
    fields = {
        "author": " and ".join(f"{{{one['name']}}}" for one in about["authors"]),
        "title": about["title"],
        "version": about["version"],
    }
    return _entry("software", "advlab", fields)


def _paper(about: dict[str, Any]) -> list[str]:
    names = [f"{one['family-names']}, {one['given-names']}" for one in about["authors"]]
    venue = about.get("conference", {}).get("name") or about.get("status", "")
    pages = f"{about['start']}--{about['end']}" if "start" in about else ""
    fields = {
        "author": " and ".join(names),
        "title": about["title"],
        "booktitle" if "conference" in about else "note": venue,
        "series": about.get("collection-title", ""),
        "volume": str(about.get("volume", "")),
        "pages": pages,
        "year": str(about["year"]),
        "url": about["url"],
    }
    word = about["title"].split()[0].strip(":").lower()
    key = f"{about['authors'][0]['family-names'].lower()}{about['year']}{word}"
    return _entry("inproceedings" if "conference" in about else "misc", key, fields)


def _entry(kind: str, key: str, fields: dict[str, str]) -> list[str]:
    body = [f"  {name} = {{{value}}}," for name, value in fields.items() if value]
    return [f"@{kind}{{{key},", *body, "}"]
