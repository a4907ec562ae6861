"""A run as files: a table in Markdown, and a plot in SVG."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from builtin_plugins.evaluation.schemas import Measure, Summary

_COLUMNS = (
    *("quality", "ndcg@10", "recall@5", "mrr", "contains", "refused_right", "refused_wrong"),
    *("citations_supported", "failed", "latency_ms", "tokens", "model_calls"),
)
_PLOTTED = (("quality", "#1f5fa8"), ("ndcg@10", "#4b8f29"), ("recall@5", "#c2410c"), ("contains", "#7c3aed"))
_LEFT, _WIDTH, _BAR, _GAP, _HEAD = 250, 420, 12, 18, 44


def table(summaries: Sequence[Summary]) -> str:
    """A row for each configuration: means, and in brackets the 95 % intervals; then why answers failed."""
    lines = [
        "| configuration | asked | " + " | ".join(_COLUMNS) + " |",
        "| --- |" + " ---: |" * (len(_COLUMNS) + 1),
    ]
    for summary in summaries:
        cells = [_cell(summary.measures.get(name)) for name in _COLUMNS]
        lines.append(f"| {summary.label} | {summary.asked} | " + " | ".join(cells) + " |")
    failures = [
        f"- {summary.label}: {n} failed. {why}"
        for summary in summaries
        for why, n in summary.failures.items()
    ]
    return "\n".join([*lines, *([""] if failures else []), *failures]) + "\n"


def _cell(measure: Measure | None) -> str:
    if measure is None:
        return "–"
    digits = 1 if measure.mean > 10 else 3
    return f"{measure.mean:.{digits}f} ({measure.low:.{digits}f}–{measure.high:.{digits}f})"


def plot(summaries: Sequence[Summary]) -> str:
    """Bars from 0 to 1 with whiskers for the 95 % intervals."""
    block = _BAR * len(_PLOTTED) + _GAP
    height, width = _HEAD + block * len(summaries) + 24, _LEFT + _WIDTH + 60
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" font-family="sans-serif" font-size="12" role="img">',
        "<title>Measures of each configuration, with 95 % intervals</title>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        *_legend(),
        *_grid(height),
    ]
    for at, summary in enumerate(summaries):
        parts += _bars(summary, _HEAD + at * block)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _legend() -> list[str]:
    elements = []
    for at, (name, color) in enumerate(_PLOTTED):
        x = _LEFT + at * 105
        elements.append(f'<rect x="{x}" y="10" width="10" height="10" fill="{color}"/>')
        elements.append(f'<text x="{x + 15}" y="19">{name}</text>')
    return elements


def _grid(height: int) -> list[str]:
    elements = []
    for step in range(5):
        x, bottom = _LEFT + _WIDTH * step / 4, height - 20
        elements.append(f'<line x1="{x}" x2="{x}" y1="{_HEAD - 8}" y2="{bottom}" stroke="#d4d4d4"/>')
        elements.append(f'<text x="{x}" y="{bottom + 14}" text-anchor="middle">{step / 4:g}</text>')
    return elements


def _bars(summary: Summary, top: int) -> list[str]:
    middle = top + _BAR * len(_PLOTTED) / 2 + 4
    elements = [f'<text x="{_LEFT - 10}" y="{middle}" text-anchor="end">{escape(summary.label)}</text>']
    for at, (name, color) in enumerate(_PLOTTED):
        measure = summary.measures.get(name)
        if measure is not None:
            y = top + at * _BAR
            elements += [
                f'<rect x="{_LEFT}" y="{y}" width="{measure.mean * _WIDTH:.1f}" height="{_BAR - 2}" '
                f'fill="{color}"><title>{name} {measure.mean:.3f}</title></rect>',
                f'<line x1="{_LEFT + measure.low * _WIDTH:.1f}" x2="{_LEFT + measure.high * _WIDTH:.1f}" '
                f'y1="{y + _BAR / 2 - 1}" y2="{y + _BAR / 2 - 1}" stroke="#111111"/>',
            ]
    return elements
