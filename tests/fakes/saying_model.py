"""A model runtime in this process, for tests that need no protocol."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from kernel.sdk import Plugin, contracts, hookimpl


class SayingModel(Plugin):
    """Answers at once with what `say` returns."""

    tokens: ClassVar = 10

    @hookimpl
    def generate_text(
        self, messages: Sequence[contracts.ChatMessage], options: Mapping[str, Any]
    ) -> contracts.Generation:
        return self._text(messages)

    async def _text(self, messages: Sequence[contracts.ChatMessage]) -> contracts.Generation:
        text = self.say(messages)
        yield text
        yield contracts.Generated(text, self.tokens, self.name, "stop")

    @abstractmethod
    def say(self, messages: Sequence[contracts.ChatMessage]) -> str:
        """The answer to these messages."""
