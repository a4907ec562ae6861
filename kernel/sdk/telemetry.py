"""Spans, log lines and health, for plugins that send or show them."""

from kernel.observe.health import NotChecked, NotInstalled, is_failure, run_check
from kernel.observe.logs import LogFormatter, mask
from kernel.observe.tracing import (
    Attribute,
    Attributes,
    Carried,
    Links,
    SpanKind,
    Tracer,
    Tracing,
    carried_by_current,
)
from kernel.observe.tracing import current as current_span
from kernel.observe.tracing import note_error as note_span_error

__all__ = [
    "Attribute",
    "Attributes",
    "Carried",
    "Links",
    "LogFormatter",
    "NotChecked",
    "NotInstalled",
    "SpanKind",
    "Tracer",
    "Tracing",
    "carried_by_current",
    "current_span",
    "is_failure",
    "mask",
    "note_span_error",
    "run_check",
]
