"""Errors of the service."""

from __future__ import annotations

from kernel.sdk import Conflict, NotFound


class EntityNotFound(NotFound):
    code = "entity_not_found"
    default_detail = "No entity of that name is in the graphs that you can see"


class DocumentOfKnowledgeBase(Conflict):
    code = "document_of_knowledge_base"
    default_detail = (
        "This graph was built from a document of a knowledge base; delete the document there, "
        "or set graph to false on the knowledge base"
    )


class GraphNotFound(NotFound):
    code = "graph_not_found"
    default_detail = "There is no such graph among those that you can see"
