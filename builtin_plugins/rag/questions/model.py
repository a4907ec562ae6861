"""Calls to the model runtime for one question, within its budget: texts, verdicts, the answer."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from functools import lru_cache
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from builtin_plugins.rag.errors import AnswerFailed, GenerationFailed
from builtin_plugins.rag.questions.budget import Budget
from builtin_plugins.rag.questions.trace import Trace, plural
from builtin_plugins.rag.schemas import GenerationConfig
from builtin_plugins.rag.settings import RagSettings
from kernel.sdk import GatewayTimeout, Platform, PlatformError, contracts

log = logging.getLogger("platform.rag.generation")

TEMPERATURE = 0.7
MAX_TOKENS = 2000
_CHARS_OF_A_TOKEN = 32  # more than in any language or code
_SHOWN_AGAIN = 2000
NO_RUNTIME = "no model runtime is configured"

AnyVerdict = TypeVar("AnyVerdict", bound=BaseModel)


class Model:
    """The model that a question is answered with; `name` None is the runtime's default."""

    def __init__(
        self, platform: Platform, name: str | None, config: GenerationConfig, budget: Budget, trace: Trace
    ) -> None:
        self._platform = platform
        self._name = name
        self._config = config
        self._budget = budget
        self._trace = trace

    async def installed(self) -> bool:
        """Whether a runtime is configured, without asking it."""
        stream = self._ask((), 0.0, 1, {})
        if stream is None:
            return False
        await stream.aclose()
        return True

    def answer(self, messages: Sequence[contracts.ChatMessage]) -> contracts.Generation | None:
        """The answer, by the pipeline's configuration; None without a runtime.

        Nothing is sent before the first piece is awaited. Raises Unavailable.
        """
        config = self._config
        stream = self._ask(
            messages,
            TEMPERATURE if config.temperature is None else config.temperature,
            tokens := self._budget.answer_tokens(_length(messages)),
            config.model_extra or {},
        )
        return None if stream is None else self._counted(stream, messages, tokens, self._budget.seconds_left)

    async def write(
        self,
        what: str,
        messages: Sequence[contracts.ChatMessage],
        max_tokens: int,
        *,
        options: Mapping[str, Any] | None = None,
        temperature: float = 0.0,
        keep: int = 1,
    ) -> str | None:
        """Write an intermediate text, cut off if it is too long.

        None without a runtime; also None, noted as `what`, when the budget is spent or the model takes too
        long. `keep` calls stay reserved for the answer. Raises Unavailable when the runtime fails.
        """
        if lacking := self._budget.lacks(_length(messages), max_tokens, keep=keep):
            self._trace.degrade(f"{what}: left out, as a question may cost at most {lacking}")
            return None
        stream = self._ask(messages, temperature, max_tokens, options or {})
        if stream is None:
            return None
        seconds = self._budget.step_seconds
        text: list[str] = []
        try:
            async with aclosing(self._counted(stream, messages, max_tokens, seconds)) as pieces:
                async for piece in pieces:
                    if isinstance(piece, str):
                        text.append(piece)
        except _Overlong:
            self._trace.degrade(f"{what}: the model wrote too much and was stopped")
        except _Overdue:
            self._trace.degrade(
                f"{what}: the model took longer than {plural(round(seconds), 'second')} and was stopped"
            )
            return None
        except _Silent:
            self._trace.degrade(f"{what}: the model did not respond in time and was stopped")
            return None
        return "".join(text)

    async def judge(
        self,
        what: str,
        messages: Sequence[contracts.ChatMessage],
        verdict: type[AnyVerdict],
        *,
        keep: int = 1,
    ) -> AnyVerdict | None:
        """The model's verdict, requested as JSON by its schema and parsed strictly; None after two tries.

        Raises Unavailable when the runtime fails.
        """
        form, rules = _form_of(verdict)
        asked = [contracts.ChatMessage("system", f"{messages[0].content}\n{rules}"), *messages[1:]]
        tokens = self._platform.settings_of(RagSettings).verdict_tokens
        for _ in range(2):
            text = await self.write(what, asked, tokens, options={"response_format": form}, keep=keep)
            if text is None:
                return None
            try:
                return verdict.model_validate_json(text.strip(), strict=True)
            except ValidationError:
                asked += [
                    contracts.ChatMessage("assistant", text[:_SHOWN_AGAIN]),
                    contracts.ChatMessage("user", f"That was not the JSON object asked for. {rules}"),
                ]
        self._trace.degrade(f"{what}: the model gave no valid JSON")
        return None

    def _ask(
        self,
        messages: Sequence[contracts.ChatMessage],
        temperature: float,
        max_tokens: int,
        options: Mapping[str, Any],
    ) -> contracts.Generation | None:
        return self._platform.hooks.ask_now(
            contracts.generate_text,
            platform=self._platform,
            messages=messages,
            model=self._name,
            temperature=temperature,
            max_tokens=max_tokens,
            options=options,
        )

    async def _counted(
        self,
        stream: contracts.Generation,
        messages: Sequence[contracts.ChatMessage],
        max_tokens: int,
        seconds: float,
    ) -> contracts.Generation:
        """Limit and count the stream. Raises Unavailable, _Overlong, _Overdue, _Silent."""
        self._budget.begin()
        clock = asyncio.get_running_loop().time
        written, reported, output, until = 0, None, None, clock() + seconds
        async with aclosing(stream):
            try:
                while (item := await _next(stream, until - clock())) is not None:
                    if isinstance(item, str):
                        written += len(item)
                        if written > max_tokens * _CHARS_OF_A_TOKEN:
                            raise _Overlong
                    else:
                        reported, output = item.tokens_used, item.output_tokens
                    yield item
            finally:
                self._budget.end(_length(messages), written, reported, output)


class _Overlong(AnswerFailed):
    """The model wrote much more than was requested."""

    default_detail = "The model wrote much more than max_tokens allows; check the model runtime"


class _Silent(AnswerFailed):
    """The runtime was silent for too long."""


class _Overdue(AnswerFailed):
    """The model took longer than the time left."""

    default_detail = "The model took longer than a question may take; ask for less, or use a faster model"


async def _next(stream: contracts.Generation, seconds: float) -> str | contracts.Generated | None:
    try:
        async with asyncio.timeout(max(seconds, 0.0)):
            return await anext(stream, None)
    except TimeoutError:
        raise _Overdue from None
    except GatewayTimeout as error:
        raise _Silent(error.detail) from None
    except PlatformError:
        raise
    except Exception:  # boundary: another plugin's runtime may fail in any way
        log.exception("generation failed")
        raise GenerationFailed() from None


@lru_cache(maxsize=64)
def _form_of(verdict: type[BaseModel]) -> tuple[Mapping[str, Any], str]:
    """The `response_format` for a verdict's schema, and the instruction for the model."""
    schema = verdict.model_json_schema()
    form = {"type": "json_schema", "json_schema": {"name": "verdict", "schema": schema, "strict": True}}
    return form, f"Answer with one JSON object and nothing else. Its schema: {json.dumps(schema)}"


def _length(messages: Sequence[contracts.ChatMessage]) -> int:
    return sum(len(message.content) for message in messages)
