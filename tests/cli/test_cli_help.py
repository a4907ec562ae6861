"""The help of every command, as it stands on a screen of 80 columns."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import typer
from rich.markup import render

from cli.group import entries_of_plugins
from cli.main import ENTRIES, app
from tests.cli.conftest import Cli

COLUMNS = {"COLUMNS": "80", "TERMINAL_WIDTH": "80"}


def commands() -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every built-in command and group with the words that call it."""
    yield (), typer.main.get_command(app)
    for entry, lazy in (*ENTRIES, *entries_of_plugins()):
        command = typer.main.get_command(lazy.load())
        yield (entry,), command
        for name, below in getattr(command, "commands", {}).items():
            yield (entry, name), below


ALL = dict(commands())


@pytest.mark.parametrize("words", ALL, ids=" ".join)
def test_examples_fit_the_screen(cli: Cli, words: tuple[str, ...]) -> None:
    """No example wraps: each command line, and each purpose, is on one line of 80 columns."""
    shown = cli(*words, "--help", env=COLUMNS).stdout.splitlines()
    assert max(map(len, shown)) <= 80
    for command, purpose in ALL[words].examples.lines:
        assert [line for line in shown if line.strip().startswith(command)], command
        assert [line for line in shown if line.rstrip().endswith(purpose)], purpose


@pytest.mark.parametrize("columns", [60, 80])
def test_exit_codes_keep_their_meaning(cli: Cli, columns: int) -> None:
    shown = cli("--help", env={"COLUMNS": str(columns)}).stdout
    for code in ("0 done", "2 wrong usage", "3 not found", "130 interrupted."):
        assert code in shown
    assert max(map(len, shown[shown.index("Exit codes:") :].splitlines())) <= columns


@pytest.mark.parametrize("words", ALL, ids=" ".join)
def test_nothing_vanishes_as_markup(words: tuple[str, ...]) -> None:
    texts = [ALL[words].help, *(getattr(parameter, "help", None) for parameter in ALL[words].params)]
    assert [text for text in texts if text and render(text).plain != text] == []


def test_brackets_are_not_doubled() -> None:
    """An argument that may be left out has one pair of brackets, which its usage line adds."""
    named = [parameter.metavar or "" for command in ALL.values() for parameter in command.params]
    assert [name for name in named if name.startswith("[")] == []


@pytest.mark.parametrize("words", ALL, ids=" ".join)
def test_arguments_are_written_alike(cli: Cli, words: tuple[str, ...]) -> None:
    """In capitals; in brackets where they can be left out. Nothing else is between braces."""
    shown = cli(*words, "--help", env={**COLUMNS, "TERMINAL_WIDTH": "200"}).stdout
    usage = next(line for line in shown.splitlines() if "Usage:" in line).split()
    arguments = usage[2 + len(words) :]
    assert [word for word in arguments if not re.fullmatch(r"\[?[A-Z|_]+\]?(\.\.\.)?\]?", word)] == []


def test_options_name_their_defaults(cli: Cli) -> None:
    """A default that comes from a setting is in the help, and is that of the setting."""
    from kernel.settings.loading import KernelSettings

    shown = re.sub(r"[\s│]+", " ", cli("serve", "--help", env={**COLUMNS, "TERMINAL_WIDTH": "200"}).stdout)
    for option in ("host", "port", "workers"):
        default = KernelSettings.model_fields[option].default
        assert re.search(rf"--{option} [^-]*\(default: {re.escape(str(default))}\)", shown), option


def test_paragraphs_fill_their_lines(cli: Cli) -> None:
    """A paragraph is wrapped by the screen alone, not where its source was."""
    shown = cli("serve", "--help", env=COLUMNS).stdout
    paragraph = shown[shown.index("The first start") : shown.index("╭")].strip().splitlines()
    assert all(len(line.strip()) > 60 for line in paragraph[:-1])


def test_completion_is_set_up_at_the_top(cli: Cli) -> None:
    """Single commands do not repeat the options of shell completion."""
    assert "--install-completion" in cli("--help").stdout
    assert "--install-completion" not in cli("serve", "--help").stdout
