"""`platformctl fields`: the fields that the documents of a knowledge base have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote

import typer

from cli.options import AsJson
from cli.texts import App, examples

if TYPE_CHECKING:
    from cli.client import Client

app = App(
    no_args_is_help=True,
    help="The fields of a knowledge base's documents: show, declare and remove them.",
    epilog=examples(
        ("platformctl fields list --kb Leases", "all fields"),
        ("platformctl fields set year --kind number --kb Leases", "declare one"),
        ("platformctl ingest lease.pdf --kb Leases --set year=2026", "give a document a value"),
        after="Sign in first, with 'platformctl login URL'.",
    ),
)

_Base = Annotated[str, typer.Option("--kb", help="Name or id of the knowledge base.")]
_Name = Annotated[str, typer.Argument(help="The field's name: letters, digits and underscores.")]


@app.command(name="list", epilog=examples(("platformctl fields list --kb Leases", "")))
def list_fields(base: _Base, as_json: AsJson = False) -> None:
    """Show the fields that documents can have."""
    from cli import console, running

    fields = running.run(_called("GET", base, ""))["items"]
    if as_json:
        console.print_json(fields)
        return
    rows = [
        (one["name"], f"{one['kind']}{', several' if one['many'] else ''}", one["description"])
        for one in fields
        if one["can_be_set"]
    ]
    console.print_table(("field", "kind", "description"), rows, "")


@app.command(
    name="set",
    epilog=examples(
        ("platformctl fields set year --kind number --kb Leases", ""),
        ("platformctl fields set parties --many --kb Leases", "a document may have several"),
    ),
)
def set_field(
    name: _Name,
    base: _Base,
    kind: Annotated[str, typer.Option(help="text, number, date, boolean or person.")] = "text",
    many: Annotated[bool, typer.Option(help="A document may have several values.")] = False,
    description: Annotated[str, typer.Option(help="What the field is for.")] = "",
    propose: Annotated[
        bool, typer.Option("--propose", help="Let the connected model propose values.")
    ] = False,
) -> None:
    """Declare a field, or change it. Its kind can be changed while no document has a value."""
    from cli import console, running

    body = {"kind": kind, "many": many, "description": description, "propose": propose}
    field = running.run(_called("PUT", base, f"/{quote(name, safe='')}", json=body))
    console.done(f"The field '{field['name']}' is of the kind {field['kind']}")


@app.command(name="remove", epilog=examples(("platformctl fields remove year --kb Leases", "")))
def remove_field(name: _Name, base: _Base) -> None:
    """Remove a field, with its values in all documents."""
    from cli import console, running

    running.run(_called("DELETE", base, f"/{quote(name, safe='')}"))
    console.done(f"The field '{name}' is removed")


async def _called(method: str, base: str, rest: str, **sent: Any) -> Any:
    from builtin_plugins.rag.commands.upload_run import find_base
    from cli.client import signed_in

    async with signed_in() as client:
        return await _call(client, method, await find_base(client, base), rest, **sent)


async def _call(client: Client, method: str, base_id: str, rest: str, **sent: Any) -> Any:
    return await client.call(method, f"/v1/rag/knowledge-bases/{base_id}/fields{rest}", **sent)
