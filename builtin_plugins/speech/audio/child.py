"""What runs in the child process that decodes a recording; it imports nothing of the platform."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Final

import numpy as np
import soundfile
from numpy.typing import NDArray
from scipy.signal import resample_poly

from builtin_plugins.speech.engines.protocol import SAMPLE_RATE, TOO_LONG

_BLOCK_SECONDS: Final = 5
_FRAME: Final = SAMPLE_RATE // 50
# Root mean square of 16-bit samples; a quiet room at arm's length is below it.
_SILENCE: Final = 60.0
_KEPT_FRAMES: Final = 15


class AudioTooLong(Exception):
    """The recording is longer than allowed."""

    code = TOO_LONG


def decode(recording: str, target: str, most_seconds: int) -> float:
    """Write the recording's sound to `target`; returns its seconds without silence."""
    samples = _resampled(*_read(recording, most_seconds))
    frames = np.pad(samples, (0, -len(samples) % _FRAME)).reshape(-1, _FRAME)
    speech = frames[_heard(frames)].reshape(-1)
    Path(target).write_bytes(speech.astype("<i2").tobytes())
    return len(speech) / SAMPLE_RATE


def _read(recording: str, most_seconds: int) -> tuple[NDArray[np.int16], int]:
    """The first channel and its rate, read in blocks, as a file may unpack to a huge size."""
    blocks: list[NDArray[np.int16]] = []
    with soundfile.SoundFile(recording) as file:
        left = most_seconds * file.samplerate
        while True:
            read = file.read(file.samplerate * _BLOCK_SECONDS, dtype="int16", always_2d=True)
            left -= len(read)
            if left < 0:
                raise AudioTooLong
            if not len(read):
                return np.concatenate([*blocks, np.zeros(0, dtype=np.int16)]), file.samplerate
            blocks.append(np.ascontiguousarray(read[:, 0]))


def _resampled(samples: NDArray[np.int16], rate: int) -> NDArray[np.int16]:
    """The sound at `SAMPLE_RATE`, block by block, each with a second of context."""
    common = math.gcd(rate, SAMPLE_RATE)
    up, down = SAMPLE_RATE // common, rate // common
    blocks = [np.zeros(0, dtype=np.int16)]
    for start in range(0, len(samples), rate * _BLOCK_SECONDS):
        before = min(start, rate)
        around = samples[start - before : start + rate * (_BLOCK_SECONDS + 1)].astype(np.float32)
        sound = resample_poly(around, up, down)[before * up // down :][: SAMPLE_RATE * _BLOCK_SECONDS]
        blocks.append(np.clip(sound, -32_768, 32_767).astype(np.int16))
    return np.concatenate(blocks)


def _heard(frames: NDArray[np.int16]) -> NDArray[np.bool_]:
    """Which frames to keep: those with sound, and a moment before and after it."""
    loud = np.array(
        [np.mean(np.square(frame, dtype=np.float32)) > _SILENCE**2 for frame in frames], dtype=bool
    )
    around = np.ones(2 * _KEPT_FRAMES + 1, dtype=np.int32)
    reach = np.convolve(loud, around)[_KEPT_FRAMES : _KEPT_FRAMES + len(loud)]
    is_heard: NDArray[np.bool_] = reach > 0
    return is_heard
