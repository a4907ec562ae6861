"""The plugin that recognizes text in pictures by RapidOCR."""

from __future__ import annotations

from kernel.sdk import Plugin, hookimpl


class RapidOcrPlugin(Plugin):
    """Recognizes text in scans and photos that are tilted, blurred or pale."""

    name = "rapid_ocr"
    version = "0.1.0"
    description = "Recognizing text in scans that are tilted or blurred"
    author = "Platform"
    requires = ("documents",)

    @hookimpl
    def find_recognizer(self) -> str:
        return f"{__package__}.reading:read"
