"""Recognize HTML, JSON, JSON lines, CSV, e-mail, Markdown and others by the beginning of a text."""

from __future__ import annotations

import csv
import re
from pathlib import PurePath
from typing import Final

HTML: Final = "text/html"
JSON: Final = "application/json"
JSON_LINES: Final = "application/x-ndjson"
CSV: Final = "text/csv"
MARKDOWN: Final = "text/markdown"
NOTEBOOK: Final = "application/x-ipynb+json"
CALENDAR: Final = "text/calendar"
CONTACTS: Final = "text/vcard"
SUBRIP: Final = "application/x-subrip"
VTT: Final = "text/vtt"
PLAIN: Final = "text/plain"

EMAIL: Final = "message/rfc822"
MAILBOX: Final = "application/mbox"

# Otherwise comments and data tables in source code would pass for Markdown and CSV.
_SOURCE_CODE: Final = (
    *(".py", ".pyi", ".js", ".mjs", ".cjs", ".jsx", ".ts", ".tsx", ".java", ".kt", ".kts", ".scala", ".go"),
    *(".rs", ".c", ".h", ".cc", ".cpp", ".cxx", ".hpp", ".cs", ".swift", ".m", ".rb", ".php", ".pl", ".lua"),
    *(".r", ".jl", ".dart", ".hs", ".ex", ".exs", ".erl", ".clj", ".sh", ".bash", ".zsh", ".ps1", ".bat"),
    *(".sql", ".css", ".scss", ".less", ".yaml", ".yml", ".toml", ".ini", ".cfg", ".conf", ".properties"),
    *(".tf", ".proto", ".graphql", ".cmake", ".mk", ".gradle", ".vue", ".svelte", ".tex", ".rst"),
)
_BY_SUFFIX: Final = {
    **dict.fromkeys(_SOURCE_CODE, PLAIN),
    ".md": MARKDOWN,
    ".markdown": MARKDOWN,
    ".mdown": MARKDOWN,
    ".csv": CSV,
    ".tsv": CSV,
    ".txt": PLAIN,
    ".text": PLAIN,
    ".log": PLAIN,
}
_HTML: Final = re.compile(
    r"\s*(?:<\?xml[^>]*\?>\s*)?(?:<!--.*?-->\s*)*+(?:<!doctype\s+html\b|<(?:html|head|body)[\s>])",
    re.IGNORECASE | re.DOTALL,
)
# In a file with the name of a web page, this is enough to read it as HTML.
_PAGES: Final = frozenset({".html", ".htm", ".xhtml", ".xht"})
_MARKUP: Final = re.compile(
    r"</?[a-z][a-z0-9:-]{0,40}(?:\s[^<>]{0,4000})?/?>|<!--|&(?:#\d{1,7}|#x[0-9a-f]{1,6}|[a-z]{2,20});",
    re.IGNORECASE,
)
_HEADERS: Final = re.compile(r"(?:[!-9;-~]{1,76}:[^\n]{0,998}\n(?:[ \t][^\n]{0,998}\n)*+){2,}+")
_ENVELOPE: Final = re.compile(
    r"^(?:message-id|mime-version|received|return-path|dkim-signature):", re.IGNORECASE | re.MULTILINE
)
# The line before each message of a mailbox; newer Thunderbird versions write the bare word.
MAILBOX_LINE: Final = r"From (?:[^ \n]{1,320} [^\n]{8,40}\d{4}[^\n]{0,20})?\r?\n"
_MAILBOX: Final = re.compile(MAILBOX_LINE)
_SENDER: Final = re.compile(r"^from:", re.IGNORECASE | re.MULTILINE)
WEBVTT: Final = "WEBVTT"
CUE_TIMES: Final = r"\s{0,8}((?:\d{1,4}:)?\d\d:\d\d)[.,]\d{1,3}[ \t]{1,8}-->"
_SUBRIP: Final = re.compile(r"\s{0,8}\d{1,6}\s{1,8}" + CUE_TIMES)
_VTT: Final = re.compile(rf"{WEBVTT}(?:[ \t][^\n]{{0,998}})?\r?\n")
_CUE: Final = re.compile("^" + CUE_TIMES, re.MULTILINE)
_VOBJECT: Final = re.compile(r"BEGIN:V(?:CALENDAR|(CARD))\s*\n", re.IGNORECASE)
_CELL: Final = re.compile(r'"cell_type"\s{0,8}:')
_MARKDOWN_SIGNS: Final = (
    re.compile(r"^#{1,6} \S", re.MULTILINE),
    re.compile(r"^(?:```|~~~)", re.MULTILINE),
    re.compile(r"!?\[[^\]\n]{1,200}\]\([^)\s]{1,500}"),
    re.compile(r"^ {0,3}[*+-] \S", re.MULTILINE),
    re.compile(r"(?:^|\s)(?:\*\*|__)\S"),
    re.compile(r"^\|.{1,500}\|[ \t]*$", re.MULTILINE),
)
_SCALAR: Final = r'"(?:[^"\\\x00-\x1f]|\\.)*+"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null'
_JSON_TOKEN: Final = re.compile(rf"\s*(?:({_SCALAR})|([\[{{])|([\]}}])|([:,]))")
_KINDS: Final = ("", "value", "open", "close", "between")  # by group of the token
_UNFINISHED: Final = re.compile(r'\s*(?:"(?:[^"\\\x00-\x1f]|\\.)*+\\?|[-+.\w]*)\s*')
_DELIMITERS: Final = (",", ";", "\t", "|")
_MAX_ROWS: Final = 50


def text_flavour(head: str, filename: str | None) -> str:
    """Return the media type of a text whose first characters are `head`."""
    if _HTML.match(head):
        return HTML
    suffix = PurePath(filename or "").suffix.lower()
    if json := _json_flavour(head):
        is_notebook = json == JSON and (suffix == ".ipynb" or _CELL.search(head))
        return NOTEBOOK if is_notebook else json
    if found := _VOBJECT.match(head):
        return CONTACTS if found[1] else CALENDAR
    if _SUBRIP.match(head) or (_VTT.match(head) and _CUE.search(head)):
        return VTT if head.startswith(WEBVTT) else SUBRIP
    mailbox = _MAILBOX.match(head)
    if _is_email(head[mailbox.end() if mailbox else 0 :], named=suffix in (".eml", ".mbox")):
        return MAILBOX if mailbox else EMAIL
    if suffix in _PAGES and _MARKUP.search(head):
        return HTML
    return _BY_SUFFIX.get(suffix) or _guess(head)


def _is_email(head: str, *, named: bool) -> bool:
    """Recognize a message by its headers: a sender, and what only mail programs write, or the name."""
    headers = _HEADERS.match(head.replace("\r\n", "\n"))
    if not headers or not _SENDER.search(headers[0]):
        return False
    return named or bool(_ENVELOPE.search(headers[0]))


def _guess(head: str) -> str:
    if sum(bool(sign.search(head)) for sign in _MARKDOWN_SIGNS) >= 2:
        return MARKDOWN
    delimiter = find_delimiter(head)
    return CSV if delimiter and _has_header(head, delimiter) else PLAIN


def _has_header(head: str, delimiter: str) -> bool:
    """Tell a table from prose with equally many commas per line: a header has short, distinct names."""
    lines = [line for line in head.splitlines()[:_MAX_ROWS] if line.strip()]
    names = [name.strip(' "') for name in lines[0].split(delimiter)]
    short = all(0 < len(name) <= 40 for name in names) and len(set(names)) == len(names)
    return short and (len(lines) > 2 or len(names) > 2) and not lines[0].rstrip().endswith((".", "!", "?"))


def _json_flavour(head: str) -> str | None:
    """Recognize JSON by its grammar as far as `head` goes: prose such as `[1] See below` must stay prose."""
    if head.lstrip()[:1] not in ("{", "["):
        return None
    position, values, depth = 0, 0, 0
    previous = ""
    while token := _JSON_TOKEN.match(head, position):
        kind = _KINDS[token.lastindex or 0]
        if not _may_follow(previous, kind, depth):
            return None
        depth += (kind == "open") - (kind == "close")
        values += depth == 0
        previous, position = ("" if depth == 0 else kind), token.end()
    if not _UNFINISHED.fullmatch(head, position):
        return None
    return JSON_LINES if values > 1 or (values == 1 and depth > 0) else JSON


def _may_follow(previous: str, kind: str, depth: int) -> bool:
    if kind == "close":
        return depth > 0 and previous != "between"
    if kind == "between":
        return depth > 0 and previous in ("value", "close")
    if depth == 0:
        return kind == "open"
    return previous in ("open", "between")


def find_delimiter(sample: str, least: float = 0.9) -> str | None:
    """Return the delimiter that splits the rows of the sample into the same number of fields, at least two.

    None for prose: a table needs two rows, and the share `least` of them must agree with the first. The last
    row of a long sample may be cut and does not count.
    """
    lines = [line for line in sample.splitlines()[: _MAX_ROWS + 1] if line.strip()]
    if len(lines) > _MAX_ROWS or len(sample) > 60_000:
        lines = lines[:-1]
    if len(lines) < 2:
        return None
    best = max(_DELIMITERS, key=lambda mark: _agreement(lines, mark))
    return best if _agreement(lines, best) >= least else None


def _agreement(lines: list[str], delimiter: str) -> float:
    try:
        widths = [len(row) for row in csv.reader(lines, delimiter=delimiter) if row]
    except csv.Error:
        return 0.0
    width = widths[0] if widths else 0
    return sum(w == width for w in widths) / len(widths) if width > 1 else 0.0
