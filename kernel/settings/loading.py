"""Settings: typed, described fields, read once from the environment and `config.yaml`.

The kernel and each plugin have a settings class, read by the same loader. Precedence: environment, then the
owner's section in `PLATFORM_HOME/config.yaml`, then the default. Unknown keys are refused.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from email.utils import parseaddr
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    ValidationInfo,
    field_validator,
)
from pydantic_core import ErrorDetails

from kernel.errors import StartupError
from kernel.settings.checks import (
    TimeZone,
    base_address,
    database_address,
    host_name,
    hosts_and_networks,
    long_enough,
    networks,
    origins,
    redis_address,
)


class Settings(BaseModel):
    """Base of every settings class. `env_prefix` is the prefix of its environment variables.

    Fields that may change while the platform runs (spec 4.7, plugin config), as each use calls `settings_of`
    again: `configurable` ones by any signed-in account, `administered` ones by administrators.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True, validate_default=True)

    env_prefix: ClassVar[str] = "PLATFORM_"
    configurable: ClassVar[frozenset[str]] = frozenset()
    administered: ClassVar[frozenset[str]] = frozenset()

    @classmethod
    def env_names(cls) -> dict[str, tuple[str, ...]]:
        """The environment variables that set each field, by field name, strongest first."""
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
Source = Literal["default", "config.yaml", "environment", "stored"]

# DATABASE_URI means DATABASE_URL (0.92); OPENAI_ORG_ID belongs to another program (0.74).
_CLOSE = 0.87
_STORE = r"^[a-z][a-z0-9_-]{0,49}$"
_STORE_ADDRESS = r"^[a-z][a-z0-9_-]{0,49}(://[^\s@]+)?$"
_SIZE_MB = Annotated[int, Field(ge=1, le=100_000)]


class KernelSettings(Settings):
    """The settings of the kernel itself. Names follow spec 5.2 and wire-facts section 15."""

    home: Path = Field(Path(".platform"), description="Folder that holds all of the platform's data.")
    host: str = Field("127.0.0.1", description="Address to listen on.")
    port: int = Field(8000, ge=0, le=65535, description="Port of the gateway; 0 picks a free port.")
    environment: Literal["development", "production", "test"] = Field(
        "development",
        validation_alias=env("ENVIRONMENT"),
        description="Kind of environment, shown in /health.",
    )
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field(
        "INFO", validation_alias=env("LOG_LEVEL"), description="Lowest level of log messages to write."
    )
    log_format: Literal["auto", "json", "text"] = Field(
        "auto", description="Format of log lines; auto means text on a terminal and JSON elsewhere."
    )
    log_file: Path | None = Field(None, description="File to append log lines to; standard error when unset.")
    database_url: Annotated[SecretStr | None, AfterValidator(database_address)] = Field(
        None,
        validation_alias=env("DATABASE_URL"),
        description="postgresql://… or sqlite:///…; when unset, an SQLite file in PLATFORM_HOME.",
    )
    min_free_disk_mb: int = Field(100, ge=0, description="Uploads are refused when less disk space is free.")
    database_pool_size: int = Field(
        10, ge=1, le=200, description="A process opens up to twice as many PostgreSQL connections, plus two."
    )
    blob_store: str = Field(
        "files",
        pattern=_STORE_ADDRESS,
        description="Storage of uploads: files (in PLATFORM_HOME), an address such as s3://bucket/prefix, or "
        "a plugin's store. Must be the same for all processes; changing it moves no files.",
    )
    cache_store: str = Field(
        "auto",
        pattern=_STORE,
        description="Cache for rate limits: auto (Redis if REDIS_URL is set, else memory, or the database "
        "with several API processes), memory, redis, database, or another plugin's store.",
    )
    phase: int = Field(
        1,
        ge=1,
        description="Rollout phase; the higher, the more services must be up, or /health answers 503.",
    )
    redis_url: Annotated[SecretStr | None, AfterValidator(redis_address)] = Field(
        None,
        validation_alias=env("REDIS_URL"),
        description="Redis server for the cache; when unset, memory, or the database with several "
        "API processes.",
    )
    jwt_secret: Annotated[SecretStr | None, AfterValidator(long_enough)] = Field(
        None,
        validation_alias=env("JWT_SECRET"),
        description="Key that signs access tokens, at least 32 bytes; generated and stored in "
        "PLATFORM_HOME when unset.",
    )
    jwt_previous_secret: Annotated[SecretStr | None, AfterValidator(long_enough)] = Field(
        None,
        validation_alias=env("JWT_PREVIOUS_SECRET"),
        description="Previous key, still accepted while you replace JWT_SECRET.",
    )
    jwt_expiration_minutes: int = Field(
        15,
        ge=1,
        le=1440,
        validation_alias=env("JWT_EXPIRATION_MINUTES"),
        description="Lifetime of an access token in minutes.",
    )
    jwt_refresh_grace_minutes: int = Field(
        720,
        ge=0,
        validation_alias=env("JWT_REFRESH_GRACE_MINUTES"),
        description="Minutes after expiry during which a token can still be refreshed; 0: not at all.",
    )
    jwt_session_max_hours: int = Field(
        24,
        ge=0,
        validation_alias=env("JWT_SESSION_MAX_HOURS"),
        description="Longest session in hours, counted from sign-in; 0: no limit.",
    )
    password_memory_mb: int = Field(
        64, ge=12, le=1024, description="MiB of memory to hash one password with: more is safer, and slower."
    )
    service_sync_token: Annotated[SecretStr | None, AfterValidator(long_enough)] = Field(
        None,
        validation_alias=env("SERVICE_SYNC_TOKEN"),
        description="Value of X-Service-Token that identifies a service on this machine or behind a trusted "
        "proxy, at least 32 bytes; off when unset.",
    )
    registration_mode: Literal["open", "closed"] = Field(
        "open", description="open: anyone may register an account; closed: nobody may."
    )
    outgoing_allowed: Annotated[str, AfterValidator(hosts_and_networks)] = Field(
        "", description="Private hosts and networks that outgoing calls may reach, separated by commas."
    )
    client_url: Annotated[str, AfterValidator(base_address)] = Field(
        "",
        validation_alias=env("PLATFORM_CLIENT_BASE_URL", "PLATFORM_CLIENT_URL"),
        description="Base address of the web client, for links in e-mail and on /, and after single sign-on.",
    )
    smtp_host: Annotated[str, AfterValidator(host_name)] = Field(
        "", description="Mail server; no e-mail is sent when unset."
    )
    smtp_port: int = Field(587, ge=1, le=65535, description="Port of the mail server.")
    smtp_tls: Literal["starttls", "tls", "none"] = Field(
        "starttls", description="Encryption to the mail server: starttls (port 587), tls (port 465) or none."
    )
    smtp_user: str = Field("", description="User name for the mail server, if it needs one.")
    smtp_password: SecretStr | None = Field(None, description="Password for the mail server.")
    smtp_timeout: float = Field(20, gt=0, le=300, description="Time limit in seconds for sending one e-mail.")
    mail_from: str = Field(
        "", description="Sender of e-mail: an address or 'Name <address>'; required with PLATFORM_SMTP_HOST."
    )
    password_reset_minutes: int = Field(
        60, ge=1, le=1440, description="Minutes that a password reset link is valid."
    )
    strict_answers: bool = Field(
        False,
        description="Also answer 500 if a response model contains something that doesn't match its "
        "declaration; for testing plugins.",
    )
    rate_limit_enabled: bool = Field(
        True,
        validation_alias=env("RATE_LIMIT_ENABLED"),
        description="Whether requests are rate-limited; false also turns off the limits on "
        "sign-in and single routes.",
    )
    rate_limit_per_minute: int = Field(
        60,
        ge=1,
        validation_alias=env("RATE_LIMIT_PER_MINUTE"),
        description="Requests from one address without a token in 60 seconds.",
    )
    rate_limit_account_per_minute: int = Field(
        600,
        ge=1,
        validation_alias=env("RATE_LIMIT_ACCOUNT_PER_MINUTE"),
        description="Requests of one signed-in account or service in 60 seconds.",
    )
    account_streams: int = Field(
        100,
        ge=1,
        description="Streamed responses that one account may have open at the same time in one process, "
        "before further event streams (answers, followed jobs) are refused.",
    )
    auth_rate_limit_per_minute: int = Field(
        10,
        ge=1,
        validation_alias=env("AUTH_RATE_LIMIT_PER_MINUTE"),
        description="Sign-ins and registrations per client address in 60 seconds.",
    )
    trusted_proxy_cidrs: Annotated[str, AfterValidator(networks)] = Field(
        "",
        validation_alias=env("TRUSTED_PROXY_CIDRS"),
        description="Networks of proxies whose X-Forwarded-For and X-Service-Token are trusted, "
        "separated by commas.",
    )
    cors_allowed_origins: Annotated[str, AfterValidator(origins)] = Field(
        "*",
        validation_alias=env("CORS_ALLOWED_ORIGINS"),
        description="Origins that browsers may call from, separated by commas, or *.",
    )
    max_body_size_mb: _SIZE_MB = Field(
        2, description="Largest JSON body in MB, unless the route has its own limit."
    )
    max_proxy_body_size_mb: _SIZE_MB = Field(
        150,
        validation_alias=env("MAX_PROXY_BODY_SIZE_MB"),
        description="Largest body in MB that the gateway forwards.",
    )
    header_timeout: float = Field(
        10, gt=0, description="Time limit in seconds for receiving the headers of a request."
    )
    body_timeout: float = Field(
        30, gt=0, description="Seconds that a request body may pause, or lag behind 500 bytes per second."
    )
    send_timeout: float = Field(
        60,
        ge=1,
        le=86_400,
        description="Seconds after which a client that does not read its response is disconnected.",
    )
    shutdown_timeout: float = Field(
        20, ge=0, description="Seconds that running requests have to finish at shutdown."
    )
    dev_ports: bool = Field(
        False, description="Also serve each service on its own loopback port, 8001 to 8010."
    )
    workers: int = Field(1, ge=1, le=64, description="Number of API processes sharing the port.")
    plugins_disabled: str = Field("", description="Plugins not to load, separated by commas.")
    plugin_start_timeout: float = Field(
        15, gt=0, le=3600, description="Time limit in seconds for each step of a plugin's start."
    )
    worker_concurrency: int = Field(
        2, ge=1, le=64, description="Jobs per lane that one worker runs at the same time (large: one less)."
    )
    job_retention_days: int = Field(
        30, ge=1, le=3650, description="Days to keep finished jobs (one day for successful internal ones)."
    )
    time_zone: TimeZone = Field("UTC", description="Time zone of schedules, such as `Europe/Berlin`.")
    account_cache_seconds: float = Field(
        2,
        ge=0,
        le=2,
        description="Longest time in seconds that a cached account state is trusted without a "
        "notice of changes.",
    )
    health_cache_seconds: float = Field(
        0.25,
        ge=0,
        le=1,
        description="Time in seconds for which simultaneous and following requests share one examination of "
        "`/health`, `/readyz` and `/v1/status`.",
    )
    migrate_on_start: bool = Field(True, description="Whether to apply pending migrations at startup.")

    @field_validator("home")
    @classmethod
    def _absolute(cls, value: Path) -> Path:
        return value.expanduser().absolute()

    @field_validator("mail_from")
    @classmethod
    def _sender(cls, value: str, info: ValidationInfo) -> str:
        if info.data.get("smtp_host") and "@" not in parseaddr(value)[1]:
            raise ValueError("expected an address such as 'Platform <platform@example.org>'")
        return value

    @property
    def sqlalchemy_url(self) -> str:
        """The database address with the async driver that the platform uses."""
        if self.database_url is None:
            return f"sqlite+aiosqlite:///{self.home / 'platform.db'}"
        url = self.database_url.get_secret_value()
        scheme, _, rest = url.partition("://")
        driver = "sqlite+aiosqlite" if scheme.startswith("sqlite") else "postgresql+asyncpg"
        return f"{driver}://{rest}"


class SettingsLoader:
    """Reads settings classes from one environment, `variables`, and the sections of one `config.yaml`."""

    def __init__(self, environ: Mapping[str, str], sections: Mapping[str, Any] | None = None) -> None:
        self.variables = environ
        self._sections = dict(sections or {})
        self._known_names: set[str] = set()

    @classmethod
    def from_home(
        cls, environ: Mapping[str, str] | None = None, overrides: Mapping[str, str] | None = None
    ) -> SettingsLoader:
        """A loader for the real environment and for `PLATFORM_HOME/config.yaml`, if it exists.

        `overrides` are variables that win over the environment, from the command line.
        """
        environ = {**(os.environ if environ is None else environ), **(overrides or {})}
        home = Path(environ.get("PLATFORM_HOME") or ".platform").expanduser()
        return cls(environ, read_config(home / "config.yaml"))

    def load(self, owner: str, cls: type[S], stored: Mapping[str, Any] | None = None) -> S:
        """An instance of `cls` for `owner`. Raises StartupError naming each wrong field and its remedy.

        `stored` values, by field name, win over the environment (wire-facts 6.2, config merge order).
        """
        names = cls.env_names()
        self._known_names.update(variable for variables in names.values() for variable in variables)
        values = self._section(owner, cls)
        values.update({field: self.variables[variable] for field, variable in self._set_in(names).items()})
        values.update(stored or {})
        try:
            return cls.model_validate(values, by_name=True, by_alias=False)
        except ValidationError as error:
            raise StartupError(_explain(owner, names, error)) from None

    def sources(self, owner: str, cls: type[Settings]) -> dict[str, Source]:
        """Where the values come from, by field name; fields with their default value are left out."""
        found: dict[str, Source] = dict.fromkeys(self._section(owner, cls), "config.yaml")
        return {**found, **dict.fromkeys(self._set_in(cls.env_names()), "environment")}

    def unknown_variables(self, ignore: tuple[str, ...] = ()) -> Iterator[str]:
        """One sentence for each variable that looks like a setting but that no loaded class declares.

        That is every `PLATFORM_…` variable, and any other whose name is close to a setting that is not set.
        """
        unset = self._known_names.difference(self.variables)
        for name in sorted(set(self.variables) - self._known_names):
            if name.startswith(ignore):
                continue
            if name.startswith("PLATFORM_"):
                yield f"{name} is not a setting{_meant(name, self._known_names, quote='')}"
            elif setting := _intended(name, unset):
                yield f"{name} is not a setting; did you mean {setting}?"

    def unknown_sections(self, owners: Collection[str]) -> Iterator[str]:
        """One sentence for each section of `config.yaml` that belongs to none of the `owners`."""
        for name in sorted(set(self._sections) - set(owners)):
            yield f"config.yaml: no plugin is called '{name}'{_meant(name, owners)}"

    def _set_in(self, names: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
        """The strongest variable of the environment that sets each field; an empty one sets nothing."""
        found = {field: next(filter(self.variables.get, names[field]), None) for field in names}
        return {field: variable for field, variable in found.items() if variable is not None}

    def _section(self, owner: str, cls: type[Settings]) -> dict[str, Any]:
        section = self._sections.get(owner, {})
        if not isinstance(section, dict):
            raise StartupError(f"config.yaml: section '{owner}' must be a mapping of settings")
        unknown = sorted(set(section) - set(cls.model_fields))
        if unknown:
            hint = _meant(str(unknown[0]), cls.model_fields)
            raise StartupError(f"config.yaml: '{owner}.{unknown[0]}' is not a setting{hint}")
        return dict(section)


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


def _meant(name: str, known: Iterable[str], quote: str = "'") -> str:
    """A suggestion for an unknown name, as the end of a sentence; empty if nothing is close."""
    close = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {quote}{close[0]}{quote}?" if close else ""


def _intended(name: str, unset: Collection[str]) -> str | None:
    """The unset setting that an unprefixed variable may have been meant for."""
    prefixed = f"PLATFORM_{name}"
    if "_" in name and prefixed in unset:
        return prefixed
    similar = [known for known in unset if abs(len(known) - len(name)) <= 2]
    close = difflib.get_close_matches(name, similar, n=1, cutoff=_CLOSE)
    return close[0] if close else None


def _explain(owner: str, names: dict[str, tuple[str, ...]], error: ValidationError) -> str:
    """One sentence per wrong field, with its variables and the remedy; values are not repeated."""
    lines = []
    for problem in error.errors(include_url=False, include_input=False):
        said = _said(problem)
        if not problem["loc"]:  # a rule about several fields, which its text names
            lines.append(f"{said} (settings of '{owner}')")
            continue
        field = str(problem["loc"][0])
        variables = " or ".join(names.get(field, (field,)))
        lines.append(f"{variables} (setting '{owner}.{field}'): {said}")
    return "wrong settings: " + "; ".join(lines)


def _said(problem: ErrorDetails) -> str:
    bounds = problem.get("ctx", {})
    # For pydantic, a secret is a "Value", and its characters are items.
    if problem["type"] == "too_short" and bounds.get("field_type") == "Value":
        return f"must have at least {bounds['min_length']} characters"
    return problem["msg"].removeprefix("Value error, ")
