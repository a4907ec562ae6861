"""What can go wrong with a model that runs on this machine."""

from __future__ import annotations

from builtin_plugins.models.runtimes.errors import ModelRuntimeError


class LocalModelFailed(ModelRuntimeError):
    """The model's process ended or could not start: 503; the next call starts it again."""

    code = "local_model_failed"


class LocalModelUnusable(ModelRuntimeError):
    """The file is not a model that llama.cpp can load."""

    code = "local_model_unusable"

    def __init__(self, name: str) -> None:
        super().__init__(
            f"The file of the local model '{name}' can't be loaded: it is damaged or of a kind that is not "
            "supported. Replace the file or choose another model."
        )


class LocalMemoryShort(ModelRuntimeError):
    """The model does not fit into the free memory."""

    code = "local_model_memory"

    def __init__(self, name: str, needed: int, left: int) -> None:
        super().__init__(
            f"The local model '{name}' needs about {needed} MB of memory, and {left} MB are available. "
            "Free memory or choose a smaller model."
        )


class LocalRuntimeMissing(ModelRuntimeError):
    """The package that runs GGUF files is not installed."""

    code = "local_runtime_missing"
    default_detail = (
        "Local models need the package xllamacpp. Install the extra: "
        "pip install 'platform-kernel[local-llm]', and start the platform again."
    )
