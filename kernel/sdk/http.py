"""Routes, answers and requests as objects, for plugins that serve others' or speak another protocol."""

from kernel.errors import PluginDisabled, PreconditionFailed, RequestTimeout
from kernel.gateway.services import REMOTE_SERVICES, RemoteServices
from kernel.http.access_control import ScopeMissing, require_access
from kernel.http.context import CONTEXT, ErrorFormat, network_of
from kernel.http.error_formats import ErrorBody, HTTPValidationError, error_response
from kernel.http.rate_limits import RateLimits
from kernel.http.responses import send_stream
from kernel.http.router import Serve
from kernel.http.routes import Access, BoundRoute, Route
from kernel.http.streams import OPEN_STREAMS
from kernel.http.uploads import ReceivedFile
from kernel.http.validation import iter_body
from kernel.libs.forwarding import end_to_end_headers
from kernel.libs.names import FORM_ENCODING, clean_name, form_disposition

__all__ = [
    "CONTEXT",
    "FORM_ENCODING",
    "OPEN_STREAMS",
    "REMOTE_SERVICES",
    "Access",
    "BoundRoute",
    "ErrorBody",
    "ErrorFormat",
    "HTTPValidationError",
    "PluginDisabled",
    "PreconditionFailed",
    "RateLimits",
    "ReceivedFile",
    "RemoteServices",
    "RequestTimeout",
    "Route",
    "ScopeMissing",
    "Serve",
    "clean_name",
    "end_to_end_headers",
    "error_response",
    "form_disposition",
    "iter_body",
    "network_of",
    "require_access",
    "send_stream",
]
