"""Documents are read without the kernel: only the plugin, its api and the runner know it."""

from __future__ import annotations

import subprocess
import sys

_READS = """
import sys
from pathlib import Path
from builtin_plugins.documents.child import parse_each
from builtin_plugins.documents.chunking import chunk
from builtin_plugins.documents.parsers import BUILTIN_PARSERS
from importlib import import_module
for parser in BUILTIN_PARSERS:
    import_module(parser.target.partition(":")[0])
print(*(name for name in sys.modules if name.split(".")[0] in ("kernel", "cli")))
"""


def test_all_formats_are_read_without_the_kernel() -> None:
    """A process that has imported every parser has imported nothing of the platform but this package."""
    done = subprocess.run([sys.executable, "-c", _READS], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
