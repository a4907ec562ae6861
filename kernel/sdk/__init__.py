"""What every plugin builds on. Rarer parts are in the modules of this package, by subject.

All that a plugin may import of the kernel is in this package; anything else can change. CHANGELOG.md
announces a removal one release ahead.
"""

from kernel import __version__ as PLATFORM_VERSION
from kernel.auth.acting import acting
from kernel.auth.audit import audit
from kernel.auth.callers import Caller
from kernel.auth.models import Account
from kernel.auth.ownership import Owned, Scope
from kernel.auth.permissions import Permission
from kernel.auth.principals import Principal
from kernel.auth.scopes import scope_of
from kernel.auth.secrets import SecretStore
from kernel.auth.states import ACCOUNT_STATES
from kernel.db.base import Tables, UtcDateTime, json_type, plugin_base, shared_moment, utc_now
from kernel.db.engine import Database, Unit
from kernel.db.units import off_the_loop
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
    StartupError,
    TooManyRequests,
    Unauthorized,
    Unavailable,
    Unhealthy,
    Unprocessable,
    UnsupportedMediaType,
)
from kernel.events.events import Event
from kernel.gateway.services import Mount, Service
from kernel.hooks.types import PROMPTLY, hookimpl, hookspec
from kernel.http.context import Context
from kernel.http.rate_limits import RATE_LIMITS
from kernel.http.responses import Answer, Message, Page, PageQuery, send_events
from kernel.http.routes import (
    ADMIN,
    ADMIN_OR_SERVICE,
    AUTHENTICATED,
    PLATFORM_ADMIN,
    PUBLIC,
    PUBLIC_OR_MORE,
    Rate,
    RawBody,
    RouteTable,
    Upload,
    permission,
)
from kernel.http.uploads import receive_file
from kernel.http.validation import Body, example, read_body
from kernel.jobs.declarations import Job, JobFailed, JobRef, LongJob, NoPayload
from kernel.jobs.progress import Progress
from kernel.libs.background import in_abandonable_thread, lasting, repeating, set_within
from kernel.libs.children.limits import ChildLimits
from kernel.libs.children.processes import ChildFailed, Children
from kernel.libs.live_cache import LiveCache
from kernel.libs.names import READABLE
from kernel.libs.outgoing.client import OUTGOING, CallLimits, OutgoingClient, OutgoingReply
from kernel.libs.outgoing.errors import OutgoingError
from kernel.libs.prepared import Prepared
from kernel.libs.tally import Tally
from kernel.observe.health import HealthCheck, NotConfigured
from kernel.observe.tracing import TRACING, Span
from kernel.platform import Platform
from kernel.plugins.actions import Action
from kernel.plugins.diagnostics import Diagnostic, Finding
from kernel.plugins.loading import Plugin
from kernel.plugins.resource_keys import ResourceKey
from kernel.plugins.resources import Resource
from kernel.plugins.states import PLUGIN_STATES
from kernel.process.machine_faults import MachineFault, is_machine_fault
from kernel.settings.checks import ExistingFolder, base_address, split_list
from kernel.settings.loading import Settings, env
from kernel.stores.blobs import HeldBlobs
from kernel.stores.disk import sync
from kernel.stores.offers import StoreNeeds, StoreOffer
from kernel.version import API_VERSION

__all__ = [
    "ACCOUNT_STATES",
    "ADMIN",
    "ADMIN_OR_SERVICE",
    "ANY_ERROR",
    "API_VERSION",
    "AUTHENTICATED",
    "OUTGOING",
    "PLATFORM_ADMIN",
    "PLATFORM_VERSION",
    "PLUGIN_STATES",
    "PROMPTLY",
    "PUBLIC",
    "PUBLIC_OR_MORE",
    "RATE_LIMITS",
    "READABLE",
    "TRACING",
    "Account",
    "Action",
    "Answer",
    "BadGateway",
    "BadRequest",
    "Body",
    "CallLimits",
    "Caller",
    "ChildFailed",
    "ChildLimits",
    "Children",
    "Conflict",
    "Context",
    "Database",
    "Diagnostic",
    "Event",
    "ExistingFolder",
    "Finding",
    "Forbidden",
    "GatewayTimeout",
    "HealthCheck",
    "HeldBlobs",
    "InsufficientStorage",
    "Job",
    "JobFailed",
    "JobRef",
    "LiveCache",
    "LongJob",
    "MachineFault",
    "Message",
    "Mount",
    "NoPayload",
    "NotConfigured",
    "NotFound",
    "NotSupported",
    "OutgoingClient",
    "OutgoingError",
    "OutgoingReply",
    "Owned",
    "Page",
    "PageQuery",
    "PayloadTooLarge",
    "Permission",
    "Platform",
    "PlatformError",
    "Plugin",
    "Prepared",
    "Principal",
    "Progress",
    "Rate",
    "RawBody",
    "Resource",
    "ResourceKey",
    "RouteTable",
    "Scope",
    "SecretStore",
    "Service",
    "Settings",
    "Span",
    "StartupError",
    "StoreNeeds",
    "StoreOffer",
    "Tables",
    "Tally",
    "TooManyRequests",
    "Unauthorized",
    "Unavailable",
    "Unhealthy",
    "Unit",
    "Unprocessable",
    "UnsupportedMediaType",
    "Upload",
    "UtcDateTime",
    "acting",
    "audit",
    "base_address",
    "env",
    "example",
    "hookimpl",
    "hookspec",
    "in_abandonable_thread",
    "is_machine_fault",
    "json_type",
    "lasting",
    "off_the_loop",
    "permission",
    "plugin_base",
    "read_body",
    "receive_file",
    "repeating",
    "scope_of",
    "send_events",
    "set_within",
    "shared_moment",
    "split_list",
    "sync",
    "utc_now",
]
