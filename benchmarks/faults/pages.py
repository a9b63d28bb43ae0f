"""A script in every text of a result: opened in Chromium, none of them runs."""

import shutil
import subprocess
import tempfile
from pathlib import Path

from . import Fault

DEED = "document.title='exploded'"
EVIL = f"</script><script>{DEED}</script><img src=x onerror={DEED}>"
FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip


def evil_pages() -> Fault:
    """One page per text field, and one with all of them."""
    from advlab.report import Failure, Result, Verdict
    from advlab.report.page import write_report

    kind, chromium = "a script in a report's text", shutil.which("chromium")
    if chromium is None:
        print(f"  {kind}: no Chromium here (scripts/install-chromium.sh)")
        return Fault(kind, 0, 0, 0, 0)
    sound = {
        "experiment": "own/powers", "paper": "own", "item": "0", "title": "Powers", "about": "x",
        "commit": "abc", "finished": "2026-01-01",
    }  # fmt: skip
    words = {"id": "a", "claim": "b", "rule": "c", "note": "d"}
    pages = [({**sound, field: EVIL}, words) for field in sound if field != "finished"]
    pages += [(sound, {**words, field: EVIL}) for field in words]
    pages.append(
        (dict.fromkeys(sound, EVIL) | {"finished": "2026-01-01"}, dict.fromkeys(words, EVIL))
    )
    ran = 0
    with tempfile.TemporaryDirectory() as root:
        for n, (texts, verdict) in enumerate(pages):
            result = Result(
                **texts,
                scale="laptop",
                seeds=1,
                cases=1,
                seconds=1.0,
                settings={EVIL: EVIL},
                versions={EVIL: EVIL},
                failed=[Failure(case={EVIL: EVIL}, reason=EVIL)],
                verdicts=[Verdict(**verdict, outcome="refuted", measured=1.0)],
            )
            page = Path(root) / f"{n}.html"
            write_report([result], page, {})
            ran += _explodes(chromium, page, Path(root))
        control = Path(root) / "control.html"
        control.write_text(f"<!doctype html><title>sound</title><body>{EVIL}")
        if not _explodes(chromium, control, Path(root)):
            raise RuntimeError("a page with the script unescaped must explode, or this is no test")
    return Fault(kind, len(pages), len(pages) - ran, len(pages) - ran, ran)


def _explodes(chromium: str, page: Path, root: Path) -> bool:
    command = [chromium, *FLAGS, f"--user-data-dir={root / 'profile'}", "--dump-dom"]
    dom = subprocess.run([*command, page.as_uri()], capture_output=True, text=True).stdout
    return "<title>exploded" in dom or "<title" not in dom
