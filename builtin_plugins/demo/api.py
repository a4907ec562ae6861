"""What other plugins' commands may use of the demonstration."""

from __future__ import annotations

from builtin_plugins.demo.commands.walk import QUESTIONS, SAMPLES, Stopwatch, ingest

__all__ = ["QUESTIONS", "SAMPLES", "Stopwatch", "ingest"]
