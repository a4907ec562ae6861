"""Detect the media type of a file by its content; its name only chooses between kinds of text.

HTML, JSON, JSON lines, CSV, e-mail, Markdown and others are recognized by the beginning of a text.
"""

from __future__ import annotations

import bz2
import codecs
import csv
import lzma
import re
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path, PurePath
from typing import Final, TypeVar

from builtin_plugins.documents.archives.archive import (
    APPLE_PART,
    BOUNDED,
    MAX_DIRECTORY_BYTES,
    ZIP_FAULTS,
    directory_bytes,
)
from builtin_plugins.documents.text.encoding import detect_encoding, is_unsure, read_head

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
# These may name the encoding of their parts.
_DECLARING: Final = (HTML, CALENDAR, CONTACTS, EMAIL, MAILBOX)

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
_UNFINISHED: Final = re.compile(r'\s*+(?:"(?:[^"\\\x00-\x1f]|\\.)*+\\?|[-+.\w]*+)\s*+')
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
    if vobject := _VOBJECT.match(head):
        return CONTACTS if vobject[1] else CALENDAR
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


T = TypeVar("T")

PDF: Final = "application/pdf"
ZIP: Final = "application/zip"
COMPRESSED: Final = {
    b"\x1f\x8b": "application/gzip",
    b"BZh": "application/x-bzip2",
    b"\xfd7zXZ\0": "application/x-xz",
}
"""Media types of compressed files, by their signature."""
TAR_TYPES: Final = ("application/x-tar", *COMPRESSED.values())
MSG: Final = "application/vnd.ms-outlook"
# "BM" alone is too short a signature, so the reserved zeros and the size of a known header must follow.
# Without this signature, a mostly white bitmap would pass as a text of "ÿ". "GIF89a" is printable, but the
# seven bytes of sizes and flags that follow it in a picture are not. TIFF comes in both byte orders; with
# `+`, it is a BigTIFF, whose offsets have 64 bits. A portable anymap's head is plain numbers, and what
# follows is no text.
_NUMBER: Final = rb"(?:\s|#[^\r\n]*+[\r\n])++\d++"
_LETTER: Final = (
    rb"(?:[\t\n\r -~]|[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3})"
)
IMAGES: Final = {
    "image/png": re.compile(rb"\x89PNG\r\n\x1a\n"),
    "image/jpeg": re.compile(rb"\xff\xd8\xff"),
    "image/gif": re.compile(rb"GIF8[79]a(?![\t\n\r -~]{7})"),
    "image/tiff": re.compile(rb"II[*+]\0|MM\0[*+]"),
    "image/webp": re.compile(rb"RIFF.{4}WEBP", re.DOTALL),
    "image/bmp": re.compile(rb"BM.{4}\0{4}.{4}[\x0c\x28\x34\x38\x40\x6c\x7c]\0{3}", re.DOTALL),
    "image/x-portable-anymap": re.compile(
        rb"P(?:4|[56]%b)(?:%b){2}\s(?!%b{7}|%b*+\Z)" % (_NUMBER, _NUMBER, _LETTER, _LETTER)
    ),
}
_COMPOUND_FILE: Final = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
# The names of a message's properties, in the directory of its compound file.
_MESSAGE_PROPERTY: Final = "__substg1.0_".encode("utf-16-le")
_OOXML: Final = "application/vnd.openxmlformats-officedocument"
_MAIN_PARTS: Final = {
    f"{_OOXML}.wordprocessingml.document.main+xml": f"{_OOXML}.wordprocessingml.document",
    f"{_OOXML}.wordprocessingml.template.main+xml": f"{_OOXML}.wordprocessingml.template",
    "application/vnd.ms-word.document.macroEnabled.main+xml": (
        "application/vnd.ms-word.document.macroEnabled.12"
    ),
    "application/vnd.ms-word.template.macroEnabledTemplate.main+xml": (
        "application/vnd.ms-word.template.macroEnabled.12"
    ),
    f"{_OOXML}.presentationml.presentation.main+xml": f"{_OOXML}.presentationml.presentation",
    f"{_OOXML}.presentationml.slideshow.main+xml": f"{_OOXML}.presentationml.slideshow",
    f"{_OOXML}.presentationml.template.main+xml": f"{_OOXML}.presentationml.template",
    "application/vnd.ms-powerpoint.presentation.macroEnabled.main+xml": (
        "application/vnd.ms-powerpoint.presentation.macroEnabled.12"
    ),
    "application/vnd.ms-powerpoint.slideshow.macroEnabled.main+xml": (
        "application/vnd.ms-powerpoint.slideshow.macroEnabled.12"
    ),
    "application/vnd.ms-powerpoint.template.macroEnabled.main+xml": (
        "application/vnd.ms-powerpoint.template.macroEnabled.12"
    ),
    f"{_OOXML}.spreadsheetml.sheet.main+xml": f"{_OOXML}.spreadsheetml.sheet",
    f"{_OOXML}.spreadsheetml.template.main+xml": f"{_OOXML}.spreadsheetml.template",
    "application/vnd.ms-excel.sheet.macroEnabled.main+xml": "application/vnd.ms-excel.sheet.macroEnabled.12",
    "application/vnd.ms-excel.template.macroEnabled.main+xml": (
        "application/vnd.ms-excel.template.macroEnabled.12"
    ),
}
WORD_TYPES: Final = tuple(t for t in _MAIN_PARTS.values() if "word" in t)
POWERPOINT_TYPES: Final = tuple(t for t in _MAIN_PARTS.values() if "powerpoint" in t or "presentationml" in t)
EXCEL_TYPES: Final = tuple(t for t in _MAIN_PARTS.values() if "excel" in t or "spreadsheetml" in t)

EPUB: Final = "application/epub+zip"
ODT_TYPES: Final = (
    "application/vnd.oasis.opendocument.text",
    "application/vnd.oasis.opendocument.text-template",
)
ODS_TYPES: Final = (
    "application/vnd.oasis.opendocument.spreadsheet",
    "application/vnd.oasis.opendocument.spreadsheet-template",
)
ODP_TYPES: Final = (
    "application/vnd.oasis.opendocument.presentation",
    "application/vnd.oasis.opendocument.presentation-template",
)
RTF: Final = "application/rtf"

# EPUB and OpenDocument: this member contains the media type, and another one must exist, too.
_KIND: Final = "mimetype"
_NEEDED: Final = {
    EPUB: "META-INF/container.xml",
    **dict.fromkeys(ODT_TYPES + ODS_TYPES + ODP_TYPES, "content.xml"),
}
_CONTENT_TYPES: Final = "[Content_Types].xml"
_DOCUMENT_PARTS: Final = frozenset({_KIND, _CONTENT_TYPES, APPLE_PART})
_MAX_CONTENT_TYPES_BYTES: Final = 1024 * 1024
# Excludes "<": otherwise each unclosed tag would make the match scan the rest of the file.
_DECLARED: Final = re.compile(rb"<(?:\w+:)?(Override|Default)\b([^<>]*+)>")
_ATTRIBUTE: Final = re.compile(rb"(PartName|Extension|ContentType)\s*=\s*[\"']([^\"']*)[\"']")
# Looks like text by its bytes, but is not for reading.
_POSTSCRIPT: Final = b"%!PS"
_UNPACKED_BYTES: Final = 512
_BZIP2: Final = b"BZh"
# A text may begin with bzip2's signature, so the one of its first block is required, too.
_COMPRESSED_FILE: Final = re.compile(rb"\x1f\x8b|BZh[1-9]1AY&SY|\xfd7zXZ\0")
_BZIP2_BYTES: Final = 1024 * 1024  # the whole first block: nothing can be unpacked before its end
_XZ_MEMORY_BYTES: Final = 128 * 1024 * 1024
# zlib's window bits for a gzip header.
_GZIP_WRAPPER: Final = 31
_TAR_SIGN: Final = b"ustar"
_TAR_SIGN_AT: Final = 257
_TAR_HEADER_BYTES: Final = 512
_TAR_SUM: Final = slice(148, 156)  # the sum of the header's bytes, with its own field taken as spaces
_OCTAL: Final = re.compile(rb"[0-7]{1,7}")


def detect_media_type(path: Path, filename: str | None = None) -> str | None:
    """Return the media type of the file at `path`, None when no built-in parser reads its kind.

    Reads the first 64 KiB, and of a zip also its directory and content types, nothing more. `filename` only
    breaks ties between kinds of text. Blocks on the disk: call it off the event loop.
    """
    head = read_head(path)
    if head.startswith(b"PK\x03\x04"):  # checked first, as a stored PDF may be among a zip's first bytes
        return _package_type(path)
    if b"%PDF-" in head[:1024]:
        return PDF
    if head.removeprefix(codecs.BOM_UTF8).lstrip().startswith(b"{\\rtf"):
        return RTF
    if head.startswith(_COMPOUND_FILE):
        is_message = _MESSAGE_PROPERTY in head or (filename or "").lower().endswith(".msg")
        return MSG if is_message else None
    if _COMPRESSED_FILE.match(head) or is_tar(path):
        return next((kind for sign, kind in COMPRESSED.items() if head.startswith(sign)), TAR_TYPES[0])
    for media_type, signature in IMAGES.items():
        if signature.match(head):
            return media_type
    if not head or head.startswith(_POSTSCRIPT):
        return None
    codec = detect_encoding(head)
    if codec is None:
        return None
    kind = text_flavour(head.decode(codec, "replace").removeprefix("\ufeff"), filename)
    return None if kind not in _DECLARING and is_unsure(head) else kind


def starts_archive(head: bytes) -> bool:
    """Whether a file begins as an archive does."""
    return head.startswith((b"PK\x03\x04", *COMPRESSED)) or starts_tar(head)


def starts_tar(head: bytes) -> bool:
    """Whether a file begins like a tar (POSIX.1-2017, pax: ustar). Older tars have only a checksum."""
    if head.startswith(_TAR_SIGN, _TAR_SIGN_AT):
        return True
    header, checksum = head[:_TAR_HEADER_BYTES], head[_TAR_SUM].strip(b" \0")
    if len(header) < _TAR_HEADER_BYTES or _OCTAL.fullmatch(checksum) is None:
        return False
    return int(checksum, 8) == sum(header) - sum(header[_TAR_SUM]) + sum(b" " * 8)


def is_tar(path: Path) -> bool:
    """Whether a file is a tar, compressed or not."""
    head = read_head(path)
    if head.startswith(_BZIP2):
        with path.open("rb") as file:
            head = file.read(_BZIP2_BYTES)
    return starts_tar(_unpacked(head))


def _unpacked(head: bytes) -> bytes:
    """The first unpacked bytes of a compressed file, none if `head` is too short; `head` of other files."""
    try:
        if head.startswith(b"\x1f\x8b"):
            return zlib.decompressobj(_GZIP_WRAPPER).decompress(head, _UNPACKED_BYTES)
        if head.startswith(_BZIP2):
            return bz2.BZ2Decompressor().decompress(head, _UNPACKED_BYTES)
        if head.startswith(b"\xfd7zXZ\0"):
            return lzma.LZMADecompressor(memlimit=_XZ_MEMORY_BYTES).decompress(head, _UNPACKED_BYTES)
    except (zlib.error, lzma.LZMAError, OSError, EOFError):
        return b""
    return head


def _package_type(path: Path) -> str | None:
    """The media type of a zip, a document or an archive; None for an unsupported document or a broken zip."""
    return _of_zip(path, _type_of_package)


def names_in_zip(path: Path) -> frozenset[str]:
    """The names of the files in a zip; none if it is no zip, broken, or has a directory that is too large."""
    return _of_zip(path, lambda archive: frozenset(archive.NameToInfo)) or frozenset()


def _of_zip(path: Path, ask: Callable[[zipfile.ZipFile], T]) -> T | None:
    """What `ask` says of a zip; None if it is no zip, broken, or has a directory that is too large."""
    with path.open("rb") as file:
        try:
            size = directory_bytes(file)
            if size is None or size > MAX_DIRECTORY_BYTES:
                return None
            with zipfile.ZipFile(file) as archive:
                return ask(archive)
        except (OSError, *ZIP_FAULTS):  # a damaged directory may point before the beginning of the file
            return None


def _type_of_package(archive: zipfile.ZipFile) -> str | None:
    media_type = _named_type(archive) or _office_type(archive)
    is_document = not _DOCUMENT_PARTS.isdisjoint(archive.NameToInfo)
    return media_type or (None if is_document else ZIP)


def _named_type(archive: zipfile.ZipFile) -> str | None:
    kind = _start_of(archive, _KIND, 100).decode("ascii", "replace").strip()
    return kind if _NEEDED.get(kind) in archive.NameToInfo else None


def _office_type(archive: zipfile.ZipFile) -> str | None:
    declared = _start_of(archive, _CONTENT_TYPES, _MAX_CONTENT_TYPES_BYTES)
    parts = _parts(declared, set(archive.NameToInfo))
    media_types = {_MAIN_PARTS[part] for part in parts if part in _MAIN_PARTS}
    return media_types.pop() if len(media_types) == 1 else None


def _start_of(archive: zipfile.ZipFile, name: str, size: int) -> bytes:
    info = archive.NameToInfo.get(name)
    if info is None or info.compress_type not in BOUNDED:
        return b""
    with archive.open(info) as member:
        return member.read(size)


def _parts(declared: bytes, members: set[str]) -> set[str]:
    """The types of the members: as each is declared, or by its suffix, as .NET declares the main part."""
    own: dict[str, str] = {}
    by_suffix: dict[str, str] = {}
    for kind, written in _DECLARED.findall(declared):
        attributes = {name: value.decode("utf-8", "replace") for name, value in _ATTRIBUTE.findall(written)}
        names = own if kind == b"Override" else by_suffix
        key = attributes.get(b"PartName", "").lstrip("/") or attributes.get(b"Extension", "").lower()
        names[key] = attributes.get(b"ContentType", "")
    others = {name.rpartition(".")[2].lower() for name in members.difference(own, (_CONTENT_TYPES,))}
    return {own[name] for name in members.intersection(own)} | {
        by_suffix[suffix] for suffix in others.intersection(by_suffix)
    }
