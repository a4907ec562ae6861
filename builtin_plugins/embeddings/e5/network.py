"""multilingual-e5-small as a network: the layers in OpenVINO's graph, the word embeddings in 4 bit."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from builtin_plugins.embeddings.e5.packed import PackedModel
from builtin_plugins.embeddings.e5.unigram import Unigram
from builtin_plugins.embeddings.engines.base import Ids, Reference, Vectors
from builtin_plugins.embeddings.engines.bert_graph import FORM, build, projected_together, quantized
from builtin_plugins.embeddings.engines.packing import packed
from kernel.sdk.operations import mapped

if TYPE_CHECKING:
    import numpy.typing as npt

REFERENCE_FILE = Path(__file__).with_name("reference.json")
_LAYER = {  # the packed file's names, and those of `transformers.BertModel`
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense",
    "fo": "output.dense",
    "oln": "output.LayerNorm",
}


class E5:
    """See `Network`."""

    model = "multilingual-e5-small"
    takes_int8 = True

    def __init__(self, file: Path, fingerprint: str, home: Path | None = None) -> None:
        self._packed = PackedModel(file)
        self._home = home
        self._weights = mapped.Arrays({})
        self._unigram = Unigram(self._packed.vocabulary, self._packed.positions)
        del self._packed.vocabulary  # 25 MB that the tokenizer now has in its own form
        self.fingerprint = fingerprint
        self.dimension = self._packed.shape.hidden

    @property
    def reference(self) -> Reference:
        return Reference.read(REFERENCE_FILE)

    def graph(self, *, int8: bool) -> Any:
        version, make = (f"{FORM}-int8", self._quantized) if int8 else (FORM, self._unpacked)
        self._weights = mapped.derived(self._home, self.model, f"{self.fingerprint}-{version}", make)
        return build(self._weights, self._packed.shape)

    def forget(self) -> None:
        self._weights.forget()

    def _unpacked(self) -> Mapping[str, Vectors]:
        return projected_together(self.tensors(), self._packed.shape)

    def _quantized(self) -> Mapping[str, Any]:
        return quantized(self._unpacked())

    def tensors(self) -> dict[str, Vectors]:
        """All but the word embeddings, in fp32, by the names of `transformers.BertModel` (86 MB)."""
        hidden = self._packed.shape.hidden
        tensors = {
            "embeddings.position_embeddings.weight": self._packed.tensor("emb.pos", hidden),
            "embeddings.token_type_embeddings.weight": self._packed.tensor("emb.type", hidden),
            "embeddings.LayerNorm.weight": self._packed.tensor("emb.ln.w"),
            "embeddings.LayerNorm.bias": self._packed.tensor("emb.ln.b"),
        }
        for layer in range(self._packed.shape.layers):
            for short, name in _LAYER.items():
                tensors |= self._pair(f"l{layer}.{short}", f"encoder.layer.{layer}.{name}")
        return tensors

    def _pair(self, short: str, name: str) -> dict[str, Vectors]:
        """Weight and bias of one part; a matrix [out, in] has a row for each element of its bias."""
        bias, weight = self._packed.tensor(f"{short}.b"), self._packed.tensor(f"{short}.w")
        matrix = weight.reshape(len(bias), -1)
        return {f"{name}.bias": bias, f"{name}.weight": matrix[:, 0] if matrix.shape[1] == 1 else matrix}

    def tokens(self, texts: list[str]) -> list[Ids]:
        return [self._unigram.ids(text) for text in texts]

    def inputs(self, tokens: list[Ids]) -> list[npt.NDArray[Any]]:
        ids, *others = packed(tokens)
        return [self._packed.words(ids), *others]
