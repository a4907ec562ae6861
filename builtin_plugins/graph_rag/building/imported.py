"""A graph of one's own from RDF: each statement between two things is a line, and its relation."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kernel.sdk import Caller, Unprocessable, contracts

from .. import schemas, schemas_rdf
from ..extraction.mentions import NOUN_PHRASE, Mention, key_of
from ..rdf.asking import call_child
from ..storing.writing import Origin, write_graph
from .documents import BuiltGraph, assemble
from .passages import LONGEST
from .protocol import Found, Link

_READ = "builtin_plugins.graph_rag.rdf.reading:read"
_MOST_STATEMENTS = 50_000
_ENGINE = "rdf/1"


async def take_in(caller: Caller, request: schemas_rdf.ImportRequest) -> schemas.Constructed:
    """Keep RDF as a graph of the caller's, in place of an earlier one. Raises Unprocessable, Unavailable."""
    platform = caller.platform
    file = platform.scratch.new(".rdf")
    try:
        await asyncio.to_thread(file.write_text, request.content, encoding="utf-8")
        found = await call_child(platform, _READ, str(file), request.format, _MOST_STATEMENTS)
    finally:
        await asyncio.to_thread(file.unlink, missing_ok=True)
    if "refused" in found:
        raise Unprocessable.field(("body", "content"), str(found["refused"]))
    built = await asyncio.to_thread(_build, request.document_id, found["statements"], found["labels"])
    if not built.relations:
        raise Unprocessable.field(("body", "content"), "has no statement between two things that have names")
    origin = Origin(caller.principal.subject, request.document_id, title=request.title, source=request.source)
    await platform.database.write(write_graph, origin, built, _ENGINE, relationships=True)
    entities, relations = len(built.entities), len(built.relations)
    return schemas.Constructed(
        document_id=request.document_id,
        entity_count=entities,
        relationship_count=relations,
        message=f"Graph imported: {entities} entities, {relations} relationships",
    )


def _build(document_id: str, statements: Sequence[Sequence[str]], labels: Mapping[str, str]) -> BuiltGraph:
    passages: list[contracts.DocumentPassage] = []
    found: list[Found] = []
    for at, part in enumerate(_parts(statements)):
        text, one = _page(part, labels)
        start = passages[-1].char_end if passages else 0
        made = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{document_id}/{at}"))
        passages.append(contracts.DocumentPassage(made, at, text, None, start, start + len(text)))
        found.append(one)
    return assemble(passages, found, relationships=True)


def _parts(statements: Sequence[Sequence[str]]) -> Iterable[list[Sequence[str]]]:
    part: list[Sequence[str]] = []
    size = 0
    for one in statements:
        if part and size + sum(map(len, one)) > LONGEST:
            yield part
            part, size = [], 0
        part.append(one)
        size += sum(map(len, one)) + 4
    if part:
        yield part


def _page(statements: Iterable[Sequence[str]], labels: Mapping[str, str]) -> tuple[str, Found]:
    text, mentions, links = "", [], []
    for subject, predicate, target in statements:
        ends: list[Any] = []
        for name, after in ((subject, f" {predicate} "), (target, ".\n")):
            start = len(text)
            text += name
            ends.append(Mention(start, len(text), name, key_of(name), labels.get(name, NOUN_PHRASE)))
            text += after
        one, two = ends
        mentions += ends
        if one.key and two.key and one.key != two.key:
            links.append(Link(one.key, predicate, two.key, "SVO", 1.0, one.start, two.end))
    return text, Found(mentions, links)
