"""What a processor computes quickest without a loss that matters.

In int8 the products of a network take two thirds of the time that they take in bf16, and half of that in
fp32. Weights are quantised once, by row; what they are multiplied with is quantised as it comes, in groups,
as in LLM.int8() (Dettmers et al. 2022, "8-bit Matrix Multiplication for Transformers at Scale") without its
outliers. Everything else stays in bf16 or fp32.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from builtin_plugins.embeddings.engines.base import EngineError, Precision
from builtin_plugins.embeddings.engines.openvino_runtime import opset, runtime

GROUP = 64
"""Numbers that share a scale: with 32 a batch takes a sixth longer, with 128 it is hardly quicker."""

_WIDTH = 2 * GROUP  # of the product that shows what the runtime does
_PROCESSOR = Path("/proc/cpuinfo")


class Arithmetic(NamedTuple):
    """The precision of all but products, and whether those are computed in int8."""

    precision: Precision
    int8: bool = False

    @property
    def name(self) -> str:
        """As it stands in an engine's identity: `bf16`, `int8-bf16`, `fp32` …"""
        return f"int8-{self.precision}" if self.int8 else self.precision

    @property
    def options(self) -> dict[str, Any]:
        """For `compile_model`."""
        return {
            "INFERENCE_PRECISION_HINT": "bf16" if self.precision == "bf16" else "f32",
            "DYNAMIC_QUANTIZATION_GROUP_SIZE": GROUP if self.int8 else 0,
        }


def chosen(asked: Precision | Literal["auto"], core: Any, *, takes_int8: bool) -> Arithmetic:
    """What to compute a network in, which may be fit for int8.

    Raises EngineError when bf16 was asked for on a processor without it.
    """
    has_bf16 = "BF16" in core.get_property("CPU", "OPTIMIZATION_CAPABILITIES")
    if asked == "bf16" and not has_bf16:
        # The runtime would compute in fp32 without a word, and the vectors would bear a false identity.
        raise EngineError("this processor does not support bf16: choose the precision auto or fp32")
    if asked != "auto":
        return Arithmetic(asked)
    plain = Arithmetic("bf16" if has_bf16 else "fp32")
    quicker = Arithmetic(plain.precision, int8=True)
    return quicker if takes_int8 and not _has_tiles() and _computes_in_int8(core, quicker) else plain


def _has_tiles() -> bool:
    """Whether the processor multiplies whole tiles of bf16 (AMX), which nothing here is quicker than."""
    try:
        return "amx_bf16" in _PROCESSOR.read_text(encoding="utf-8")
    except OSError:
        return False


def _computes_in_int8(core: Any, arithmetic: Arithmetic) -> bool:
    """Whether the runtime does so on this processor: elsewhere it widens the weights, which takes longer."""
    ops = opset()
    numbers = ops.parameter([-1, _WIDTH], np.float32)
    weights = ops.multiply(
        ops.convert(ops.constant(np.ones((_WIDTH, _WIDTH), np.int8)), "f32"),
        ops.constant(np.ones((_WIDTH, 1), np.float32)),
    )
    product = ops.result(ops.matmul(numbers, weights, False, True))
    compiled = core.compile_model(runtime().Model([product], [numbers]), "CPU", arithmetic.options)
    about = [node.get_rt_info() for node in compiled.get_runtime_model().get_ops()]
    kinds = {one["layerType"].astype(str): one["runtimePrecision"].astype(str) for one in about}
    return bool(kinds.get("FullyConnected") == "i8")
