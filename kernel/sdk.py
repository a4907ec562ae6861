"""All that a plugin may import; the rest can change. CHANGELOG.md announces removals a release ahead."""

from kernel import contracts, mapped
from kernel.acting import Acting, acting
from kernel.actions import Action
from kernel.auth.accounts import ACCOUNTS
from kernel.auth.administration import ADMINISTRATION
from kernel.auth.audit import Origin, audit
from kernel.auth.callers import Caller, operator_of
from kernel.auth.external import end_external_sessions, sign_in_external
from kernel.auth.external_schemas import ExternalIdentity, SignInMethod
from kernel.auth.models import Account, AccountChange
from kernel.auth.ownership import Owned, Scope, SharedThing, hand_over_owned, visible
from kernel.auth.permissions import Decision, Permission
from kernel.auth.principals import Principal, TokenScope
from kernel.auth.schemas import (
    AccountStatusRequest,
    OrganizationMembership,
    ResetPasswordRequest,
    ResetPasswordResult,
)
from kernel.auth.scopes import scope_of
from kernel.auth.sessions import revoke_sessions
from kernel.auth.states import ACCOUNT_STATES
from kernel.auth.tokens import TOKENS
from kernel.bounded import in_abandonable_thread
from kernel.children.limits import ChildLimits
from kernel.children.processes import ChildFailed, Children
from kernel.data import data_folder
from kernel.db import holdings
from kernel.db.among import Among, Ids
from kernel.db.base import Tables, UtcDateTime, json_type, plugin_base, shared_moment, utc_now
from kernel.db.engine import Database, Unit
from kernel.db.locks import installation_lock
from kernel.db.migrate import Pending
from kernel.db.pages import page_of, read_page
from kernel.db.prepared import Prepared, PreparedInsert, Record
from kernel.db.startup import SCHEMA, Schema
from kernel.db.units import off_the_loop
from kernel.directory import DIRECTORY
from kernel.errors import (
    ANY_ERROR,
    BadGateway,
    BadRequest,
    Conflict,
    Forbidden,
    GatewayTimeout,
    InsufficientStorage,
    NotFound,
    NotSupported,
    PayloadTooLarge,
    PlatformError,
    PluginDisabled,
    RequestTimeout,
    StartupError,
    TooManyRequests,
    Unauthorized,
    Unavailable,
    Unhealthy,
    Unprocessable,
    UnsupportedMediaType,
)
from kernel.events import Event
from kernel.gateway.services import Service
from kernel.health import HealthCheck, NotChecked, NotConfigured, is_failure, run_check
from kernel.hook_types import hookimpl, hookspec
from kernel.hookspecs import select_members
from kernel.http.access_control import ScopeMissing, require_access
from kernel.http.context import Context, ErrorFormat
from kernel.http.error_formats import OPENAI_ERRORS
from kernel.http.examples import example
from kernel.http.forwarding import end_to_end_headers
from kernel.http.names import READABLE, clean_name
from kernel.http.responses import Answer, Message, MessageWithId, Page, PageQuery, send_events, send_stream
from kernel.http.routes import (
    ADMIN,
    ADMIN_OR_SERVICE,
    AUTHENTICATED,
    PLATFORM_ADMIN,
    PUBLIC,
    PUBLIC_OR_MORE,
    Access,
    Rate,
    RawBody,
    RouteTable,
    Upload,
    permission,
)
from kernel.http.streams import OPEN_STREAMS
from kernel.http.uploads import ReceivedFile, receive_file
from kernel.http.validation import iter_body, json_object, read_body
from kernel.jobs.declarations import Job, JobFailed, JobMoved, JobRef, LongJob
from kernel.jobs.following import cancel_job, follow_job, get_job, running_jobs
from kernel.jobs.kinds import Gather, Lane
from kernel.jobs.progress import Progress
from kernel.jobs.queue import JobQueue, migrate_queue
from kernel.jobs.schemas import JobOut
from kernel.jobs.together import Together
from kernel.lasting import lasting, repeating, set_within
from kernel.live_cache import LiveCache
from kernel.logs import LogFormatter, mask
from kernel.machine_faults import Fault, MachineFault, is_machine_fault
from kernel.mail import MailFailed
from kernel.outgoing.client import OUTGOING, CallLimits, OutgoingCall, OutgoingClient, OutgoingReply
from kernel.outgoing.errors import (
    AnswerBroken,
    AnswerTooLarge,
    CallFailed,
    CallTimedOut,
    DestinationRefused,
    OutgoingError,
)
from kernel.owner_secrets.store import OWNER_SECRETS, OwnerSecrets, SecretEntry, SecretOwner, SecretUnreadable
from kernel.platform import Platform
from kernel.plugin_settings import PLUGIN_SETTINGS
from kernel.plugin_sources import PluginEntry, PluginSource
from kernel.plugin_states import PLUGIN_STATES
from kernel.plugins import Plugin, PluginRecord
from kernel.rate_limits import RATE_LIMITS
from kernel.resource_keys import ResourceKey
from kernel.resources import Resource
from kernel.restarting import request_restart
from kernel.secrets import SecretStore
from kernel.settings import Settings, Source, env
from kernel.settings_checks import ExistingFolder, base_address, hosts_and_networks, origins, split_list
from kernel.settings_shown import ShownSetting, settings_in_effect
from kernel.slots import take_slot
from kernel.start_guards import Opening, StartGuard
from kernel.store_errors import store_error
from kernel.stores.fusion import weight_for as hybrid_weight
from kernel.stores.held import BlobsAway, HeldBlobs, StoredBlob, held_among, held_blobs, held_blobs_of
from kernel.stores.offers import BLOB_STORE, CACHE_STORE, VECTOR_STORE, StoreNeeds, StoreOffer
from kernel.stores.protocols import (
    LANGUAGE,
    BlobStore,
    Cache,
    CacheUnavailable,
    Embedded,
    EngineMismatch,
    Hit,
    Point,
    Query,
    Staged,
    StoredPoint,
    VectorStore,
)
from kernel.syncing import sync
from kernel.tally import Tally
from kernel.tools.arguments import arguments_from_object, query_values
from kernel.tools.catalog import TOOLS, ToolReply, Tools, failed_reply
from kernel.tools.definitions import ToolDefinition, ToolDefinitions
from kernel.tools.tool import Tool, tool_name
from kernel.tracing import TRACING, Attribute, Attributes, Carried, Links, Span, SpanKind, Tracer, Tracing
from kernel.tracing import inside as inside_span
from kernel.tracing import note_error as note_span_error
from kernel.version import API_VERSION

__all__ = [
    "ACCOUNTS",
    "ACCOUNT_STATES",
    "ADMIN",
    "ADMINISTRATION",
    "ADMIN_OR_SERVICE",
    "ANY_ERROR",
    "API_VERSION",
    "AUTHENTICATED",
    "BLOB_STORE",
    "CACHE_STORE",
    "DIRECTORY",
    "LANGUAGE",
    "OPENAI_ERRORS",
    "OPEN_STREAMS",
    "OUTGOING",
    "OWNER_SECRETS",
    "PLATFORM_ADMIN",
    "PLUGIN_SETTINGS",
    "PLUGIN_STATES",
    "PUBLIC",
    "PUBLIC_OR_MORE",
    "RATE_LIMITS",
    "READABLE",
    "SCHEMA",
    "TOKENS",
    "TOOLS",
    "TRACING",
    "VECTOR_STORE",
    "Access",
    "Account",
    "AccountChange",
    "AccountStatusRequest",
    "Acting",
    "Action",
    "Among",
    "Answer",
    "AnswerBroken",
    "AnswerTooLarge",
    "Attribute",
    "Attributes",
    "BadGateway",
    "BadRequest",
    "BlobStore",
    "BlobsAway",
    "Cache",
    "CacheUnavailable",
    "CallFailed",
    "CallLimits",
    "CallTimedOut",
    "Caller",
    "Carried",
    "ChildFailed",
    "ChildLimits",
    "Children",
    "Conflict",
    "Context",
    "Database",
    "Decision",
    "DestinationRefused",
    "Embedded",
    "EngineMismatch",
    "ErrorFormat",
    "Event",
    "ExistingFolder",
    "ExternalIdentity",
    "Fault",
    "Forbidden",
    "GatewayTimeout",
    "Gather",
    "HealthCheck",
    "HeldBlobs",
    "Hit",
    "Ids",
    "InsufficientStorage",
    "Job",
    "JobFailed",
    "JobMoved",
    "JobOut",
    "JobQueue",
    "JobRef",
    "Lane",
    "Links",
    "LiveCache",
    "LogFormatter",
    "LongJob",
    "MachineFault",
    "MailFailed",
    "Message",
    "MessageWithId",
    "NotChecked",
    "NotConfigured",
    "NotFound",
    "NotSupported",
    "Opening",
    "OrganizationMembership",
    "Origin",
    "OutgoingCall",
    "OutgoingClient",
    "OutgoingError",
    "OutgoingReply",
    "Owned",
    "OwnerSecrets",
    "Page",
    "PageQuery",
    "PayloadTooLarge",
    "Pending",
    "Permission",
    "Platform",
    "PlatformError",
    "Plugin",
    "PluginDisabled",
    "PluginEntry",
    "PluginRecord",
    "PluginSource",
    "Point",
    "Prepared",
    "PreparedInsert",
    "Principal",
    "Progress",
    "Query",
    "Rate",
    "RawBody",
    "ReceivedFile",
    "Record",
    "RequestTimeout",
    "ResetPasswordRequest",
    "ResetPasswordResult",
    "Resource",
    "ResourceKey",
    "RouteTable",
    "Schema",
    "Scope",
    "ScopeMissing",
    "SecretEntry",
    "SecretOwner",
    "SecretStore",
    "SecretUnreadable",
    "Service",
    "Settings",
    "SharedThing",
    "ShownSetting",
    "SignInMethod",
    "Source",
    "Span",
    "SpanKind",
    "Staged",
    "StartGuard",
    "StartupError",
    "StoreNeeds",
    "StoreOffer",
    "StoredBlob",
    "StoredPoint",
    "Tables",
    "Tally",
    "Together",
    "TokenScope",
    "TooManyRequests",
    "Tool",
    "ToolDefinition",
    "ToolDefinitions",
    "ToolReply",
    "Tools",
    "Tracer",
    "Tracing",
    "Unauthorized",
    "Unavailable",
    "Unhealthy",
    "Unit",
    "Unprocessable",
    "UnsupportedMediaType",
    "Upload",
    "UtcDateTime",
    "VectorStore",
    "acting",
    "arguments_from_object",
    "audit",
    "base_address",
    "cancel_job",
    "clean_name",
    "contracts",
    "data_folder",
    "end_external_sessions",
    "end_to_end_headers",
    "env",
    "example",
    "failed_reply",
    "follow_job",
    "get_job",
    "hand_over_owned",
    "held_among",
    "held_blobs",
    "held_blobs_of",
    "holdings",
    "hookimpl",
    "hookspec",
    "hosts_and_networks",
    "hybrid_weight",
    "in_abandonable_thread",
    "inside_span",
    "installation_lock",
    "is_failure",
    "is_machine_fault",
    "iter_body",
    "json_object",
    "json_type",
    "lasting",
    "mapped",
    "mask",
    "migrate_queue",
    "note_span_error",
    "off_the_loop",
    "operator_of",
    "origins",
    "page_of",
    "permission",
    "plugin_base",
    "query_values",
    "read_body",
    "read_page",
    "receive_file",
    "repeating",
    "request_restart",
    "require_access",
    "revoke_sessions",
    "run_check",
    "running_jobs",
    "scope_of",
    "select_members",
    "send_events",
    "send_stream",
    "set_within",
    "settings_in_effect",
    "shared_moment",
    "sign_in_external",
    "split_list",
    "store_error",
    "sync",
    "take_slot",
    "tool_name",
    "utc_now",
    "visible",
]
