"""Errors of the orchestrator."""

from __future__ import annotations

from kernel.sdk import Conflict, NotFound, Unavailable


class ModelNotFound(NotFound):
    code = "model_not_found"
    default_detail = "There is no such model"


class NoChatModel(Unavailable):
    code = "no_model_runtime"
    default_detail = (
        "No model runtime is configured. Choose a pipeline as the model (GET /v1/ai/models lists them), "
        "or ask the operator for one"
    )


class NotWaiting(Conflict):
    code = "approval_not_waiting"
    default_detail = "No call is waiting for this approval: it was used, has expired, or was never given"
