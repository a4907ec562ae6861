"""Log lines: one JSON object each, and nothing secret in them."""

from __future__ import annotations

import errno
import json
import logging
import sys
import warnings
from pathlib import Path

import pytest

from kernel.observe.logs import JsonFormatter, LogFormatter, LogStream, configure, mask

TOKEN = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl"


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        (f"Authorization: Bearer {TOKEN}", TOKEN),
        (f"token {TOKEN} refused", TOKEN),
        ("postgresql://me:hunter22@host/db", "hunter22"),
        ("redis://:hunter22@host:6379", "hunter22"),
        ("amqp://user:hunter%2022@host", "hunter%2022"),
        ("password=hunter22", "hunter22"),
        ("{'password': 'hunter22', 'a': 1}", "hunter22"),
        ('{"api_key": "hunter22"}', "hunter22"),
        ("client_secret: hunter22", "hunter22"),
        ("whsec_aHVudGVyMjI=", "aHVudGVyMjI="),
        ("?access_token=hunter22&a=1", "hunter22"),
        ("X-Service-Token: hunter22", "hunter22"),
        ("BEARER abcdefghijkl", "abcdefghijkl"),
    ],
)
def test_secrets_are_masked(text: str, secret: str) -> None:
    """What looks like a secret is replaced, and what stands around it stays."""
    assert secret not in mask(text)
    assert "***" in mask(text)


@pytest.mark.parametrize(
    "text", ["GET /v1/tokens 200", "the password was changed", "http://host:80/path", "a secret place"]
)
def test_ordinary_text_stays(text: str) -> None:
    assert mask(text) == text


def record(message: str, *arguments: object, **extra: object) -> logging.LogRecord:
    made = logging.makeLogRecord(
        {"name": "platform.test", "levelname": "WARNING", "msg": message, "args": arguments}
    )
    made.__dict__.update(extra)
    return made


class TestJson:
    def test_one_line(self) -> None:
        """One JSON object a line, whatever the message holds: no line can be forged."""
        text = JsonFormatter().format(record("first\nsecond %s", '{"level": "info"}\u2028'))
        assert "\n" not in text
        line = json.loads(text)
        assert line["message"].startswith("first\nsecond")
        assert (line["level"], line["logger"]) == ("warning", "platform.test")

    def test_extra_fields(self) -> None:
        """Fields of a record are kept; what can't be JSON becomes text."""
        line = json.loads(JsonFormatter().format(record("x", duration_ms=1.5, where=sys)))
        assert (line["duration_ms"], line["where"]) == (1.5, str(sys))

    def test_masked_everywhere(self) -> None:
        try:
            raise RuntimeError("password=hunter22")
        except RuntimeError:
            made = record("url %s", "redis://:hunter22@host", url="redis://:hunter22@host")
            made.exc_info = sys.exc_info()
        for formatter in (JsonFormatter(), LogFormatter()):
            assert "hunter22" not in formatter.format(made)

    def test_broken_arguments(self) -> None:
        """A message whose arguments do not fit is still written."""
        with pytest.raises(TypeError):
            record("%d", "x").getMessage()
        assert "x" in JsonFormatter().format(record("%s", "x"))


class NoRoom:
    """A stream on a full disk."""

    def write(self, _text: str) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    def flush(self) -> None:
        self.write("")


class TestStream:
    def test_standard_error_that_is_full(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A line for which there is no room anywhere is lost, and fails nothing."""
        monkeypatch.setattr(sys, "stderr", NoRoom())
        stream = LogStream()
        stream.write("a line\n")
        stream.flush()

    def test_without_standard_error(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        """A daemon may be started with its standard error closed; its log file has the lines all the same."""
        monkeypatch.setattr(sys, "stderr", None)
        for stream in (LogStream(tmp_path / "log"), LogStream()):
            stream.write("a line\n")
            stream.flush()
            stream.close()
        assert (tmp_path / "log").read_text() == "a line\n"

    def test_a_handler_that_is_closed(self, tmp_path: Path) -> None:
        """Its file is closed with it, and a line that comes after all opens it again."""
        root = logging.getLogger()
        before = root.handlers[:], root.level
        try:
            configure("INFO", "text", tmp_path / "log")
            (handler,) = root.handlers
        finally:
            root.handlers[:], level = before
            root.setLevel(level)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            handler.close()
            handler.emit(record("late"))
            handler.close()
            del handler
        assert told == []
        assert "late" in (tmp_path / "log").read_text()
