"""What every embedding engine offers, and what the engines share."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


Vectors: TypeAlias = "npt.NDArray[np.float32]"
Precision = Literal["fp32", "bf16"]
PrecisionSetting = Literal["auto", "int8", "bf16", "fp32"]
"""A precision that the settings may name."""

Ids = list[int]


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


class DeclaredWrongly(EngineError):
    """The settings of a model are wrong; the message may be shown to anybody."""


@dataclass(frozen=True, slots=True)
class Reference:
    """Texts and their vectors [n, dimension] by a published library in fp32."""

    texts: list[str]
    vectors: Vectors

    @classmethod
    def read(cls, file: Path) -> Reference:
        """Read a JSON file with a list of `entries` with `text` and `vector`."""
        import numpy as np

        entries = json.loads(file.read_text(encoding="utf-8"))["entries"]
        vectors = np.array([entry["vector"] for entry in entries], np.float32)
        return cls([entry["text"] for entry in entries], vectors)


class ModelNetwork(Protocol):
    """A model's weights and tokenizer, for an engine that runs its graph."""

    @property
    def model(self) -> str:
        """The published name, such as `all-MiniLM-L6-v2`."""

    @property
    def fingerprint(self) -> str:
        """The first 12 hexadecimal digits of the weights' SHA-256."""

    @property
    def dimension(self) -> int:
        """The length of a vector."""

    @property
    def reference(self) -> Reference:
        """The vectors that an engine's are compared with on loading."""

    @property
    def takes_int8(self) -> bool:
        """Whether its vectors stay within a thousandth of fp32 when products are computed in int8."""

    def graph(self, *, int8: bool) -> Any:
        """The `openvino.Model`, its weights in fp32 or in int8."""

    def forget(self) -> None:
        """Free the memory of the graph's weights; they are read again if needed."""

    def tokens(self, texts: list[str]) -> list[Ids]:
        """The token ids of each text, cut at the model's maximum length."""

    def inputs(self, tokens: list[Ids]) -> list[npt.NDArray[Any]]:
        """The graph's inputs for one batch (`packed`)."""


class EmbeddingEngine(Protocol):
    """A loaded model. `encode` may be called from several threads and releases the GIL while it computes."""

    @property
    def identity(self) -> str:
        """Engine, model, arithmetic and weights, such as `openvino/all-MiniLM-L6-v2/bf16/53aa51172d14`.

        Stored with each vector: vectors of different identities are never compared.
        """

    @property
    def dimension(self) -> int:
        """The length of a vector."""

    def encode(self, texts: Sequence[str]) -> Vectors:
        """One row of length 1 per text: float32 [len(texts), dimension], in the order of `texts`."""


def identity(engine: str, model: str, arithmetic: str, fingerprint: str) -> str:
    return f"{engine}/{model}/{arithmetic}/{fingerprint}"


def normalized(vectors: Vectors) -> Vectors:
    """`vectors` [n, d] divided by their lengths, so that an inner product is a cosine."""
    import numpy as np

    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: Vectors = vectors / np.maximum(lengths, np.float32(1e-12))
    return unit
