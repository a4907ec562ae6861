"""Why a model server can't be connected: one error for each step of the test."""

from __future__ import annotations

from typing import Final

from kernel.sdk import BadRequest, Conflict, Forbidden, NotFound, PlatformError


class ConnectingDisabled(Forbidden):
    code = "connecting_disabled"
    default_detail = (
        "Model servers are configured by the operator alone here; PLATFORM_MODELS_CONNECTABLE allows more"
    )


class ConnectionNotFound(NotFound):
    code = "model_connection_not_found"
    default_detail = "No such connection"


class ConnectionFixed(Conflict):
    code = "model_connection_fixed"
    default_detail = "The operator's settings configure a server of this name; choose another, or change them"


class DefaultFixed(Conflict):
    code = "default_model_fixed"
    default_detail = "OLLAMA_LLM_MODEL sets the model for answers; an operator can change or remove it"


class ServerNameUnknown(BadRequest):
    code = "model_server_name_unknown"
    default_detail = "The name of the server has no address. Check how 'url' is spelled."


class ServerNotAccepting(BadRequest):
    code = "model_server_not_accepting"
    default_detail = (
        "Nothing accepts connections at this address. Check the port in 'url', that the server is running, "
        "and that it listens for other machines, not only for its own."
    )


class ServerTlsInvalid(BadRequest):
    code = "model_server_tls_invalid"
    default_detail = (
        "The server's certificate is not valid, or the server has no TLS. Check whether 'url' begins with "
        "https:// or http://, and that the certificate is for this name."
    )


class ServerKeyRefused(BadRequest):
    code = "model_server_key_refused"
    default_detail = "The server refused the key, or needs one. Check 'key'."


class ServerLacksModel(BadRequest):
    code = "model_server_lacks_model"
    default_detail = "The server has no model of this name. Choose one of its own."


class ServerSilent(BadRequest):
    code = "model_server_silent"
    default_detail = "The server did not answer in time. Check that it is not overloaded, and try again."


class ServerForbidden(BadRequest):
    code = "model_server_forbidden"
    default_detail = (
        "This address may not be connected: it is one that describes virtual machines, or private while "
        "PLATFORM_MODELS_CONNECTABLE allows public addresses only."
    )


class ServerUnlike(BadRequest):
    code = "model_server_unlike"
    default_detail = (
        "A server answers at this address, but not as a model server does. Check the port and path in 'url'."
    )


class ServerFailed(BadRequest):
    code = "model_server_failed"
    default_detail = "The server answered with an error. Check its own log, or its account's quota."


FAILED_STEPS: Final[tuple[type[PlatformError], ...]] = (
    ServerNameUnknown,
    ServerNotAccepting,
    ServerTlsInvalid,
    ServerKeyRefused,
    ServerLacksModel,
    ServerSilent,
    ServerForbidden,
    ServerUnlike,
    ServerFailed,
)
