"""The rows of registered services (wire-facts 9.1)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from ipaddress import IPv6Address
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, field_validator
from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from builtin_plugins.platform_ops.models import RegisteredService
from kernel.sdk import Caller, NotFound, PageQuery, Unit, audit, utc_now


class ServiceNotFound(NotFound):
    code = "service_not_found"
    default_detail = "No such service is registered"


@dataclass(frozen=True)
class ServiceAddress:
    """Where a service listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def url(self, path: str) -> str:
        """The address of a path, which begins with a slash."""
        return f"http://{self}{path}"


class ServiceRegistration(BaseModel):
    """A service to register."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "service_name": "invoices",
                    "service_type": "http",
                    "host": "invoices.corp",
                    "port": 9000,
                    "health_check_url": "/health",
                    "metadata": {"team": "finance"},
                }
            ]
        }
    )

    service_name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,119}$")
    service_type: str = Field(min_length=1, max_length=120)
    host: str = Field(
        pattern=r"^[A-Za-z0-9:][A-Za-z0-9._:-]{0,252}$", description="A host name or an IP address."
    )
    port: int = Field(ge=1, le=65535)
    health_check_url: str = Field(
        "/health", pattern=r"^/[!-~]*$", max_length=500, description="A path on the service."
    )
    metadata: dict[str, Any] = Field(default_factory=dict)

    @field_validator("host")
    @classmethod
    def _one_host(cls, value: str) -> str:
        if ":" in value:
            try:
                IPv6Address(value)
            except ValueError:
                raise ValueError("must be a host name or an IP address; `port` is a separate field") from None
        return value

    @property
    def address(self) -> ServiceAddress:
        """Where it listens."""
        return ServiceAddress(self.host.lower(), self.port)


class ServiceOut(BaseModel):
    """A registered service."""

    service_name: str
    service_type: str
    host: str
    port: int
    health_check_url: str
    metadata: dict[str, Any]
    health_status: str = Field(description="`unknown`, `healthy` or `unhealthy`, as of the last check.")
    last_health_check: datetime | None
    registered_at: datetime

    @property
    def address(self) -> ServiceAddress:
        """Where it listens."""
        return ServiceAddress(self.host, self.port)


def register(unit: Unit, caller: Caller, body: ServiceRegistration) -> ServiceOut:
    """Store a service, replacing one of the same name."""
    unit.lock("platform_ops.services")
    row = unit.session.get(RegisteredService, body.service_name)
    before = None if row is None else {"address": str(ServiceAddress(row.host, row.port))}
    if row is None:
        row = RegisteredService(name=body.service_name)
        unit.session.add(row)
    row.type, row.host, row.port = body.service_type, body.address.host, body.port
    row.health_path, row.details = body.health_check_url, body.metadata
    row.health, row.checked_at = "unknown", None
    row.registered_at, row.registered_by = utc_now(), caller.principal.subject
    after = {"address": str(body.address)}
    if before != after:
        audit(
            unit, "service.registered", "service", row.name, before=before, after=after, origin=caller.origin
        )
    unit.session.flush()
    return _rendered(row)


def remove(unit: Unit, caller: Caller, name: str) -> None:
    """Forget a service. Raises ServiceNotFound."""
    row = unit.session.get(RegisteredService, name)
    if row is None:
        raise ServiceNotFound()
    before = {"address": str(ServiceAddress(row.host, row.port))}
    audit(unit, "service.removed", "service", name, before=before, origin=caller.origin)
    unit.session.delete(row)


def note_health(unit: Unit, service: ServiceOut, health: str) -> None:
    """Store the result of a health check, unless the service has moved since."""
    row = RegisteredService
    same = (row.name == service.service_name, row.host == service.host, row.port == service.port)
    unit.session.execute(update(row).where(*same).values(health=health, checked_at=utc_now()))


def find(session: Session, name: str) -> ServiceOut:
    """One service. Raises ServiceNotFound."""
    row = session.get(RegisteredService, name)
    if row is None:
        raise ServiceNotFound()
    return _rendered(row)


def everything(session: Session) -> list[ServiceOut]:
    """All services, by name."""
    return [_rendered(row) for row in session.scalars(select(RegisteredService).order_by("name"))]


def listed(session: Session, query: PageQuery) -> tuple[list[ServiceOut], int]:
    """A page of the services by name, and the number of all."""
    rows = session.scalars(select(RegisteredService).order_by("name").limit(query.limit).offset(query.offset))
    return [_rendered(row) for row in rows], count(session)


def count(session: Session) -> int:
    """How many services are registered."""
    return session.scalar(select(func.count()).select_from(RegisteredService)) or 0


def _rendered(row: RegisteredService) -> ServiceOut:
    return ServiceOut(
        service_name=row.name,
        service_type=row.type,
        host=row.host,
        port=row.port,
        health_check_url=row.health_path,
        metadata=row.details,
        health_status=row.health,
        last_health_check=row.checked_at,
        registered_at=row.registered_at,
    )
