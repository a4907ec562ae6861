"""`platformctl bench`: the benchmarks that come with a checkout."""

from __future__ import annotations

import ast
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer

from cli.options import AsJson
from cli.texts import App, examples

app = App(
    no_args_is_help=True,
    help="Benchmarks are in tests/benchmarks of a source checkout. Each prints a table.",
    epilog=examples(
        ("platformctl bench list", "list the benchmarks"),
        ("platformctl bench run", "run them all, one after the other"),
        ("platformctl bench run search 20000", "run one, with its arguments"),
        after="Results are only meaningful on an otherwise idle machine.",
    ),
)


@dataclass(frozen=True)
class Benchmark:
    """A script in tests/benchmarks that can be run by itself."""

    name: str
    about: str


@app.command(name="list", epilog=examples(("platformctl bench list --json", "as JSON")))
def show(as_json: AsJson = False) -> None:
    """List the benchmarks."""
    from cli import console

    benchmarks = _benchmarks()
    if as_json:
        console.print_json([asdict(item) for item in benchmarks])
    else:
        console.print_table(
            ("name", "about"), [(b.name, b.about) for b in benchmarks], "There are no benchmarks."
        )


@app.command(
    epilog=examples(
        ("platformctl bench run", "all of them"),
        ("platformctl bench run search 20000", "arguments after the name go to the script"),
    ),
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
)
def run(
    context: typer.Context,
    name: Annotated[
        str | None, typer.Argument(help="The benchmark to run; all of them when omitted.")
    ] = None,
) -> None:
    """Run benchmarks, each in its own process. The exit code is 1 if one fails."""
    from cli import console
    from cli.failures import CommandFailed, Missing

    names = [item.name for item in _benchmarks()]
    if name is not None and name not in names:
        raise Missing(f"no benchmark is called '{name}'", f"Available: {', '.join(names)}.")
    broken = []
    for chosen in names if name is None else [name]:
        console.note(f"tests.benchmarks.{chosen}")
        command = [sys.executable, "-m", f"tests.benchmarks.{chosen}", *context.args]
        if subprocess.run(command, cwd=_checkout(), check=False).returncode != 0:
            broken.append(chosen)
    if broken:
        raise CommandFailed(f"failed: {', '.join(broken)}")


def _checkout() -> Path:
    from cli.failures import CommandFailed

    root = Path(__file__).resolve().parent.parent
    if not (root / "tests" / "benchmarks").is_dir():
        raise CommandFailed("benchmarks are part of a source checkout, not of the installed package")
    return root


def _benchmarks() -> list[Benchmark]:
    """Scripts with a `main`; the first line of a docstring says what it prints."""
    benchmarks = []
    for path in sorted((_checkout() / "tests" / "benchmarks").glob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        has_main = any(isinstance(node, ast.If) and "__main__" in ast.dump(node.test) for node in tree.body)
        if has_main:
            benchmarks.append(Benchmark(path.stem, (ast.get_docstring(tree) or "").partition("\n")[0]))
    return benchmarks
