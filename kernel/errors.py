"""The errors that a client may see: status, stable code, public detail."""

from __future__ import annotations

from typing import Any, ClassVar


class PlatformError(Exception):
    """Base of every error that a client receives as ``{"detail": ..., "code": ...}``.

    A subclass sets its `status`, its stable snake_case `code` and a default `detail`. An instance may have a
    more precise detail and additional response headers. Texts are public: never put secrets, paths or driver
    messages into them.
    """

    status: ClassVar[int] = 500
    code: ClassVar[str] = "internal_error"
    default_detail: ClassVar[str] = "Internal server error"

    def __init__(self, detail: Any = None, *, headers: dict[str, str] | None = None) -> None:
        self.detail: Any = self.default_detail if detail is None else detail
        self.headers = headers or {}
        super().__init__(self.detail)


class BadRequest(PlatformError):
    status = 400
    code = "bad_request"
    default_detail = "The request could not be understood"


class Unauthorized(PlatformError):
    status = 401
    code = "unauthorized"
    default_detail = "Authentication required: send 'Authorization: Bearer <token>'"

    def __init__(self, detail: Any = None, *, headers: dict[str, str] | None = None) -> None:
        super().__init__(detail, headers={"WWW-Authenticate": "Bearer", **(headers or {})})


class UnknownCredential(Unauthorized):
    """No plugin knows the credential; for one that was revoked or has expired, raise Unauthorized."""


class Forbidden(PlatformError):
    status = 403
    code = "forbidden"
    default_detail = "You do not have permission to do this"


class PluginDisabled(Forbidden):
    code = "plugin_disabled"
    default_detail = "The plugin is disabled; an administrator can enable it"


class NotFound(PlatformError):
    status = 404
    code = "not_found"
    default_detail = "Not found"


class MethodNotAllowed(PlatformError):
    status = 405
    code = "method_not_allowed"
    default_detail = "Method not allowed"


class Conflict(PlatformError):
    status = 409
    code = "conflict"
    default_detail = "The request conflicts with the current state"


class PreconditionFailed(PlatformError):
    status = 412
    code = "precondition_failed"
    default_detail = "The file has changed, or is not the version you asked for"


class PayloadTooLarge(PlatformError):
    status = 413
    code = "payload_too_large"
    default_detail = "The request body is too large"


class UnsupportedMediaType(PlatformError):
    status = 415
    code = "unsupported_media_type"
    default_detail = "The content type is not supported"


class RangeNotSatisfiable(PlatformError):
    status = 416
    code = "range_not_satisfiable"
    default_detail = "The requested range is outside the file; Content-Range gives its size"


class Unprocessable(PlatformError):
    """An invalid body or query; `detail` is the array of spec section 7 (pydantic's shape)."""

    status = 422
    code = "validation_error"
    default_detail = "The request is not valid"

    @classmethod
    def field(cls, loc: tuple[str | int, ...], message: str, value: Any = None) -> Unprocessable:
        """One problem with one field, in the shape of a 422."""
        return cls([{"type": "value_error", "loc": list(loc), "msg": message, "input": value}])


class TooManyRequests(PlatformError):
    status = 429
    code = "rate_limited"
    default_detail = "Rate limit exceeded: try again later"


class RequestTimeout(PlatformError):
    status = 408
    code = "request_timeout"
    default_detail = "The request body was not received in time"


class HeadersTooLarge(PlatformError):
    status = 431
    code = "headers_too_large"
    default_detail = "The request headers are too large"


class NotSupported(PlatformError):
    status = 501
    code = "not_implemented"
    default_detail = "This is not supported here"


class BadGateway(PlatformError):
    status = 502
    code = "bad_gateway"
    default_detail = "The service sent an invalid response"


class Unavailable(PlatformError):
    status = 503
    code = "unavailable"
    default_detail = "A service that this request needs is unavailable"


class GatewayTimeout(PlatformError):
    status = 504
    code = "gateway_timeout"
    default_detail = "The service did not respond in time"


class InsufficientStorage(PlatformError):
    status = 507
    code = "storage_full"
    default_detail = "The server's disk is full; ask the operator to free some space, then try again"


class PluginFailed(PlatformError):
    """A plugin failed. The text of its error may be private and stays in the log."""

    code = "plugin_failed"

    def __init__(self, plugin: str, hook: str, what: str = "failed") -> None:
        super().__init__(
            f"The plugin '{plugin}' {what} ({hook}). The server's log says why; if it can't be fixed, "
            f"the operator can disable the plugin with PLATFORM_PLUGINS_DISABLED={plugin} and a restart"
        )


class PluginTooSlow(Unavailable):
    """A plugin did not answer in time, perhaps because a store has stalled."""

    def __init__(self, plugin: str, hook: str) -> None:
        super().__init__(f"The plugin '{plugin}' took too long to answer ({hook}); try again")


class StartupError(Exception):
    """The platform can't start. The text gives the operator the cause and the remedy."""


class Unhealthy(Exception):
    """Raised by a health check. The text is public; name the fault and the remedy."""


# What third-party code may raise: libraries made for command lines call `sys.exit` where others raise.
ANY_ERROR = (Exception, SystemExit)
