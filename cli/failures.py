"""How a command ends: exit codes, and the error that carries one."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes that scripts may rely on; 130 means interrupted, as in a shell."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    NOT_FOUND = 3
    REFUSED = 4


class CommandFailed(Exception):
    """Ends a command: `text` says what is wrong, `remedy` what to do about it."""

    def __init__(self, text: str, remedy: str = "", *, code: ExitCode = ExitCode.FAILED) -> None:
        super().__init__(text)
        self.text = text
        self.remedy = remedy
        self.code = code


class Missing(CommandFailed):
    """Something named on the command line does not exist (exit code 3)."""

    def __init__(self, text: str, remedy: str = "") -> None:
        super().__init__(text, remedy, code=ExitCode.NOT_FOUND)


class Refused(CommandFailed):
    """It would do harm or clash with what exists, so nothing was changed (exit code 4)."""

    def __init__(self, text: str, remedy: str = "") -> None:
        super().__init__(text, remedy, code=ExitCode.REFUSED)
