"""pocketsphinx: transcribes English offline, with its packaged model. It is weak at free dictation."""

from __future__ import annotations

import importlib.util
from collections.abc import Collection
from pathlib import Path

from builtin_plugins.speech.engines.child import in_child
from builtin_plugins.speech.engines.protocol import Transcript
from kernel.sdk import Children

TARGET = "builtin_plugins.speech.engines.child_tasks:sphinx"


class Sphinx:
    """Transcribes in a limited child process."""

    name = "pocketsphinx"

    def __init__(self, children: Children) -> None:
        self._children = children

    async def missing(self) -> str | None:
        """Whether the package is there."""
        if importlib.util.find_spec("pocketsphinx"):
            return None
        return "run './setup.sh --full', or install the package pocketsphinx"

    def languages(self) -> Collection[str]:
        """The packaged model is English."""
        return ("en",)

    async def transcribe(self, recording: Path, language: str) -> tuple[str, float]:
        """The best hypothesis; its posterior probability says little, so a fixed confidence is given."""
        text: str = await in_child(self._children, TARGET, recording)
        # wire-facts 13: 0.9 for a result, 0.0 if nothing was understood.
        return Transcript(text, 0.9 if text else 0.0)
