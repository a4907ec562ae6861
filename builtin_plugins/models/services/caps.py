"""Limits of a rule on what a request asks of a model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from builtin_plugins.models.services.rules import Rule

_TOKENS: Final = ("max_completion_tokens", "max_tokens", "num_predict")


def capped(tokens: int, rule: Rule) -> int:
    """At most as many tokens as the rule lets a model write."""
    return tokens if rule.max_tokens is None else min(tokens, rule.max_tokens)


def capped_options(options: Mapping[str, Any], rule: Rule, *, add: bool = False) -> Mapping[str, Any]:
    """The same with every wish for tokens cut to the cap; with `add`, the cap where there is no wish."""
    if rule.max_tokens is None:
        return options
    wishes = {name: options[name] for name in _TOKENS if isinstance(options.get(name), int)}
    bounded: dict[str, Any] = {
        name: capped(wish, rule) if wish > 0 else rule.max_tokens for name, wish in wishes.items()
    }
    if isinstance(inner := options.get("options"), Mapping):  # Ollama's place for them
        bounded["options"] = capped_options(inner, rule)
    return {**({"max_tokens": rule.max_tokens} if add and not wishes else {}), **options, **bounded}
