"""What to say about settings: a wrong value, an unknown key or variable."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable

from pydantic import ValidationError
from pydantic_core import ErrorDetails

# DATABASE_URI is meant for DATABASE_URL (0.92); OPENAI_ORG_ID belongs to another program (0.74).
_CLOSE = 0.87


def meant(name: str, known: Iterable[str], quote: str = "'") -> str:
    """What may have been meant by an unknown name, as the end of a sentence; empty when nothing is close."""
    close = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {quote}{close[0]}{quote}?" if close else ""


def intended(name: str, unset: Collection[str]) -> str | None:
    """The setting that a variable of another program's style may have been meant for."""
    prefixed = f"PLATFORM_{name}"
    if "_" in name and prefixed in unset:
        return prefixed
    similar = [known for known in unset if abs(len(known) - len(name)) <= 2]
    close = difflib.get_close_matches(name, similar, n=1, cutoff=_CLOSE)
    return close[0] if close else None


def explain(owner: str, names: dict[str, tuple[str, ...]], error: ValidationError) -> str:
    """One sentence for every wrong field, with its variables and its remedy; no value is repeated."""
    lines = []
    for problem in error.errors(include_url=False, include_input=False):
        said = _said(problem)
        if not problem["loc"]:  # a rule on several of them, which its text names
            lines.append(f"{said} (settings of '{owner}')")
            continue
        field = str(problem["loc"][0])
        variables = " or ".join(names.get(field, (field,)))
        lines.append(f"{variables} (setting '{owner}.{field}'): {said}")
    return "wrong settings: " + "; ".join(lines)


def _said(problem: ErrorDetails) -> str:
    bounds = problem.get("ctx", {})
    # A secret is a "Value", whose characters pydantic calls items.
    if problem["type"] == "too_short" and bounds.get("field_type") == "Value":
        return f"must have at least {bounds['min_length']} characters"
    return problem["msg"].removeprefix("Value error, ")
