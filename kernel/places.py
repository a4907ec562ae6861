"""Where in a plugin's own code an error came from."""

from __future__ import annotations

from traceback import walk_tb


def place_of(error: BaseException, package: str) -> str | None:
    """`file:line` of the innermost call in `package`, or of its wrong syntax; None when it took no part."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno}"
    found = [
        f"{frame.f_code.co_filename}:{line}"
        for frame, line in walk_tb(error.__traceback__)
        if str(frame.f_globals.get("__name__", "")).partition(".")[0] == package
    ]
    if found:
        return found[-1]
    return place_of(error.__cause__, package) if error.__cause__ is not None else None
