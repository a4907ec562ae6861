"""What Word and PowerPoint files share: relationships between parts, and paragraphs and tables of text runs.

Read part by part with lxml, because python-docx and python-pptx load every picture, hold the whole tree, and
refuse templates, slide shows and files with macros.
"""

from __future__ import annotations

import posixpath
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import IO, Final, NamedTuple

from lxml import etree

from builtin_plugins.documents.blocks import Block, Heading, UnparsableDocument
from builtin_plugins.documents.cleaning import is_power
from builtin_plugins.documents.markup.formulas import formula_in, placed
from builtin_plugins.documents.office.ooxml_values import chosen, is_on, symbol, ticked, value_of
from builtin_plugins.documents.omissions import omit
from builtin_plugins.documents.tables.names import count_head, lines_without_marks
from builtin_plugins.documents.tables.portions import room_below, size_of
from builtin_plugins.documents.tables.spans import LONGEST_REPEATED, MOST_COLUMNS, count_of

_MAX_RELATIONSHIPS_BYTES: Final = 16 * 1024 * 1024
# A copy of the drawing for old readers; what tracked changes removed: text and cell properties; and the
# pronunciation above Asian letters, which would part their words.
_SKIPPED: Final = frozenset({"Fallback", "del", "moveFrom", "tcPrChange", "rt"})
_SHOWN: Final = {"sym": symbol, "checkBox": ticked, "ddList": chosen}
# Superscript: by name, or by a position above the line.
_RAISED: Final = re.compile("superscript|[1-9]")
_INSERTED: Final = "altChunk"  # a document of any format, in the place of a paragraph
_FORMULA: Final = "oMath"  # skipped element by element, and read as a whole at its end
_TAGS: Final = tuple(
    "{*}" + name
    for name in (
        "p",
        "pPr",
        _INSERTED,
        "t",
        "tab",
        "ptab",
        "br",
        "cr",
        "noBreakHyphen",
        "tbl",
        "tr",
        "tc",
        "gridSpan",
        "vMerge",
        "fld",
        _FORMULA,
        *_SHOWN,
        "tabs",
        "tabLst",
        *sorted(_SKIPPED),
    )
)


_Label = Callable[[etree._Element], str]
_LevelOf = Callable[[etree._Element], int | None]
_Inserted = Callable[[str], Iterable[str]]


@dataclass
class _Cell:
    """A cell's text, how many columns it spans, and whether it continues the one above (vMerge)."""

    texts: list[str] = field(default_factory=list)
    columns: int = 1
    goes_on: bool = False


class _Row(list[str]):
    """The cells of a row, and the same with the text of a wide cell in each of its columns."""

    def __init__(self) -> None:
        super().__init__()
        self.spread: list[str] = []


class Relationship(NamedTuple):
    """A relationship in a package: its id, the last word of its type (`slide`), its target part."""

    id: str
    kind: str
    target: str


def relationships(archive: zipfile.ZipFile, part: str) -> list[Relationship]:
    """Return the internal relationships of a part (`""` is the package itself), in file order."""
    folder, name = posixpath.split(part)
    source = posixpath.join(folder, "_rels", f"{name}.rels")
    if source not in archive.NameToInfo:
        return []
    with archive.open(source) as file:
        root = etree.fromstring(file.read(_MAX_RELATIONSHIPS_BYTES), safe_parser())
    return [
        Relationship(
            element.get("Id", ""), element.get("Type", "").rpartition("/")[2], _resolve(folder, element)
        )
        for element in root.iterfind("{*}Relationship")
        if element.get("TargetMode") != "External"
    ]


def main_part(archive: zipfile.ZipFile) -> str:
    """Return the name of the package's document part; raises `UnparsableDocument` without one."""
    for relationship in relationships(archive, ""):
        if relationship.kind == "officeDocument":
            return relationship.target
    raise UnparsableDocument("corrupt", "package without a main part")


def _resolve(folder: str, element: etree._Element) -> str:
    return posixpath.normpath(posixpath.join("/" + folder, element.get("Target", ""))).lstrip("/")


def safe_parser() -> etree.XMLParser:
    """Return a parser that expands no entities and loads nothing."""
    return etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False)


def events(part: IO[bytes], tags: tuple[str, ...]) -> Iterator[tuple[str, etree._Element]]:
    """Yield the start and end events of some tags, with every protection of lxml on."""
    return iter(
        etree.iterparse(
            part,
            ("start", "end"),
            tag=tags,
            resolve_entities=False,
            no_network=True,
            load_dtd=False,
            huge_tree=False,
        )
    )


class HeadingText(str):
    """A paragraph that is a heading; the lower its `level`, the higher it stands."""

    __slots__ = ("level",)

    def __new__(cls, text: str, level: int) -> HeadingText:
        heading = super().__new__(cls, text)
        heading.level = level
        return heading

    level: int


def block_of(text: str) -> Block:
    """A text of a part as a block."""
    return Block(text, headings=[Heading(text.level, text)] if isinstance(text, HeadingText) else ())


def texts(
    archive: zipfile.ZipFile,
    part: str,
    label: _Label = lambda _: "",
    inserted: _Inserted = lambda _: (),
    level_of: _LevelOf = lambda _: None,
) -> Iterator[str]:
    """Yield the paragraphs and tables of a part in document order; a table's cells are separated by tabs.
    `label` returns the number before a paragraph, from its properties; `inserted` returns the texts of a
    document in the place of a paragraph, by the id of its relationship. `level_of` returns a heading's level
    from its properties: it comes as a `HeadingText`.
    """
    with archive.open(part) as file:
        yield from _Walk(label, inserted, level_of).run(events(file, _TAGS))


class _Walk:
    """Turns a stream of element events into text, holding one paragraph and a few table rows at a time."""

    def __init__(self, label: _Label, inserted: _Inserted, level_of: _LevelOf) -> None:
        self._label = label
        self._level_of = level_of
        self._inserted = inserted
        self._labels: list[str] = []  # of the paragraphs
        self._levels: list[int | None] = []  # of the paragraphs that are headings
        self._skipping = 0
        self._tab_stops = 0
        self._paragraphs: list[list[str]] = []
        self._tables: list[list[_Row]] = []
        self._size = self._room = 0  # of the current portion of the outermost table
        self._cells: list[_Cell] = []

    def run(self, stream: Iterator[tuple[str, etree._Element]]) -> Iterator[str]:
        for event, element in stream:
            name = element.tag.rpartition("}")[2]
            if _skipped(name, element):
                self._skipping += 1 if event == "start" else -1
                if name == _FORMULA and not self._skipping:
                    self._write_formula(element)
            elif self._skipping:
                continue
            elif event == "start":
                self._start(name, element)
            else:
                yield from self._end(name, element)

    def _start(self, name: str, element: etree._Element) -> None:
        if name == "p":
            self._paragraphs.append([])
            self._labels.append("")
            self._levels.append(None)
        elif name == "tbl":
            self._tables.append([])
        elif name == "tr" and self._tables:
            self._tables[-1].append(_Row())
        elif name == "tc":
            self._cells.append(_Cell())
        elif name == "gridSpan" and self._cells:
            self._cells[-1].columns = count_of(value_of(element), MOST_COLUMNS)
        elif name == "vMerge" and self._cells:
            self._cells[-1].goes_on = value_of(element) != "restart"
        elif name in ("tabs", "tabLst"):
            self._tab_stops += 1

    def _end(self, name: str, element: etree._Element) -> Iterator[str]:
        if name == "t":
            self._write_run(element)
        elif name in ("tab", "ptab"):
            self._write("" if self._tab_stops else "\t")
        elif name in ("br", "cr"):
            self._write("\n")
        elif name == "noBreakHyphen":
            self._write("-")
        elif name in _SHOWN:
            self._write(_SHOWN[name](element))
        elif name in ("tabs", "tabLst"):
            self._tab_stops -= 1
        elif name == "tc":
            self._end_cell()
        elif name == "pPr":
            self._end_properties(element)
        else:
            yield from self._end_container(name, element)

    def _end_container(self, name: str, element: etree._Element) -> Iterator[str]:
        if name == "p":
            text, label, level = "".join(self._paragraphs.pop()), self._labels.pop(), self._levels.pop()
            text = f"{label} {text}" if label and text.strip() else text
            is_heading = level is not None and not self._cells and "\n" not in text
            yield from self._place(HeadingText(text, level) if is_heading and level is not None else text)
        elif name == "tbl":
            yield from self._place(_rows(self._tables.pop()))
        elif name == _INSERTED:
            ids = (str(value) for key, value in element.attrib.items() if str(key).endswith("}id"))
            for text in self._inserted(next(ids, "")):
                yield from self._place(text)
        elif name == "tr" and len(self._tables) == 1:
            yield from self._end_row(self._tables[0])
        forget(element)

    def _end_properties(self, element: etree._Element) -> None:
        parent = element.getparent()
        if self._labels and parent is not None and parent.tag.endswith("}p"):  # others: earlier versions
            self._labels[-1], self._levels[-1] = self._label(element), self._level_of(element)

    def _end_row(self, table: list[_Row]) -> Iterator[str]:
        """Yield the rows before the last one if the portion is full; that row begins the next portion, below
        the column names.
        """
        if len(table) == 1:
            self._size, self._room = 0, room_below(table[0])
        self._size += size_of(table[-1])
        if len(table) > 2 and self._size > self._room:
            yield _rows(table[:-1])
            head = count_head(table[:-1])
            del table[head:-1]
            repeated = [cell for row in table[:head] for cell in row]
            self._size, self._room = sum(map(size_of, table)), room_below(repeated or table[0])

    def _write_run(self, element: etree._Element) -> None:
        if _is_hidden(element):
            omit("hidden", int(bool((element.text or "").strip())))
            return
        text, before = element.text or "", "".join(self._paragraphs[-1][-1:]) if self._paragraphs else ""
        self._write(f"^{text}" if is_power(before, text) and _is_raised(element) else text)

    def _write(self, text: str) -> None:
        if self._paragraphs:
            self._paragraphs[-1].append(text)

    def _write_formula(self, element: etree._Element) -> None:
        before = "".join(self._paragraphs[-1][-1:]) if self._paragraphs else ""
        self._write(placed(formula_in(element), before))

    def _place(self, text: str) -> Iterator[str]:
        if self._cells:
            self._cells[-1].texts.append(text)
        elif text.strip():
            yield text

    def _end_cell(self) -> None:
        cell = self._cells.pop()
        text = " ".join(" ".join(cell.texts).split())
        if self._tables and self._tables[-1]:
            above, row = self._tables[-1][-2:-1], self._tables[-1][-1]
            if cell.goes_on and not text and above and len(row) < len(above[0]):
                text = above[0][len(row)] if len(above[0][len(row)]) <= LONGEST_REPEATED else ""
            more = min(cell.columns - 1, MOST_COLUMNS - len(row) - 1)
            row += [text, *[""] * more]
            row.spread += [text, *[text if len(text) <= LONGEST_REPEATED else ""] * more]


def _is_raised(text: etree._Element) -> bool:
    """Whether a run's text is superscript: by its property or its position."""
    run = text.getparent()
    if run is None:
        return False
    marks = [
        value_of(mark) for kind in ("vertAlign", "position") for mark in run.iterfind(f"{{*}}rPr/{{*}}{kind}")
    ]
    marks += [properties.get("baseline", "") for properties in run.iterfind("{*}rPr")]
    return any(map(_RAISED.match, marks))


def _is_hidden(text: etree._Element) -> bool:
    """Whether a run's text is hidden by its own properties."""
    run = text.getparent()
    mark = None if run is None else run.find("{*}rPr/{*}vanish")
    return mark is not None and is_on(mark)


def _skipped(name: str, element: etree._Element) -> bool:
    return name in _SKIPPED or name == _FORMULA or (name == "fld" and element.get("type") == "slidenum")


def _rows(rows: list[_Row]) -> str:
    lines = {"\t".join(row).rstrip(): "\t".join(row.spread) for row in rows if any(row)}
    written = [line for row in rows if (line := "\t".join(row).rstrip())]
    return "\n".join(lines_without_marks(written, lines))


def forget(element: etree._Element) -> None:
    """Free what has been read: the element's contents and the siblings before it."""
    element.clear(keep_tail=False)
    parent = element.getparent()
    if parent is not None:
        del parent[: parent.index(element)]
