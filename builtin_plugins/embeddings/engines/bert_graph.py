"""BERT (Devlin et al. 2019) with mean pooling as an OpenVINO graph, built from safetensors without torch.

The names of the tensors are those of `transformers.BertModel`; the pooling is that of Sentence-BERT (Reimers
and Gurevych 2019): the mean of the last layer over the tokens that are not padding.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from builtin_plugins.embeddings.engines.base import BertShape
from builtin_plugins.embeddings.engines.openvino_runtime import opset, runtime

FORM = "1"
"""The format of what `projected_together` and `quantized` make: a new number invalidates stored files."""
_PROJECTIONS = ("query", "key", "value")
_TOGETHER = "projections"
_SCALE = ".scale"
_MATRIX = 2  # dimensions
_INT8_MOST, _LEAST_SCALE = 127, 1e-12
_MASKED = np.float32(-1e4)  # far below any attention score, and representable in bf16 and fp16


def projected_together(weights: Mapping[str, npt.NDArray[Any]], shape: BertShape) -> Mapping[str, Any]:
    """The tensors, with queries, keys and values joined, since one product is faster than three."""
    tensors = dict(weights)
    for index in range(shape.layers):
        prefix = f"encoder.layer.{index}.attention.self."
        for kind in ("weight", "bias"):
            parts = [tensors.pop(f"{prefix}{name}.{kind}") for name in _PROJECTIONS]
            tensors[f"{prefix}{_TOGETHER}.{kind}"] = np.concatenate(parts)
    return tensors


def quantized(weights: Mapping[str, npt.NDArray[Any]]) -> Mapping[str, Any]:
    """The tensors, with the layers' matrices in int8 and a scale for each row."""
    tensors = dict(weights)
    for name, tensor in weights.items():
        if name.startswith("encoder.") and tensor.ndim == _MATRIX:
            scale = np.maximum(np.abs(tensor).max(axis=1, keepdims=True) / _INT8_MOST, _LEAST_SCALE)
            tensors[name] = np.rint(tensor / scale).astype(np.int8)
            tensors[name + _SCALE] = scale.astype(np.float32)
    return tensors


def build(weights: Mapping[str, npt.NDArray[Any]], shape: BertShape) -> Any:
    """The graph as an `openvino.Model`, from the tensors of `projected_together` or `quantized`.

    It uses their memory without keeping it alive: hold on to them.

    Inputs: word embeddings, float32 [rows, length, hidden], and the indexes of `Packed`.
    Output: float32 [texts, hidden], the sum over each text's tokens; once normalized, it equals their
    normalized mean.
    """
    return _BertBuilder(weights, shape).model()


class _BertBuilder:
    def __init__(self, weights: Mapping[str, npt.NDArray[Any]], shape: BertShape) -> None:
        self._op = opset()
        self._weights = weights
        self._shape = shape

    def model(self) -> Any:
        words = self._op.parameter([-1, -1, self._shape.hidden], np.float32, name="words")
        places = self._op.parameter([-1, -1], np.int32, name="places")
        texts = self._op.parameter([-1, -1], np.int32, name="texts")
        tokens = self._op.parameter([-1], np.int32, name="tokens")
        starts = self._op.parameter([-1], np.int32, name="starts")
        states = self._embeddings(words, places)
        bias = self._attention_bias(texts)
        for index in range(self._shape.layers):
            states = self._layer(states, bias, f"encoder.layer.{index}.")
        result = self._op.result(self._sums(states, tokens, starts))
        return runtime().Model([result], [words, places, texts, tokens, starts], "bert")

    def _embeddings(self, words: Any, places: Any) -> Any:
        # Every text is a single segment, so its segment's vector is added to the positions once, here.
        table = (
            self._weights["embeddings.position_embeddings.weight"]
            + self._weights["embeddings.token_type_embeddings.weight"][0]
        )
        positions = self._op.gather(self._op.constant(table), places, self._integers(0))
        return self._layer_norm(self._op.add(words, positions), "embeddings.LayerNorm")

    def _attention_bias(self, texts: Any) -> Any:
        """Restricts a token's attention to its own text: [rows, 1, tokens, tokens]."""
        key_texts = self._op.unsqueeze(texts, self._integers([1, 2]))
        others = self._op.not_equal(self._op.unsqueeze(texts, self._integers([1, 3])), key_texts)
        return self._op.multiply(self._op.convert(others, "f32"), _MASKED)

    def _layer(self, states: Any, bias: Any, prefix: str) -> Any:
        attended = self._linear(self._attention(states, bias, prefix), f"{prefix}attention.output.dense")
        states = self._layer_norm(self._op.add(attended, states), f"{prefix}attention.output.LayerNorm")
        inner = self._op.gelu(self._linear(states, f"{prefix}intermediate.dense"), "erf")
        outer = self._linear(inner, f"{prefix}output.dense")
        return self._layer_norm(self._op.add(outer, states), f"{prefix}output.LayerNorm")

    def _attention(self, states: Any, bias: Any, prefix: str) -> Any:
        query, key, value = self._projected(states, f"{prefix}attention.self.")
        attended = self._op.scaled_dot_product_attention(query, key, value, bias)
        together = self._op.transpose(attended, self._integers([0, 2, 1, 3]))
        return self._op.reshape(together, self._integers([0, 0, self._shape.hidden]), True)

    def _projected(self, states: Any, prefix: str) -> list[Any]:
        """Queries, keys and values, each [batch, heads, tokens, width]."""
        product = self._linear(states, f"{prefix}{_TOGETHER}")
        width = self._shape.hidden // self._shape.heads
        apart = self._op.reshape(product, self._integers([0, 0, 3 * self._shape.heads, width]), True)
        together = self._op.transpose(apart, self._integers([0, 2, 1, 3]))
        return list(self._op.split(together, self._integers(1), 3).outputs())

    def _linear(self, states: Any, name: str) -> Any:
        product = self._op.matmul(states, self._matrix(f"{name}.weight"), False, True)
        return self._op.add(product, self._constant(f"{name}.bias"))

    def _matrix(self, name: str) -> Any:
        stored = self._constant(name)
        if name + _SCALE not in self._weights:
            return stored
        return self._op.multiply(self._op.convert(stored, "f32"), self._constant(name + _SCALE))

    def _layer_norm(self, states: Any, name: str) -> Any:
        centred = self._op.mvn(states, self._integers([-1]), True, self._shape.epsilon, "inside_sqrt")
        scaled = self._op.multiply(centred, self._constant(f"{name}.weight"))
        return self._op.add(scaled, self._constant(f"{name}.bias"))

    def _sums(self, states: Any, tokens: Any, starts: Any) -> Any:
        # Not a matrix product: with one at the end, the runtime would also add up the layers in bf16.
        every = self._op.reshape(states, self._integers([-1, self._shape.hidden]), False)
        return self._op.embedding_bag_offsets_sum(every, tokens, starts)

    def _constant(self, name: str) -> Any:
        return self._op.constant(self._weights[name], shared_memory=True)

    def _integers(self, values: int | list[int]) -> Any:
        return self._op.constant(np.array(values, np.int64))
