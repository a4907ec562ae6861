"""A first look into an uploaded file, in a limited child process.

Its manifest may have millions of values. Reading them here, even in a thread, would hold up everybody.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from builtin_plugins.documents.api import PARSER_PROCESSES
from builtin_plugins.rag_exchange.bundle import Base, BundleBroken, BundleReader, broken
from kernel.sdk import ChildFailed, ChildLimits, MachineFault, Platform, Unavailable
from kernel.sdk.operations import Reach

_READ: Final = f"{__name__}:read_settings"
_LIMITS: Final = ChildLimits(memory_mb=8 * 1024, cpu_seconds=60, wall_seconds=180)


async def settings_in(platform: Platform, path: Path, most_bytes: int) -> Base:
    """The settings in a file that has a valid manifest and unpacks to at most `most_bytes`.

    Raises BundleBroken, Unavailable.
    """
    children = platform.resource(PARSER_PROCESSES)
    try:
        reach = Reach([_absolute(path)])
        answer = await children.call(_READ, _absolute(path), most_bytes, limits=_LIMITS, reach=reach)
    except ChildFailed:
        raise broken("reading it takes too long or too much memory") from None
    except MachineFault:
        raise Unavailable("The file can't be read now; try again later") from None
    if "refused" in answer:
        raise BundleBroken(answer["refused"])
    return Base.model_validate(answer["settings"])


def _absolute(path: Path) -> str:
    return str(path.absolute())


def read_settings(path: str, most_bytes: int) -> dict[str, Any]:
    """What `settings_in` returns, as JSON, or why the file is `refused`."""
    try:
        with BundleReader(Path(path), most_bytes) as bundle:
            return {"settings": bundle.manifest.knowledge_base.model_dump(mode="json")}
    except BundleBroken as error:
        return {"refused": error.detail}
