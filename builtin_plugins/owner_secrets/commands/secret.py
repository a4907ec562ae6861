"""`platformctl secret`: named secrets in PLATFORM_HOME, such as webhooks' signing keys."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from cli.options import AsJson
from cli.texts import App, examples

if TYPE_CHECKING:
    from kernel.sdk import SecretStore

app = App(
    no_args_is_help=True,
    help="Secrets are stored by name, each in a file in PLATFORM_HOME/secrets that only you can "
    "read. Values are never printed.",
    epilog=examples(
        ("platformctl secret set github-issues", "asks for the value"),
        ("openssl rand -hex 32 | platformctl secret set deploy", "reads it from a pipe"),
        after="The variable PLATFORM_SECRET_<NAME> takes precedence over the stored value.",
    ),
)

Name = Annotated[str, typer.Argument(help="Lower-case letters, digits, '.', '_', '-'.")]


@app.command(
    name="set", epilog=examples(("platformctl secret set github-issues < secret.txt", "from a file"))
)
def keep(name: Name) -> None:
    """Store a secret. The value is read from a prompt or standard input, never from an argument."""
    from cli import console
    from cli.failures import CommandFailed

    store = _store(name)
    value = _value()
    if not value:
        raise CommandFailed("the value is empty; nothing was changed")
    existed = name in store.names()
    _change("secret.set", name, existed, True, lambda: store.set(name, value))
    effect = "at the next start" if name in _descriptions() else "at once"
    console.done(f"'{name}' was {'replaced' if existed else 'stored'}; it takes effect {effect}")


def _value() -> str:
    if sys.stdin.isatty():
        answer: str = typer.prompt("Value", hide_input=True, confirmation_prompt="Repeat for confirmation")
        return answer
    return sys.stdin.read().rstrip("\r\n")


@app.command(name="list", epilog=examples(("platformctl secret list --json", "the names as JSON")))
def show(as_json: AsJson = False) -> None:
    """List the names of the stored secrets."""
    from cli import console

    names = _store().names()
    if as_json:
        console.print_json(names)
        return
    descriptions = _descriptions()
    rows = [(name, "created by the platform" if name in descriptions else "") for name in names]
    console.print_table(
        ("name", "note"), rows, "No secrets are stored. To store one: platformctl secret set NAME"
    )


@app.command(epilog=examples(("platformctl secret remove github-issues", "delete it")))
def remove(
    name: Name, yes: Annotated[bool, typer.Option("--yes", "-y", help="Don't ask for confirmation.")] = False
) -> None:
    """Remove a secret."""
    from cli import console
    from cli.failures import Missing

    store = _store(name)
    if name not in store.names():
        raise Missing(f"no secret is called '{name}'", "'platformctl secret list' shows the names.")
    if not yes and (effect := _descriptions().get(name)):
        typer.confirm(f"If you remove '{name}', {effect}. Remove it?", abort=True)
    _change("secret.removed", name, True, False, lambda: store.remove(name))
    console.done(f"'{name}' was removed")


@app.command(
    name="change-key",
    epilog=examples(("platformctl secret change-key", "if somebody may have seen the key")),
)
def change_key() -> None:
    """Encrypt stored secrets of accounts, organizations and plugins with a new key, even while it runs."""
    from cli import console, running

    count = running.run(_seal_again())
    are = "secret is" if count == 1 else "secrets are"
    console.done(f"{count} {are} now encrypted with a new key")


async def _seal_again() -> int:
    from cli import running
    from kernel.sdk import Unit, audit

    from ..store import secrets_of

    def note(unit: Unit) -> None:
        audit(unit, "secret.key_changed", "secret", "owner-secrets")

    async with running.stored_platform() as platform:
        count = await secrets_of(platform).change_key(platform.database)
        await platform.database.write(note)
    return count


def _descriptions() -> dict[str, str]:
    """The secrets that the platform and its plugins make, and what happens if one is removed."""
    from cli import running

    from .. import api

    async def ask() -> dict[str, str]:
        async with running.explained_platform() as platform:
            declared = platform.hooks.ask_now(api.describe_secrets)
            return {name: effect for _plugin, secrets in declared for name, effect in secrets.items()}

    return running.run(ask())


def _change(action: str, name: str, was_set: bool, is_set: bool, change: Callable[[], object]) -> None:
    """Change the file and record that, without the value, in the audit log."""
    from cli import running
    from cli.auditing import audited

    states = [{"is_set": was_set}, {"is_set": is_set}]
    running.run(audited(action, "secret", name, before=states[0], after=states[1], change=change))


def _store(name: str | None = None) -> SecretStore:
    """The store in PLATFORM_HOME; an invalid `name` is a usage error."""
    from cli import running
    from kernel.sdk import SecretStore

    store = SecretStore(running.kernel_settings().home)
    if name is not None:
        try:
            store.get(name)
        except ValueError as error:
            raise typer.BadParameter(str(error), param_hint="NAME") from None
    return store
