"""Everything a plugin imports from the platform. What is not listed here may change without notice.

A removal is announced one release ahead in CHANGELOG.md, under "Plugin authors".
"""

from kernel.actions import Action
from kernel.auth.audit import audit
from kernel.auth.external import end_external_sessions, sign_in_external
from kernel.auth.external_schemas import ExternalIdentity, SignInMethod
from kernel.auth.models import Account
from kernel.auth.ownership import VISIBILITIES, Owned, Scope, scope_of
from kernel.auth.permissions import Decision, Permission
from kernel.auth.principals import ANONYMOUS, Principal
from kernel.auth.schemas import AccountStatusRequest, ResetPasswordRequest, ResetPasswordResult
from kernel.auth.sessions import revoke_sessions
from kernel.data import data_folder
from kernel.db.base import Tables, UtcDateTime, json_type, plugin_base, utc_now
from kernel.db.engine import Database, Unit
from kernel.directory import PluginEntry, PluginSource
from kernel.errors import (
    BadGateway,
    BadRequest,
    Conflict,
    Forbidden,
    GatewayTimeout,
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
    Unprocessable,
    UnsupportedMediaType,
)
from kernel.events import Event
from kernel.gateway.services import Service
from kernel.health import HealthCheck, Unhealthy, run_check
from kernel.hookspecs import hookimpl, hookspec
from kernel.http.context import Context
from kernel.http.responses import Answer, Message, MessageWithId, Page, PageQuery, send_events
from kernel.http.routes import (
    ADMIN,
    ADMIN_OR_SERVICE,
    AUTHENTICATED,
    PLATFORM_ADMIN,
    PUBLIC,
    Access,
    Rate,
    RawBody,
    RouteTable,
    Upload,
    permission,
)
from kernel.http.validation import iter_body, json_object, read_body
from kernel.jobs.declarations import Job, JobFailed, Lane
from kernel.live_cache import LiveCache
from kernel.mail import MailFailed
from kernel.platform import Platform
from kernel.plugins import Plugin, PluginRecord
from kernel.resources import Resource, ResourceKey
from kernel.secrets import SecretStore
from kernel.settings import Settings, env
from kernel.stores.blobs import Staged
from kernel.stores.fusion import weight_for as hybrid_weight
from kernel.stores.protocols import Embedded, EngineMismatch, Hit, Point, Query, StoredPoint, VectorStore
from kernel.version import API_VERSION

__all__ = [
    "ADMIN",
    "ADMIN_OR_SERVICE",
    "ANONYMOUS",
    "API_VERSION",
    "AUTHENTICATED",
    "PLATFORM_ADMIN",
    "PUBLIC",
    "VISIBILITIES",
    "Access",
    "Account",
    "AccountStatusRequest",
    "Action",
    "Answer",
    "BadGateway",
    "BadRequest",
    "Conflict",
    "Context",
    "Database",
    "Decision",
    "Embedded",
    "EngineMismatch",
    "Event",
    "ExternalIdentity",
    "Forbidden",
    "GatewayTimeout",
    "HealthCheck",
    "Hit",
    "Job",
    "JobFailed",
    "Lane",
    "LiveCache",
    "MailFailed",
    "Message",
    "MessageWithId",
    "NotFound",
    "NotSupported",
    "Owned",
    "Page",
    "PageQuery",
    "PayloadTooLarge",
    "Permission",
    "Platform",
    "PlatformError",
    "Plugin",
    "PluginDisabled",
    "PluginEntry",
    "PluginRecord",
    "PluginSource",
    "Point",
    "Principal",
    "Query",
    "Rate",
    "RawBody",
    "RequestTimeout",
    "ResetPasswordRequest",
    "ResetPasswordResult",
    "Resource",
    "ResourceKey",
    "RouteTable",
    "Scope",
    "SecretStore",
    "Service",
    "Settings",
    "SignInMethod",
    "Staged",
    "StartupError",
    "StoredPoint",
    "Tables",
    "TooManyRequests",
    "Unauthorized",
    "Unavailable",
    "Unhealthy",
    "Unit",
    "Unprocessable",
    "UnsupportedMediaType",
    "Upload",
    "UtcDateTime",
    "VectorStore",
    "audit",
    "data_folder",
    "end_external_sessions",
    "env",
    "hookimpl",
    "hookspec",
    "hybrid_weight",
    "iter_body",
    "json_object",
    "json_type",
    "permission",
    "plugin_base",
    "read_body",
    "revoke_sessions",
    "run_check",
    "scope_of",
    "send_events",
    "sign_in_external",
    "utc_now",
]
