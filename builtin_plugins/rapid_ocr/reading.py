"""Lines of text in a picture, by RapidOCR's models; runs in a parser's process."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise
from typing import Any, Final

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError
from rapidocr import RapidOCR

from builtin_plugins.documents.api import RecognizedWord, UnparsableDocument

_UNKNOWN: Final = 0.9
"""The score that becomes a certainty of a half: lines in scripts without a model have 0.69 to 0.94, those
that are right 0.97 to 1.
"""
_LONGEST: Final = 2_000  # pixels of a side: more are no better, and take memory
_SAME_LINE: Final = 0.5  # the share of a line's height by which its pieces may differ


def read(picture: bytes, page: int | None) -> Iterator[Sequence[RecognizedWord]]:
    """Yield the lines of a picture from top to bottom. Raises `UnparsableDocument` for what is no picture."""
    output = _engine()(_pixels(picture, page))
    if output.boxes is None:
        return
    for line in _lines(output):
        yield [word for text, score in line for word in _words(text, score)]


def _words(text: str, score: float) -> Iterator[RecognizedWord]:
    certainty = max(0.0, 1 - (1 - score) / (1 - _UNKNOWN) / 2)
    return (RecognizedWord(word, certainty) for word in text.split())


@cache
def _engine() -> Any:
    """Loaded in each process that reads a picture."""
    options = {f"EngineConfig.onnxruntime.{kind}_op_num_threads": 1 for kind in ("intra", "inter")}
    return RapidOCR(params={"Global.log_level": "critical", "Rec.rec_batch_num": 1, **options})


def _pixels(picture: bytes, page: int | None) -> Any:
    try:
        with Image.open(io.BytesIO(picture)) as image:
            image.seek((page or 1) - 1)
            upright = ImageOps.exif_transpose(image).convert("RGB")
    except Image.DecompressionBombError as error:
        raise UnparsableDocument("too_many_pixels", str(error)) from None
    except (UnidentifiedImageError, OSError, EOFError, ValueError, SyntaxError) as error:
        raise UnparsableDocument("corrupt", str(error)) from None
    upright.thumbnail((_LONGEST, _LONGEST))
    return np.asarray(upright)[:, :, ::-1]


def _lines(output: Any) -> Iterator[list[tuple[str, float]]]:
    """The pieces, those beside each other as one line, in the direction in which the page is tilted."""
    boxes = np.asarray(output.boxes, dtype=float)
    along = np.median(boxes[:, 1] - boxes[:, 0], axis=0)
    slope = along[1] / along[0] if abs(along[0]) > abs(along[1]) else 0.0
    centers = boxes.mean(axis=1)
    levels = centers[:, 1] - slope * centers[:, 0]
    height = float(np.median(np.abs(boxes[:, 3, 1] - boxes[:, 0, 1]))) or 1.0
    order = np.argsort(levels, kind="stable")
    breaks = [
        0,
        *(at + 1 for at, (a, b) in enumerate(pairwise(levels[order])) if b - a > _SAME_LINE * height),
    ]
    for start, end in pairwise([*breaks, len(order)]):
        pieces = sorted(order[start:end], key=lambda at: centers[at, 0])
        yield [(output.txts[at], float(output.scores[at])) for at in pieces]
