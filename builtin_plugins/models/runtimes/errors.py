"""Errors of model runtimes. ``detail`` is written here and safe to show: no driver text, address or key."""

from __future__ import annotations

from kernel.sdk import PlatformError


class ModelRuntimeError(PlatformError):
    """The base of them all; 503 unless a subclass says otherwise."""

    status = 503
    code = "model_runtime_error"
    default_detail = "The model runtime failed"


class RuntimeUnreachable(ModelRuntimeError):
    """No connection, or it broke before the runtime answered."""

    code = "model_runtime_unreachable"

    def __init__(self) -> None:
        super().__init__("The model runtime is unreachable. Check its address and that it is running.")


class RuntimeTimeout(ModelRuntimeError):
    """The runtime was silent for too long, or took too long in all."""

    status = 504
    code = "model_runtime_timeout"

    def __init__(self) -> None:
        super().__init__("The model runtime did not respond in time.")


class RuntimeLacksModel(ModelRuntimeError):
    """The runtime answers, but has no such model."""

    status = 404
    code = "model_not_found"

    def __init__(self, model: str) -> None:
        super().__init__(f"The model runtime has no model '{model}'. Pull it or choose another model.")
        self.model = model


class RuntimeRefused(ModelRuntimeError):
    """The runtime answered with an error status.

    ``upstream_status`` is the runtime's own. ``retry_after`` is its Retry-After in seconds, if any.
    """

    code = "model_runtime_refused"

    def __init__(self, upstream_status: int, retry_after: int | None = None) -> None:
        headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
        super().__init__(_refusal(upstream_status), headers=headers)
        self.upstream_status = upstream_status
        self.retry_after = retry_after


class RuntimeBusy(RuntimeRefused):
    """The runtime answered 429: too many requests."""

    status = 429
    code = "model_runtime_busy"


class RuntimeObjects(RuntimeRefused):
    """The runtime rejects the request (400, 413, 422) and tells why.

    Only for a chat whose caller wrote the request; other errors of a runtime stay in the log.
    """

    code = "model_runtime_objects"

    def __init__(self, upstream_status: int, message: str) -> None:
        super().__init__(upstream_status)
        self.status = upstream_status  # type: ignore[misc]  # the runtime's, on this instance only
        self.detail = f"The model runtime refused the request: {message}"


class StreamBroken(ModelRuntimeError):
    """An answer began but didn't end: the connection dropped, or the runtime failed or sent invalid data."""

    code = "model_stream_broken"

    def __init__(self) -> None:
        super().__init__("The model runtime stopped in the middle of its response.")


class AnswerMalformed(ModelRuntimeError):
    """The runtime's answer is not what its protocol says, or is larger than allowed."""

    code = "model_answer_malformed"

    def __init__(self, what: str) -> None:
        super().__init__(f"The model runtime sent an invalid response: {what}.")


def refused(status: int, retry_after: int | None = None) -> RuntimeRefused:
    """The error for an upstream status of 300 and above."""
    kind = RuntimeBusy if status == 429 else RuntimeRefused
    return kind(status, retry_after)


def _refusal(status: int) -> str:
    if status in (401, 403):
        return f"The model runtime refused the platform's credentials ({status}). Check its API key."
    if status == 429:
        return "The model runtime is overloaded. Try again later."
    return f"The model runtime refused the request ({status})."
