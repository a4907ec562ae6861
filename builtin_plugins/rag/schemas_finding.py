"""What people find without asking: documents by their names, and what could be asked."""

from __future__ import annotations

from pydantic import BaseModel, Field

from kernel.sdk import example


class NameQuery(BaseModel):
    """The words of a document's name."""

    model_config = example(q="travel 2026", limit=5)

    q: str = Field(
        min_length=2, max_length=200, description="Words that all occur in the name of the file, in any case."
    )
    limit: int = Field(10, ge=1, le=50)


class NamedDocument(BaseModel):
    """A document by its name."""

    document_id: str
    filename: str
    knowledge_base_id: str
    knowledge_base_name: str


class NamedDocuments(BaseModel):
    """Documents of all knowledge bases that the caller sees, the latest first."""

    items: list[NamedDocument]


class TopicQuery(BaseModel):
    """How many topics to list."""

    model_config = example(limit=4)

    limit: int = Field(4, ge=1, le=20)


class HeadingTopic(BaseModel):
    """Something that a document is about."""

    document_id: str
    filename: str
    heading: str = Field(description="A heading of the document, without its marks.")
    is_title: bool = Field(description="Whether it is the first one, so that it says what all of it is.")
    is_question: bool = Field(description="Whether it is a question, which the text below it answers.")


class Topics(BaseModel):
    """Headings of the latest documents of a knowledge base that the caller may read."""

    items: list[HeadingTopic]
