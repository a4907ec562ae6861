"""Which options of a request are sent on, and a rule's limits on the tokens that it asks for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from builtin_plugins.models.services.rules import ModelLimits

# OpenAI's names for it, Ollama's, and llama.cpp's, which takes precedence in llama.cpp.
_TOKENS: Final = ("max_completion_tokens", "max_tokens", "num_predict", "n_predict")


def capped(tokens: int, rule: ModelLimits) -> int:
    """The tokens to ask for, at most as many as the rule allows."""
    return tokens if rule.max_tokens is None else min(tokens, rule.max_tokens)


def capped_options(options: Mapping[str, Any], rule: ModelLimits, *, add: bool = False) -> Mapping[str, Any]:
    """The options with every token limit cut to the cap; with `add`, the cap is added if there is none.

    Those that a server might take for others are left out: servers written in Go read names in any case.
    """
    safe_options = {name: value for name, value in options.items() if name.isascii() and name == name.lower()}
    if isinstance(inner := safe_options.get("options"), Mapping):  # where Ollama has them
        safe_options["options"] = capped_options(inner, rule)
    if rule.max_tokens is None:
        return safe_options
    bounded = _bounded_wishes(safe_options, rule.max_tokens)
    added = {} if bounded or not add else {"max_tokens": rule.max_tokens}
    if isinstance(inner, Mapping) and added:  # which takes precedence over them
        added["max_tokens"] = min([rule.max_tokens, *_bounded_wishes(inner, rule.max_tokens).values()])
    return {**added, **safe_options, **bounded}


def _bounded_wishes(options: Mapping[str, Any], most: int) -> dict[str, int]:
    return {name: _wish(options[name], most) for name in _TOKENS if options.get(name) is not None}


def _wish(wish: Any, most: int) -> int:
    """The limit within the cap; the cap for none, and for values that a runtime may interpret itself."""
    is_number = isinstance(wish, int | float) and not isinstance(wish, bool)
    return int(wish) if is_number and 1 <= wish <= most else most
