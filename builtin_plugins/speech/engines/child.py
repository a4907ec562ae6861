"""Transcribing in a limited child process: a recording that is too much for a model only ends the child."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from builtin_plugins.speech.errors import CannotTranscribe
from kernel.sdk import ChildFailed, ChildLimits, Children, MachineFault
from kernel.sdk.operations import Reach

_LIMITS: Final = ChildLimits(memory_mb=4096, cpu_seconds=280, wall_seconds=280)
_REMEDIES: Final = {
    "timeout": "the recording took too long; send a shorter one",
    "memory": "the recording needs too much memory; send a shorter one",
}


async def in_child(children: Children, target: str, *arguments: Path | str) -> Any:
    """Call `target` with `arguments` in a child, which reaches the files and folders among them and no other.

    Raises CannotTranscribe with a remedy.
    """
    places = [str(one.absolute()) for one in arguments if isinstance(one, Path)]
    texts = [str(one.absolute()) if isinstance(one, Path) else one for one in arguments]
    try:
        return await children.call(target, *texts, limits=_LIMITS, reach=Reach(places))
    except ChildFailed as error:
        remedy = _REMEDIES.get(error.reason, "the engine failed; try again")
        raise CannotTranscribe(f"The recording can't be transcribed: {remedy}") from error
    except MachineFault as error:
        raise CannotTranscribe("The recording can't be transcribed now; try again later") from error
