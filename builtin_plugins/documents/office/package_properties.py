"""What office packages say about themselves: OOXML's core properties, and ODF's meta.xml."""

from __future__ import annotations

import zipfile
from contextlib import suppress
from typing import Final

from lxml import etree

from builtin_plugins.documents.archives.archive import ZIP_FAULTS, member
from builtin_plugins.documents.blocks import UnparsableDocument
from builtin_plugins.documents.office.ooxml import relationships, safe_parser
from builtin_plugins.documents.properties import PropertyName, listed, note_property

_CORE: Final = "core-properties"
_META: Final = "meta.xml"
_META_TEXTS: Final[tuple[PropertyName, ...]] = ("title", "subject", "language")
_CORE_TEXTS: Final[tuple[PropertyName, ...]] = (*_META_TEXTS, "created", "modified")
_MAX_BYTES: Final = 256 * 1024
_BROKEN: Final = (UnparsableDocument, etree.XMLSyntaxError, *ZIP_FAULTS)
"""Broken properties only cost themselves."""


def note_core_properties(archive: zipfile.ZipFile) -> None:
    """Note what a Word, PowerPoint or Excel file says about itself (ECMA-376 part 2, 11)."""
    with suppress(*_BROKEN):
        part = next((one.target for one in relationships(archive, "") if one.kind == _CORE), None)
        if part is None:
            return
        core = _root(archive, part)
        for name in _CORE_TEXTS:
            note_property(name, core.findtext(f"{{*}}{name}"))
        note_property("author", *(core.findtext("{*}creator") or "").split(";"))
        note_property("keywords", *listed(core.findtext("{*}keywords")))


def note_odf_properties(archive: zipfile.ZipFile) -> None:
    """Note what an OpenDocument file says about itself (ODF 1.3 part 3, 4.3)."""
    with suppress(*_BROKEN):
        if _META not in archive.NameToInfo:
            return
        meta = _root(archive, _META)
        for name in _META_TEXTS:
            note_property(name, meta.findtext(f".//{{*}}{name}"))
        note_property("created", meta.findtext(".//{*}creation-date"))
        note_property("modified", meta.findtext(".//{*}date"))
        note_property("author", meta.findtext(".//{*}initial-creator") or meta.findtext(".//{*}creator"))
        note_property("keywords", *(one.text for one in meta.iterfind(".//{*}keyword")))


def _root(archive: zipfile.ZipFile, part: str) -> etree._Element:
    return etree.fromstring(member(archive, part, _MAX_BYTES), safe_parser())
