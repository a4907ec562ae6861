"""Decodes recordings in a limited child process, to 16-bit samples at 16 kHz, without silence.

libsndfile reads WAV, FLAC, OGG (Vorbis and Opus) and MP3; ffmpeg, if installed, unpacks WebM and M4A, which
browsers and phones record.
"""

from __future__ import annotations

import asyncio
import importlib.util
import shutil
from pathlib import Path
from typing import Final

from builtin_plugins.speech.engines.protocol import SAMPLE_RATE, TOO_LONG
from builtin_plugins.speech.errors import AudioUnreadable, CannotTranscribe, RecordingTooLong
from kernel.sdk import ChildFailed, ChildLimits, Children, MachineFault
from kernel.sdk.operations import Reach

TARGET: Final = "builtin_plugins.speech.audio.child:decode"
_CPU_SECONDS, _WALL_SECONDS, _MEMORY_MB = 60, 90, 1024
# Explicit demuxers: otherwise ffmpeg chooses by content, and a playlist could name other files.
_CONTAINERS: Final = ((0, b"\x1a\x45\xdf\xa3", "matroska"), (4, b"ftyp", "mov"))


async def decode_recording(children: Children, recording: Path, target: Path, most_seconds: int) -> float:
    """Decode the file `recording` into `target`; returns its seconds without silence.

    Raises AudioUnreadable, RecordingTooLong, CannotTranscribe.
    """
    if importlib.util.find_spec("scipy") is None:
        raise CannotTranscribe("This server can't decode recordings: run './setup.sh --full' there")
    limits = ChildLimits(
        *(_MEMORY_MB, _CPU_SECONDS, _WALL_SECONDS), file_bytes=most_seconds * SAMPLE_RATE * 2 + 1024 * 1024
    )
    try:
        demuxer = _demuxer(recording)
        if demuxer is not None:
            recording = await _unpack(children, recording, target.with_suffix(".unpacked"), demuxer, limits)
        reach = await asyncio.to_thread(_reach, recording, target)
        arguments = (*reach.reads, *reach.writes, most_seconds)
        seconds: float = await children.call(TARGET, *arguments, limits=limits, reach=reach)
    except ChildFailed as error:
        if error.code == TOO_LONG or error.reason == "output":
            raise RecordingTooLong(f"The recording is longer than {most_seconds} seconds") from error
        raise AudioUnreadable() from error
    except MachineFault as error:
        raise CannotTranscribe("The recording can't be decoded now; try again later") from error
    return seconds


def _demuxer(recording: Path) -> str | None:
    with recording.open("rb") as file:
        head = file.read(16)
    return next((name for at, magic, name in _CONTAINERS if head[at : at + len(magic)] == magic), None)


async def _unpack(
    children: Children, recording: Path, target: Path, demuxer: str, limits: ChildLimits
) -> Path:
    """The sound of a container as WAV."""
    if (program := shutil.which("ffmpeg")) is None:
        raise AudioUnreadable(
            "WebM and M4A can't be decoded on this server: install the program ffmpeg, or send WAV, FLAC, "
            "OGG or MP3"
        )
    reach = await asyncio.to_thread(_reach, recording, target)
    source = ["-protocol_whitelist", "file", "-f", demuxer, "-i", *reach.reads]
    result = ["-vn", "-ac", "1", "-ar", str(SAMPLE_RATE), "-f", "wav", "-y", *reach.writes]
    command = [program, "-nostdin", "-v", "error", "-threads", "1", *source, *result]
    await children.run(command, limits=limits, reach=reach)
    return target


def _reach(source: Path, target: Path) -> Reach:
    """For a child that makes one file of another; it may write the target, but make no file."""
    target.touch(0o600)
    return Reach([str(source.absolute())], [str(target.absolute())])
