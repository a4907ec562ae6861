"""Work on RDF in a limited child process: queries over a snapshot, and reading imported RDF."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from .marks import OWNER, read_marks
from .queries import Checked, QueryRefused, check, reason_of


def ask(snapshot: str, job: str) -> dict[str, Any]:
    """Answer a query over a snapshot.

    `job` is a file with the query, the format, the maximum of rows, and in `merged` the graphs that contain
    exactly what may be read: those of owners or of documents. The answer contains `refused` with the reason,
    or `results` (SPARQL 1.1 Query Results JSON) or `graph`, a text.
    """
    import pyoxigraph as ox

    task = json.loads(Path(job).read_text(encoding="utf-8"))
    checked = _checked(task["query"])
    if isinstance(checked, str):
        return {"refused": checked}
    store = ox.Store.read_only(snapshot)
    read = _dataset(checked, task["merged"], partial(_documents, store, task["merged"]))
    if "refused" in read:
        return read
    try:
        solutions = store.query(
            checked.text,
            default_graph=[ox.NamedNode(name) for name in read["default"]],
            named_graphs=[ox.NamedNode(name) for name in read["named"]],
        )
        return _answer(solutions, checked.form, task["format"], task["rows"])
    except SyntaxError as error:
        return {"refused": reason_of(error)}
    except ValueError as error:
        return {"refused": str(error)[:500]}
    except RuntimeError as error:
        if "not supported" not in str(error):  # otherwise the store is at fault
            raise
        return {"refused": str(error)[:500]}


def read_query(job: str) -> dict[str, Any]:
    """Only check a query over the graphs that `job` lists. The answer contains `refused`, or `text` (what may
    run), `form` and the graphs of the dataset, `default` and `named`.
    """
    task = json.loads(Path(job).read_text(encoding="utf-8"))
    checked = _checked(task["query"])
    if isinstance(checked, str):
        return {"refused": checked}
    dataset = _dataset(checked, task["graphs"], lambda: task["graphs"])
    return {"text": checked.text, "form": checked.form, **dataset}


def _checked(query: str) -> Checked | str:
    """The query, or why it is refused."""
    try:
        return check(query)
    except QueryRefused as error:
        return str(error)
    except RecursionError:
        return "is nested too deeply; simplify it"


def _documents(store: Any, merged: Sequence[str]) -> list[str]:
    """The graphs of the documents that merged graphs consist of."""
    graphs = set(merged)
    return [name for name, owner in read_marks(store, OWNER).items() if name in graphs or owner in graphs]


def _dataset(checked: Checked, merged: list[str], documents: Callable[[], list[str]]) -> dict[str, Any]:
    """The graphs that a query reads. Documents are only listed for a query about named graphs: there may be
    thousands, and a dataset of so many is slow even if no pattern uses them.
    """
    if not checked.asks_graphs and checked.default is None:
        return {"default": merged, "named": []}
    allowed = documents()
    from_graphs = {*(checked.default or ()), *(checked.named or ())}
    hidden = sorted(from_graphs.difference(allowed))
    if hidden:
        return {"refused": f"FROM names a graph that you can't see: {hidden[0]}"}
    named = (allowed if checked.named is None else checked.named) if checked.asks_graphs else []
    return {"default": merged if checked.default is None else checked.default, "named": named}


def _answer(solutions: Any, form: str, media_type: str, most: int) -> dict[str, Any]:
    import pyoxigraph as ox

    if form == "ASK":
        return {"results": {"head": {}, "boolean": bool(solutions)}, "truncated": False}
    if form == "SELECT":
        variables = [variable.value for variable in solutions.variables]
        rows = list(islice(solutions, most + 1))
        bindings = [_binding(row, variables) for row in rows[:most]]
        results = {"head": {"vars": variables}, "results": {"bindings": bindings}}
        return {"results": results, "truncated": len(rows) > most}
    triples = list(islice(solutions, most + 1))
    data = ox.serialize(triples[:most], format=ox.RdfFormat.from_media_type(media_type))
    return {"graph": (data or b"").decode(), "truncated": len(triples) > most}


def _binding(row: Any, variables: list[str]) -> dict[str, Any]:
    return {name: _term(row[name]) for name in variables if row[name] is not None}


def _term(term: Any) -> dict[str, Any]:
    import pyoxigraph as ox

    if isinstance(term, ox.NamedNode):
        return {"type": "uri", "value": term.value}
    if isinstance(term, ox.BlankNode):
        return {"type": "bnode", "value": term.value}
    if isinstance(term, ox.Literal):
        literal = {"type": "literal", "value": term.value}
        if term.language:
            literal["xml:lang"] = term.language
        elif term.datatype.value != "http://www.w3.org/2001/XMLSchema#string":
            literal["datatype"] = term.datatype.value
        return literal
    parts = {"subject": term.subject, "predicate": term.predicate, "object": term.object}
    return {"type": "triple", "value": {name: _term(part) for name, part in parts.items()}}
