"""The caller's graph from statements: each one between two things becomes a line and a relation."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from builtin_plugins.rag import api as rag
from kernel.sdk import Caller

from ..extraction.mentions import Mention, key_of
from ..schemas import Constructed
from ..storing.writing import Origin, write_graph
from .documents import BuiltGraph, assemble, counted
from .passages import LONGEST
from .protocol import CO_OCCURS_WITH, EntityLink, Extraction, RelationKind
from .resolving import REASONS, Reason, ResolvedAlias

_ENGINE = "rdf/1"


class NothingStated(Exception):
    """There is no statement between two named things."""


async def store_statements(
    caller: Caller, document_id: str, content: Mapping[str, Any], title: str | None, source: str | None
) -> Constructed:
    """Store statements as a graph of the caller's, replacing an earlier one. Raises NothingStated.

    In `content`, `things` are lists of key, name and label; `statements` are lists of subject, predicate,
    object and weight, and `namings` of another name, the reason and the thing, with things as indexes.
    """
    built = await asyncio.to_thread(_build, document_id, content)
    if not built.relations:
        raise NothingStated
    origin = Origin(caller.principal.subject, document_id, title=title, source=source)
    await caller.platform.database.write(write_graph, origin, built, _ENGINE, relationships=True)
    entities, relations = len(built.entities), len(built.relations)
    return Constructed(
        document_id=document_id,
        entity_count=entities,
        relationship_count=relations,
        message=f"Graph imported: {counted(entities, relations)}",
    )


class _Line(NamedTuple):
    """A line of text and what it says; positions of mentions are relative to the line."""

    text: str
    mentions: Sequence[Mention]
    link: EntityLink | None = None
    naming: ResolvedAlias | None = None


def _build(document_id: str, content: Mapping[str, Any]) -> BuiltGraph:
    passages: list[rag.Passage] = []
    analysed: list[Extraction] = []
    aliases: dict[str, ResolvedAlias] = {}
    for at, lines in enumerate(_parts(_lines(content))):
        start = passages[-1].char_end if passages else 0
        text = "".join(line.text for line in lines)
        passage_id = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{document_id}/{at}"))
        end = start + len(text)
        passages.append(rag.Passage(text, "", 0.0, passage_id, document_id, None, start, end, position=at))
        mentions, links, offset = [], [], 0
        for line in lines:
            mentions += [
                mention._replace(start=mention.start + offset, end=mention.end + offset)
                for mention in line.mentions
            ]
            if line.link is not None:
                links.append(line.link._replace(start=line.link.start + offset, end=line.link.end + offset))
            if line.naming is not None:
                end = offset + len(line.text) - 1
                naming = replace(line.naming, position=at, start=offset, end=end)
                aliases.setdefault(naming.alias, naming)
            offset += len(line.text)
        analysed.append(Extraction(mentions, links))
    return assemble(passages, analysed, aliases, relationships=True)


def _lines(content: Mapping[str, Any]) -> Iterator[_Line]:
    """A line for each statement, each additional name, and each thing in no statement."""
    things: Sequence[tuple[str, str, str]] = content["things"]
    alone = set(range(len(things)))
    for subject, predicate, target, weight in content["statements"]:
        alone -= {subject, target}
        text = f"{things[subject][1]} {predicate} {things[target][1]}.\n"
        first, second = _mention(things[subject], text, 0), _mention(things[target], text, -2)
        near = predicate == CO_OCCURS_WITH
        if first.key and second.key and first.key != second.key:
            kind: RelationKind = "CO_OCCURRENCE" if near else "SVO"
            link = EntityLink(first.key, predicate, second.key, kind, weight, first.start, second.end)
            yield _Line(text, (first, second), link)
        else:
            yield _Line(text, (first, second))
    for name, reason, thing in content["namings"]:
        alone.discard(thing)
        text = f"{things[thing][1]} ({name})\n"
        mention, alias = _mention(things[thing], text, 0), key_of(name)
        known_reason: Reason = reason if reason in REASONS else "abbreviation"
        if alias and alias != mention.key:
            resolved = ResolvedAlias(alias, mention.key, name, known_reason, 0, 0, 0)
            yield _Line(text, (mention,), naming=resolved)
    for thing in sorted(alone):
        text = f"{things[thing][1]}\n"
        yield _Line(text, (_mention(things[thing], text, 0),))


def _mention(thing: Sequence[str], text: str, end: int) -> Mention:
    """The mention of a thing at the start of a text or, with `end` (negative), that far from its end."""
    key, name, label = thing
    start = len(text) + end - len(name) if end else 0
    return Mention(start, start + len(name), name, key, label)


def _parts(lines: Iterable[_Line]) -> Iterator[list[_Line]]:
    part: list[_Line] = []
    size = 0
    for line in lines:
        if part and size + len(line.text) > LONGEST:
            yield part
            part, size = [], 0
        part.append(line)
        size += len(line.text)
    if part:
        yield part
