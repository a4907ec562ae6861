"""What runs in a preview's process: one document becomes one page of HTML, written to a file."""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from builtin_plugins.documents.blocks import UnparsableDocument
from builtin_plugins.documents.images.ocr import OPTIONS, OcrOptions
from builtin_plugins.documents.previews.safe_html import safe_html

_CSS: Final = """
:root { color-scheme: light; background: #fff; color: #1b1b1f; }
body { margin: 0; padding: 24px clamp(16px, 5vw, 56px) 48px; font: 16px/1.55 system-ui, sans-serif;
  overflow-wrap: break-word; }
:where(p, li, dt, dd, h1, h2, h3, h4, h5, h6, td, th, caption, blockquote, pre, div) {
  unicode-bidi: plaintext; }
img { max-width: 100%; height: auto; } img:not([src]) { display: none; }
pre, code { font-family: ui-monospace, monospace; font-size: .92em; }
pre { white-space: pre-wrap; }
table { border-collapse: collapse; }
hr.page { border: 0; border-top: 1px dashed #b5b5bd; margin: 32px 0; }
.scroll { overflow-x: auto; }
.note { color: #5b5b66; font-size: .9em; }
.no-picture { display: inline-block; min-width: 24px; min-height: 24px; border: 1px dashed #b5b5bd;
  color: #5b5b66; font-size: 12px; overflow: hidden; }
mark { background: #ffe27a; color: inherit; border-radius: 2px; box-shadow: 0 0 0 2px #ffe27a; }
.text { max-width: 46rem; margin: 0 auto; }
.text :is(td, th) { border: 1px solid #b5b5bd; padding: 3px 8px; vertical-align: top; text-align: start; }
.text td > p, .text th > p { margin: 0; }
.text h1.title { font-size: 2em; } .text p.subtitle { font-size: 1.2em; color: #5b5b66; }
.text blockquote { margin-left: 0; padding-left: 16px; border-left: 3px solid #d5d5dc; color: #44444c; }
.text pre { padding: 10px 12px; background: #f4f4f6; border-radius: 4px; }
.center { text-align: center; } .right { text-align: right; } .justify { text-align: justify; }
.text p:empty { min-height: 1em; }
.sheet { margin-bottom: 36px; } .sheet h2 { font-size: 1.05rem; margin: 0 0 8px; }
.sheet table { font-size: 14px; width: max-content; }
.sheet :is(td, th) { border: 1px solid #d5d5dc; padding: 2px 8px; vertical-align: top; max-width: 28rem; }
.sheet tr > th:first-child, .sheet thead th { background: #f0f0f3; color: #5b5b66; font-weight: 400;
  font-size: 12px; text-align: center; }
.sheet tr.names td { font-weight: 600; background: #f7f7f9; } .sheet td.n { text-align: right;
  font-variant-numeric: tabular-nums; }
.slide { position: relative; container-type: inline-size; overflow: hidden; background: #fff;
  border: 1px solid #d5d5dc; box-shadow: 0 1px 4px rgb(0 0 0 / 12%); margin: 0 auto 12px; max-width: 960px;
  line-height: 1.2; }
.slide > * { position: absolute; box-sizing: border-box; overflow: hidden; }
.slide p { margin: 0 0 .25em; } .slide ul { margin: 0; padding-left: 1.1em; }
.slide table { width: 100%; } .slide :is(td, th) { border: 1px solid #b5b5bd; padding: .2em .4em; }
.slide img { width: 100%; height: 100%; max-width: none; }
.notes { max-width: 960px; margin: 0 auto 28px; color: #44444c; font-size: .9em; white-space: pre-line; }
.mail { max-width: 52rem; margin: 0 auto 32px; } .mail .headers { width: 100%; margin-bottom: 20px;
  border-bottom: 1px solid #d5d5dc; font-size: .95em; } .mail .headers th { text-align: left;
  font-weight: 400; color: #5b5b66; padding: 1px 14px 1px 0; vertical-align: top; white-space: nowrap; }
.mail .headers td { width: 100%; } .mail h1 { font-size: 1.3rem; margin: 0 0 10px; }
.picture { position: relative; margin: -24px calc(-1 * clamp(16px, 5vw, 56px)) -48px; line-height: 0; }
.picture img { width: 100%; } .picture span { position: absolute; color: transparent; overflow: hidden;
  white-space: pre; } .picture br { display: none; }
.picture mark { display: block; height: 100%; color: transparent; background: rgb(255 214 64 / 42%);
  mix-blend-mode: multiply; box-shadow: none; }
.picture + .picture { margin-top: 60px; }
.mail .plain { white-space: pre-wrap; }
"""
_PAGE: Final = (
    '<!doctype html>\n<html><head><meta charset="utf-8">'
    '<meta name="viewport" content="width=device-width"><style>{css}</style></head><body>{body}</body></html>'
)
_LOADS: Final = re.compile(r"@import[^;]*;?|url\([^)]*\)?", re.IGNORECASE)
_MOST_STYLES: Final = 512 * 1024


@dataclass(frozen=True, slots=True)
class PreviewPage:
    """What a document looks like. `html` may be hostile; `styles` are those of a web page's own.

    `placed`: the elements say where they are, as those of slides do.
    """

    html: str
    styles: str = ""
    placed: bool = False


def write_preview(path: str, target: str, sink: str, ocr: list[Any]) -> None:
    """Write the page of the document at `path`, made by the function `target`, to `sink`.

    Raises what `target` raises, and `UnparsableDocument` for an empty page.
    """
    OPTIONS.set(OcrOptions(*ocr))
    module, _, name = target.partition(":")
    function: Callable[[Path], PreviewPage] = getattr(importlib.import_module(module), name)
    page = function(Path(path))
    body = safe_html(page.html, placed=page.placed)
    if not body.strip():
        raise UnparsableDocument("no_text")
    # A style sheet can't close its element. What it would load is removed; the policy forbids it, too.
    own = _LOADS.sub("", page.styles[:_MOST_STYLES]).replace("<", "\\3c ")
    descriptor = os.open(sink, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8", errors="replace") as file:
        file.write(_PAGE.format(css=_CSS + own, body=body))
