"""The reference engine: the published library runs the published files; others answer to its vectors."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np

from builtin_plugins.embeddings.engines.base import BertShape, Precision, Vectors, identity, normalised
from builtin_plugins.embeddings.weights import Weights

_BATCH = 32


class SentenceTransformersEngine:
    """all-MiniLM-L6-v2 in torch. Calls wait for one another: the library promises nothing about threads."""

    def __init__(self, weights: Weights, *, precision: Precision = "fp32") -> None:
        """Load the model; the first engine in a process pays the import of torch (seconds, some 500 MB)."""
        import torch
        from sentence_transformers import SentenceTransformer
        from transformers.utils import logging

        logging.disable_progress_bar()  # type: ignore[no-untyped-call]  # it would draw a bar into the log of a server
        kind = torch.bfloat16 if precision == "bf16" else torch.float32
        self._model = SentenceTransformer(
            str(weights.folder), device="cpu", local_files_only=True, model_kwargs={"dtype": kind}
        )
        self._identity = identity("sentence-transformers", weights.model, precision, weights.fingerprint)
        self._dimension = BertShape.read(weights.config).hidden
        self._turn = threading.Lock()

    @property
    def identity(self) -> str:
        return self._identity

    @property
    def dimension(self) -> int:
        return self._dimension

    def encode(self, texts: Sequence[str]) -> Vectors:
        """See `EmbeddingEngine.encode`."""
        if not texts:
            return np.empty((0, self._dimension), np.float32)
        with self._turn:
            vectors = self._model.encode(
                list(texts),
                batch_size=_BATCH,
                show_progress_bar=False,
                convert_to_numpy=True,
            )
        return normalised(np.asarray(vectors, np.float32))  # in bf16 the library's own is a thousandth off
