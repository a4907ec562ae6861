"""`platformctl login`: sign in once, for the commands that use HTTP."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.options import AsJson
from cli.texts import App, examples

if TYPE_CHECKING:
    from cli.client import Session

app = App()

_PATIENCE = 60.0  # seconds for an answer


@app.command(
    epilog=examples(
        ("platformctl login http://127.0.0.1:8000", "asks for name and password"),
        ("platformctl login https://example.org -u ada", "on another machine"),
        ("platformctl login URL -u ada < password", "with a password from a file"),
        ("platformctl login URL --token < token", "with a personal access token"),
    )
)
def login(
    url: Annotated[str, typer.Argument(help="Address of the platform.")] = "http://127.0.0.1:8000",
    username: Annotated[str | None, typer.Option("--username", "-u", help="Asked for if omitted.")] = None,
    token: Annotated[
        bool, typer.Option("--token", help="Read a personal access token from standard input.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Sign in to a running platform. The token is kept in PLATFORM_HOME, for you alone, and renewed."""
    from cli import console, running
    from cli.client import checked_url, session_file

    address = checked_url(url)
    if token:
        session = running.run(_with_token(address, typer.get_text_stream("stdin").read().strip()))
    else:
        session = running.run(_with_password(address, username or _name(), _password()))
    session.save(session_file())
    console.done(f"signed in at {session.url} as {session.username}")
    if as_json:
        console.print_json(_session_record(session))


def _session_record(session: Session) -> dict[str, Any]:
    """The session for programs, without the token."""
    ends = session.expires_at
    return {
        "url": session.url,
        "username": session.username,
        "expires_at": None if ends is None else datetime.fromtimestamp(ends, UTC),
    }


def _name() -> str:
    """Ask for the name on a terminal."""
    from cli.failures import CommandFailed, ExitCode

    if not sys.stdin.isatty():
        raise CommandFailed("a username is needed", "Name the account with --username.", code=ExitCode.USAGE)
    return str(typer.prompt("Name", err=True))


def _password() -> str:
    """Ask for the password on a terminal; otherwise read it from standard input."""
    from cli.failures import CommandFailed, ExitCode

    if sys.stdin.isatty():
        return str(typer.prompt("Password", hide_input=True, err=True))
    password = sys.stdin.readline().rstrip("\r\n")
    if not password:
        raise CommandFailed("standard input has no password", code=ExitCode.USAGE)
    return password


async def _with_password(url: str, username: str, password: str) -> Session:
    from cli.client import Session, not_a_platform

    answer = await _ask("POST", url, "/v1/auth/login", json={"username": username, "password": password})
    try:
        session = Session(url, "", answer["user"]["username"])
        session.keep(answer["access_token"], answer["expires_in"])
        return session
    except (KeyError, TypeError):
        raise not_a_platform(url) from None


async def _with_token(url: str, token: str) -> Session:
    """A session with this token, once the token has been checked."""
    from cli.client import Session
    from cli.failures import CommandFailed, ExitCode

    if not token:
        raise CommandFailed("standard input has no token", code=ExitCode.USAGE)
    headers = {"Authorization": f"Bearer {token}"}
    await _ask("GET", url, "/v1/auth/capabilities", headers=headers)  # a bad token is 401 on any path
    return Session(url, token, "the token's account")


async def _ask(method: str, url: str, path: str, **options: Any) -> dict[str, Any]:
    import aiohttp

    from cli.client import no_answer, not_a_platform, refuse
    from cli.failures import CommandFailed

    patience = aiohttp.ClientTimeout(total=_PATIENCE)
    try:
        async with (
            aiohttp.ClientSession(timeout=patience) as http,
            http.request(method, url + path, **options) as answer,
        ):
            if answer.status == 401:
                raise CommandFailed("the username and password, or the token, were rejected")
            if answer.status in (404, 405):  # the address contains a path, or it is another kind of server
                raise not_a_platform(url)
            await refuse(answer, f"{method} {path}")
            return dict(await answer.json())
    except (aiohttp.ClientError, TimeoutError) as error:
        raise no_answer(url, error, "Check the address, or start it.") from None
