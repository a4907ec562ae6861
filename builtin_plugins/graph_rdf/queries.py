"""Checks a SPARQL query before it runs: it may only read graphs that the caller sees.

Two checks must agree that it doesn't reach beyond the store: a search of rdflib's syntax tree for federated
patterns, and a scan of the text, since Oxigraph has its own parser. Parsers differ about escaped code points
and line ends, so these are resolved first, and the text that was checked is the one that runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

LONGEST = 20_000
_QUIET = re.compile(
    r"#[^\n\r]*"
    r"|<[^<>\"{}|^`\\\x00-\x20]*>"
    r"|\"\"\"(?:\"{0,2}(?:[^\"\\]|\\.))*\"\"\"|'''(?:'{0,2}(?:[^'\\]|\\.))*'''"
    r"|\"(?:[^\"\\\n\r]|\\.)*\"|'(?:[^'\\\n\r]|\\.)*'"
    r"|[?$]\w+|(?<=:)[\w-]+"
    r"|\\.",  # in a prefixed name, an escaped quote or # opens nothing
    re.DOTALL,
)
_ESCAPE = re.compile(r"\\u([0-9A-Fa-f]{4})|\\U([0-9A-Fa-f]{4,8})")
_LINE_END = re.compile(r"\r\n?")
_SENTENCE = re.compile(r"\\?\w+(?: [\w'<>:/#.-]+){2,}")
_FORMS = {
    "SelectQuery": "SELECT",
    "AskQuery": "ASK",
    "ConstructQuery": "CONSTRUCT",
    "DescribeQuery": "DESCRIBE",
}


class QueryRefused(ValueError):
    """The query is not allowed or not valid. The text is for its author."""


@dataclass(frozen=True, slots=True)
class Checked:
    """An allowed query. `default` and `named` are the graphs of FROM and FROM NAMED; None without either.

    `text` is the query as it was checked: only this may run. `asks_graphs` says whether any pattern is about
    named graphs.
    """

    text: str
    form: str
    default: list[str] | None
    named: list[str] | None
    asks_graphs: bool


def check(text: str) -> Checked:
    """Raise QueryRefused for a query that may not run."""
    try:
        return _check(_plain(text))
    except QueryRefused:
        raise
    except ValueError as error:  # invalid escapes and IRIs
        raise QueryRefused(f"not a SPARQL query: {str(error)[:200]}") from None


def _check(text: str) -> Checked:
    if "service" in _QUIET.sub(" ", text).lower():
        raise QueryRefused("SERVICE is not allowed: a query can't reach other servers")
    opening, tree = _parsed(text)
    form = _FORMS.get(getattr(tree, "name", ""))
    if form is None:
        raise QueryRefused("only SELECT, ASK, CONSTRUCT and DESCRIBE are allowed")
    kinds = {getattr(node, "name", "") for node in _nodes(tree)}
    if "ServiceGraphPattern" in kinds:
        raise QueryRefused("SERVICE is not allowed: a query can't reach other servers")
    if "datasetClause" not in tree:
        return Checked(text, form, None, None, "GraphGraphPattern" in kinds)
    clauses = tree["datasetClause"]
    default = [_address(opening, clause.default) for clause in clauses if "default" in clause]
    named = [_address(opening, clause.named) for clause in clauses if "named" in clause]
    return Checked(text, form, default, named, "GraphGraphPattern" in kinds)


def reason_of(error: SyntaxError) -> str:
    """Oxigraph's syntax error, without the list of everything that its grammar would accept."""
    place, _, expected = str(error).removeprefix("error at ").partition(": expected ")
    line, _, column = place.partition(":")
    if not (line.isdecimal() and column.isdecimal()):
        return "not a SPARQL query"
    sentences = [one for one in expected.removeprefix("one of ").split(", ") if _SENTENCE.fullmatch(one)]
    where = f"not a SPARQL query: line {line}, column {column}"
    return f"{where}: {'; '.join(sentences)}" if sentences else where


def _parsed(text: str) -> tuple[Any, Any]:
    from pyparsing.exceptions import ParseBaseException
    from rdflib.plugins.sparql.parser import parseQuery

    try:
        opening, tree = parseQuery(text)
    except ParseBaseException as error:
        place = f"line {error.lineno}, column {error.column}"
        raise QueryRefused(f"not a SPARQL query (SELECT, ASK, CONSTRUCT, DESCRIBE): {place}") from None
    return opening, tree


def _address(opening: Any, written: Any) -> str:
    """A graph's full IRI, resolved by BASE and PREFIX."""
    from rdflib.plugins.sparql.algebra import translatePrologue

    prologue = translatePrologue(opening, None)
    if getattr(written, "name", "") == "pname":
        declared = prologue.namespace_manager.store.namespace(written.prefix or "")
        if declared is None:
            raise QueryRefused("FROM uses a prefix that no PREFIX declares")
    return str(prologue.absolutize(written))


def _plain(text: str) -> str:
    """The query with one kind of line end and without escapes of code points (SPARQL 1.1, section 19.2).

    A parser that resolves such an escape and one that doesn't disagree on where a comment or a string ends if
    it stands for ASCII, which nobody needs to escape.
    """
    return _LINE_END.sub("\n", _ESCAPE.sub(_character, text))


def _character(escape: re.Match[str]) -> str:
    code = int(escape[1] or escape[2], 16)
    if code < 0x80:
        raise QueryRefused(f"{escape[0]} could hide SERVICE; write ASCII characters as they are")
    if code > 0x10FFFF or 0xD800 <= code < 0xE000 or len(escape[0]) not in (6, 10):
        raise QueryRefused(f"{escape[0]} is not a unicode code point")
    return chr(code)


def _nodes(node: Any) -> Iterator[Any]:
    waiting = [node]
    while waiting:
        item = waiting.pop()
        yield item
        if isinstance(item, dict):
            waiting += item.values()
        elif isinstance(item, list | tuple) or hasattr(item, "asList"):
            waiting += list(item)
