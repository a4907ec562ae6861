"""How much a question may cost: model calls, tokens, seconds."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from builtin_plugins.rag.questions.trace import plural
from builtin_plugins.rag.settings import RagSettings

_CHARS_OF_A_TOKEN = 4
_LEAST_TOKENS = 64


class Budget:
    """What a question has spent, and whether it may spend more.

    A preparatory model call is allowed while enough is left for the answer itself. The answer is always
    allowed, with the remaining tokens and seconds, and at least 64 tokens.
    """

    def __init__(self, settings: RagSettings, answer_tokens: int) -> None:
        self._settings = settings
        self._answer_tokens = answer_tokens
        self._started = time.monotonic()
        self._estimated = 0
        self.calls = 0
        self.tokens: int | None = None
        self._output: int | None = None
        self._uncounted = False

    @property
    def tokens_told(self) -> int | None:
        """Prompt and output tokens of all calls; None if the runtime didn't report them for some call."""
        return None if self._uncounted else self.tokens

    @property
    def output_tokens_told(self) -> int | None:
        """Output tokens of all calls; None if the runtime didn't report them for some call."""
        return None if self._uncounted else self._output

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Stop the clock during other work: a search may wait for its embedding model to load."""
        started = time.monotonic()
        try:
            yield
        finally:
            self._started += time.monotonic() - started

    @property
    def seconds_left(self) -> float:
        return self._settings.question_seconds - (time.monotonic() - self._started)

    @property
    def step_seconds(self) -> float:
        """How long a preparatory call may take; half of the question's time is kept for the answer."""
        kept = self._settings.question_seconds / 2
        return max(0.0, min(self._settings.step_seconds, self.seconds_left - kept))

    def lacks(self, prompt_chars: int, tokens: int, *, keep: int = 1) -> str | None:
        """What a further call would exceed with `keep` calls reserved for the answer; None if nothing."""
        settings = self._settings
        wanted = prompt_chars // _CHARS_OF_A_TOKEN + tokens
        kept = (settings.answer_chars // _CHARS_OF_A_TOKEN + self._answer_tokens) if keep else 0
        if self.calls + 1 + keep > settings.question_model_calls:
            return plural(settings.question_model_calls, "model call")
        if self._estimated + wanted + kept > settings.question_tokens:
            return f"{settings.question_tokens} tokens"
        if self.seconds_left < settings.question_seconds / 2:
            return f"half of {plural(settings.question_seconds, 'second')}"
        return None

    def answer_tokens(self, prompt_chars: int) -> int:
        """How many tokens an answer may have."""
        left = self._settings.question_tokens - self._estimated - prompt_chars // _CHARS_OF_A_TOKEN
        return max(_LEAST_TOKENS, min(self._answer_tokens, left))

    def begin(self) -> None:
        """Count a call that begins."""
        self.calls += 1

    def end(self, prompt_chars: int, text_chars: int, reported: int | None, output: int | None) -> None:
        """Count what a call has used: the runtime's token counts, or an estimate where they are None."""
        self._estimated += (prompt_chars + text_chars) // _CHARS_OF_A_TOKEN if reported is None else reported
        if reported is None:
            self._uncounted = True
        else:
            self.tokens = (self.tokens or 0) + reported
            self._output = (self._output or 0) + (output or 0)
