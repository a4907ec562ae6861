"""all-MiniLM-L6-v2: its tensors and tokenizer from the published files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer

from builtin_plugins.embeddings.engines.base import BertShape, EngineError, Ids, Reference, Vectors
from builtin_plugins.embeddings.engines.bert_graph import FORM, build, projected_together
from builtin_plugins.embeddings.engines.packing import packed
from builtin_plugins.embeddings.weights import Weights
from kernel.sdk.operations import mapped

REFERENCE_FILE = Path(__file__).with_name("reference.json")
_WORDS = "embeddings.word_embeddings.weight"
MAX_TOKENS = 256
"""The published `max_seq_length`; the rest of a text is ignored."""


class MiniLm:
    """See `Network`."""

    takes_int8 = False  # its vectors would differ by 0.0015

    def __init__(self, weights: Weights, home: Path | None = None) -> None:
        self._shape = BertShape.read(weights.config)
        self._published = mapped.arrays_of(weights.tensors)
        # Half of the model's bytes, but a text needs only a few rows; in the graph, each process would have a
        # copy.
        self._words = self._published[_WORDS]
        self._weights = mapped.derived(home, weights.model, f"{weights.fingerprint}-{FORM}", self._together)
        self._tokenizer = Tokenizer.from_file(str(weights.tokenizer))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(MAX_TOKENS)
        self.model = weights.model
        self.fingerprint = weights.fingerprint
        self.dimension = self._shape.hidden

    @property
    def reference(self) -> Reference:
        return Reference.read(REFERENCE_FILE)

    def graph(self, *, int8: bool) -> Any:
        if int8:
            raise EngineError(f"{self.model} is not computed in int8")
        return build(self._weights, self._shape)

    def forget(self) -> None:
        self._weights.forget()
        self._published.forget()

    def _together(self) -> Mapping[str, Vectors]:
        tensors = {
            name: np.array(tensor)  # a graph doesn't accept read-only memory
            for name, tensor in self._published.items()
            if tensor.dtype.kind == "f" and name != _WORDS
        }
        return projected_together(tensors, self._shape)

    def tokens(self, texts: list[str]) -> list[Ids]:
        return [encoding.ids for encoding in self._tokenizer.encode_batch_fast(texts)]

    def inputs(self, tokens: list[Ids]) -> list[npt.NDArray[Any]]:
        ids, *others = packed(tokens)
        return [self._words[ids], *others]
