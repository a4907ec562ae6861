"""Graphs of texts that a caller sends: returned at once, or stored as its own."""

from __future__ import annotations

import asyncio

from sqlalchemy import select
from sqlalchemy.orm import Session

from kernel.sdk import Caller, Unprocessable

from .. import schemas
from ..asking.labels import meaning
from ..errors import DocumentOfKnowledgeBase
from ..models import Graph
from ..settings import GraphSettings
from ..storing.access import GraphSight, sight_of
from ..storing.writing import Dropped, Origin, drop_of_maker, write_graph
from .documents import BuiltGraph, build, counted
from .engines import ENGINES, identity
from .passages import cut


async def extract(caller: Caller, request: schemas.ExtractRequest) -> schemas.Extracted:
    """The entities and relations of a text; nothing is stored. Raises Unavailable."""
    extractor = caller.platform.resource(ENGINES).chosen()
    passages = cut("", request.text)
    built = await asyncio.to_thread(build, extractor, passages, relationships=request.extract_relationships)
    entities, related = _mentions(built), _relationships(built)
    return schemas.Extracted(
        entities=entities,
        relationships=related,
        entity_count=len(entities),
        relationship_count=len(related),
    )


def _mentions(built: BuiltGraph) -> list[schemas.MentionOut]:
    return [
        schemas.MentionOut(
            text=mention.text,
            label=mention.label,
            start=passage.char_start + mention.start,
            end=passage.char_start + mention.end,
            description=meaning(mention.label),
        )
        for passage, mentions in zip(built.passages, built.mentions, strict=True)
        for mention in mentions
    ]


def _relationships(built: BuiltGraph) -> list[schemas.RelationshipOut]:
    names = {entity.key: entity.name for entity in built.entities}
    return [
        schemas.RelationshipOut(
            subject=names[one.link.subject],
            predicate=one.link.predicate,
            object=names[one.link.object],
            type=one.link.kind,
        )
        for one in built.relations
    ]


async def construct(caller: Caller, request: schemas.ConstructRequest) -> schemas.Constructed:
    """Build the graph of a document of the caller's own, replacing any earlier one.

    Raises Unavailable, Unprocessable for a text that is too long.
    """
    platform = caller.platform
    most = platform.settings_of(GraphSettings).max_text_chars
    if len(request.text) > most:
        raise Unprocessable.field(
            ("body", "text"), f"is longer than {most} characters; send it as several documents"
        )
    extractor = platform.resource(ENGINES).chosen()
    passages = await asyncio.to_thread(cut, request.document_id, request.text)
    relate = request.extract_relationships
    built = await asyncio.to_thread(build, extractor, passages, relationships=relate)
    origin = Origin(
        caller.principal.subject,
        request.document_id,
        knowledge_base_id=request.kb_id,
        title=request.title,
        source=request.source,
        details=request.metadata,
    )
    await platform.database.write(write_graph, origin, built, identity(extractor), relationships=relate)
    entities, relations = len(built.entities), len(built.relations)
    return schemas.Constructed(
        document_id=request.document_id,
        entity_count=entities,
        relationship_count=relations,
        message=f"Graph built: {counted(entities, relations)}",
    )


async def drop(caller: Caller, document_id: str) -> schemas.GraphDropped:
    """Drop a graph that the caller constructed; does nothing if there is none.

    Raises DocumentOfKnowledgeBase for one of a knowledge base that the caller sees.
    """
    database = caller.platform.database
    dropped = await database.write(drop_of_maker, caller.principal.subject, document_id)
    if dropped == Dropped():
        await database.read(_refuse_of_base, await sight_of(caller), document_id)
    else:
        await database.scrub()
    return schemas.GraphDropped(
        document_id=document_id,
        document_deleted=dropped.graphs,
        relationships_deleted=dropped.relations,
        orphan_entities_deleted=dropped.orphans,
    )


def _refuse_of_base(session: Session, sight: GraphSight, document_id: str) -> None:
    existing = select(Graph.id).where(sight.condition, Graph.maker == "", Graph.document_id == document_id)
    if session.scalar(existing) is not None:
        raise DocumentOfKnowledgeBase()
