"""`platformctl hooks`: the hook reference, read from the specifications."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.options import AsJson
from cli.texts import App, examples

if TYPE_CHECKING:
    from kernel.hooks.types import HookSpec
    from kernel.platform import Platform

_INDENT = "    "
# The comma between two arguments: one that is not inside brackets.
_ARGUMENT = re.compile(r", (?=\w+: )")
_FAILURES = {
    "raise": "A failure goes to the caller.",
    "skip": "A failure is reported and skipped.",
    "replace": "A failure is reported.",
}

app = App()


@dataclass(frozen=True)
class Hook:
    """A hook as its specification states it."""

    name: str
    brought_by: str
    signature: str
    asks_for: str
    may_be_async: bool
    failing: str
    text: str


@app.command(
    epilog=examples(
        ("platformctl hooks", "all of them"),
        ("platformctl hooks embed_texts", "one"),
        ("platformctl hooks --json", "as JSON"),
    )
)
def hooks(
    name: Annotated[str | None, typer.Argument(help="Show only this hook.")] = None,
    as_json: AsJson = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="As Markdown, as in the reference.")] = False,
) -> None:
    """Show the hooks of the kernel and of the installed plugins."""
    from cli import console, running
    from cli.failures import Missing

    entries = [hook for hook in running.run(_hooks()) if name in (None, hook.name)]
    if not entries:
        raise Missing(f"there is no hook '{name}'", "'platformctl hooks' prints all of them.")
    if as_json:
        console.print_json([asdict(hook) for hook in entries])
    elif markdown:
        typer.echo(described_as_markdown(entries))
    else:
        _print(entries)


async def _hooks() -> list[Hook]:
    from cli import running

    async with running.explained_platform() as platform:
        return list(collect(platform))


def collect(platform: Platform) -> Iterator[Hook]:
    """The kernel's hooks in the order of their file, then each plugin's."""
    from kernel.hooks import hookspecs
    from kernel.plugins.declarations import DECLARATIONS

    yield from _specified(hookspecs, "kernel")
    for plugin, brought in platform.resource(DECLARATIONS).of(hookspecs.register_hookspecs):
        for holder in brought:
            yield from _specified(holder, plugin)


def _specified(holder: Any, owner: str) -> Iterator[Hook]:
    from kernel.hooks.types import specs_in

    for spec in specs_in(holder):
        yield Hook(
            spec.name,
            owner,
            _signature(spec.function),
            spec.asks_for,
            not spec.plain,
            _failing(spec),
            spec.text,
        )


def _failing(spec: HookSpec[..., Any]) -> str:
    """What happens if an implementation fails."""
    return spec.failing if isinstance(spec.failing, str) else "replace"


def _signature(function: Any) -> str:
    return str(inspect.signature(function)).replace("'", "")


def _print(hooks: list[Hook]) -> None:
    from rich.text import Text

    from cli import console

    out, owner = console.out(), ""
    for hook in hooks:
        if hook.brought_by != owner:
            owner = hook.brought_by
            out.print(
                Text(f"{'Kernel' if owner == 'kernel' else f'Plugin {owner}'}\n", style="bold underline")
            )
        signature = _wrapped(hook.signature, out.width - len(hook.name))
        out.print(Text.assemble((hook.name, "bold cyan"), signature), soft_wrap=True)
        out.print(Text(_described(hook, min(out.width, 100))), soft_wrap=True)


def described_as_markdown(hooks: Iterable[Hook]) -> str:
    """The reference of hooks: a section for each owner."""
    lines, owner = list[str](), ""
    for hook in hooks:
        if hook.brought_by != owner:
            owner = hook.brought_by
            lines.append(f"## {'The kernel' if owner == 'kernel' else f'`{owner}`'}")
        lines.append(f"### `{hook.name}`")
        lines.append(f"```python\n{hook.name}{_wrapped(hook.signature, 110 - len(hook.name))}\n```")
        lines += [*hook.text.split("\n\n"), " ".join(_rules(hook))]
    return "\n\n".join(lines) + "\n"


def _wrapped(signature: str, width: int) -> str:
    """The signature on one line or, if that is too long, with an argument per line."""
    arguments, arrow, answer = signature.rpartition(" -> ")
    if len(signature) <= width:
        return signature
    lines = _ARGUMENT.sub(f",\n{_INDENT}", arguments[1:-1])
    return f"(\n{_INDENT}{lines}\n){arrow}{answer}"


def _rules(hook: Hook) -> Iterator[str]:
    if hook.asks_for == "the first answer":
        yield "Stops at the first answer that is not None."
    yield "May be async." if hook.may_be_async else "A plain function, not async."
    if hook.asks_for == "declarations":
        yield "A failure takes the plugin out of service."
    else:
        yield _FAILURES[hook.failing]


def _described(hook: Hook, width: int) -> str:
    """The hook's text, indented and wrapped to `width` columns."""
    paragraphs = hook.text.split("\n\n")
    paragraphs.append(" ".join(_rules(hook)))
    wrapped = [textwrap.fill(p, width, initial_indent=_INDENT, subsequent_indent=_INDENT) for p in paragraphs]
    return "\n\n".join(wrapped) + "\n"
