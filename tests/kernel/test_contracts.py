"""What plugins hand each other holds together."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kernel.sdk import contracts


@pytest.mark.parametrize(
    ("name", "media_types", "target", "reason"),
    [
        ("", ["text/x"], "shop.parsing:parse", "a name"),
        ("x", [], "shop.parsing:parse", "media types"),
        ("x", "text/x", "shop.parsing:parse", "a list of media types"),
        ("x", ["text/x"], "shop.parsing.parse", "target of the parser 'x'"),
    ],
)
def test_a_parser_that_is_none(name: str, media_types: Sequence[str], target: str, reason: str) -> None:
    """A parser without a name, a list of types or a function is refused where it is declared."""
    with pytest.raises(ValueError, match=reason):
        contracts.DocumentParser(name, media_types, target, lambda head: None)
