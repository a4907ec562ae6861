"""One turn of a model: its text is passed on, its calls are collected."""

from __future__ import annotations

from contextlib import aclosing

from builtin_plugins.inference import api as inference
from builtin_plugins.orchestrator.events import Events, ToolCall
from kernel.sdk import BadGateway


class ChatTurn:
    """Follows one turn. With `hold`, a text that begins like a JSON object is held back until the end of the
    turn: it may be a call, which some models write as text.

    `calls`, `text` and `end` are complete once `follow` has finished.
    """

    def __init__(self, *, hold: bool = False, pass_calls: bool = False) -> None:
        self._hold = hold
        self._pass_calls = pass_calls
        self._texts: list[str] = []
        self._thoughts: list[str] = []
        self._parts: dict[int, list[inference.ToolCallPart]] = {}
        self._passed_on = False
        self.began = False
        self.end: inference.ChatEnd | None = None

    @property
    def text(self) -> str:
        """The whole text."""
        return "".join(self._texts)

    @property
    def thought(self) -> str:
        """All thoughts."""
        return "".join(self._thoughts)

    @property
    def pending_text(self) -> str:
        """Text that `follow` has held back."""
        return "" if self._passed_on else self.text

    @property
    def calls(self) -> list[ToolCall]:
        """The calls that the model requests, in order."""
        return [_joined(parts) for _, parts in sorted(self._parts.items())]

    async def follow(self, events: inference.ChatEvents) -> Events:
        """Pass on texts and thoughts as they come. Raises what the runtime raises."""
        async with aclosing(events):
            async for event in events:
                self.began = True
                if isinstance(event, str):
                    self._texts.append(event)
                    if text := self._release(event):
                        yield text
                elif isinstance(event, inference.Thought):
                    self._thoughts.append(event.text)
                    yield event
                elif isinstance(event, inference.ToolCallPart):
                    self._parts.setdefault(event.index, []).append(event)
                    if self._pass_calls:
                        yield event
                else:
                    self.end = event

    def ended(self) -> inference.ChatEnd:
        """The end of the turn. Raises BadGateway for a runtime that stopped without one."""
        if self.end is None:
            raise BadGateway("The model runtime stopped in the middle of its response.")
        return self.end

    def _release(self, piece: str) -> str:
        """What may be passed on now: everything, once it can't be a JSON object."""
        if self._passed_on:
            return piece
        so_far = self.text
        begun = so_far.lstrip()
        if self._hold and (not begun or begun.startswith("{")):
            return ""
        self._passed_on = True
        return so_far


def _joined(parts: list[inference.ToolCallPart]) -> ToolCall:
    named = next((part for part in parts if part.name), parts[0])
    call_id = next((part.id for part in parts if part.id), f"call_{parts[0].index}")
    return ToolCall(call_id, named.name, "".join(part.arguments for part in parts))
