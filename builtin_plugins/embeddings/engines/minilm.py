"""all-MiniLM-L6-v2: its tensors and tokenizer from the published files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy.typing as npt
from safetensors import safe_open
from tokenizers import Tokenizer

from builtin_plugins.embeddings.engines.base import BertShape, Ids, Reference, padded
from builtin_plugins.embeddings.engines.bert_graph import build
from builtin_plugins.embeddings.engines.mapped import mapped_tensor
from builtin_plugins.embeddings.weights import Weights

REFERENCE_FILE = Path(__file__).with_name("reference.json")
_WORDS = "embeddings.word_embeddings.weight"
MAX_TOKENS = 256
"""The published `max_seq_length`; what a text has beyond it does not enter its vector."""


class MiniLm:
    """See `Network`."""

    def __init__(self, weights: Weights) -> None:
        self._weights = weights
        self._shape = BertShape.read(weights.config)
        # Half of the model's bytes, of which a text needs a few rows: in the graph each process had its own.
        self._words = mapped_tensor(weights.tensors, _WORDS)
        self._tokenizer = Tokenizer.from_file(str(weights.tokenizer))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(MAX_TOKENS)
        self.model = weights.model
        self.fingerprint = weights.fingerprint
        self.dimension = self._shape.hidden

    @property
    def reference(self) -> Reference:
        return Reference.read(REFERENCE_FILE)

    def graph(self) -> Any:
        with safe_open(self._weights.tensors, framework="np") as file:
            names = [name for name in file.keys() if name != _WORDS]  # noqa: SIM118 (not a dict)
            tensors = {name: file.get_tensor(name) for name in names}
        return build(tensors, self._shape, words_given=True)

    def tokens(self, texts: list[str]) -> list[Ids]:
        return [encoding.ids for encoding in self._tokenizer.encode_batch_fast(texts)]

    def inputs(self, tokens: list[Ids]) -> list[npt.NDArray[Any]]:
        ids, mask = padded(tokens)
        return [self._words[ids], mask]
