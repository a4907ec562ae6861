"""The forks that stand for new interpreters in tests: what they are given, and how they end, is the same."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest

from kernel.testing import eventually
from tests.cli.environments import ROOT, make_environment
from tests.fakes import processes
from tests.fakes.prepared import Forked, fork
from tests.fakes.processes import process_environment, run_python, running_process

TELLS = ("-m", "tests.fakes.told_process")


@pytest.fixture
def forks(monkeypatch: pytest.MonkeyPatch) -> list[Forked | None]:
    """What became of each process that could have been forked."""
    found: list[Forked | None] = []

    def noted(*arguments: Any, **options: Any) -> Forked | None:
        found.append(fork(*arguments, **options))
        return found[-1]

    monkeypatch.setattr(processes, "fork", noted)
    return found


def both(
    *command: str, env: Mapping[str, str], **options: Any
) -> tuple[subprocess.CompletedProcess[str], subprocess.CompletedProcess[str]]:
    return run_python(*command, env=env, **options), run_python(*command, env=env, fresh=True, **options)


class TestStart:
    @pytest.mark.parametrize(
        ("options", "extra"),
        [
            ((), {}),
            (("-P",), {"TZ": "Pacific/Chatham", "COLUMNS": "33", "NO_COLOR": "1"}),
            (("-P",), {"PYTHONPATH": "relative", "TMPDIR": "/tmp"}),
        ],
    )
    def test_is_given_the_same(
        self, tmp_path: Path, forks: list[Forked | None], options: Sequence[str], extra: dict[str, str]
    ) -> None:
        """Arguments, environment, folder, streams, descriptors, signals, limits, and what comes of them."""
        env = process_environment({"PLATFORM_HOME": str(tmp_path), **extra})
        forked, started = both(*options, *TELLS, "tell", "a b", env=env, folder=tmp_path)
        assert (forked.returncode, forked.stderr) == (0, "")
        assert json.loads(forked.stdout) == json.loads(started.stdout)
        assert None not in forks

    def test_in_an_environment_of_its_own(self, tmp_path: Path, forks: list[Forked | None]) -> None:
        """The interpreter of another virtual environment, which sees the same packages."""
        python = str(make_environment(tmp_path / "env") / "bin" / "python")
        forked, started = both("-P", *TELLS, env=process_environment({}), python=python)
        told = json.loads(forked.stdout)
        assert told == json.loads(started.stdout)
        assert told["modules"][2] == str(tmp_path / "env")
        assert None not in forks

    def test_is_a_process_of_its_own(self, tmp_path: Path) -> None:
        env = process_environment({})
        with (tmp_path / "said").open("wb") as file:
            forks = [fork((*TELLS, "wait"), env=env, streams=(file.fileno(),) * 2) for _ in range(2)]
            assert forks[0] and forks[1]
            numbers = {one.pid for one in forks if one}
            assert len(numbers) == 2 and all(map(psutil.pid_exists, numbers))
            for one in forks:
                one.kill()
                assert one.join(30) == -signal.SIGKILL


class TestEnd:
    @pytest.mark.parametrize(
        ("how", "code"),
        [
            (("exit", "0"), 0),
            (("exit", "7"), 7),
            (("exit", "some words"), 1),
            (("raise", "no reason"), 1),
            (("signal", str(int(signal.SIGTERM))), -signal.SIGTERM),
            (("signal", str(int(signal.SIGKILL))), -signal.SIGKILL),
            (("signal", str(int(signal.SIGINT))), -signal.SIGINT),
        ],
    )
    def test_status(self, how: tuple[str, str], code: int) -> None:
        """A status, a text, an error nobody caught, a signal."""
        forked, started = both(*TELLS, *how, env=process_environment({}))
        assert (forked.returncode, started.returncode) == (code, code)
        assert forked.stderr.splitlines()[-1:] == started.stderr.splitlines()[-1:]

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
    async def test_signals_from_outside(self, tmp_path: Path, number: signal.Signals) -> None:
        async with running_process(*TELLS, "wait", env={}, log=tmp_path / "log") as process:
            await eventually(lambda: "waits" in process.output())
            assert process.returncode is None
            process.signal(number)
            assert await process.wait() == -number
            assert not psutil.pid_exists(process.pid)

    async def test_nobody_outlives_the_tests(self, tmp_path: Path) -> None:
        """Where the process of the tests is killed, its forks are too."""
        env = process_environment({})
        program = (
            "from tests.fakes.prepared import fork\n"
            f"file = open({str(tmp_path / 'log')!r}, 'wb')\n"
            f"one = fork({(*TELLS, 'wait')!r}, env={env!r}, streams=(file.fileno(),) * 2)\n"
            "print(one.pid, flush=True)\n"
            "one.join(600)\n"
        )
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", program, cwd=ROOT, stdout=asyncio.subprocess.PIPE
        )
        assert process.stdout is not None
        forked = int(await process.stdout.readline())
        assert psutil.pid_exists(forked)
        process.kill()
        await process.wait()
        await eventually(lambda: not psutil.pid_exists(forked))


class TestReally:
    @pytest.mark.parametrize(
        ("command", "env"),
        [
            (("-c", "pass"), {}),
            (("-X", "importtime", *TELLS), {}),
            (TELLS, {"PYTHONHASHSEED": "1"}),
            (TELLS, {"PYTHONUNBUFFERED": "1"}),
            (TELLS, {"LC_ALL": "C"}),
            (TELLS, {"FORCE_COLOR": "1"}),
            (("-P", *TELLS), {"PYTHONPATH": "ours"}),
            (("-P", *TELLS), {"PYTHONPATH": "site"}),
        ],
    )
    def test_started(self, tmp_path: Path, command: Sequence[str], env: dict[str, str]) -> None:
        """Options, variables that are read early, and folders that hide a module are left to a new one."""
        (tmp_path / "ours" / "kernel").mkdir(parents=True)
        (tmp_path / "site").mkdir()
        (tmp_path / "site" / "sitecustomize.py").touch()
        values = process_environment(env)
        assert fork(command, env=values, streams=(1, 2), folder=tmp_path) is None

    def test_an_environment_that_lacks_packages(self, tmp_path: Path) -> None:
        made = make_environment(tmp_path / "env")
        for file in made.glob("lib/python*/site-packages/*.pth"):
            file.write_text(f"{ROOT}\n")
        python = str(made / "bin" / "python")
        assert fork(TELLS, env=process_environment({}), streams=(1, 2), python=python) is None
