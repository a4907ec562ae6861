"""The inference plugin: the hooks through which plugins use models, whichever plugin runs these."""

from __future__ import annotations

from collections.abc import Sequence

from builtin_plugins.inference import api
from kernel.sdk import Plugin, hookimpl


class InferencePlugin(Plugin):
    """Brings hooks and types alone: several plugins ask, several can answer, any of them may be absent."""

    name = "inference"
    version = "0.1.0"
    description = "How plugins use models: embeddings, texts, chats"
    author = "Platform"

    @hookimpl
    def register_hookspecs(self) -> Sequence[object]:
        """What plugins ask of models."""
        return [api]
