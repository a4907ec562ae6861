"""What the catalog of tools asks of plugins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kernel.sdk import PROMPTLY, Context, hookspec

from .tool import Tool


@hookspec.all(failing="skip", seconds=PROMPTLY)
def offer_tools(ctx: Context) -> Sequence[Tool] | None:
    """Tools besides the plugins' actions, for the sender of this request, such as tools of other servers.

    Asked whenever somebody lists tools or calls one that is not an action; answer quickly, and only what the
    sender may see. A failing implementation is reported and its tools are missing. A tool is called through
    ``platform.resource(TOOLS)`` alone, which checks its access, bounds and reports the call.
    """


@hookspec.all(seconds=PROMPTLY)
def check_tool_call(ctx: Context, tool: Tool, arguments: Mapping[str, Any]) -> None:
    """A tool is about to be called, by any route; raise a PlatformError to refuse.

    For conditions beyond the tool's access. `arguments` are as the client sent them.
    """


@hookspec.notification(seconds=PROMPTLY)
def on_tool_called(ctx: Context, tool: Tool, seconds: float, error: BaseException | None) -> None:
    """A tool call ended after `seconds`, with this error or a result. For metrics and auditing."""
