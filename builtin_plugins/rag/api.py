"""Knowledge bases, documents, pipelines and questions: types and hooks for other plugins."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, Protocol

from builtin_plugins.rag.answering import contradicting as contradicting
from builtin_plugins.rag.answering.citations import quoted as quoted
from builtin_plugins.rag.answering.quotations import AskedWords as AskedWords
from builtin_plugins.rag.answering.quotations import QuotablePassage as QuotablePassage
from builtin_plugins.rag.answering.quotations import QuotableSentence as QuotableSentence
from builtin_plugins.rag.answering.quotations import Quote as Quote
from builtin_plugins.rag.answering.quotations import Support as Support
from builtin_plugins.rag.answering.words import bare_text as bare_text
from builtin_plugins.rag.answers import AnswerPassages as AnswerPassages
from builtin_plugins.rag.answers import BaseAnswerEvents as BaseAnswerEvents
from builtin_plugins.rag.answers import MeasuredAnswer as MeasuredAnswer
from builtin_plugins.rag.answers import OpenTurn as OpenTurn
from builtin_plugins.rag.answers import PastTurn as PastTurn
from builtin_plugins.rag.answers import PipelineAnswer as PipelineAnswer
from builtin_plugins.rag.answers import PipelineEvents as PipelineEvents
from builtin_plugins.rag.catalog import CATALOG as CATALOG
from builtin_plugins.rag.catalog import BaseEntry as BaseEntry
from builtin_plugins.rag.catalog import CatalogDocument as CatalogDocument
from builtin_plugins.rag.catalog import DocumentCatalog as DocumentCatalog
from builtin_plugins.rag.contents import CONTENTS as CONTENTS
from builtin_plugins.rag.contents import ArrivedDocument as ArrivedDocument
from builtin_plugins.rag.contents import BaseContents as BaseContents
from builtin_plugins.rag.contents import DeclaredMetadata as DeclaredMetadata
from builtin_plugins.rag.contents import WholeBase as WholeBase
from builtin_plugins.rag.contents import WholeDocument as WholeDocument
from builtin_plugins.rag.cursors import CursorPage as CursorPage
from builtin_plugins.rag.cursors import read_cursor_page as read_cursor_page
from builtin_plugins.rag.errors import AnswerFailed as AnswerFailed
from builtin_plugins.rag.errors import DependentPipelines as DependentPipelines
from builtin_plugins.rag.errors import DocumentNotFound as DocumentNotFound
from builtin_plugins.rag.errors import EmptyDocument as EmptyDocument
from builtin_plugins.rag.errors import EngineChanged as EngineChanged
from builtin_plugins.rag.errors import KnowledgeBaseNotFound as KnowledgeBaseNotFound
from builtin_plugins.rag.errors import NotOwner as NotOwner
from builtin_plugins.rag.errors import QueueLimit as QueueLimit
from builtin_plugins.rag.errors import StorageLimit as StorageLimit
from builtin_plugins.rag.errors import UnreadableDocuments as UnreadableDocuments
from builtin_plugins.rag.errors import UnsupportedDocument as UnsupportedDocument
from builtin_plugins.rag.filters.dify import MetadataCondition as MetadataCondition
from builtin_plugins.rag.filters.dify import filter_from_dify as filter_from_dify
from builtin_plugins.rag.filters.grammar import MetadataFilter as MetadataFilter
from builtin_plugins.rag.methods import NO_RUNTIME as NO_RUNTIME
from builtin_plugins.rag.methods import AskConfiguration as AskConfiguration
from builtin_plugins.rag.methods import MeasuredChoice as MeasuredChoice
from builtin_plugins.rag.methods import MethodPhases as MethodPhases
from builtin_plugins.rag.methods import QueryMethod as QueryMethod
from builtin_plugins.rag.methods import QuestionKind as QuestionKind
from builtin_plugins.rag.methods import QuestionWork as QuestionWork
from builtin_plugins.rag.methods import SearchPlan as SearchPlan
from builtin_plugins.rag.models import import_holder as import_holder
from builtin_plugins.rag.passages import Draft as Draft
from builtin_plugins.rag.passages import Passage as Passage
from builtin_plugins.rag.passages import PathStep as PathStep
from builtin_plugins.rag.passages import QuotedSpan as QuotedSpan
from builtin_plugins.rag.passages import RetrievedPassages as RetrievedPassages
from builtin_plugins.rag.permissions import KB_CREATE as KB_CREATE
from builtin_plugins.rag.rights.audiences import DocumentReaders as DocumentReaders
from builtin_plugins.rag.rights.hooks import DocumentAudience as DocumentAudience
from builtin_plugins.rag.rights.hooks import ReaderAccounts as ReaderAccounts
from builtin_plugins.rag.rights.hooks import count_unreadable_documents as count_unreadable_documents
from builtin_plugins.rag.rights.hooks import drop_audiences as drop_audiences
from builtin_plugins.rag.rights.hooks import grant_documents as grant_documents
from builtin_plugins.rag.rights.hooks import list_document_readers as list_document_readers
from builtin_plugins.rag.rights.hooks import select_readable_documents as select_readable_documents
from builtin_plugins.rag.rights.hooks import set_reader_members as set_reader_members
from builtin_plugins.rag.rights.reading import for_visitors as for_visitors
from builtin_plugins.rag.schemas import KnowledgeBaseCreate as KnowledgeBaseCreate
from builtin_plugins.rag.schemas import QuotePlace as QuotePlace
from builtin_plugins.rag.schemas_metadata import FieldPut as FieldPut
from builtin_plugins.rag.schemas_metadata import RuleIn as RuleIn
from builtin_plugins.rag.schemas_transfer import KnowledgeBaseSettings as KnowledgeBaseSettings
from builtin_plugins.rag.services.embedding import check_embedding_model as check_embedding_model
from builtin_plugins.rag.services.embedding import embed as embed
from builtin_plugins.rag.services.embedding import engine_changed as engine_changed
from builtin_plugins.rag.services.leaks import StoredDocuments as StoredDocuments
from builtin_plugins.rag.services.leaks import stored_pipelines as stored_pipelines
from builtin_plugins.rag.services.loading import payload_of as payload_of
from builtin_plugins.rag.services.loading import place_in as place_in
from builtin_plugins.rag.services.loading import seen_bases as seen_bases
from builtin_plugins.rag.services.records import most_upload_mb as most_upload_mb
from builtin_plugins.rag.services.records import read_portions as read_portions
from builtin_plugins.rag.services.records import write_kept as write_kept
from kernel.sdk import hookspec

if TYPE_CHECKING:
    from sqlalchemy import Select
    from sqlalchemy.orm import Session

    from builtin_plugins.inference.api import ChatMessage
    from kernel.sdk import Caller, Platform, Scope, Unit


@dataclass(frozen=True, slots=True)
class PipelineEntry:
    """A pipeline that a caller can ask. `own` means that it belongs to the caller or to nobody.

    `knowledge_bases` counts those of its knowledge bases that the caller may read, `unpublishable` those of
    them whose content the caller may not publish: others own them, and don't allow it.
    """

    id: str
    name: str
    own: bool
    created_at: datetime
    knowledge_bases: int = 0
    unpublishable: int = 0


@dataclass(frozen=True, slots=True)
class DocumentEntry:
    """A version of a document that a caller may read; `size_bytes` is that of the original.

    `superseded_at` is when a newer version took its place, None for the newest.
    """

    knowledge_base_id: str
    document_id: str
    name: str
    content_type: str
    size_bytes: int
    uploaded_at: datetime
    version: int
    sha256: str
    superseded_at: datetime | None


@dataclass(frozen=True, slots=True)
class ShelvedDocument:
    """A completed document among those that a question is about. `version` counts from 1."""

    document_id: str
    knowledge_base_id: str
    name: str
    uploaded_at: datetime
    version: int
    sha256: str


class DocumentShelf(Protocol):
    """The documents that a question is about: those of its knowledge bases that its filter leaves."""

    @property
    def is_filtered(self) -> bool:
        """Whether it has a filter, which may be the reason that there is none."""
        ...

    async def kinds(self) -> Counter[str]:
        """How many documents there are of each kind, by the endings of their names."""
        ...

    async def latest(self, limit: int) -> Sequence[ShelvedDocument]:
        """The documents, newest first."""
        ...

    async def opening(self, document: ShelvedDocument, limit: int) -> Sequence[QuotablePassage]:
        """The document's first passages, in order."""
        ...


@dataclass(frozen=True, slots=True)
class DocumentOverview:
    """An answer about the documents themselves: its kind, such as ``count``, and what it cites as [1] …."""

    kind: str
    text: str
    passages: Sequence[Passage] = ()


@dataclass(frozen=True, slots=True)
class DocumentText:
    """The text of a document, or of one of its passages, as it was read from the original."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class PluginDocument:
    """A document that a plugin keeps in step with something elsewhere.

    `key` begins with the plugin's name and a colon, and has at most 200 characters; within its knowledge
    base, it stands for this document as long as there is one. `readers` are those of all its versions and of
    what comes out of it, from the moment it is stored; None: everybody who sees the knowledge base.
    `metadata` is what `describe_document` would say of it, stored with it; None says nothing.
    """

    key: str
    filename: str
    content: AsyncIterator[bytes]
    readers: DocumentReaders | None = None
    metadata: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class GraphDocument:
    """A readable document of a knowledge base with its graph turned on."""

    document_id: str
    knowledge_base_id: str
    owner_id: int | None
    name: str


@dataclass(frozen=True, slots=True)
class DocumentPassages:
    """Some of a document's passages in order, without its name, and the total number."""

    passages: Sequence[Passage]
    total: int


@dataclass(frozen=True, slots=True)
class RankingScope:
    """What may be ranked: passages of these knowledge bases and, within them, of these documents.

    `document_ids` None means all documents. `limit` is how many passages the ranking will keep.
    """

    knowledge_base_ids: Sequence[str]
    document_ids: Sequence[str] | None
    limit: int


@dataclass(frozen=True, slots=True)
class RankedPassage:
    """A passage's new place in a ranking (`enhance_ranking`): a given passage, or one to add.

    `score` (0 to 1) replaces the score in the ranking. `path` says how the passage was reached. `chunk_index`
    is its position in the document, which saves a search if known.
    """

    knowledge_base_id: str
    document_id: str
    chunk_id: str
    score: float
    path: Sequence[PathStep] = ()
    chunk_index: int | None = None

    def __post_init__(self) -> None:
        ids = (self.knowledge_base_id, self.document_id, self.chunk_id)
        if not all(isinstance(one, str) for one in ids):
            raise TypeError(f"the ids of a passage must be strings, not {ids}")


@dataclass(frozen=True, slots=True)
class RemovedPart:
    """What a plugin still stores about something being deleted: `count` items in `place`.

    A place is in lower case with ``_``, and the same in the receipt as in later checks. `pending`:
    unreachable now, and removed soon after the commit by a durable job.
    """

    place: str
    count: int
    pending: bool = False


@hookspec.first
def list_pipelines(caller: Caller) -> Sequence[PipelineEntry] | None:
    """The pipelines that the caller may ask, oldest first; at most 500."""


@hookspec.first
def ask_pipeline(
    caller: Caller,
    pipeline_id: str,
    question: str,
    history: Sequence[ChatMessage],
    options: Mapping[str, Any],
) -> PipelineEvents | None:
    """A pipeline's answer to a question, piece by piece: yields texts, then one `PipelineAnswer`.

    `history` is what was said before, oldest first; it completes a follow-up question. `options` are further
    fields of a question (``method``, ``top_k`` …). Raises NotFound for a pipeline that the caller may not
    ask, Unavailable when embedding or generation fails, even midway. Closing the generator stops the work.
    """


@hookspec.first
def ask_knowledge_bases(
    caller: Caller,
    knowledge_base_ids: Sequence[str],
    question: str,
    history: Sequence[ChatMessage],
    options: Mapping[str, Any],
    generation: Mapping[str, Any],
) -> BaseAnswerEvents | None:
    """What a pipeline over these knowledge bases would answer: yields its passages, texts, and the answer.

    `options` are further fields of a question, `generation` those of a pipeline's `generation_config`. Raises
    NotFound for a knowledge base that the caller may not see, Unprocessable, and what `ask_pipeline` raises.
    """


@hookspec.first
def search_passages(
    caller: Caller,
    question: str,
    top_k: int,
    knowledge_base_ids: Sequence[str] | None,
    metadata_filter: Mapping[str, Any] | None = None,
    as_of: datetime | str | None = None,
    use_period: bool = True,
) -> Sequence[Passage] | None:
    """The passages that fit a question best, best first, without a model's answer.

    Searches these knowledge bases, or all that the caller may read; with a filter, a time (`as_of`) and the
    period of the question as clients send them, only the documents that match. Raises NotFound for one that
    it may not, BadRequest for too many or a time that can't be, Unprocessable for a filter that can't be,
    Unavailable when embedding fails.
    """


@hookspec.first
def list_documents(caller: Caller, limit: int, offset: int) -> Sequence[DocumentEntry] | None:
    """The completed documents that the caller may read, oldest first."""


@hookspec.first
def read_document(
    caller: Caller, knowledge_base_id: str, document_id: str, chunk_id: str | None
) -> DocumentText | None:
    """The text of a document, or of one passage of it. Raises NotFound, PayloadTooLarge."""


@hookspec.first
def open_knowledge_base(caller: Caller, known: str | None, name: str, description: str) -> str | None:
    """The id of a knowledge base that the caller may write to: `known` if it is one, otherwise a new one.

    A knowledge base that a service creates is open to every account.
    """


@hookspec.first
def store_document(caller: Caller, knowledge_base_id: str, filename: str, content: bytes) -> str | None:
    """Put a document into a knowledge base of the caller; returns its id as soon as it is stored durably.

    The same bytes again are the same document. Raises NotFound, Forbidden, UnsupportedMediaType,
    PayloadTooLarge, InsufficientStorage.
    """


@hookspec.first
def delete_document(caller: Caller, knowledge_base_id: str, document_id: str) -> bool | None:
    """Delete a document of the caller's; no later search finds it. True if it was there. Raises Forbidden."""


@hookspec.first
def put_document(caller: Caller, knowledge_base_id: str, document: PluginDocument) -> str | None:
    """Store a stream as the document with a plugin's key; returns its id as soon as it is stored durably.

    The same bytes change nothing; others become its next version, which answers once it is read. No upload
    replaces such a document or takes it over, and it takes over none. Raises what `store_document` raises,
    and TooManyRequests while too much waits to be read.
    """


@hookspec.first
def rename_document(caller: Caller, knowledge_base_id: str, key: str, filename: str) -> bool | None:
    """Give the document with a plugin's key another file name. True if it is there. Raises NotFound."""


@hookspec.first
def drop_document(caller: Caller, knowledge_base_id: str, key: str) -> bool | None:
    """Delete the document with a plugin's key: its versions and what came out of it, each with a receipt.

    True if there was one. Raises NotFound if its knowledge base is gone or in the trash.
    """


@hookspec.first
def release_document(caller: Caller, knowledge_base_id: str, key: str, path: str) -> bool | None:
    """Leave the document with a plugin's key to people, as if it had been uploaded with this path.

    If another document has the path, it gets one that contains it. True if it is there. Raises NotFound.
    """


@hookspec.first
def describe_document(
    caller: Caller, knowledge_base_id: str, document_id: str, metadata: Mapping[str, Any]
) -> bool | None:
    """Say what a source knows of a document's fields: all of it, in place of what it said before.

    Values that people have set stay. Fields that the knowledge base doesn't have, and values that don't fit
    them, are left out. Raises NotFound, Forbidden.
    """


@hookspec.first_now
def select_graph_documents(platform: Platform, scope: Scope) -> Select[str] | None:
    """A query for the ids of the documents that a scope sees and that have a graph; for use as a subquery."""


@hookspec.first_now
def list_graph_documents(
    platform: Platform, session: Session, knowledge_base_id: str
) -> Sequence[GraphDocument] | None:
    """The readable documents of a knowledge base with its graph turned on, oldest first; otherwise none."""


@hookspec.first_now
def hold_graph_document(platform: Platform, unit: Unit, document_id: str) -> GraphDocument | None:
    """The document, locked against deletion until the unit ends; None if it was deleted or needs no graph."""


@hookspec.first
def read_passages(
    platform: Platform, knowledge_base_id: str, document_id: str, limit: int, offset: int
) -> DocumentPassages | None:
    """Passages of a document in order, without an access check: for data that is derived from all of them."""


@hookspec.all_now
def on_graph_switched(platform: Platform, unit: Unit, knowledge_base_id: str, owner_id: int | None) -> None:
    """A knowledge base's graph was turned on, off, or on again. Runs in the unit of that change.

    `owner_id` owns the knowledge base, or did before it was deleted: a deletion is reported, too.
    """


@hookspec.first
def find_pipelines(caller: Caller, pipeline_ids: Sequence[str]) -> Mapping[str, PipelineEntry] | None:
    """Which of these pipelines the caller may ask, by id."""


@hookspec.first_now
def select_pipelines(platform: Platform, scope: Scope) -> Select[str] | None:
    """A query for the ids of the pipelines that a scope sees; for use as a subquery."""


@hookspec.first_now
def list_methods(platform: Platform) -> Sequence[str] | None:
    """The methods by which a pipeline can answer now, including those of plugins, in lower case."""


@hookspec.first
def find_documents(caller: Caller, document_ids: Sequence[str]) -> Mapping[str, DocumentEntry] | None:
    """Which of these documents the caller may read, by id."""


@hookspec.first
def open_turn(
    caller: Caller, pipeline_id: str, question: str, conversation_id: str, holder: str | None
) -> OpenTurn | None:
    """Begin a turn of a conversation, creating it if it is new.

    Without a `holder`, it is the caller's own or a shared one with that id. With one, it belongs to that
    holder alone; a holder's name begins with the asking plugin's name and a colon. The history holds only
    what the caller may read. None means that no plugin stores conversations.
    """


@hookspec.declaration
def register_methods() -> Sequence[QueryMethod]:
    """Further methods of answering. A name that is taken, or that another plugin has declared, is refused."""


@hookspec.all
def enhance_ranking(
    caller: Caller,
    question: str,
    passages: Sequence[Passage],
    scope: RankingScope,
) -> Sequence[RankedPassage] | None:
    """New scores for passages of a ranking, and passages that it lacks, each with the way to it.

    Asked for a question or a search with `graph: true`, before reranking. `passages` come best first; those
    that the answer leaves out keep their scores. Passages outside `scope` are dropped. An implementation that
    fails or takes longer than `PLATFORM_RAG_ENHANCE_SECONDS` is skipped and named in
    `method_details.degraded`. With several, each gets the result of the one before.
    """


@hookspec.all_now
def remove_derived(
    platform: Platform, unit: Unit, knowledge_base_id: str, document_id: str | None
) -> Sequence[RemovedPart] | None:
    """A document is being deleted in this unit, or with `document_id` None its whole knowledge base.

    Returns what the plugin has of it, for the receipt: what it removes now, and what it removes when it hears
    of the deletion (`rag.document_deleted`). An error keeps everything.
    """


@hookspec.all_now
def withdraw_derived(platform: Platform, unit: Unit, knowledge_base_id: str, document_id: str) -> bool | None:
    """A newer version of a document replaces this one in this unit: what is searched of it goes.

    Its text and file may be kept; what refers to it, such as citations, stays. An error keeps the old
    version.
    """


@hookspec.all_now
def count_derived(
    platform: Platform, session: Session, knowledge_base_id: str, document_id: str | None
) -> Mapping[str, int] | None:
    """How much data the plugin still has of a deleted document or knowledge base, by the places of
    `remove_derived`: zero where nothing is left.
    """


@hookspec.first_now
def choose_measured(
    platform: Platform, session: Session, knowledge_base_id: str, kind: str
) -> MeasuredChoice | None:
    """How to ask a knowledge base a question of this kind, by what was measured there; for `auto`."""


@hookspec.first
def ask_knowledge_base(
    caller: Caller,
    knowledge_base_id: str,
    question: str,
    configuration: AskConfiguration,
    metadata_filter: Mapping[str, Any] | None,
) -> MeasuredAnswer | None:
    """Ask one knowledge base, and return what was found and how the answer came about, or that it failed.

    Only documents that the filter leaves are asked. Raises Unprocessable for a filter that can't be, NotFound
    for a knowledge base that the caller may not see, Unavailable when nothing can be asked now.
    """


@hookspec.first_now
def select_knowledge_bases(platform: Platform, scope: Scope) -> Select[str] | None:
    """A query for the ids of the knowledge bases that a scope sees; for use as a subquery."""


@hookspec.first_now
def owns_knowledge_base(
    platform: Platform, session: Session, scope: Scope, knowledge_base_id: str
) -> bool | None:
    """Whether a scope may change a knowledge base; None where there is none of this id."""


@hookspec.first_now
def hold_documents(
    platform: Platform, unit: Unit, knowledge_base_id: str, document_ids: Sequence[str]
) -> Sequence[str] | None:
    """Which of these documents a knowledge base has; they are locked against deletion until the unit ends."""


@hookspec.first_now
def list_pipelines_over(
    platform: Platform, session: Session, scope: Scope, knowledge_base_id: str
) -> Sequence[str] | None:
    """The ids of the pipelines over a knowledge base that a scope sees; at most 500."""


@hookspec.first_now
def count_rating(
    platform: Platform,
    unit: Unit,
    pipeline_id: str,
    asked_at: datetime,
    former: Literal["up", "down"] | None,
    rating: Literal["up", "down"] | None,
) -> bool | None:
    """Count a new rating of an answer of a pipeline, instead of the former one, in the same unit."""


@hookspec.first
def answer_overview(
    platform: Platform, question: str, open_shelf: Callable[[], DocumentShelf]
) -> DocumentOverview | None:
    """The answer to a question about the documents themselves, such as how many there are.

    None for any other question. Asked first, by every method, whether or not there is a model.
    """


@hookspec.first_now
def answer_without_model(
    platform: Platform, question: AskedWords, passages: Sequence[QuotablePassage]
) -> Support | None:
    """What the best passages, best first, say to a question, and whether that is an answer.

    Also asked if a model is to answer, and by a search, whether there is anything to answer from. Called in
    the one thread in which questions are computed, so take little time. Without an implementation, a model is
    asked whenever there are passages, and a question without a model is answered 503, `no_model`.
    """
