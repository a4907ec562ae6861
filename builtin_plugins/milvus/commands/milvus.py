"""`platformctl milvus`: fills Milvus from the rows, and clears it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from cli.texts import App, examples

if TYPE_CHECKING:
    from builtin_plugins.milvus.following import Following

app = App(
    no_args_is_help=True,
    help="The search engine Milvus: fill it before a change to it, clear it after one from it.",
    epilog=examples(
        ("platformctl milvus fill", "all passages, while the platform runs"),
        ("platformctl milvus clear", "after a change to another store"),
    ),
)


@app.command(
    epilog=examples(
        ("platformctl milvus fill", "goes on where it was stopped"),
        ("platformctl milvus fill --again", "if doctor says that the numbers differ"),
    )
)
def fill(
    again: Annotated[
        bool, typer.Option("--again", help="Empty it first; if it serves, searches fail until it is full.")
    ] = False,
) -> None:
    """Bring Milvus to the state of the database, whichever store serves meanwhile."""
    from cli import console, running

    count = running.run(_fill(again=again))
    console.done(f"Milvus has all {count:,} passages")


@app.command(epilog=examples(("platformctl milvus clear --yes", "without a question")))
def clear(
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Don't ask for confirmation.")] = False,
) -> None:
    """Remove all that Milvus has of this database. The passages themselves stay in the database."""
    from cli import console, running

    if not yes:
        typer.confirm("Remove everything of this database from Milvus?", abort=True)
    running.run(_clear())
    console.done("Milvus has nothing of this database any more")


async def _fill(*, again: bool) -> int:
    from cli import console

    async with _following() as following:
        if again:
            await following.clear()
        total, done = await following.total(), 0
        with console.busy(f"Filling Milvus with {total:,} passages") as busy:

            def step(points: int) -> None:
                nonlocal done
                done += points
                busy.step(f"Filling Milvus: {done:,} of at most {total:,} passages")

            await following.fill(step)
        return await following.total()


async def _clear() -> None:
    async with _following() as following:
        await following.clear()


@asynccontextmanager
async def _following() -> AsyncIterator[Following]:
    """What fills the engine, whatever store the settings choose. Failures name the remedy."""
    import asyncio

    from builtin_plugins.milvus.engine import EngineAway, MilvusEngine
    from builtin_plugins.milvus.following import Following
    from builtin_plugins.milvus.identity import identity_of
    from builtin_plugins.milvus.settings import MilvusSettings
    from cli import running
    from cli.failures import CommandFailed

    async with running.stored_platform() as platform:
        engine = MilvusEngine(platform.settings_of(MilvusSettings), await identity_of(platform.database))
        try:
            yield Following(platform.database, engine)
        except EngineAway as error:
            raise CommandFailed(
                f"Milvus at {engine.address} can't be asked: {error.reason}",
                "Check PLATFORM_MILVUS_URI and PLATFORM_MILVUS_TOKEN, and that Milvus runs.",
            ) from None
        finally:
            await asyncio.to_thread(engine.close)
