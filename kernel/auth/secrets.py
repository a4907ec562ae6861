"""Named secrets, each in a file in ``PLATFORM_HOME/secrets`` (0600). The environment takes precedence."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Mapping
from pathlib import Path

from kernel.errors import StartupError
from kernel.stores.disk import sync

_NAME = re.compile(r"[a-z][a-z0-9._-]{0,99}")


class SecretStore:
    """Reads and writes secrets by name. Values never appear in logs or responses."""

    def __init__(self, home: Path, environ: Mapping[str, str] | None = None) -> None:
        self._folder = home / "secrets"
        self._environ = os.environ if environ is None else environ

    def get(self, name: str) -> str | None:
        """The secret `name`: ``PLATFORM_SECRET_<NAME>``, or else the stored one; None if there is none."""
        from_environment = self.from_environment(name)
        if from_environment:
            return from_environment
        try:
            return (self._folder / name).read_text(encoding="utf-8")
        except FileNotFoundError:
            return None

    def from_environment(self, name: str) -> str | None:
        """The secret `name` from the environment, which can't be changed here."""
        _check(name)
        return self._environ.get("PLATFORM_SECRET_" + re.sub(r"[.-]", "_", name).upper()) or None

    def set(self, name: str, value: str) -> None:
        """Store `value`. It is durable when this returns."""
        _check(name)
        self._written(name, value).replace(self._folder / name)
        sync(self._folder)

    def remove(self, name: str) -> bool:
        """Delete the secret. Returns whether there was one."""
        _check(name)
        path = self._folder / name
        existed = path.exists()
        if existed:
            path.unlink(missing_ok=True)
            sync(self._folder)
        return existed

    def names(self) -> list[str]:
        """Names of the stored secrets."""
        if not self._folder.is_dir():
            return []
        return sorted(path.name for path in self._folder.iterdir() if _NAME.fullmatch(path.name))

    def ensure(self, name: str, size: int = 48) -> str:
        """The secret `name`, created at random on first use. Processes that start together agree on one."""
        secret = self.get(name)
        if secret is None:
            self._create(name, secrets.token_urlsafe(size))
            secret = self.get(name)
        if not secret:
            raise StartupError(f"the secret '{name}' under PLATFORM_HOME/secrets is empty; remove the file")
        return secret

    def _make_folder(self) -> None:
        """Create home and secrets folder, private to the owner; with `parents=True`, only the latter is."""
        self._folder.parent.parent.mkdir(parents=True, exist_ok=True)
        for folder in (self._folder.parent, self._folder):
            folder.mkdir(exist_ok=True, mode=0o700)

    def _written(self, name: str, value: str) -> Path:
        """A synced temporary file beside the secrets."""
        self._make_folder()
        temporary = self._folder / f".{name}.{secrets.token_hex(8)}"
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as handle:
            handle.write(value)
            handle.flush()
            os.fsync(handle.fileno())
        return temporary

    def _create(self, name: str, value: str) -> None:
        temporary = self._written(name, value)
        try:
            os.link(temporary, self._folder / name)
        except FileExistsError:
            pass
        finally:
            temporary.unlink()
        sync(self._folder)


def _check(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise ValueError(
            f"'{name[:40]}' is not a valid name for a secret; use lower-case letters, digits, '.', '_', '-'"
        )
