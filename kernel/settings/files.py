"""Reading `config.yaml`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kernel.errors import StartupError


def read_config(path: Path) -> dict[str, Any]:
    """The sections of the file; none if there is no file. Raises StartupError if it can't be read."""
    try:
        text = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise StartupError(f"{path} can't be read: {error.strerror}") from None
    import yaml

    try:
        content = yaml.safe_load(text.decode("utf-8")) or {}
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise StartupError(f"{path.name} can't be read: {str(error).splitlines()[0]}") from None
    if not isinstance(content, dict):
        raise StartupError(f"{path.name} must be a mapping of sections, one for each plugin and 'kernel'")
    return content
