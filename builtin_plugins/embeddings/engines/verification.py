"""Compares a loaded engine with vectors that a published library made from the same weights.

This takes a few milliseconds at load and catches what tests on another machine cannot: a kernel with wrong
results on this processor, a changed tokenizer, a changed runtime.
"""

from __future__ import annotations

import numpy as np

from builtin_plugins.embeddings.engines.base import EmbeddingEngine, EngineError, Reference

LEAST_COSINE = 0.999


def verify(engine: EmbeddingEngine, reference: Reference) -> float:
    """The mean cosine between the engine's vectors and the reference's.

    Raises:
        EngineError: it is below 0.999, so the engine must not be used on this machine.
    """
    vectors = engine.encode(reference.texts)
    cosine = float(np.mean(np.sum(vectors * reference.vectors, axis=1)))
    if not cosine >= LEAST_COSINE:
        raise EngineError(
            f"{engine.identity} produces different vectors from the reference on this machine (mean cosine "
            f"{cosine:.4f}, at least {LEAST_COSINE} is required): choose another engine or precision"
        )
    return cosine
