"""Limits of a rule on what a request asks of a model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from builtin_plugins.models.services.rules import Rule

# OpenAI's names for it, Ollama's, and llama.cpp's, which takes precedence there.
_TOKENS: Final = ("max_completion_tokens", "max_tokens", "num_predict", "n_predict")


def capped(tokens: int, rule: Rule) -> int:
    """At most as many tokens as the rule lets a model write."""
    return tokens if rule.max_tokens is None else min(tokens, rule.max_tokens)


def capped_options(options: Mapping[str, Any], rule: Rule, *, add: bool = False) -> Mapping[str, Any]:
    """The same with every wish for tokens cut to the cap; with `add`, the cap where there is no wish."""
    if rule.max_tokens is None:
        return options
    bounded: dict[str, Any] = _bounded_wishes(options, rule.max_tokens)
    added = {} if bounded or not add else {"max_tokens": rule.max_tokens}
    if isinstance(inner := options.get("options"), Mapping):  # Ollama's place for them
        bounded["options"] = capped_options(inner, rule)
        if added:  # which stands above them
            added["max_tokens"] = min([rule.max_tokens, *_bounded_wishes(inner, rule.max_tokens).values()])
    return {**added, **options, **bounded}


def _bounded_wishes(options: Mapping[str, Any], most: int) -> dict[str, int]:
    return {name: _wish(options[name], most) for name in _TOKENS if options.get(name) is not None}


def _wish(wish: Any, most: int) -> int:
    """The wish within the cap; the cap for none, and for what a runtime may read as a number of its own."""
    is_number = isinstance(wish, int | float) and not isinstance(wish, bool)
    return int(wish) if is_number and 1 <= wish <= most else most
