"""Routes, answers and requests as objects, for plugins that serve others' or speak another protocol."""

from kernel.errors import PluginDisabled, RequestTimeout
from kernel.gateway.remote import REMOTE_SERVICES, RemoteServices
from kernel.http.access_control import ScopeMissing, require_access
from kernel.http.context import CONTEXT, ErrorFormat, network_of
from kernel.http.error_formats import OPENAI_ERRORS
from kernel.http.forwarding import end_to_end_headers
from kernel.http.names import clean_name
from kernel.http.rate_limits import RateLimits
from kernel.http.responses import MessageWithId, send_stream
from kernel.http.router import Serve
from kernel.http.routes import Access, BoundRoute, Route
from kernel.http.streams import OPEN_STREAMS
from kernel.http.uploads import ReceivedFile
from kernel.http.validation import iter_body, json_object

__all__ = [
    "CONTEXT",
    "OPENAI_ERRORS",
    "OPEN_STREAMS",
    "REMOTE_SERVICES",
    "Access",
    "BoundRoute",
    "ErrorFormat",
    "MessageWithId",
    "PluginDisabled",
    "RateLimits",
    "ReceivedFile",
    "RemoteServices",
    "RequestTimeout",
    "Route",
    "ScopeMissing",
    "Serve",
    "clean_name",
    "end_to_end_headers",
    "iter_body",
    "json_object",
    "network_of",
    "require_access",
    "send_stream",
]
