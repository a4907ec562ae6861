"""Chooses a processor's fastest arithmetic whose loss of precision doesn't matter.

Int8 matrix products take about two thirds of the time of bf16, and half of that of fp32. Weights are
quantized once, by row; activations are quantized at run time, in groups (OpenVINO's dynamic quantization).
Everything else stays in bf16 or fp32.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from builtin_plugins.embeddings.engines.base import EngineError, Precision, PrecisionSetting
from builtin_plugins.embeddings.engines.openvino_runtime import opset, runtime

GROUP = 64
"""Activations that share a scale: 32 would make a batch a sixth slower, 128 hardly any faster."""

_WIDTH = 2 * GROUP  # length of the test row that shows what the runtime does
_LARGE, _SMALL = 127.0, 0.25
_PROCESSOR = Path("/proc/cpuinfo")


class Arithmetic(NamedTuple):
    """The precision of everything but matrix products, and whether those are computed in int8."""

    precision: Precision
    int8: bool = False

    @property
    def name(self) -> str:
        """As in an engine's identity: `bf16`, `int8-bf16`, `fp32` …"""
        return f"int8-{self.precision}" if self.int8 else self.precision

    @property
    def options(self) -> dict[str, Any]:
        """For `compile_model`."""
        return {
            "INFERENCE_PRECISION_HINT": "bf16" if self.precision == "bf16" else "f32",
            "DYNAMIC_QUANTIZATION_GROUP_SIZE": GROUP if self.int8 else 0,
        }


def chosen(setting: PrecisionSetting, core: Any, *, takes_int8: bool) -> Arithmetic:
    """What to compute a network in; one that doesn't tolerate int8 gets the fastest of the others.

    Raises EngineError if int8 or bf16 is configured but not supported by the processor.
    """
    has_bf16 = "BF16" in core.get_property("CPU", "OPTIMIZATION_CAPABILITIES")
    if setting == "bf16" and not has_bf16:
        # The runtime would silently compute in fp32, and the vectors would have a false identity.
        raise _not_here(setting)
    if setting in ("bf16", "fp32"):
        return Arithmetic(setting)
    plain: Precision = "bf16" if has_bf16 else "fp32"
    if not takes_int8 or (setting == "auto" and _has_tiles()):
        return Arithmetic(plain)
    # With bf16 tiles, the runtime only uses int8 for what would otherwise be fp32.
    beside: tuple[Precision, ...] = (plain,) if setting == "auto" else (plain, "fp32")
    candidates = (Arithmetic(precision, int8=True) for precision in beside)
    in_int8 = next((one for one in candidates if computes_in_int8(core, one)), None)
    if in_int8 is None and setting == "int8":
        raise _not_here(setting)
    return in_int8 or Arithmetic(plain)


def _not_here(setting: PrecisionSetting) -> EngineError:
    return EngineError(f"this processor does not support {setting}: choose the precision auto or fp32")


def _has_tiles() -> bool:
    """Whether the processor multiplies tiles of bf16 (AMX), which is faster for all but a single question."""
    try:
        return "amx_bf16" in _PROCESSOR.read_text(encoding="utf-8")
    except OSError:
        return False


def computes_in_int8(core: Any, arithmetic: Arithmetic) -> bool:
    """Whether the runtime really quantizes activations here, found out by computing one row.

    It always claims to. Without the processor's instructions (VNNI), it keeps activations as they are and
    widens the weights, which takes longer than not using int8 at all.
    """
    ops = opset()
    numbers = ops.parameter([-1, _WIDTH], np.float32)
    ones = ops.constant(np.ones((_WIDTH, _WIDTH), np.int8))
    weights = ops.multiply(ops.convert(ones, "f32"), ops.constant(np.ones((_WIDTH, 1), np.float32)))
    product = ops.result(ops.matmul(numbers, weights, False, True))
    row = np.full((1, _WIDTH), _SMALL, np.float32)
    row[0, ::GROUP] = _LARGE  # one per group, next to which quantization rounds the small ones to 0
    try:
        compiled = core.compile_model(runtime().Model([product], [numbers]), "CPU", arithmetic.options)
        return bool(compiled([row])[0][0, 0] == row[0, ::GROUP].sum())
    except RuntimeError:
        return False
