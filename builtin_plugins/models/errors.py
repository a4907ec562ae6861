"""Refusals of the service."""

from __future__ import annotations

from kernel.sdk import (
    BadRequest,
    Conflict,
    Forbidden,
    InsufficientStorage,
    NotFound,
    NotSupported,
    TooManyRequests,
    Unavailable,
)


class UnknownModel(NotFound):
    code = "model_not_found"
    default_detail = "No such model"


class ModelNotAllowed(Forbidden):
    code = "model_not_allowed"
    default_detail = "You may not use this model"


class MediaAddressRefused(BadRequest):
    code = "media_address_refused"
    default_detail = (
        "Send pictures and the like themselves, as 'data:' addresses; an operator can allow others with "
        "PLATFORM_MODELS_MEDIA_ADDRESSES"
    )


class ModelRateLimited(TooManyRequests):
    code = "model_rate_limited"


class NoRuntime(Unavailable):
    code = "no_model_runtime"
    default_detail = (
        "No model runtime that can pull models is configured; set OLLAMA_BASE_URL to the address of an "
        "Ollama server"
    )


class ModelElsewhere(Conflict):
    code = "model_not_deletable"
    default_detail = "This model's runtime can't delete it through the platform; remove it there"


class PullNotFound(NotFound):
    code = "pull_not_found"
    default_detail = "No such pull"


class PullEnded(Conflict):
    code = "pull_ended"
    default_detail = "The pull has already ended"


class PullFailed(Unavailable):
    code = "pull_failed"
    default_detail = "The model could not be pulled"


class StoreFull(InsufficientStorage):
    code = "model_storage_full"


class FineTuneMissing(NotSupported):
    code = "not_implemented"
    default_detail = "Fine-tuning is not implemented"
