"""The texts of health checks, whose ends are often commands to copy."""

from __future__ import annotations

from kernel.observe.health import shortened


def test_a_short_text_stays() -> None:
    assert shortened("platformctl secret set github-issues") == "platformctl secret set github-issues"


def test_cut_between_words() -> None:
    """A long text ends with a whole word, which a hyphen doesn't end, and says that it goes on."""
    assert shortened("run: platformctl secret set github-issues now", 36) == "run: platformctl secret set …"
    assert len(shortened("word " * 100)) <= 200
