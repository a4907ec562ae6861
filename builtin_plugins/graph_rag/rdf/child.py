"""Work on RDF in a limited child process: a query over a snapshot, and the reading of RDF from outside."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path
from typing import Any

from .queries import QueryRefused, check, reason_of


def ask(snapshot: str, job: str) -> dict[str, Any]:
    """Answer a query over a snapshot.

    `job` is a file with query, format, the most rows, the graphs that may be named, and as `merged` those
    that hold exactly what these do, for a query that names none. There can be thousands of graphs, so they
    may be left out: the answer to a query that is about them is then `needs`.
    Else it says `refused` and why, or holds `results` (SPARQL 1.1 Query Results JSON) or `graph`, a text.
    """
    import pyoxigraph as ox

    task = json.loads(Path(job).read_text(encoding="utf-8"))
    read = _checked(task)
    if "form" not in read:
        return read
    store = ox.Store.read_only(snapshot)
    try:
        found = store.query(
            task["query"],
            default_graph=[ox.NamedNode(name) for name in read["default"]],
            named_graphs=[ox.NamedNode(name) for name in read["named"]],
        )
        return _answer(found, read["form"], task["format"], task["rows"])
    except SyntaxError as error:
        return {"refused": reason_of(error)}
    except ValueError as error:
        return {"refused": str(error)[:500]}
    except RuntimeError as error:
        if "not supported" not in str(error):  # then the store is at fault
            raise
        return {"refused": str(error)[:500]}


def read_query(job: str) -> dict[str, Any]:
    """Only check a query: `refused`, or its `form` and the graphs `default` and `named` of its dataset."""
    return _checked(json.loads(Path(job).read_text(encoding="utf-8")))


def _checked(task: dict[str, Any]) -> dict[str, Any]:
    try:
        checked = check(task["query"])
    except QueryRefused as error:
        return {"refused": str(error)}
    except RecursionError:
        return {"refused": "is nested too deeply; make it simpler"}
    if "graphs" not in task:
        if checked.asks_graphs or checked.default is not None:
            return {"needs": "graphs"}
        return {"form": checked.form, "default": task["merged"], "named": []}
    allowed = set(task["graphs"])
    hidden = next(
        (one for one in (*(checked.default or ()), *(checked.named or ())) if one not in allowed), None
    )
    if hidden is not None:
        return {"refused": f"FROM names a graph that you can't see: {hidden}"}
    default = task["merged"] if checked.default is None else checked.default
    named = task["graphs"] if checked.named is None else checked.named
    if not checked.asks_graphs:
        named = []  # a dataset of many thousand graphs costs time, even where no pattern asks for one
    return {"form": checked.form, "default": default, "named": named}


def _answer(found: Any, form: str, wanted: str, most: int) -> dict[str, Any]:
    import pyoxigraph as ox

    if form == "ASK":
        return {"results": {"head": {}, "boolean": bool(found)}, "truncated": False}
    if form == "SELECT":
        variables = [variable.value for variable in found.variables]
        rows = list(islice(found, most + 1))
        bindings = [_binding(row, variables) for row in rows[:most]]
        results = {"head": {"vars": variables}, "results": {"bindings": bindings}}
        return {"results": results, "truncated": len(rows) > most}
    triples = list(islice(found, most + 1))
    made = ox.serialize(triples[:most], format=ox.RdfFormat.from_media_type(wanted))
    return {"graph": (made or b"").decode(), "truncated": len(triples) > most}


def _binding(row: Any, variables: list[str]) -> dict[str, Any]:
    return {name: _term(row[name]) for name in variables if row[name] is not None}


def _term(term: Any) -> dict[str, Any]:
    import pyoxigraph as ox

    if isinstance(term, ox.NamedNode):
        return {"type": "uri", "value": term.value}
    if isinstance(term, ox.BlankNode):
        return {"type": "bnode", "value": term.value}
    if isinstance(term, ox.Literal):
        made = {"type": "literal", "value": term.value}
        if term.language:
            made["xml:lang"] = term.language
        elif term.datatype.value != "http://www.w3.org/2001/XMLSchema#string":
            made["datatype"] = term.datatype.value
        return made
    parts = {"subject": term.subject, "predicate": term.predicate, "object": term.object}
    return {"type": "triple", "value": {name: _term(part) for name, part in parts.items()}}
