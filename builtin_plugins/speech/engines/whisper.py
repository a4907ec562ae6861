"""faster-whisper with the operator's model folder: an extra package, any of Whisper's languages."""

from __future__ import annotations

import importlib.util
from collections.abc import Collection
from pathlib import Path

from builtin_plugins.speech.engines.child import in_child
from builtin_plugins.speech.engines.protocol import Transcript
from builtin_plugins.speech.languages import NAMES
from kernel.sdk import Children

TARGET = "builtin_plugins.speech.engines.child_tasks:whisper"


class Whisper:
    """Transcribes in a limited child process, which loads the model from the folder."""

    name = "whisper"

    def __init__(self, children: Children, model: Path | None) -> None:
        self._children = children
        self._model = model

    async def missing(self) -> str | None:
        """Whether the package and the model are there."""
        if self._model is None:
            return "name a folder with a model in PLATFORM_SPEECH_WHISPER_MODEL"
        if importlib.util.find_spec("faster_whisper") is None:
            return "install the extra whisper (the package faster-whisper)"
        return None if (self._model / "model.bin").is_file() else f"{self._model} holds no file model.bin"

    def languages(self) -> Collection[str]:
        """Every language of the service."""
        return tuple(NAMES)

    async def transcribe(self, recording: Path, language: str) -> tuple[str, float]:
        """The segments joined, with the mean probability of their words as confidence."""
        assert self._model is not None  # otherwise it is missing
        text, confidence = await in_child(self._children, TARGET, recording, self._model, language)
        return Transcript(text, confidence)
