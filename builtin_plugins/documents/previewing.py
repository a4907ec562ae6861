"""Show a document as it looks: its page is made in a limited child process, and nothing in it is trusted."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final, Literal

from builtin_plugins.documents import detection as _types
from builtin_plugins.documents.runner import ParseLimits
from kernel.sdk import ChildFailed, ChildLimits, Children
from kernel.sdk.operations import Reach

_TARGET: Final = "builtin_plugins.documents.previews.page:write_preview"
_HERE: Final = f"{__package__}.previews"
_MOST_BYTES: Final = 24 * 1024 * 1024
_MOST_CPU_SECONDS: Final = 20
_MOST_SECONDS: Final = 30.0
_MAKERS: Final[dict[str, str]] = {
    **dict.fromkeys(_types.WORD_TYPES, "of_docx:preview"),
    **dict.fromkeys(_types.POWERPOINT_TYPES, "of_pptx:preview"),
    **dict.fromkeys(_types.EXCEL_TYPES, "of_sheets:preview"),
    _types.CSV: "of_sheets:preview_csv",
    **dict.fromkeys(_types.ODS_TYPES, "of_sheets:preview_ods"),
    **dict.fromkeys(_types.ODT_TYPES, "of_odt:preview"),
    **dict.fromkeys(_types.ODP_TYPES, "of_odp:preview"),
    _types.RTF: "of_rtf:preview",
    _types.EPUB: "of_epub:preview",
    _types.HTML: "of_html:preview",
    _types.MARKDOWN: "of_markdown:preview",
    _types.EMAIL: "of_mail:preview",
    _types.MSG: "of_mail:preview_outlook",
    _types.MAILBOX: "of_mail:preview_mailbox",
    **dict.fromkeys(
        (f"image/{kind}" for kind in ("png", "jpeg", "gif", "webp", "bmp")), "of_picture:preview"
    ),
    "image/tiff": "of_picture:preview_tiff",
}

PreviewFault = Literal["unsupported", "too_large", "timeout", "memory", "encrypted", "corrupt", "unavailable"]
_FAULTS: Final[dict[str, PreviewFault]] = {
    **{code: code for code in ("too_large", "timeout", "memory", "encrypted")},
    "output": "too_large",
    "unavailable": "unavailable",
}


class PreviewFailed(Exception):
    """A document that can't be shown as it looks; `fault` says why."""

    def __init__(self, fault: PreviewFault) -> None:
        self.fault: PreviewFault = fault
        super().__init__(fault)


async def preview(children: Children, path: Path, media_type: str, limits: ParseLimits, sink: Path) -> bytes:
    """The document at `path` as one page of UTF-8 HTML, without scripts and without anything to load.

    `sink` is a file for the child to write, which is gone afterwards. Raises `PreviewFailed`, and
    `MachineFault` when the machine is at fault.
    """
    maker = _MAKERS.get(media_type)
    if maker is None:
        raise PreviewFailed("unsupported")
    target = f"{_HERE}.{maker}"
    bounds = ChildLimits(
        limits.memory_mb,
        min(limits.cpu_seconds, _MOST_CPU_SECONDS),
        min(limits.wall_seconds, _MOST_SECONDS),
        file_bytes=_MOST_BYTES,
    )
    try:
        await asyncio.to_thread(sink.touch, 0o600)  # a confined child may write it, and make no other
        source, place = _absolute(path), _absolute(sink)
        ahead = [_TARGET.partition(":")[0], target.partition(":")[0]]
        reach = Reach([source], [place])
        await children.call(
            _TARGET, source, target, place, list(limits.ocr), limits=bounds, ahead=ahead, reach=reach
        )
        return await asyncio.to_thread(sink.read_bytes)
    except ChildFailed as error:
        raise PreviewFailed(_FAULTS.get(error.code or error.reason, "corrupt")) from None
    finally:
        await asyncio.to_thread(sink.unlink, missing_ok=True)


def _absolute(path: Path) -> str:
    return str(path.absolute())
