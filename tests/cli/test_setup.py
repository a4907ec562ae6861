"""`setup.sh` on a copy of the checkout, with a small lock and a folder of wheels instead of an index."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.cli.packages import Package
from tests.fakes.processes import process_environment

pytestmark = pytest.mark.long
ROOT = Path(__file__).resolve().parents[2]
COPIED = ("setup.sh", "pyproject.toml", "README.md", "LICENSE", "kernel", "cli", "schemas", "manifests")


def closure(*names: str) -> dict[str, metadata.Distribution]:
    """These distributions and all that they require, as installed here."""
    found: dict[str, metadata.Distribution] = {}
    waiting = list(names)
    while waiting:
        name = canonicalize_name(waiting.pop())
        if name in found:
            continue
        found[name] = metadata.distribution(name)
        wanted = [Requirement(line) for line in found[name].requires or ()]
        waiting += [r.name for r in wanted if r.marker is None or r.marker.evaluate({"extra": ""})]
    return found


def wheel_of(distribution: metadata.Distribution, folder: Path) -> None:
    """Pack an installed pure package into a wheel again."""
    name = distribution.metadata["Name"].replace("-", "_")
    skipped = {"RECORD", "INSTALLER", "REQUESTED", "direct_url.json"}
    files = [f for f in distribution.files or () if ".." not in f.parts and f.name not in skipped]
    files = [file for file in files if "__pycache__" not in file.parts]
    record = next(f for f in distribution.files or () if f.name == "RECORD")
    with zipfile.ZipFile(folder / f"{name}-{distribution.version}-py3-none-any.whl", "w") as archive:
        for file in files:
            archive.write(str(distribution.locate_file(file)), str(file))
        archive.writestr(str(record), "".join(f"{file},,\n" for file in [*files, record]))


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the small locks name: libraries of the command line, the build backend, pytest, a torch."""
    folder = tmp_path_factory.mktemp("wheels")
    for distribution in closure("typer", "hatchling", "pytest").values():
        wheel_of(distribution, folder)
    Package("torch", version="2.13.0", plugin=False, body="").wheel(folder)
    Package("acme-model", plugin=False, body="", requires=["nowhere-to-be-had"]).wheel(folder)
    return folder


def pins(wheels: Path, *names: str) -> str:
    found = sorted(closure(*names).items())
    return "".join(pin(wheels, name.replace("-", "_"), dist.version) for name, dist in found)


def pin(wheels: Path, name: str, version: str) -> str:
    (file,) = (file for file in wheels.iterdir() if file.name.lower().startswith(f"{name}-{version}-"))
    return f"{name}=={version} \\\n    --hash=sha256:{hashlib.sha256(file.read_bytes()).hexdigest()}\n"


class Checkout:
    """A copy of the checkout in which setup.sh can be run."""

    def __init__(self, root: Path, wheels: Path) -> None:
        self.root = root
        self.wheels = wheels
        root.mkdir(parents=True)
        ignored = shutil.ignore_patterns("__pycache__")
        for name in COPIED:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, root / name, ignore=ignored)
            else:
                shutil.copy(source, root / name)
        torch, model = pin(wheels, "torch", "2.13.0"), pin(wheels, "acme_model", "1.0")
        (root / "requirements.lock").write_text(pins(wheels, "typer") + torch)
        (root / "requirements-light.lock").write_text(pins(wheels, "typer"))
        (root / "requirements-build.lock").write_text(pins(wheels, "hatchling"))
        (root / "requirements-dev.lock").write_text(f"-r requirements.lock\n{pins(wheels, 'pytest')}")
        (root / "requirements-data.lock").write_text(model)

    def start(self, *arguments: str, **env: str) -> subprocess.Popen[str]:
        """Run setup.sh in a process group of its own."""
        values = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(self.wheels), "PIP_CONFIG_FILE": os.devnull}
        values["PIP_COMPILE"] = "0"  # most of these modules are never imported
        return subprocess.Popen(
            [str(self.root / "setup.sh"), *arguments],
            env=process_environment({"PYTHON": sys.executable, **values, **env}),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
        process = self.start(*arguments, **env)
        stdout, stderr = process.communicate(timeout=240)
        return subprocess.CompletedProcess(arguments, process.returncode, stdout, stderr)

    @property
    def log(self) -> Path:
        return self.root / ".venv" / "setup.log"


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory, wheels: Path) -> Iterator[tuple[Checkout, list[str]]]:
    """A checkout whose environment two commands have made at the same time, and what they said."""
    checkout = Checkout(tmp_path_factory.mktemp("checkout") / "platform", wheels)
    both = [checkout.start("--version") for _ in range(2)]
    results = [process.communicate(timeout=240) for process in both]
    said = [stderr for _, stderr in results]
    assert [process.returncode for process in both] == [0, 0], said
    assert {stdout.strip() for stdout, _ in results} == {f"platformctl {metadata.version('platform-kernel')}"}
    yield checkout, said


@pytest.fixture
def checkout(started: tuple[Checkout, list[str]]) -> Checkout:
    return started[0]


def test_two_at_once_install_once(started: tuple[Checkout, list[str]]) -> None:
    """Of two commands on a fresh checkout one makes the environment and the other waits for it."""
    said = sorted(started[1], key=len)
    assert "environment is ready" in said[1]
    assert "waiting for" in said[0]
    assert "torch" not in said[0]


def test_second_run_does_nothing(checkout: Checkout) -> None:
    """With the environment made, a command starts at once, without pip and without output."""
    before = checkout.log.stat().st_mtime_ns
    result = checkout.run("--version")
    assert (result.returncode, result.stderr) == (0, "")
    assert checkout.log.stat().st_mtime_ns == before


def test_any_command_is_passed_on(checkout: Checkout) -> None:
    """Arguments and exit code are platformctl's; the home is the checkout's, wherever it is called from."""
    result = checkout.run("telepathy")
    assert result.returncode in (1, 2)
    assert "platformctl" in checkout.run("--help").stdout
    assert "platformctl" in checkout.run().stdout + checkout.run().stderr
    assert "serve" in checkout.run("start", "--help").stdout


def test_tests_get_their_own_lock(checkout: Checkout) -> None:
    """`test` installs the other locks, one without what it requires, and hands its arguments to pytest."""
    result = checkout.run("test", "-p", "no:platform", "--version")
    assert list((checkout.root / ".venv").glob("lib/python*/site-packages/acme_model.py"))
    assert result.returncode == 0, result.stderr
    assert "pytest" in result.stdout + result.stderr
    assert checkout.run("test", "-p", "no:platform", "--version").stderr.count("•") == 0


def test_changed_lock_is_installed(checkout: Checkout) -> None:
    """A lock that changed since brings the environment up to date.

    When something can't be had, pip's last lines and a remedy are shown, and the exit code says so.
    """
    lock = checkout.root / "requirements.lock"
    before = lock.read_text()
    lock.write_text(f"{before}acme-nowhere==1.0 --hash=sha256:{'0' * 64}\n")
    result = checkout.run("--version")
    assert (result.returncode, "acme-nowhere==1.0" in result.stderr) == (1, True)
    lock.write_text(before + "# newer\n")
    assert checkout.run("--version").stderr != ""
    assert checkout.run("--version").stderr == ""


def test_broken_environment_is_repaired(checkout: Checkout) -> None:
    """With half of its stamp and without its pip, the environment is made good by running again."""
    venv = checkout.root / ".venv"
    pip = next((venv / "lib").glob("python*/site-packages/pip"))
    shutil.rmtree(pip)
    (venv / "made-for-runtime").write_text("half")
    assert checkout.run("--version").returncode == 0
    assert pip.exists()
    assert checkout.run("--version").stderr == ""


def test_interrupted_setup_is_finished(tmp_path: Path, wheels: Path) -> None:
    """A first run that is killed while pip works leaves nothing that the next run does not finish."""
    checkout = Checkout(tmp_path / "platform", wheels)
    process = checkout.start("--version")
    deadline = time.monotonic() + 120
    while not (checkout.log.exists() and "rich" in checkout.log.read_text()):
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    result = checkout.run("--version")
    assert result.returncode == 0, result.stderr
    assert "waiting" not in result.stderr


def test_moved_and_light(checkout: Checkout, tmp_path: Path) -> None:
    """An environment that was moved is rebuilt in its new place, scripts included.

    `--light` installs its own lock there, without torch, until `--full`, which serves as light, too.
    """
    moved = Checkout.__new__(Checkout)
    moved.root, moved.wheels = tmp_path / "moved", checkout.wheels
    shutil.copytree(checkout.root, moved.root, symlinks=True)
    torch = "lib/python*/site-packages/torch.py"
    venv = moved.root / ".venv"
    assert list(venv.glob(torch))
    result = moved.run("--light", "--version")
    assert (result.returncode, "making" in result.stderr, "torch" in result.stderr) == (0, True, False), (
        result.stderr
    )
    script = (venv / "bin" / "platformctl").read_text()
    assert script.startswith(f"#!{moved.root}")
    assert not list(venv.glob(torch))
    assert moved.run("--version").stderr == ""
    assert moved.run("--full", "--version").returncode == 0
    assert list(venv.glob(torch))
    assert moved.run("--light", "--version").stderr == ""


def test_no_python_is_explained(tmp_path: Path, wheels: Path) -> None:
    """Where there is no Python that will do, there is one clear error."""
    checkout = Checkout(tmp_path / "platform", wheels)
    tools = tmp_path / "bin"
    tools.mkdir()
    for tool in ("bash", "cat", "cmp", "dirname", "env", "grep"):
        (tools / tool).symlink_to(shutil.which(tool) or f"/bin/{tool}")
    old = tools / "python3"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    result = checkout.run("--version", PATH=str(tools), PYTHON="")
    assert result.returncode == 1
    assert re.search(r"error: .* 3\.11 to 3\.14 ", result.stderr)
    wrong = checkout.run("--version", PYTHON=str(old))
    assert f"error: PYTHON={old} " in wrong.stderr
