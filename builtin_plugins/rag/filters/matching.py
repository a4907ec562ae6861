"""Parts of names as databases compare them: without the difference between capitals and small letters.

The columns of `rag_document` have no folded form beside them, and what databases fold depends on their
locale. So the pattern spells each letter in both cases: GLOB on SQLite, a regular expression on PostgreSQL.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Any, Final, Literal

from sqlalchemy import Boolean, ColumnElement, String, bindparam, or_
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

Part = Literal["contains", "starts_with", "ends_with"]

_GLOB_SPECIAL: Final = "*?["


def has_part(column: ColumnElement[str], part: Part, text: str) -> ColumnElement[bool]:
    """Whether a text of the database has another in it, at its start or at its end.

    Its accents may be spelled as in NFC or, in names from macOS, as in NFD. Some letters are one
    character only as capitals: "İ".
    """
    forms = dict.fromkeys(
        unicodedata.normalize(form, spelled) for spelled in (text, _capitals(text)) for form in ("NFC", "NFD")
    )
    return or_(*(_Pattern(column, part, form) for form in forms))


class _Pattern(FunctionElement[bool]):
    type = Boolean()
    inherit_cache = True

    def __init__(self, column: ColumnElement[str], part: Part, text: str) -> None:
        spelled = [_cases(one) for one in text]
        glob = "".join(_in_glob(one) for one in spelled)
        expression = "".join(_in_expression(one) for one in spelled)
        before, after = part != "starts_with", part != "ends_with"
        super().__init__(
            column,
            bindparam(None, f"{'*' * before}{glob}{'*' * after}", String),
            bindparam(None, f"{'' if before else '^'}{expression}{'' if after else '$'}", String),
        )


@compiles(_Pattern, "sqlite")
def _glob(element: _Pattern, compiler: Any, **options: Any) -> str:
    column, glob, _ = element.clauses
    return f"({compiler.process(column, **options)} GLOB {compiler.process(glob, **options)})"


@compiles(_Pattern)
def _expression(element: _Pattern, compiler: Any, **options: Any) -> str:
    column, _, expression = element.clauses
    return f"({compiler.process(column, **options)} ~ {compiler.process(expression, **options)})"


def _capitals(text: str) -> str:
    """In capitals, but for letters that have none of one character."""
    return "".join(letter.upper() if len(letter.upper()) == 1 else letter for letter in text)


def _cases(letter: str) -> str:
    """A letter as a capital and a small one, if each is one character."""
    forms = dict.fromkeys((letter, letter.lower(), letter.upper()))
    return "".join(one for one in forms if len(one) == 1)


def _in_glob(cases: str) -> str:
    if len(cases) == 1:
        return f"[{cases}]" if cases in _GLOB_SPECIAL else cases
    return f"[{cases}]"


def _in_expression(cases: str) -> str:
    if len(cases) == 1:
        return re.escape(cases) if cases.isascii() else cases
    return f"[{cases}]"
