"""Distinguishing an answer from a refusal while it is being written."""

from __future__ import annotations

from builtin_plugins.rag.answering.refusal_texts import REFUSALS


class RefusalGate:
    """Passes text through `feed` in pieces, but holds back a start that may become a refusal in any language.

    `refused` is None until it is known whether the text begins with one of `REFUSALS`. White space before the
    first word is dropped.
    """

    def __init__(self) -> None:
        self._pending = ""
        self.refused: bool | None = None

    def feed(self, piece: str) -> str:
        """The text that can be shown after this piece; may be empty."""
        if self.refused is not None:
            return piece
        self._pending = (self._pending + piece).lstrip()
        if self._pending.startswith(REFUSALS):
            self.refused = True
        elif not any(one.startswith(self._pending) for one in REFUSALS):
            self.refused = False
        return "" if self.refused is None else self._pending

    def close(self) -> str:
        """The held-back text, once the text has ended; may be empty."""
        if self.refused is not None:
            return ""
        self.refused = False
        return self._pending
