"""Reading `config.yaml`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kernel.errors import StartupError


def read_config(path: Path) -> dict[str, Any]:
    """The sections of the file. Raises StartupError if it isn't a mapping."""
    import yaml

    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise StartupError(f"{path.name} can't be read: {str(error).splitlines()[0]}") from None
    if not isinstance(content, dict):
        raise StartupError(f"{path.name} must be a mapping of sections, one for each plugin and 'kernel'")
    return content
