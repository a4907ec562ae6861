"""`platformctl` in this process: a second of imports less than a process of its own takes."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from typer.testing import CliRunner, Result

from cli.main import app


def run_command(*arguments: str, input: str | None = None, env: Mapping[str, str] | None = None) -> Result:
    """Run a command with these further variables; log handlers are put back afterwards."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    try:
        return CliRunner().invoke(app, list(arguments), input=input, env=env, prog_name="platformctl")
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
