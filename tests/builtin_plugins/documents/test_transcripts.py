"""Transcripts and notebooks: what is said and shown, without what only programs need."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from builtin_plugins.documents.cleaning import clean
from builtin_plugins.documents.detection import detect_media_type
from builtin_plugins.documents.parsers import BUILTIN_PARSERS
from builtin_plugins.documents.text import from_notebook, from_subtitles

SRT = (
    "1\r\n00:00:01,000 --> 00:00:04,000\r\nThe reactor has to be shut down\r\n\r\n"
    "2\r\n00:00:04,500 --> 00:00:07,000\r\n{\\an8}before midnight, <i>Captain</i>.\r\n"
)
VTT = (
    "WEBVTT - minutes\n\nNOTE made by hand\nin two lines\n\nSTYLE\n::cue { color: red }\n\n"
    "intro\n00:01.000 --> 00:04.000 align:start\n<v.loud Ada Berg>R&amp;D gets</v>\n\n"
    "01:00:04.000 --> 01:00:06.000\n<v Ada Berg>4.2 million euro.</v>\n\n"
    "01:00:07.000 --> 01:00:09.000\n<v Bob>Too much!</v>\n"
)
ROLLING = (
    "WEBVTT\nKind: captions\n\n00:00:01.000 --> 00:00:02.000\nhello<00:00:01.500><c> there</c>\n\n"
    "00:00:02.000 --> 00:00:03.000\nhello there\nhow are you\n\n"
    "00:00:03.000 --> 00:00:04.000\nhow are you\n"
)


def texts(path: Path, name: str) -> list[str]:
    media_type = detect_media_type(path, name)
    parser = next(parser for parser in BUILTIN_PARSERS if media_type in parser.media_types)
    read = {"subtitles": from_subtitles.parse, "notebook": from_notebook.parse}[parser.name]
    return [text for block in read(path) if (text := clean(block.text))]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (SRT, ["00:00:01\nThe reactor has to be shut down before midnight, Captain."]),
        ("\ufeff" + SRT, ["00:00:01\nThe reactor has to be shut down before midnight, Captain."]),
        (VTT, ["00:01 Ada Berg:\nR&D gets 4.2 million euro.", "01:00:07 Bob:\nToo much!"]),
        (ROLLING.replace("\nhello<", "\n \nhello<"), ["00:00:01\nhello there how are you"]),
        (ROLLING, ["00:00:01\nhello there how are you"]),
    ],
)
def test_sentences_are_whole(tmp_path: Path, source: str, expected: list[str]) -> None:
    """A sentence of several cues is one again, with its time and speaker; marks, notes and repeats vanish."""
    path = tmp_path / "a"
    path.write_bytes(source.encode())
    assert texts(path, "talk.txt") == expected


def test_long_talk_is_parted_at_sentences(tmp_path: Path) -> None:
    """An hour of one voice becomes paragraphs that end with a sentence, each with its time."""
    cues = (
        f"{n}\n00:{n:02d}:00,000 --> 00:{n:02d}:59,000\nThis is line {n} of a long\n\n"
        f"{n}\n00:{n:02d}:30,000 --> 00:{n:02d}:59,000\nand rather tedious lecture.\n\n"
        for n in range(60)
    )
    path = tmp_path / "a"
    path.write_text("".join(cues))
    found = texts(path, "talk.srt")
    assert len(found) > 3
    assert all(len(text) < 600 and text.endswith("lecture.") for text in found)
    assert found[1].startswith("00:") and found[1].splitlines()[1].startswith("This is line")


def test_text_that_mentions_times_stays_text(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("WEBVTT is a format.\n\nIts times are written 00:00:01.000 --> 00:00:02.000.\n")
    assert detect_media_type(path, "note.txt") == "text/plain"


CELLS: list[Any] = [
    {"cell_type": "markdown", "metadata": {}, "source": ["# Wind\n", "The mean is 7.3 m/s."]},
    {
        "cell_type": "code",
        "source": "print(mean)\nframe",
        "outputs": [
            {"output_type": "stream", "text": ["7.3\n", "21.9\n"]},
            {"output_type": "display_data", "data": {"image/png": "iVBORw0", "text/plain": ["<Figure>"]}},
            {
                "output_type": "execute_result",
                "data": {
                    "text/html": "<table><tr><th></th><th>speed</th><th>t</th></tr>"
                    "<tr><td>0</td><td>5</td><td>9</td></tr></table>",
                    "text/plain": "   speed\n0  5",
                },
            },
            {"output_type": "error", "ename": "KeyError", "evalue": "'x'", "traceback": ["\u001b[0m"]},
            "odd",
        ],
    },
    None,
]


@pytest.mark.parametrize("name", ["wind.ipynb", "wind.json"])
def test_notebook(tmp_path: Path, name: str) -> None:
    """Cells and what they printed are read as they look, and no picture as text."""
    path = tmp_path / "a"
    path.write_text(json.dumps({"cells": CELLS, "nbformat": 4}))
    assert texts(path, name) == [
        "# Wind\nThe mean is 7.3 m/s.",
        "print(mean)\nframe",
        "7.3\n21.9",
        "\tspeed\tt\n0\t5\t9",
        "KeyError: 'x'",
    ]


def test_other_json_called_a_notebook(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text('{"worksheets": [{"cells": ["old"]}]}')
    assert texts(path, "old.ipynb") == ["worksheets[0].cells[0]: old"]
