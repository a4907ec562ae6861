"""Messages about settings: invalid values, unknown keys and variables."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable

from pydantic import ValidationError
from pydantic_core import ErrorDetails

# DATABASE_URI means DATABASE_URL (0.92); OPENAI_ORG_ID belongs to another program (0.74).
_CLOSE = 0.87


def meant(name: str, known: Iterable[str], quote: str = "'") -> str:
    """A suggestion for an unknown name, as the end of a sentence; empty if nothing is close."""
    close = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {quote}{close[0]}{quote}?" if close else ""


def intended(name: str, unset: Collection[str]) -> str | None:
    """The unset setting that an unprefixed variable may have been meant for."""
    prefixed = f"PLATFORM_{name}"
    if "_" in name and prefixed in unset:
        return prefixed
    similar = [known for known in unset if abs(len(known) - len(name)) <= 2]
    close = difflib.get_close_matches(name, similar, n=1, cutoff=_CLOSE)
    return close[0] if close else None


def explain(owner: str, names: dict[str, tuple[str, ...]], error: ValidationError) -> str:
    """One sentence per wrong field, with its variables and the remedy; values are not repeated."""
    lines = []
    for problem in error.errors(include_url=False, include_input=False):
        said = _said(problem)
        if not problem["loc"]:  # a rule about several fields, which its text names
            lines.append(f"{said} (settings of '{owner}')")
            continue
        field = str(problem["loc"][0])
        variables = " or ".join(names.get(field, (field,)))
        lines.append(f"{variables} (setting '{owner}.{field}'): {said}")
    return "wrong settings: " + "; ".join(lines)


def _said(problem: ErrorDetails) -> str:
    bounds = problem.get("ctx", {})
    # For pydantic, a secret is a "Value", and its characters are items.
    if problem["type"] == "too_short" and bounds.get("field_type") == "Value":
        return f"must have at least {bounds['min_length']} characters"
    return problem["msg"].removeprefix("Value error, ")
