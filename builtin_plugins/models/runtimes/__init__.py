"""Clients of model runtimes: Ollama and everything OpenAI-compatible, behind one protocol."""

from builtin_plugins.models.runtimes.errors import (
    AnswerMalformed,
    ModelRuntimeError,
    RuntimeBusy,
    RuntimeLacksModel,
    RuntimeRefused,
    RuntimeTimeout,
    RuntimeUnreachable,
    StreamBroken,
)
from builtin_plugins.models.runtimes.ollama import OllamaRuntime
from builtin_plugins.models.runtimes.openai import OpenAIRuntime
from builtin_plugins.models.runtimes.protocol import (
    Embeddings,
    GenerationRequest,
    ModelDetails,
    ModelInfo,
    ModelRuntime,
    RuntimeLimits,
    TextDelta,
)

__all__ = [
    "AnswerMalformed",
    "Embeddings",
    "GenerationRequest",
    "ModelDetails",
    "ModelInfo",
    "ModelRuntime",
    "ModelRuntimeError",
    "OllamaRuntime",
    "OpenAIRuntime",
    "RuntimeBusy",
    "RuntimeLacksModel",
    "RuntimeLimits",
    "RuntimeRefused",
    "RuntimeTimeout",
    "RuntimeUnreachable",
    "StreamBroken",
    "TextDelta",
]
