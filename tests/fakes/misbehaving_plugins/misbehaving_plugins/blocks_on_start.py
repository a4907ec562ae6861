"""Blocks the event loop in its last word before serving."""

import time

from kernel.sdk import Plugin, hookimpl


class Blocks(Plugin):
    name = "blocks_on_start"

    @hookimpl
    def on_start(self) -> None:
        time.sleep(1000)
