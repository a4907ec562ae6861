"""What runs in the child processes that transcribe; it imports nothing of the platform."""

from __future__ import annotations

import math
from pathlib import Path


def sphinx(recording: str) -> str:
    """What is said in the file."""
    from pocketsphinx import Decoder

    decoder = Decoder(samprate=16_000, loglevel="FATAL")
    decoder.start_utt()
    with Path(recording).open("rb") as samples:
        while piece := samples.read(64 * 1024):
            decoder.process_raw(piece)
    decoder.end_utt()
    hypothesis = decoder.hyp()
    return hypothesis.hypstr.strip() if hypothesis else ""


def whisper(recording: str, model: str, language: str) -> tuple[str, float]:
    """Text and confidence."""
    import numpy as np
    from faster_whisper import WhisperModel

    samples = np.fromfile(recording, dtype="<i2").astype(np.float32) / 32_768
    engine = WhisperModel(model, device="cpu", compute_type="int8", cpu_threads=1, local_files_only=True)
    segments = list(engine.transcribe(samples, language=language)[0])
    text = " ".join(segment.text.strip() for segment in segments).strip()
    if not text:
        return "", 0.0
    return text, math.exp(sum(segment.avg_logprob for segment in segments) / len(segments))
