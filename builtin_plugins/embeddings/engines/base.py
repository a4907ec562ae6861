"""What every embedding engine offers, and what the engines share."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

Vectors = npt.NDArray[np.float32]
Precision = Literal["fp32", "bf16"]

MAX_TOKENS = 256
"""The published `max_seq_length` of all-MiniLM-L6-v2; what a text has beyond it does not enter its vector."""


@dataclass(frozen=True, slots=True)
class BertShape:
    """The sizes of the network, from `config.json`."""

    hidden: int
    heads: int
    layers: int
    epsilon: float

    @classmethod
    def read(cls, config: Path) -> BertShape:
        values = json.loads(config.read_text(encoding="utf-8"))
        return cls(
            hidden=values["hidden_size"],
            heads=values["num_attention_heads"],
            layers=values["num_hidden_layers"],
            epsilon=values["layer_norm_eps"],
        )


class EngineError(RuntimeError):
    """The engine cannot run here, or failed its check; the message says what to do."""


class EmbeddingEngine(Protocol):
    """A loaded model. `encode` may be called from several threads and releases the GIL while it computes."""

    @property
    def identity(self) -> str:
        """Engine, model, precision and weights, as `openvino/all-MiniLM-L6-v2/bf16/53aa51172d14`.

        Stored beside each vector: vectors of two identities are never compared.
        """

    @property
    def dimension(self) -> int:
        """The length of a vector."""

    def encode(self, texts: Sequence[str]) -> Vectors:
        """One row of length 1 per text: float32 [len(texts), dimension], in the order of `texts`."""


def identity(engine: str, model: str, precision: Precision, fingerprint: str) -> str:
    return f"{engine}/{model}/{precision}/{fingerprint}"


def normalised(vectors: Vectors) -> Vectors:
    """`vectors` [n, d] divided by their lengths, so that an inner product is a cosine."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: Vectors = vectors / np.maximum(lengths, np.float32(1e-12))
    return unit
