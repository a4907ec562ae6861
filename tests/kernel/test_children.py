"""Child processes: limits, cancellation, descendants, and the loss of the prepared process."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from functools import partial
from pathlib import Path

import psutil
import pytest

from kernel.libs.children.confinement import Reach, missing_confinement
from kernel.sdk import ChildFailed, ChildLimits, Children, MachineFault
from tests.fakes.waiting import eventually

HERE = Path(__file__)
TASKS = "tests.fakes.child_tasks"
LIMITS = ChildLimits(memory_mb=256, cpu_seconds=10, wall_seconds=20, file_bytes=100_000, output_bytes=10_000)


@pytest.fixture
async def children() -> AsyncIterator[Children]:
    """Children forked from a process that has the tasks ready."""
    async with aclosing(Children([TASKS])) as found:
        yield found


@pytest.fixture
def pipe(tmp_path: Path) -> Iterator[tuple[Path, int]]:
    """A named pipe, and its open reading end, through which a child tells its process id."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    yield path, descriptor
    os.close(descriptor)


async def told(descriptor: int) -> list[int]:
    loop = asyncio.get_running_loop()
    ready = loop.create_future()
    loop.add_reader(descriptor, lambda: ready.done() or ready.set_result(None))
    try:
        async with asyncio.timeout(20):
            await ready
    finally:
        loop.remove_reader(descriptor)
    return [int(word) for word in os.read(descriptor, 100).split()]


async def gone(*pids: int) -> None:
    await eventually(lambda: not any(map(alive, pids)), 10)


def alive(pid: int) -> bool:
    """Whether the process runs; one that waits to be reaped does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


async def refused(children: Children, task: str, *arguments: object, **limits: float) -> ChildFailed:
    with pytest.raises(ChildFailed) as caught:
        await children.call(f"{TASKS}:{task}", *arguments, limits=LIMITS._replace(**limits))
    return caught.value


async def test_imported_ahead(children: Children, caplog: pytest.LogCaptureFixture) -> None:
    """What a call names is imported once, for its child and later ones; a module that can't be is logged."""
    seen = partial(children.call, f"{TASKS}:imported", "colorsys", limits=LIMITS)
    assert not await seen()
    assert await seen(ahead=["nowhere_to_be_had", "colorsys"])
    assert await seen(ahead=["nowhere_to_be_had"])
    assert caplog.text.count("ModuleNotFoundError") == caplog.text.count("nowhere_to_be_had") - 1 == 1


async def test_a_callable_answers(children: Children) -> None:
    """Values go in and come out as JSON does; the process is another one each time."""
    assert await children.call(f"{TASKS}:echo", {"ä": [1, None]}, limits=LIMITS) == {"ä": [1, None]}
    pids = {await children.call(f"{TASKS}:pid", limits=LIMITS) for _ in range(3)}
    assert len(pids) == 3 and os.getpid() not in pids


async def test_imports_leave_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A child may write less than a module's compiled code: half of it would break later imports."""
    (tmp_path / "imported_in_a_child.py").write_text("def answer():\n    return 7\n")
    monkeypatch.syspath_prepend(tmp_path)
    async with aclosing(Children()) as children:
        limits = LIMITS._replace(file_bytes=100)
        assert await children.call("imported_in_a_child:answer", limits=limits) == 7
    assert os.listdir(tmp_path) == ["imported_in_a_child.py"]  # noqa: PTH208 - in an async test


async def test_many_at_once(children: Children) -> None:
    calls = [children.call(f"{TASKS}:echo", number, limits=LIMITS) for number in range(40)]
    assert await asyncio.gather(*calls) == list(range(40))


async def test_memory(children: Children) -> None:
    """Address space beyond the limit ends the task; as much as is allowed does not."""
    assert (await refused(children, "hold", 400)).reason == "memory"
    assert await children.call(f"{TASKS}:hold", 100, limits=LIMITS) == 100


async def test_processor_time(children: Children) -> None:
    """A task that spins is ended by its processor time, long before the clock."""
    assert (await refused(children, "spin", cpu_seconds=1)).reason == "timeout"


async def test_a_signal_that_is_ignored(children: Children) -> None:
    """A child that ignores the signal is killed, and the reason stays the same."""
    assert (await refused(children, "spin_on", cpu_seconds=1)).reason == "timeout"


async def test_clock(children: Children) -> None:
    assert (await refused(children, "hang", wall_seconds=0.5)).reason == "timeout"


@pytest.mark.parametrize("task", ["long_answer", "flood", "large_file"])
async def test_output(children: Children, tmp_path: Path, task: str) -> None:
    assert (await refused(children, task, str(tmp_path / "file"))).reason == "output"


async def test_what_a_task_raises(children: Children, caplog: pytest.LogCaptureFixture) -> None:
    """The caller gets its code; its text is only logged."""
    with caplog.at_level(logging.INFO):
        error = await refused(children, "refuse")
    assert (error.reason, error.code) == ("failed", "encrypted")
    assert "for the log" not in str(error)
    assert "for the log" in error.errors and "for the log" in caplog.text


@pytest.mark.parametrize("task", ["crash", "leave"])
async def test_a_crash(children: Children, task: str) -> None:
    """A signal, or an end without an answer, is a crash."""
    assert (await refused(children, task)).reason == "crashed"


@pytest.mark.parametrize("target", ["no_such_module:x", f"{TASKS}:no_such", "nonsense"])
async def test_a_target_that_is_not_there(children: Children, target: str) -> None:
    """The installation is at fault, and the next task runs."""
    with pytest.raises(ChildFailed) as caught:
        await children.call(target, limits=LIMITS)
    assert caught.value.reason == "unavailable"
    assert await children.call(f"{TASKS}:echo", 1, limits=LIMITS) == 1


@pytest.mark.parametrize(
    ("task", "text"),
    [("no_space", "disk is full"), ("no_handles", "too many files"), ("killed", "out of memory")],
)
async def test_the_machine_is_at_fault(children: Children, task: str, text: str) -> None:
    """A full disk, no handles, a kill from outside: worth trying again."""
    with pytest.raises(MachineFault, match=text):
        await children.call(f"{TASKS}:{task}", limits=LIMITS)


async def test_nothing_leaks_in(children: Children, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has none of our variables, only its own descriptors, no core dump and its own process group."""
    monkeypatch.setenv("JWT_SECRET", "hidden")
    opened = os.open(HERE, os.O_RDONLY)
    os.set_inheritable(opened, True)
    found = await children.call(f"{TASKS}:surroundings", limits=LIMITS)
    os.close(opened)
    assert not {"JWT_SECRET", "HOME"} & set(found["environment"])
    assert found["descriptors"] == [0, 1, 2, 3]
    assert found["core"] == 0 and found["group"] == found["pid"]
    assert found["nice"] > os.getpriority(os.PRIO_PROCESS, 0) or found["nice"] == 19


@pytest.mark.skipif(bool(missing_confinement()), reason="this kernel can't confine processes")
async def test_confined(children: Children, tmp_path: Path) -> None:
    """A confined child reaches what it was given, and no other file, process or machine."""
    files = [tmp_path / name for name in ("in", "out", "secret")]
    for file in files:
        file.write_text("text")
    arguments = (*map(str, files), os.getpid())
    open_to_it = ["read", "write", "program"]
    free = await children.call(f"{TASKS}:attempts", *arguments, limits=LIMITS)
    assert all(free.values()), free
    files[1].write_text("text")
    (tmp_path / "new").unlink()
    reach = Reach([str(files[0])], [str(files[1])])
    found = await children.call(f"{TASKS}:attempts", *arguments, limits=LIMITS, reach=reach)
    assert [name for name, works in found.items() if works] == open_to_it
    with pytest.raises(ChildFailed):
        await children.run(["cat", str(files[2])], limits=LIMITS, reach=reach)
    assert await children.run(["cat", str(files[0])], limits=LIMITS, reach=reach) == b"text"
    program = tmp_path / "program"  # one that an operator keeps outside the system's folders
    program.write_text('#!/bin/sh\ncat "$1"\n')
    program.chmod(0o700)
    assert await children.run([str(program), str(files[0])], limits=LIMITS, reach=reach) == b"text"
    with pytest.raises(ChildFailed):
        await children.run([str(program), str(files[2])], limits=LIMITS, reach=reach)


async def test_cancellation(children: Children, pipe: tuple[Path, int]) -> None:
    """A cancelled call takes its child with it, and what that has started, in whatever group."""
    path, reader = pipe
    call = asyncio.create_task(children.call(f"{TASKS}:family", str(path), limits=LIMITS))
    pids = await told(reader)
    assert len(pids) == 3 and all(map(alive, pids))
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await gone(*pids)


async def test_descendants_end_with_a_good_end_too(children: Children) -> None:
    pids = await children.call(f"{TASKS}:left_behind", limits=LIMITS)
    assert len(pids) == 2
    await gone(*pids)


async def test_one_task_does_not_end_another(children: Children, pipe: tuple[Path, int]) -> None:
    """The end of a task leaves the family of its neighbour alone."""
    path, reader = pipe
    call = asyncio.create_task(children.call(f"{TASKS}:family", str(path), limits=LIMITS))
    pids = await told(reader)
    await children.call(f"{TASKS}:echo", 1, limits=LIMITS)
    assert all(map(alive, pids[:2]))
    call.cancel()
    await asyncio.gather(call, return_exceptions=True)


async def test_the_prepared_process_is_killed(children: Children, pipe: tuple[Path, int]) -> None:
    """What runs fails as the machine's fault, nothing is left over, and the next task has a new one."""
    path, reader = pipe
    call = asyncio.create_task(children.call(f"{TASKS}:family", str(path), limits=LIMITS))
    pids = await told(reader)
    psutil.Process(pids[0]).parent().kill()
    with pytest.raises(MachineFault):
        await call
    await gone(*pids[:2])
    assert await children.call(f"{TASKS}:echo", 1, limits=LIMITS) == 1


async def test_killed_with_its_platform(pipe: tuple[Path, int]) -> None:
    """When the platform is killed, nothing of its children is left, whatever group they are in."""
    path, reader = pipe
    program = (
        "import asyncio, sys\n"
        "from kernel.sdk import ChildLimits, Children\n"
        f"call = lambda: Children().call('{TASKS}:family', sys.argv[1], limits=ChildLimits(256, 20, 60))\n"
        "asyncio.run(call())\n"
    )
    root = str(HERE.parents[2])
    platform = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", program, str(path)), env={**os.environ, "PYTHONPATH": root}
    )
    pids = await told(reader)
    prepared = psutil.Process(pids[0]).ppid()
    platform.kill()
    await platform.wait()
    await gone(*pids, prepared)


async def test_the_prepared_process_goes_when_idle() -> None:
    async with aclosing(Children(idle_seconds=0.05)) as children:
        first = await children.call(f"{TASKS}:parent", limits=LIMITS)
        await gone(first)
        assert await children.call(f"{TASKS}:parent", limits=LIMITS) != first


async def test_arguments_that_are_too_long(children: Children) -> None:
    """They are refused before anything is started."""
    with pytest.raises(ValueError, match="file"):
        await children.call(f"{TASKS}:echo", "x" * 100_000, limits=LIMITS)


async def test_a_program(children: Children, tmp_path: Path) -> None:
    source = tmp_path / "in"
    source.write_bytes(b"some words")
    command = ["sh", "-c", "cat; echo; pwd; echo $WHERE"]
    answer = await children.run(
        command, limits=LIMITS, source=source, folder=tmp_path, environment={"WHERE": "here"}
    )
    assert answer.decode().splitlines() == ["some words", str(tmp_path), "here"]


async def test_a_program_in_a_folder_of_the_operators(
    children: Children, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Programs are found where the platform's own PATH says, such as in /opt/homebrew/bin."""
    program = tmp_path / "greet"
    program.write_text("#!/bin/sh\necho hello")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert await children.run(["greet"], limits=LIMITS) == b"hello\n"
    assert await children.call("shutil:which", "greet", limits=LIMITS) == str(program)


@pytest.mark.parametrize(
    ("command", "reason", "limits"),
    [
        (["sh", "-c", "echo wrong >&2; exit 3"], "failed", {}),
        (["no-such-program"], "unavailable", {}),
        (["sleep", "100"], "timeout", {"wall_seconds": 0.3}),
        (["sh", "-c", "while :; do :; done"], "timeout", {"cpu_seconds": 1}),
        (["yes"], "output", {}),
        (["sh", "-c", "yes >&2"], "output", {}),
        (["dd", "if=/dev/zero", "of=file", "bs=1k"], "output", {}),
        (["sh", "-c", "kill -SEGV $$"], "crashed", {}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
async def test_a_program_that_fails(
    children: Children, tmp_path: Path, command: list[str], reason: str, limits: dict[str, float]
) -> None:
    with pytest.raises(ChildFailed) as caught:
        await children.run(command, limits=LIMITS._replace(**limits), folder=tmp_path)
    assert caught.value.reason == reason
    if reason == "failed":
        assert (caught.value.status, caught.value.errors) == (3, "wrong")


async def test_a_program_is_cancelled(children: Children, pipe: tuple[Path, int]) -> None:
    path, reader = pipe
    command = ["sh", "-c", f"sleep 100 & echo $$ $! > {path}; wait"]
    call = asyncio.create_task(children.run(command, limits=LIMITS._replace(file_bytes=4096)))
    pids = await told(reader)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await gone(*pids)


async def test_no_descriptor_is_lost(children: Children) -> None:
    """After many tasks, good and bad, this process holds what it held after the first."""
    await children.call(f"{TASKS}:echo", 1, limits=LIMITS)
    before = psutil.Process().num_fds()
    for _ in range(10):
        await children.call(f"{TASKS}:echo", 1, limits=LIMITS)
        await refused(children, "refuse")
    assert psutil.Process().num_fds() == before
