"""Settings of the service `platform-ops`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, SecretStr

from kernel.sdk import Settings, env, split_list
from kernel.sdk.operations import WrittenFolder, hosts_and_networks


def _schedule(value: str) -> str:
    if value:
        from croniter import croniter  # a start without a schedule needs none of it

        if not croniter.is_valid(value):
            raise ValueError("is not a schedule; write one such as '@daily' or '0 3 * * *'")
        try:
            croniter(value).get_next()
        except ValueError:
            raise ValueError("names a date that never occurs; write one such as '0 3 * * *'") from None
    return value


# Libraries can read from these, but not write folders to them; `memory` is gone when the process ends.
_NOT_KEPT = frozenset(
    {"data", "gist", "git", "github", "http", "https", "libarchive", "memory", "tar", "zip"}
)


def _storage(value: str) -> str:
    scheme, colon, _ = value.partition("://")
    if colon:
        try:
            from fsspec import available_protocols  # type: ignore[import-untyped]  # a folder needs none of it
        except ModuleNotFoundError:
            raise ValueError("an address needs more packages: pip install 'platform-kernel[s3]'") from None

        chain = scheme.split("::")
        if chain[0] not in available_protocols() or not _NOT_KEPT.isdisjoint(chain):
            raise ValueError(
                "backups can't be stored at this kind of address; use a folder, or an address such as"
                " s3://bucket/folder"
            )
    return value


def _hosts_with_ports(value: str) -> str:
    for item in split_list(value):
        parts = urlsplit(f"//{item}")
        if parts.netloc != item or not parts.hostname or not parts.port:
            raise ValueError("expected host:port, separated by commas")
    return value


class OpsSettings(Settings):
    """Where backups go, when, and what they are sealed with; which registered services are called."""

    backup_to: Annotated[str, AfterValidator(_storage), WrittenFolder()] = Field(
        "",
        description="Where backups are stored: a folder, or an address such as s3://bucket/folder; when "
        "unset, `backups` in PLATFORM_HOME.",
    )
    backup_schedule: Annotated[str, AfterValidator(_schedule)] = Field(
        "", description="When to back up: `@daily`, or five cron fields such as `0 3 * * *`; empty: never."
    )
    backup_keep: int = Field(7, ge=1, le=1000, description="Number of newest backups to keep.")
    backup_before_upgrade: bool = Field(
        True, description="Whether a start that changes the database's tables makes a backup first."
    )
    backup_passphrase: SecretStr | None = Field(
        None,
        min_length=12,
        description="Passphrase that encrypts secrets and `config.yaml` in backups; without it and without "
        "a key file, backups leave both out.",
    )
    backup_key_file: Path | None = Field(
        None, description="File of at least 32 bytes to use instead of a passphrase."
    )
    docker_host: str = Field(
        "",
        validation_alias=env("DOCKER_HOST"),
        description="Docker or Podman whose containers bundles switch, and whose logs are shown: "
        "unix:///var/run/docker.sock or tcp://host:2375; none when unset.",
    )
    services_allowed: Annotated[str, AfterValidator(hosts_and_networks)] = Field(
        "",
        description="Hosts and networks where registered services may be (`10.1.0.0/16`, `*.corp`), "
        "separated by commas; none when unset. Link-local and metadata addresses are never called.",
    )
    services_trusted: Annotated[str, AfterValidator(_hosts_with_ports)] = Field(
        "",
        description="Registered services, as `host:port`, to which the caller's token is passed on with "
        "a request; separated by commas.",
    )
