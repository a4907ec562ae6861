"""Runs pytest again and again, each time in a fork of this process, which imports the libraries only once.

    python tests/mutation/forks.py MODULE…

Reads one JSON object a line: `arguments` of pytest, `processor_seconds`, `timeout` (seconds), and a file for
the `output`. Answers a line each: the exit status, negative for a signal, or null past the timeout.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import select
import signal
import sys
import traceback
from contextlib import suppress
from typing import Any


def run(asked: dict[str, Any]) -> int | None:
    """The exit status of one run."""
    child = os.fork()
    if not child:
        _become_pytest(asked)
    ended = os.pidfd_open(child)
    try:
        in_time, _, _ = select.select([ended], [], [], asked["timeout"])
    finally:
        os.close(ended)
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)  # what it has left behind, or all of it
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status) if in_time else None


def _become_pytest(asked: dict[str, Any]) -> None:
    os.setsid()
    limit = asked["processor_seconds"]
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
    output = os.open(asked["output"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(output, 1)
    os.dup2(output, 2)
    code = 70
    try:
        import pytest

        code = int(pytest.main(asked["arguments"]))
    except BaseException:  # noqa: BLE001 - boundary of the process: nobody else would say it
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def main() -> None:
    for name in sys.argv[1:]:
        with suppress(Exception):  # one that can't be imported alone comes with the tests
            importlib.import_module(name)
    for line in sys.stdin:
        sys.stdout.write(json.dumps(run(json.loads(line))) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
