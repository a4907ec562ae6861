"""Settings: typed, described fields, read once from the environment and `config.yaml`.

The kernel's and each plugin's settings class share one loader. Precedence: environment, then the section
of the owner in `PLATFORM_HOME/config.yaml`, then the default. A key that nobody declares is refused.
"""

from __future__ import annotations

import difflib
import ipaddress
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from email.utils import parseaddr
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeVar
from urllib.parse import SplitResult, urlsplit

import yaml
from pydantic import (
    AliasChoices,
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    ValidationInfo,
    field_validator,
)

from kernel.errors import StartupError


class Settings(BaseModel):
    """Base of every settings class. `env_prefix` names the environment variables of its fields.

    `configurable` names the fields that clients may see and change while the platform runs (spec 4.7,
    plugin config). List a field only if every use reads it through `settings_of` anew, and if no harm is
    done when any signed-in account changes it.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True, validate_default=True)

    env_prefix: ClassVar[str] = "PLATFORM_"
    configurable: ClassVar[frozenset[str]] = frozenset()

    @classmethod
    def env_names(cls) -> dict[str, tuple[str, ...]]:
        """Field name to the environment variables that set it, strongest first."""
        return {
            name: _env_names(cls, name, field.validation_alias) for name, field in cls.model_fields.items()
        }


def _env_names(cls: type[Settings], name: str, alias: Any) -> tuple[str, ...]:
    if isinstance(alias, AliasChoices):
        return tuple(str(choice) for choice in alias.choices)
    return (str(alias),) if alias else (cls.env_prefix + name.upper(),)


def env(*names: str) -> Any:
    """The environment variables of a field whose name comes from the spec rather than from the prefix."""
    return AliasChoices(*names)


S = TypeVar("S", bound="Settings")

_SIZE_MB = Annotated[int, Field(ge=1, le=100_000)]


class KernelSettings(Settings):
    """What the kernel itself can be told. Names follow spec 5.2 and wire-facts section 15."""

    home: Path = Field(Path(".platform"), description="Folder of everything that is written.")
    host: str = Field("127.0.0.1", description="Address to listen on.")
    port: int = Field(8000, ge=0, le=65535, description="Port of the gateway; 0 picks a free one.")
    environment: Literal["development", "production", "test"] = Field(
        "development", validation_alias=env("ENVIRONMENT"), description="Named in /health."
    )
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field(
        "INFO", validation_alias=env("LOG_LEVEL"), description="Least severe level that is logged."
    )
    log_format: Literal["auto", "json", "text"] = Field(
        "auto",
        description="Shape of the log lines; auto writes text to a terminal and JSON to anything else.",
    )
    log_file: Path | None = Field(
        None, description="File that log lines are appended to; standard error when unset."
    )
    database_url: SecretStr | None = Field(
        None,
        validation_alias=env("DATABASE_URL"),
        description="postgresql://… or sqlite:///…; SQLite under PLATFORM_HOME when unset.",
    )
    database_pool_size: int = Field(10, ge=1, le=200, description="PostgreSQL connections of one process.")
    vector_store: Literal["auto", "faiss", "pgvector"] = Field(
        "auto",
        description="Where vectors are searched: faiss in each process, pgvector in PostgreSQL; auto takes"
        " pgvector where the database offers it. The same for all processes; change it while none runs.",
    )
    redis_url: SecretStr | None = Field(
        None,
        validation_alias=env("REDIS_URL"),
        description="Redis as the cache store; unset: in process, or, with several workers, the database.",
    )
    jwt_secret: SecretStr | None = Field(
        None,
        validation_alias=env("JWT_SECRET"),
        description="Signs access tokens, at least 32 bytes; made and kept under PLATFORM_HOME when unset.",
    )
    jwt_previous_secret: SecretStr | None = Field(
        None,
        validation_alias=env("JWT_PREVIOUS_SECRET"),
        description="Also accepted for verification while JWT_SECRET is being rotated.",
    )
    jwt_expiration_minutes: int = Field(
        15,
        ge=1,
        le=1440,
        validation_alias=env("JWT_EXPIRATION_MINUTES"),
        description="Access token lifetime.",
    )
    jwt_refresh_grace_minutes: int = Field(
        720,
        ge=0,
        validation_alias=env("JWT_REFRESH_GRACE_MINUTES"),
        description="Minutes after expiry in which refresh still works; 0 disables.",
    )
    jwt_session_max_hours: int = Field(
        24,
        ge=0,
        validation_alias=env("JWT_SESSION_MAX_HOURS"),
        description="Absolute cap of a session from its sign-in; 0 disables.",
    )
    service_sync_token: SecretStr | None = Field(
        None,
        validation_alias=env("SERVICE_SYNC_TOKEN"),
        description="X-Service-Token that makes a caller behind a trusted proxy a service; unset: none.",
    )
    registration_mode: Literal["open", "closed"] = Field(
        "open", description="Whether strangers may register an account."
    )
    client_url: str = Field(
        "",
        validation_alias=env("PLATFORM_CLIENT_BASE_URL", "PLATFORM_CLIENT_URL"),
        description="Base address of the web client, for links in e-mail and the way back from SSO.",
    )
    smtp_host: str = Field("", description="Mail server; e-mail is off when unset.")
    smtp_port: int = Field(587, ge=1, le=65535, description="Port of the mail server.")
    smtp_tls: Literal["starttls", "tls", "none"] = Field(
        "starttls",
        description="How mail is protected on its way: starttls (587), tls from the start (465), or none.",
    )
    smtp_user: str = Field("", description="Name to sign in at the mail server with; none when unset.")
    smtp_password: SecretStr | None = Field(None, description="Password for the mail server.")
    smtp_timeout: float = Field(20, gt=0, le=300, description="Seconds that sending one e-mail may take.")
    mail_from: str = Field(
        "", description="Sender of e-mail, address or 'Name <address>'; needed with PLATFORM_SMTP_HOST."
    )
    password_reset_minutes: int = Field(
        60, ge=1, le=1440, description="Minutes that the link of a password reset works."
    )
    rate_limit_enabled: bool = Field(
        True,
        validation_alias=env("RATE_LIMIT_ENABLED"),
        description="Rate limits; false lifts those of sign-in and of single routes as well.",
    )
    rate_limit_per_minute: int = Field(
        60, ge=1, validation_alias=env("RATE_LIMIT_PER_MINUTE"), description="Requests per caller and 60 s."
    )
    auth_rate_limit_per_minute: int = Field(
        10,
        ge=1,
        validation_alias=env("AUTH_RATE_LIMIT_PER_MINUTE"),
        description="Register and login attempts per client address and minute.",
    )
    trusted_proxy_cidrs: str = Field(
        "",
        validation_alias=env("TRUSTED_PROXY_CIDRS"),
        description="Comma list of networks whose X-Forwarded-For and X-Service-Token are believed.",
    )
    cors_allowed_origins: str = Field(
        "*", validation_alias=env("CORS_ALLOWED_ORIGINS"), description="Comma list of origins, or *."
    )
    max_body_size_mb: _SIZE_MB = Field(2, description="Largest JSON body of a route that names no other cap.")
    max_proxy_body_size_mb: _SIZE_MB = Field(
        150, validation_alias=env("MAX_PROXY_BODY_SIZE_MB"), description="Largest body the gateway forwards."
    )
    header_timeout: float = Field(10, gt=0, description="Seconds a client has to send its request head.")
    body_timeout: float = Field(30, gt=0, description="Seconds of silence after which a body is given up.")
    send_timeout: float = Field(
        60,
        ge=1,
        le=86_400,
        description="Seconds after which a client that takes nothing of its answer is cut off.",
    )
    shutdown_timeout: float = Field(20, ge=0, description="Seconds that requests in flight get to finish.")
    dev_ports: bool = Field(
        False, description="Also listen on the services' own loopback ports 8001 to 8010."
    )
    service_urls: str = Field("", description="Services on other machines: name=http://host:port, …")
    workers: int = Field(1, ge=1, le=64, description="API processes on the one port.")
    plugins_disabled: str = Field("", description="Comma list of plugins that are not loaded.")
    plugin_start_timeout: float = Field(
        15, gt=0, description="Seconds a plugin has for each step of its start."
    )
    worker_concurrency: int = Field(
        2,
        ge=1,
        le=64,
        description="Jobs of each lane that one worker process runs at a time (large: one less).",
    )
    account_cache_seconds: float = Field(
        2, ge=0, le=2, description="Longest age of a cached account state, should its notice be lost."
    )
    migrate_on_start: bool = Field(True, description="Bring the database up to date when starting.")

    @field_validator("home")
    @classmethod
    def _absolute(cls, value: Path) -> Path:
        return value.expanduser().absolute()

    @field_validator("jwt_secret", "jwt_previous_secret")
    @classmethod
    def _long_enough(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None and len(value.get_secret_value().encode()) < 32:
            raise ValueError(
                "must be at least 32 bytes long (RFC 7518 section 3.2); try: openssl rand -hex 32"
            )
        return value

    @field_validator("client_url")
    @classmethod
    def _base_address(cls, value: str) -> str:
        parts = urlsplit(value)
        if value and (parts.scheme not in ("http", "https") or not parts.hostname or parts.query):
            raise ValueError("expected http://host[:port][/path] or https://…")
        return value.partition("#")[0].rstrip("/")

    @field_validator("mail_from")
    @classmethod
    def _sender(cls, value: str, info: ValidationInfo) -> str:
        if info.data.get("smtp_host") and "@" not in parseaddr(value)[1]:
            raise ValueError("expected an address such as 'Platform <platform@example.org>'")
        return value

    @field_validator("redis_url")
    @classmethod
    def _redis_address(cls, value: SecretStr | None) -> SecretStr | None:
        parts = urlsplit(value.get_secret_value() if value else "redis://host")
        if (
            parts.scheme not in ("redis", "rediss", "unix")
            or not (parts.netloc or parts.path)
            or _bad_port(parts)
        ):
            raise ValueError("expected redis://[user:password@]host[:port][/number], rediss://… or unix://…")
        return value

    @field_validator("database_url")
    @classmethod
    def _database_address(cls, value: SecretStr | None) -> SecretStr | None:
        parts = urlsplit(value.get_secret_value() if value else "sqlite:///file")
        kind = parts.scheme.partition("+")[0]
        in_file = parts.path.strip("/") not in ("", ":memory:")
        if _bad_port(parts) or not (kind in ("postgresql", "postgres") or (kind == "sqlite" and in_file)):
            raise ValueError("expected postgresql://user:password@host:port/name or sqlite:////path/to/file")
        return value

    @field_validator("trusted_proxy_cidrs")
    @classmethod
    def _networks(cls, value: str) -> str:
        for item in split_list(value):
            ipaddress.ip_network(item, strict=False)
        return value

    @field_validator("service_urls")
    @classmethod
    def _urls(cls, value: str) -> str:
        for item in split_list(value):
            name, _, url = item.partition("=")
            if not name or not url.startswith(("http://", "https://")):
                raise ValueError("expected name=http://host:port, separated by commas")
        return value

    @property
    def remote_services(self) -> dict[str, str]:
        """Service name to base address, from `service_urls`."""
        pairs = (item.partition("=") for item in split_list(self.service_urls))
        return {name.strip(): url.rstrip("/") for name, _, url in pairs}

    @property
    def sqlalchemy_url(self) -> str:
        """The database address with the async driver that the platform uses."""
        if self.database_url is None:
            return f"sqlite+aiosqlite:///{self.home / 'platform.db'}"
        url = self.database_url.get_secret_value()
        scheme, _, rest = url.partition("://")
        kind = scheme.partition("+")[0]
        if kind in ("postgresql", "postgres"):
            return f"postgresql+asyncpg://{rest}"
        if kind == "sqlite":
            return f"sqlite+aiosqlite://{rest}"
        raise StartupError(f"DATABASE_URL: '{kind}' is not supported; use postgresql://… or sqlite:///…")


def _bad_port(parts: SplitResult) -> bool:
    try:
        return parts.port == 0
    except ValueError:
        return True


def split_list(text: str) -> list[str]:
    """A comma list as its trimmed, non-empty items."""
    return [item.strip() for item in text.split(",") if item.strip()]


class SettingsLoader:
    """Reads settings classes from one environment and the sections of one `config.yaml`."""

    def __init__(self, environ: Mapping[str, str], sections: Mapping[str, Any] | None = None) -> None:
        self._environ = environ
        self._sections = dict(sections or {})
        self._known_names: set[str] = set()

    @classmethod
    def from_home(
        cls, environ: Mapping[str, str] | None = None, overrides: Mapping[str, str] | None = None
    ) -> SettingsLoader:
        """The loader of the real environment and of `PLATFORM_HOME/config.yaml`, where there is one.

        `overrides` are variables that win over the environment: what a command line says.
        """
        environ = {**(os.environ if environ is None else environ), **(overrides or {})}
        home = Path(environ.get("PLATFORM_HOME") or ".platform").expanduser()
        return cls(environ, _read_config(home / "config.yaml"))

    def load(self, owner: str, cls: type[S], stored: Mapping[str, Any] | None = None) -> S:
        """An instance of `cls` for `owner`. Raises StartupError naming each wrong field and its remedy.

        `stored` values, by field name, win over the environment (wire-facts 6.2, config merge order).
        """
        names = cls.env_names()
        self._known_names.update(variable for variables in names.values() for variable in variables)
        values = self._section(owner, cls)
        for field, variables in names.items():
            found = next((self._environ[v] for v in variables if self._environ.get(v, "") != ""), None)
            if found is not None:
                values[field] = found
        values.update(stored or {})
        try:
            return cls.model_validate(values, by_name=True, by_alias=False)
        except ValidationError as error:
            raise StartupError(_explain(owner, names, error)) from None

    def unknown_variables(self, prefix: str = "PLATFORM_", ignore: tuple[str, ...] = ()) -> Iterator[str]:
        """One sentence for each `PLATFORM_…` variable that no loaded class declares."""
        for name in sorted(self._environ):
            if name.startswith(prefix) and name not in self._known_names and not name.startswith(ignore):
                yield f"{name} is not a setting{_meant(name, self._known_names, quote='')}"

    def unknown_sections(self, owners: Collection[str]) -> Iterator[str]:
        """One sentence for each section of `config.yaml` that belongs to none of `owners`."""
        for name in sorted(set(self._sections) - set(owners)):
            yield f"config.yaml: no plugin is called '{name}'{_meant(name, owners)}"

    def _section(self, owner: str, cls: type[Settings]) -> dict[str, Any]:
        section = self._sections.get(owner, {})
        if not isinstance(section, dict):
            raise StartupError(f"config.yaml: section '{owner}' must be a mapping of settings")
        unknown = sorted(set(section) - set(cls.model_fields))
        if unknown:
            hint = _meant(str(unknown[0]), cls.model_fields)
            raise StartupError(f"config.yaml: '{owner}.{unknown[0]}' is not a setting{hint}")
        return dict(section)


def _meant(name: str, known: Iterable[str], quote: str = "'") -> str:
    close = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {quote}{close[0]}{quote}?" if close else ""


def _read_config(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise StartupError(f"{path.name} can't be read: {str(error).splitlines()[0]}") from None
    if not isinstance(content, dict):
        raise StartupError(f"{path.name} must be a mapping of sections, one for each plugin and 'kernel'")
    return content


def _explain(owner: str, names: dict[str, tuple[str, ...]], error: ValidationError) -> str:
    lines = []
    for problem in error.errors(include_url=False, include_input=False, include_context=False):
        field = str(problem["loc"][0]) if problem["loc"] else "?"
        variables = " or ".join(names.get(field, (field,)))
        lines.append(f"{variables} (setting '{owner}.{field}'): {problem['msg']}")
    return "wrong settings: " + "; ".join(lines)
