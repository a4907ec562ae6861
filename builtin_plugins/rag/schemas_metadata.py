"""Bodies and answers about the fields of documents."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from builtin_plugins.rag.filters.grammar import SentFilter
from builtin_plugins.rag.metadata.kinds import LONGEST_NAME, FieldKind
from kernel.sdk import Body, example

MOST_EDITED = 10_000
MOST_RULES = 100
_Metadata = dict[Annotated[str, Field(max_length=LONGEST_NAME * 4)], Any]


class FieldOut(BaseModel):
    """A field of documents."""

    name: str
    kind: FieldKind
    many: bool = Field(description="Whether a document may have several values.")
    description: str
    built_in: bool = Field(description="Whether every knowledge base has it.")
    can_be_set: bool = Field(description="False for what the server knows of every document, as its size.")
    propose: bool = Field(False, description="Whether a model proposes values.")


class FieldPut(Body):
    """A field to declare, or its change."""

    model_config = Body.model_config | example(kind="number", description="The year of the contract")

    kind: FieldKind = "text"
    many: bool = Field(False, description="Whether a document may have several values.")
    description: Annotated[str, StringConstraints(strip_whitespace=True, max_length=255)] = ""
    propose: bool = Field(
        False,
        description="Let the connected model read values in the texts. They are `proposals` until accepted.",
    )


class MetadataChange(BaseModel):
    """Values by field. A list is for fields with several values; null removes."""

    model_config = ConfigDict(extra="allow", **example(tags=["travel", "policy"], author=None))

    @property
    def values(self) -> dict[str, Any]:
        """The values that were sent."""
        return self.model_extra or {}


class DocumentMetadata(BaseModel):
    """The values of a document's fields, and who says so."""

    document_id: str
    metadata: dict[str, Any]
    origins: dict[str, str] = Field(
        description="By field: `hand`, `source`, `rule` (of the knowledge base), `file`, or `text` (what it "
        "says about when it applies)."
    )
    proposals: dict[str, Any] = Field(
        {},
        description="What its text says about fields without a value, or a model reads there. To accept it, "
        "set it; to reject it, set null.",
    )


class MetadataEdit(Body):
    """A change of many documents at once: all of it or, after an error, nothing."""

    model_config = Body.model_config | example(
        document_ids=["3f0c9a52-7d0e-4b1c-9a65-0c1d2e3f4a5b"],
        set={"year": 2026},
        add={"tags": ["reviewed"]},
        remove={"tags": ["draft"]},
    )

    document_ids: list[Annotated[str, Field(max_length=64)]] | None = Field(
        None, min_length=1, max_length=MOST_EDITED, description="The documents to change."
    )
    filter: SentFilter | None = Field(
        None, description="Instead of ids: all documents that match, as in a search."
    )
    set: _Metadata = Field({}, description="Values that take the place of the present ones; null removes.")
    add: _Metadata = Field({}, description="Values to add to fields with several values.")
    remove: _Metadata = Field({}, description="Values to remove, if a document has them.")

    @model_validator(mode="after")
    def _says_which(self) -> MetadataEdit:
        if (self.document_ids is None) == (self.filter is None):
            raise ValueError("send either document_ids or a filter")
        return self


class MetadataEdited(BaseModel):
    """How many documents have changed."""

    documents: int


class RuleIn(Body):
    """A rule: documents whose path fits get a value."""

    pattern: str = Field(
        min_length=1,
        max_length=500,
        description="A path in which `*` stands for any part of a name, `**` for any folders, and `{year}` "
        "for a part that is used as a value: `contracts/{year}/*.pdf`.",
    )
    field: str = Field(min_length=1, max_length=LONGEST_NAME)
    value: Any = Field(None, description="The value, or a list of them; null to use a part of the path.")
    part: str | None = Field(
        None,
        max_length=LONGEST_NAME,
        description="The part of the path to use; if omitted, that of the field.",
    )


class RulesPut(Body):
    """All rules of a knowledge base, in their order. For a field with one value, the first that fits counts,
    for one with several, all that fit.
    """

    model_config = Body.model_config | example(
        rules=[
            {"pattern": "contracts/{year}/*.pdf", "field": "year"},
            {"pattern": "contracts/**", "field": "tags", "value": ["contract"]},
        ]
    )

    rules: list[RuleIn] = Field(max_length=MOST_RULES)


class RulesOut(BaseModel):
    """The rules of a knowledge base."""

    rules: list[RuleIn]


class RulesChanged(RulesOut):
    """The rules, and the job that applies them to the documents that are there."""

    job_id: str = Field(description="Follow it at /v1/jobs.")
