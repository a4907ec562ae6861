"""`platformctl service-token`: bearer tokens for other services."""

from __future__ import annotations

import re
import sys
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from cli.options import AsJson
from cli.texts import App, examples

app = App(no_args_is_help=True)


@app.callback(
    epilog=examples(
        ("platformctl service-token create backup > token", "only the token goes to the file"),
        after="To revoke a token early, change JWT_SECRET; this ends all other tokens too.",
    )
)
def service_token() -> None:
    """Bearer tokens with the role 'service'. They can't be refreshed: create a new one in time."""


@app.command(
    epilog=examples(
        ("platformctl service-token create backup > token", "only the token goes to the file"),
        ("platformctl service-token create ci --days 1", "for one day"),
        after="To revoke a token early, change JWT_SECRET; this ends all other tokens too.",
    )
)
def create(
    name: Annotated[str, typer.Argument(help="Name of the service: letters, digits, '_', '.', '-'.")],
    days: Annotated[int, typer.Option(min=1, max=3650, help="Days until it expires.")] = 90,
    as_json: AsJson = False,
) -> None:
    """Create a service token and print it to standard output."""
    from cli import console, running
    from kernel.auth.secrets import SecretStore
    from kernel.auth.tokens import Tokens

    if not re.fullmatch(r"[A-Za-z0-9_.-]{1,50}", name):
        raise typer.BadParameter("use 1 to 50 letters, digits, '_', '.' or '-'", param_hint="NAME")
    settings = running.kernel_settings()
    running.refuse_as_root(settings.home)
    token = Tokens(settings, SecretStore(settings.home)).mint_service(name, days)
    expires = datetime.now(UTC) + timedelta(days=days)
    if as_json:
        console.print_json(
            {"name": name, "token": token, "expires_at": expires.isoformat(timespec="seconds")}
        )
        return
    console.note(
        f"service '{name}', until {expires:%Y-%m-%d %H:%M} UTC; send it as 'Authorization: Bearer …'"
    )
    sys.stdout.write(token + "\n")
