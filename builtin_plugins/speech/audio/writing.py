"""Sound as a WAV or MP3 file, whole or piece by piece."""

from __future__ import annotations

import io
import struct
from typing import Final, Protocol

from builtin_plugins.speech.engines.protocol import Sound

MEDIA_TYPES: Final = {"wav": "audio/wav", "mp3": "audio/mpeg"}
# What a header says of an unknown length; players then read to the end.
_UNKNOWN: Final = 0xFFFFFFFF
_HEADER_BYTES: Final = 36


def wav(sound: Sound) -> bytes:
    """The sound as a RIFF WAVE file."""
    return _wav_header(sound.rate, len(sound.samples)) + sound.samples


def _wav_header(rate: int, size: int) -> bytes:
    riff = _UNKNOWN if size == _UNKNOWN else size + _HEADER_BYTES
    return (
        struct.pack("<4sI4s", b"RIFF", riff, b"WAVE")
        + struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 1, rate, rate * 2, 2, 16)
        + struct.pack("<4sI", b"data", size)
    )


class Encoder(Protocol):
    """Encodes samples as a file, piece by piece."""

    def add(self, samples: bytes) -> bytes:
        """Take samples; returns the next bytes of the file, possibly none."""

    def finish(self) -> bytes:
        """The last bytes."""


class WavEncoder:
    """A WAV file whose length its header doesn't give."""

    def __init__(self, rate: int) -> None:
        self._pending = _wav_header(rate, _UNKNOWN)

    def add(self, samples: bytes) -> bytes:
        """The samples, after the header the first time."""
        pending, self._pending = self._pending, b""
        return pending + samples

    def finish(self) -> bytes:
        """The header, if there was no sound at all."""
        return self._pending


class Mp3Encoder:
    """An MP3 file, through libsndfile."""

    def __init__(self, rate: int) -> None:
        import soundfile

        self._out = _Forward()
        self._file = soundfile.SoundFile(self._out, "w", rate, 1, format="MP3", subtype="MPEG_LAYER_III")

    def add(self, samples: bytes) -> bytes:
        """The frames that are complete."""
        self._file.buffer_write(samples, dtype="int16")
        return self._out.take()

    def finish(self) -> bytes:
        """The last frames."""
        self._file.close()
        return self._out.take()


def encoder(kind: str, rate: int) -> Encoder:
    """An encoder of the kind ``wav`` or ``mp3``."""
    return Mp3Encoder(rate) if kind == "mp3" else WavEncoder(rate)


def whole_file(kind: str, sound: Sound) -> bytes:
    """The sound as one file."""
    if kind == "wav":
        return wav(sound)
    mp3 = Mp3Encoder(sound.rate)
    return mp3.add(sound.samples) + mp3.finish()


class _Forward(io.RawIOBase):
    """A file that only grows: libsndfile's rewrites of its beginning are dropped, as that is already sent."""

    def __init__(self) -> None:
        super().__init__()
        self._waiting = bytearray()
        self._end = 0
        self._at = 0

    def take(self) -> bytes:
        """What was written since the last time."""
        waiting, self._waiting = bytes(self._waiting), bytearray()
        return waiting

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._end}[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def write(self, piece: bytes, /) -> int:  # type: ignore[override]
        if self._at == self._end:
            self._waiting += piece
            self._end += len(piece)
        self._at += len(piece)
        return len(piece)
