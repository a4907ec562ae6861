"""`platformctl hooks`: the reference of the hooks, read from their specifications."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.options import AsJson
from cli.texts import examples

if TYPE_CHECKING:
    from kernel.platform import Platform

_INDENT = "    "

app = typer.Typer(rich_markup_mode="rich")


@dataclass(frozen=True)
class Hook:
    """One hook as its specification states it."""

    name: str
    brought_by: str
    signature: str
    asks_for: str
    text: str


@app.command(
    epilog=examples(
        ("platformctl hooks", "all of them"),
        ("platformctl hooks embed_texts", "one"),
        ("platformctl hooks --json", "for a program"),
    )
)
def hooks(
    name: Annotated[str | None, typer.Argument(help="Show this hook alone.")] = None, as_json: AsJson = False
) -> None:
    """Print the hook reference: the kernel's hooks, then those that installed plugins bring."""
    from cli import console, running
    from cli.failures import Missing

    found = [hook for hook in running.run(_hooks()) if name in (None, hook.name)]
    if not found:
        raise Missing(f"there is no hook '{name}'", "'platformctl hooks' prints all of them.")
    if as_json:
        console.print_json([asdict(hook) for hook in found])
    else:
        _print(found)


async def _hooks() -> list[Hook]:
    from cli import running

    async with running.explained_platform() as platform:
        return list(collect(platform))


def collect(platform: Platform) -> Iterator[Hook]:
    """The kernel's hooks in the order of their file, then each plugin's."""
    from kernel import hookspecs

    yield from _specified(hookspecs, "kernel")
    for plugin, brought in platform.declare("register_hookspecs"):
        for holder in brought:
            yield from _specified(holder, plugin)


def _specified(holder: Any, owner: str) -> Iterator[Hook]:
    from kernel.hookspecs import PROJECT

    for name, function in vars(holder).items():
        marks = getattr(function, f"{PROJECT}_spec", None)
        if marks is not None:
            asks = "the first answer" if marks.get("firstresult") else "everyone"
            yield Hook(name, owner, _signature(function), asks, inspect.getdoc(function) or "")


def _signature(function: Any) -> str:
    signature = inspect.signature(function)
    kept = [p for p in signature.parameters.values() if p.name != "self"]
    return str(signature.replace(parameters=kept)).replace("'", "")


def _print(found: list[Hook]) -> None:
    from rich.text import Text

    from cli import console

    out, owner = console.out(), ""
    for hook in found:
        if hook.brought_by != owner:
            owner = hook.brought_by
            out.print(
                Text(f"{'Kernel' if owner == 'kernel' else f'Plugin {owner}'}\n", style="bold underline")
            )
        out.print(Text.assemble((hook.name, "bold cyan"), hook.signature), soft_wrap=True)
        out.print(Text(_described(hook, min(out.width, 100))), soft_wrap=True)


def _described(hook: Hook, width: int) -> str:
    """Its text, indented and wrapped to `width` columns."""
    paragraphs = hook.text.split("\n\n")
    if hook.asks_for == "the first answer":
        paragraphs.append("Stops at the first answer that is not None.")
    wrapped = [textwrap.fill(p, width, initial_indent=_INDENT, subsequent_indent=_INDENT) for p in paragraphs]
    return "\n\n".join(wrapped) + "\n"
