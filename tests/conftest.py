"""The fixtures come from `kernel.testing`, which pytest loads through its entry point."""

from __future__ import annotations

import gc
import importlib
import os
import resource
import signal
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from hypothesis import HealthCheck, settings

from kernel.libs import memory
from kernel.testing import Start, platforms
from tests.fakes import prepared
from tests.fakes.elsewhere import elsewhere
from tests.fakes.kept import Kept
from tests.fakes.loaded_once import languages_loaded_once
from tests.fakes.small_model import SmallModel, serving

DIED = pytest.StashKey[bool]()
NO_TIME = "no time was left"
# These files take a minute or more: several processes start with them, so that none ends alone with one.
LONG = (
    "tests/test_openapi_fuzz.py",
    "tests/durability",
    "tests/small_model",
    "tests/cli/test_setup.py",
    "tests/cli/test_cli_catalog.py",
    "tests/cli/test_cli_demo.py",
    "tests/cli/test_cli_models.py",
    "tests/cli/test_cli_plugins.py",
    "tests/cli/test_cli_serve.py",
    "tests/cli/test_guide.py",
    "tests/cli/test_readme.py",
    "tests/kernel/jobs/test_worker_process.py",
    "tests/kernel/stores/test_pgvector.py",
    "tests/kernel/test_strangers.py",
    "tests/builtin_plugins/embeddings",
    "tests/builtin_plugins/s3_blobs",
    "tests/builtin_plugins/web_client/test_client_services.py",
    "tests/builtin_plugins/web_client/test_client_pages.py",
    "tests/builtin_plugins/web_client/test_client_tasks.py",
    "tests/builtin_plugins/web_client/test_client_accessibility.py",
    "tests/builtin_plugins/manifest_webhooks/test_webhook_durability.py",
    "tests/builtin_plugins/tenancy/access/test_leak_matrix.py",
    "tests/builtin_plugins/tenancy/access/test_leak_fuzz.py",
    "tests/builtin_plugins/accounts/test_identity_states.py",
    "tests/kernel/auth/test_revocation.py",
)


@pytest.fixture
async def start_platform(platform_home: Path, request: pytest.FixtureRequest) -> AsyncIterator[Start]:
    """Boots platforms, as `kernel.testing` says; with `--against` the one that runs there is used instead."""
    url = request.config.getoption("against")
    async with elsewhere(url) if url else platforms(platform_home) as start:
        yield start


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def kept(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Kept]:
    """Platforms that many files share, on both databases; see `tests.fakes.kept`."""
    platforms_of_files = Kept(tmp_path_factory)
    yield platforms_of_files
    await platforms_of_files.close()


@pytest.fixture(scope="session", autouse=True)
def _languages() -> Iterator[None]:
    with languages_loaded_once():
        yield


@pytest.fixture(scope="session")
def small_model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SmallModel]:
    """A real language model behind an OpenAI-compatible server; see `tests.fakes.small_model`."""
    with serving(tmp_path_factory.mktemp("small-model")) as served:
        yield served


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Two more than there are cores: many tests wait for processes, for disks, or for a limit to pass."""
    return (os.cpu_count() or 1) + 2


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object | None) -> None:
    """A process of tests that dies ends the run: what it had left to do would be reported by nobody."""
    if error:
        node.config.stash[DIED] = True


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Before the end counts processor time, and before a process reports its end: from then on, it has five
    seconds until xdist interrupts it, and pytest would spend them on the collection of everything.
    """
    prepared.close()
    gc.collect()
    memory.freeze_present()
    if session.config.stash.get(DIED, False):
        session.exitstatus = pytest.ExitCode.INTERNAL_ERROR


def pytest_collection(session: pytest.Session) -> None:
    """Make each of several processes import the test modules starting at a different one: pytest rewrites the
    asserts of every module, which is a third of the time before the first test, and keeps the result on disk.
    In the same order, all processes would do it for all modules.
    """
    worker = getattr(session.config, "workerinput", None)
    if worker is None or session.config.args_source is not pytest.Config.ArgsSource.TESTPATHS:
        return
    modules = sorted(path.with_suffix("") for path in Path("tests").rglob("test_*.py"))
    first = len(modules) * int(worker["workerid"].removeprefix("gw")) // worker["workercount"]
    for module in modules[first:] + modules[:first]:
        with suppress(Exception):  # boundary: collecting it again tells what is wrong with it
            importlib.import_module(".".join(module.parts))


def pytest_collection_finish() -> None:
    """Tests and modules stay until the end: Python's collector need not look at them again and again."""
    memory.freeze_present()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """For several processes: long files first; the order of the rest, and of the tests in a file, stays.

    An ordinary run leaves out what takes long, and has PostgreSQL for the kernel alone;
    `--rest` is its other half. A test that is named by its id always runs, one that takes long also if its
    file is named. With `--against`, only tests that can use another installation are left.
    """
    if config.getoption("against"):
        left_out = [item for item in items if not _goes_elsewhere(item)]
    else:
        rest = config.getoption("rest")
        left_out = [item for item in items if not _is_named(item) and _is_the_rest(item) != rest]
    config.hook.pytest_deselected(items=left_out)
    gone = {item.nodeid for item in left_out}
    items[:] = [item for item in items if item.nodeid not in gone]
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: not item.nodeid.startswith(LONG))


def _is_named(item: pytest.Item) -> bool:
    names = [item.nodeid]
    if item.get_closest_marker("long"):
        names.append(item.nodeid.partition("::")[0])
    return any(name in item.config.args for name in names)


def _is_the_rest(item: pytest.Item) -> bool:
    """Whether an ordinary run leaves it out: it takes long, or runs on PostgreSQL without testing the kernel,
    to which plugins leave the database, or the tables of plugins.
    """
    if item.get_closest_marker("long"):
        return True
    if not _on_server(item):
        return False
    return not item.nodeid.startswith(("tests/kernel/", "tests/house/")) or bool(
        item.get_closest_marker("either_database")
    )


def _on_server(item: pytest.Item) -> bool:
    callspec = getattr(item, "callspec", None)
    return callspec is not None and any(
        isinstance(value, str) and value == "postgresql" for value in callspec.params.values()
    )


def _goes_elsewhere(item: pytest.Item) -> bool:
    if item.get_closest_marker("own_installation"):
        return False
    used = getattr(item, "fixturenames", ())
    shared = item.nodeid.startswith("tests/builtin_plugins/rag/") and "running" in used
    return shared or "start_platform" in used


@dataclass(frozen=True)
class Walk:
    """How far a generating test goes, unless it is told."""

    option: str
    length: int
    help: str


WALKS = (
    Walk("openapi-examples", 1, "Examples of each API operation; one skips schemathesis's coverage."),
    Walk("identity-walks", 3, "Walks through the states of identity."),
    Walk("role-worlds", 12, "Worlds of roles that are held against the model."),
    Walk("leak-steps", 160, "Steps of the leak fuzzer."),
    Walk("filter-tries", 300, "Random filters that are held against a plain model."),
    Walk("graph-steps", 300, "Steps of adding and deleting documents with graphs."),
    Walk("market-steps", 250, "Steps of the walk over the marketplace."),
    Walk("kills", 3, "How often the durability test kills the worker, the API process or both."),
    Walk("replacements", 40, "How often a document is replaced while eight clients search."),
    Walk("source-documents", 100, "Documents of a source whose permissions change while a worker is killed."),
    Walk("market-kills", 2, "How often the marketplace's server is killed."),
    Walk("backup-kills", 1, "How often a backup is killed, and how often a restore."),
    Walk("rounds", 1, "How often each outage, stop or killed migration is repeated."),
    Walk("webhook-kills", 1, "How often a server is killed in mid-delivery."),
    Walk("machine-seconds", 3, "For how long machines are killed at random moments."),
)
GENERATED = ("identity-walks", "role-worlds")
"""Those that are profiles of Hypothesis."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """How far the generating tests go; further finds more, and takes longer."""
    for walk in WALKS:
        parser.addoption(
            f"--{walk.option}", type=int, default=walk.length, help=f"{walk.help} {walk.length}."
        )
    told = "Run tests against the installation at this address; its settings are in the environment."
    parser.addoption("--against", metavar="URL", default=None, help=told)
    parser.addoption(
        "--rest",
        action="store_true",
        help="Run only what a run without options leaves out: what takes long, and more tests on PostgreSQL.",
    )
    parser.addoption(
        "--until",
        type=float,
        default=None,
        help="Skip tests that have not begun by this time, in seconds since 1970, and count them at the end.",
    )
    parser.addoption("--leak-seed", type=int, default=1, help="Seed of the leak fuzzer; 0 is a new one.")
    parser.addoption("--filter-seed", type=int, default=1, help="Seed of the filters' fuzzer.")
    parser.addoption(
        "--slow-files", type=int, default=15, help="How many of the slowest files the end names."
    )


def pytest_configure(config: pytest.Config) -> None:
    """The short walks go the same way each time."""
    memory.collect_seldom()
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # A shell's background command is deaf to Ctrl-C, and so would be all the processes of the tests.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        # Under nohup, which the processes of the tests would inherit; what a handler catches, they don't.
        signal.signal(signal.SIGHUP, lambda *_: None)
    # Torch's threads would spin while they wait for cores that other tests use: twice the processor time.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    for walk in WALKS:
        if walk.option not in GENERATED:
            continue
        length = config.getoption(walk.option.replace("-", "_"))
        settings.register_profile(
            walk.option,
            max_examples=length,
            derandomize=length == walk.length,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        )
    # On a busy machine a single example may take any time; and a run is to find what another found.
    health = [HealthCheck.too_slow]
    settings.register_profile("platform", deadline=None, derandomize=True, suppress_health_check=health)
    settings.load_profile("platform")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """With `--until`, a slow machine ends in time with what it did, instead of being ended with nothing."""
    until = item.config.getoption("until")
    if until is not None and time.time() > until:
        pytest.skip(NO_TIME)


@pytest.hookimpl(trylast=True)
def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Name a failed test at once: a run that is ended from outside has no summary."""
    if report.failed and "PYTEST_XDIST_WORKER" not in os.environ:
        sys.stdout.write(f"\nFAILED {report.nodeid}\n")


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, exitstatus: int, config: pytest.Config
) -> None:
    """The files that took longest, their fixtures included, the processor time of all processes, and how many
    tests did not begin in time.
    """
    late = [report for report in terminalreporter.stats.get("skipped", ()) if NO_TIME in str(report.longrepr)]
    if late:
        terminalreporter.section(f"{len(late)} tests were NOT RUN: {NO_TIME}", sep="!")
    seconds: Counter[str] = Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                seconds[report.nodeid.partition("::")[0]] += report.duration
    if len(seconds) > 1:
        terminalreporter.section("slowest files")
        for name, took in sorted(seconds.items(), key=lambda item: -item[1])[
            : config.getoption("slow_files")
        ]:
            terminalreporter.write_line(f"{took:8.1f} s  {name}")
        used = sum(
            sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
        )
        terminalreporter.write_line(f"{used:8.1f} s  of processor time in all, that of servers left out")
