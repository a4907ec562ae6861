"""OpenVINO's runtime without its model converter.

`import openvino` also imports `openvino.tools.ovc`, which reports the import to Google Analytics from a
forked process and writes into the user's home (openvino 2026.4 with openvino-telemetry 2025.2; nothing but a
file in that home prevents it). The converter is optional for the package, so it is hidden while the runtime
loads.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any, cast

_CONVERTER = "openvino.tools.ovc"


def runtime() -> Any:
    """The module `openvino`, loaded without telemetry."""
    if _CONVERTER in sys.modules:
        return importlib.import_module("openvino")
    return _load_without_converter()


def opset() -> Any:
    """The operation set of the graph (13 introduced scaled dot product attention)."""
    return runtime().opset13


def _load_without_converter() -> ModuleType:
    modules = cast("dict[str, ModuleType | None]", sys.modules)
    modules[_CONVERTER] = None  # importing it now raises ModuleNotFoundError
    try:
        return importlib.import_module("openvino")
    finally:
        modules.pop(_CONVERTER, None)
