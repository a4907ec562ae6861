"""A model runtime in this process, for tests that need no protocol."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from builtin_plugins.inference import api as inference
from kernel.sdk import Plugin, hookimpl


class SayingModel(Plugin):
    """Answers at once with what `say` returns."""

    tokens: ClassVar = 10

    @hookimpl
    def generate_text(
        self, messages: Sequence[inference.ChatMessage], options: Mapping[str, Any]
    ) -> inference.Generation:
        return self._text(messages)

    async def _text(self, messages: Sequence[inference.ChatMessage]) -> inference.Generation:
        text = self.say(messages)
        yield text
        yield inference.Completion(text, self.tokens, self.name, "stop")

    @abstractmethod
    def say(self, messages: Sequence[inference.ChatMessage]) -> str:
        """The answer to these messages."""
