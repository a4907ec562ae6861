"""`platformctl eval`: evaluate a knowledge base of a running platform, over HTTP, for CI and by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from cli.texts import App, examples

app = App(
    no_args_is_help=True,
    help="Measure how well a knowledge base answers. The platform is the one at PLATFORM_API_URL; "
    "PLATFORM_API_TOKEN holds a personal access token.",
    epilog=examples(
        ("platformctl eval run KB --set questions.jsonl", "ask all questions and measure the answers")
    ),
)


@app.callback()
def group() -> None:
    """Keeps this a group although it has only one command."""


@app.command(
    epilog=examples(
        (
            "platformctl eval run KB --set q.csv --fail-under recall@5=0.8",
            "in CI: exit code 1 below the threshold",
        ),
        ("platformctl eval run KB --set q.jsonl -c method=hyde -c rerank=true,top_k=5", "two configurations"),
        ("platformctl eval run KB --set q.jsonl --compare-with RUN --out report", "what changed"),
    )
)
def run(
    knowledge_base: Annotated[str, typer.Argument(help="The knowledge base's id.", metavar="KB")],
    questions: Annotated[
        Path, typer.Option("--set", help="Questions as JSON Lines, or as CSV if the name ends in .csv.")
    ],
    configuration: Annotated[
        list[str] | None,
        typer.Option("--configuration", "-c", help="Such as method=hyde,rerank=true,top_k=5."),
    ] = None,
    fail_under: Annotated[
        list[str] | None, typer.Option(help="Such as recall@5=0.8, for every configuration.")
    ] = None,
    compare_with: Annotated[
        str | None, typer.Option(help="An earlier run; fail if quality is significantly lower than in it.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for table.md and plot.svg.")] = None,
) -> None:
    """Ask the questions, and print what was measured. The exit code is 1 if a threshold is missed."""
    from builtin_plugins.evaluation.commands.measuring import Demands, evaluate
    from cli import console, running

    demands = Demands.read(fail_under or (), compare_with)
    configurations = [_configuration(text) for text in configuration or [""]]
    report = running.run(evaluate(knowledge_base, questions, configurations, demands, out))
    _print(report)
    if report.failures:
        for text in report.failures:
            console.failed(text)
        raise typer.Exit(1)
    console.done(f"Run {report.run['id']}: {report.run['done']} answers measured")


def _configuration(text: str) -> dict[str, Any]:
    """`name=value` pairs; the server checks names and values."""
    import json

    configuration: dict[str, Any] = {}
    for pair in filter(None, text.split(",")):
        name, equals, value = pair.partition("=")
        if not equals:
            raise typer.BadParameter(f"'{pair}' is not name=value", param_hint="--configuration")
        try:
            configuration[name.strip()] = json.loads(value)
        except ValueError:
            configuration[name.strip()] = value.strip()
    return configuration


def _print(report: Any) -> None:
    from builtin_plugins.evaluation.commands.measuring import SHOWN
    from cli import console

    rows = []
    for summary in report.run["summaries"]:
        means = [summary["measures"].get(name) for name in SHOWN]
        rows.append((summary["label"], *("–" if mean is None else f"{mean['mean']:.3g}" for mean in means)))
    console.print_table(("configuration", *SHOWN), rows, "Nothing was measured.")
    if report.worst:
        console.print_table(("quality", "worst questions"), report.worst, "")
