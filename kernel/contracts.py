"""Hooks through which plugins serve each other. No plugin owns them: any plugin can ask or answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from kernel.bundles import ImportedRow as ImportedRow
from kernel.bundles import ImportOutcome as ImportOutcome
from kernel.bundles import ImportPlan as ImportPlan
from kernel.bundles import ImportPolicy as ImportPolicy
from kernel.catalog_words import Dependency as Dependency
from kernel.catalog_words import DependencyVerdict as DependencyVerdict
from kernel.catalog_words import InstalledTogether as InstalledTogether
from kernel.catalog_words import ListingRef as ListingRef
from kernel.conversations import ChatEnd as ChatEnd
from kernel.conversations import ChatEvents as ChatEvents
from kernel.conversations import ChatMessage as ChatMessage
from kernel.conversations import ChatRequest as ChatRequest
from kernel.conversations import ChatRole as ChatRole
from kernel.conversations import CitedPassage as CitedPassage
from kernel.conversations import DocumentEntry as DocumentEntry
from kernel.conversations import DocumentText as DocumentText
from kernel.conversations import Generated as Generated
from kernel.conversations import Generation as Generation
from kernel.conversations import OpenTurn as OpenTurn
from kernel.conversations import PastTurn as PastTurn
from kernel.conversations import PipelineAnswer as PipelineAnswer
from kernel.conversations import PipelineEntry as PipelineEntry
from kernel.conversations import PipelineEvents as PipelineEvents
from kernel.conversations import RecordedTurn as RecordedTurn
from kernel.conversations import Thought as Thought
from kernel.conversations import ToolCallPart as ToolCallPart
from kernel.conversations import TurnCitation as TurnCitation
from kernel.document_parsers import DocumentParser as DocumentParser
from kernel.evaluations import AskConfiguration as AskConfiguration
from kernel.evaluations import MeasuredAnswer as MeasuredAnswer
from kernel.evaluations import MeasuredChoice as MeasuredChoice
from kernel.graphs import DocumentPassage as DocumentPassage
from kernel.graphs import DocumentPassages as DocumentPassages
from kernel.graphs import GraphDocument as GraphDocument
from kernel.hook_types import PROMPTLY, hookspec
from kernel.purchases import CheckoutNotice as CheckoutNotice
from kernel.purchases import CheckoutOrder as CheckoutOrder
from kernel.purchases import CheckoutPage as CheckoutPage
from kernel.purchases import LicenseVerdict as LicenseVerdict
from kernel.questions import PathStep as PathStep
from kernel.questions import QueryMethod as QueryMethod
from kernel.questions import QuestionWork as QuestionWork
from kernel.questions import RankedPassage as RankedPassage
from kernel.questions import RankingScope as RankingScope
from kernel.questions import SearchPlan as SearchPlan
from kernel.removals import RemovedPart as RemovedPart

if TYPE_CHECKING:
    from sqlalchemy import Select
    from sqlalchemy.orm import Session

    from kernel.auth.callers import Caller
    from kernel.auth.ownership import Scope
    from kernel.db.engine import Unit
    from kernel.http.context import Context
    from kernel.platform import Platform
    from kernel.stores.protocols import Embedded
    from kernel.tools.tool import Tool

Purpose = Literal["passage", "query"]


@hookspec.first
def embed_texts(platform: Platform, model: str, texts: Sequence[str], purpose: Purpose) -> Embedded | None:
    """Vectors of `texts`, computed by the embedding model named `model`.

    None means "not one of my models". `purpose` is for models that treat questions and passages differently.
    Raises Unavailable if a known model can't be used now. If nobody answers, the caller names the model.
    """


@hookspec.first
def switch_plugin(caller: Caller, plugin: str, on: bool) -> bool | None:
    """Enable or disable a plugin permanently, in every process; True once it is done.

    None means that this plugin does not enable or disable others. Raises NotFound for an unknown plugin,
    Conflict where others need it or it needs others.
    """


@hookspec.all(failing="skip", seconds=PROMPTLY)
def list_embedding_models(platform: Platform) -> Sequence[str] | None:
    """Names of the embedding models that the plugin can serve now."""


@hookspec.first_now
def generate_text(
    platform: Platform,
    messages: Sequence[ChatMessage],
    model: str | None,
    temperature: float,
    max_tokens: int,
    options: Mapping[str, Any],
) -> Generation | None:
    """A model's answer to `messages`, piece by piece.

    Yields texts, then one `Generated`. None means that no model runtime is configured. With `model` None, the
    default model is used. `options` are the runtime's own, plus OpenAI's `response_format`, which is left out
    if the runtime refuses it. Nothing is sent before the first piece is awaited; closing the generator stops
    the model. Raises Unavailable if the runtime fails, even midway, GatewayTimeout if it falls silent.
    """


@hookspec.first_now
def chat_with_model(platform: Platform, request: ChatRequest) -> ChatEvents | None:
    """A model's turn in a chat with tools to call: yields texts, thoughts, calls, then a `ChatEnd`.

    None means that no model runtime is configured. Nothing is sent before the first piece is awaited; closing
    the generator stops the model. Raises a PlatformError when the runtime fails, also in mid-stream: 404 for
    an unknown model, another 4xx for what the runtime rejects in the request, 503, 504.
    """


@hookspec.all(failing="skip", seconds=PROMPTLY)
def list_chat_models(platform: Platform) -> Sequence[str] | None:
    """Names of the models that `chat_with_model` can use now; none when the runtime does not answer."""


@hookspec.first(seconds=PROMPTLY)
def check_model_runtime(platform: Platform) -> bool | None:
    """Whether the configured model runtime answers now; None where none is configured."""


@hookspec.all(seconds=PROMPTLY)
def check_model_call(platform: Platform, model: str) -> None:
    """A model that a plugin runs itself is about to be called; raise a PlatformError to refuse."""


@hookspec.notification(seconds=PROMPTLY)
def on_model_called(platform: Platform, model: str, seconds: float, failed: bool) -> None:
    """A call to such a model ended after `seconds`. For metrics."""


@hookspec.all(failing="skip", seconds=PROMPTLY)
def offer_tools(ctx: Context) -> Sequence[Tool] | None:
    """Tools besides the plugins' actions, for the sender of this request: pipelines, tools of other servers.

    Asked whenever somebody lists tools or calls one that is not an action; answer quickly, and only what the
    sender may see. A failing implementation is reported and its tools are missing. A tool is called through
    ``platform.resource(TOOLS)`` alone, which checks its access, bounds and reports the call.
    """


@hookspec.all(seconds=PROMPTLY)
def check_tool_call(ctx: Context, tool: Tool, arguments: Mapping[str, Any]) -> None:
    """A tool is about to be called, by any route; raise a PlatformError to refuse.

    For conditions beyond the tool's access, such as licenses. `arguments` are as the client sent them.
    """


@hookspec.notification(seconds=PROMPTLY)
def on_tool_called(ctx: Context, tool: Tool, seconds: float, error: BaseException | None) -> None:
    """A tool call ended after `seconds`, with this error or a result. For metrics and auditing."""


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
def search_passages(
    caller: Caller, question: str, top_k: int, knowledge_base_ids: Sequence[str] | None
) -> Sequence[CitedPassage] | None:
    """The passages that fit a question best, best first, without a model's answer.

    Searches these knowledge bases, or all that the caller may read. Raises NotFound for one that it may
    not, BadRequest for too many, Unavailable when embedding fails.
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


@hookspec.all(failing="skip")
def collect_data(platform: Platform) -> Mapping[str, Any] | None:
    """Collect the plugin's data from its sources now; returns a report, as JSON.

    The registry asks one plugin at a time, in a worker, on request and every hour. The report is stored and
    shown to signed-in accounts. It must be safe to repeat. Raise a PlatformError for a
    failure that people should read. An implementation may be a plain function that blocks.
    """


@hookspec.all(failing="skip")
def analyze_data(platform: Platform) -> Mapping[str, Any] | None:
    """The plugin's analysis of its data, as JSON; shown verbatim to signed-in accounts.

    Asked of one plugin at a time, while a client waits. It may be a plain function that blocks.
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


@hookspec.first
def read_turns(
    caller: Caller, holder: str, conversation_id: str | None, limit: int, offset: int
) -> tuple[Sequence[RecordedTurn], int] | None:
    """A holder's answered turns that the caller may see, oldest first, and their total number."""


@hookspec.first_now
def forget_turns(platform: Platform, unit: Unit, holder: str) -> bool | None:
    """Delete all conversations of a holder and of holders named ``<holder>:…``. A plain function."""


@hookspec.all_now
def find_listings(
    platform: Platform, session: Session, plugins: Sequence[str]
) -> Sequence[ListingRef] | None:
    """The listings, approved or not, whose id or name is among `plugins`, or one of whose plugins is."""


@hookspec.first(seconds=PROMPTLY)
def check_license(
    platform: Platform, subject: str, plugin: str, required: str, used: bool
) -> LicenseVerdict | None:
    """Whether `subject` (a token's `sub`) may use a feature of a plugin that requires the tier `required`.

    `plugin` is its name; a tier that an administrator requires for the whole plugin counts too. `used` counts
    one use of the license. Without an answer, everybody has the tier ``community``.
    """


@hookspec.first(seconds=PROMPTLY)
def find_required_tiers(platform: Platform) -> Mapping[str, str] | None:
    """The tiers that administrators require for whole plugins, by plugin name."""


@hookspec.first
def start_checkout(platform: Platform, order: CheckoutOrder) -> CheckoutPage | None:
    """Where the buyer pays for `order`; None if the provider is not configured.

    The provider must send its notices to ``POST /v1/marketplace/checkout/{provider}/notices``, with the
    `provider` of the page, which `read_checkout_notice` knows.
    """


@hookspec.first
def read_checkout_notice(
    platform: Platform, provider: str, headers: Mapping[str, str], body: bytes
) -> CheckoutNotice | None:
    """The content of a provider's notice, with its signature checked; None for another provider.

    Header names are in lower case. Raise Unauthorized for a wrong or missing signature, BadRequest for one
    that can't be read. Notices may come twice and out of order.
    """


@hookspec.first_now
def find_requirements(platform: Platform, session: Session, plugin_id: str) -> Sequence[Dependency] | None:
    """All that a plugin requires, directly or through others, nearest first. A plain function."""


@hookspec.first_now
def find_dependents(platform: Platform, session: Session, plugin_id: str) -> Sequence[Dependency] | None:
    """All plugins that require this one, directly or through others, nearest first. A plain function."""


@hookspec.first_now
def judge_dependencies(platform: Platform, session: Session, plugin_id: str) -> DependencyVerdict | None:
    """What the dependency graph says about a plugin of the catalog. A plain function."""


@hookspec.first_now
def find_installed_together(
    platform: Platform, session: Session, plugins: Sequence[str], limit: int
) -> Sequence[InstalledTogether] | None:
    """What else accounts with one of these plugins have, most frequent first. A plain function."""


LISTINGS_CHANGED = "marketplace.listings"  # topic of the notice that a listing changed; its id is the key


@hookspec.all(failing="skip")
def find_backup_folders(platform: Platform) -> Mapping[str, Path] | None:
    """Folders whose files belong in a backup and can't be recreated, each under a name of its own."""


@hookspec.all(failing="skip")
def find_sample_answers(platform: Platform) -> Mapping[str, str] | None:
    """Questions with exact answers that depend on stored data alone, to check a restored copy with."""
