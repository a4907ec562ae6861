"""A loaded engine is compared with vectors that the reference engine made from the same weights.

It costs a few milliseconds at load and catches what tests on another machine cannot: a kernel that computes
wrongly on this processor, a changed tokenizer, a changed runtime.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from builtin_plugins.embeddings.engines.base import EmbeddingEngine, EngineError, Vectors

REFERENCE_FILE = Path(__file__).with_name("reference.json")
LEAST_COSINE = 0.999


@dataclass(frozen=True, slots=True)
class Reference:
    """Texts and the vectors [n, dimension] that sentence-transformers gives them in fp32."""

    texts: list[str]
    vectors: Vectors

    @classmethod
    def read(cls, file: Path = REFERENCE_FILE) -> Reference:
        entries = json.loads(file.read_text(encoding="utf-8"))["entries"]
        vectors = np.array([entry["vector"] for entry in entries], np.float32)
        return cls([entry["text"] for entry in entries], vectors)


def verify(engine: EmbeddingEngine, reference: Reference | None = None) -> float:
    """The mean cosine between the engine's vectors and the reference's.

    Raises:
        EngineError: it is below 0.999, so the engine must not be used on this machine.
    """
    expected = reference if reference is not None else Reference.read()
    found = engine.encode(expected.texts)
    cosine = float(np.mean(np.sum(found * expected.vectors, axis=1)))
    if not cosine >= LEAST_COSINE:
        raise EngineError(
            f"{engine.identity} gives other vectors than the reference on this machine (mean cosine "
            f"{cosine:.4f}, at least {LEAST_COSINE} is needed): choose another engine or precision"
        )
    return cosine
