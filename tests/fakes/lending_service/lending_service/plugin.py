"""A lending desk: a service under a name that the platform has never heard of."""

from __future__ import annotations

import os
from collections.abc import Sequence

from pydantic import BaseModel, Field

from kernel.sdk import (
    AUTHENTICATED,
    PUBLIC,
    Context,
    HealthCheck,
    Mount,
    Platform,
    Plugin,
    RouteTable,
    Service,
    hookimpl,
)

NAME = "lending-desk"
PORT = int(os.environ.get("LENDING_PORT", "8742"))
routes = RouteTable("Lending")


class Loan(BaseModel):
    """Something that is lent."""

    item: str = Field(min_length=1, max_length=100, examples=["a bicycle"])


@routes.get("/loans", access=PUBLIC, returns=list[Loan])
async def list_loans(ctx: Context) -> list[Loan]:
    """List what is lent."""
    return [Loan(item="a bicycle")]


@routes.post("/loans", access=AUTHENTICATED, body=Loan, returns=Loan, status=201)
async def lend(ctx: Context, body: Loan) -> Loan:
    """Lend something."""
    return body


async def _is_open(_platform: Platform) -> None:
    """The desk is always open."""


class LendingPlugin(Plugin):
    """Offers the service `lending-desk` under `/v1/lending`."""

    name = "lending"
    version = "1.0.0"

    @hookimpl
    def register_services(self) -> Sequence[Service]:
        return [Service(NAME, [routes], self.version, mounts=(Mount("/v1/lending", ""),), port=PORT)]

    @hookimpl
    def register_health_checks(self) -> Sequence[HealthCheck]:
        return [HealthCheck("desk", _is_open, critical=True, service=NAME)]


class BranchPlugin(Plugin):
    """Wants a prefix below the desk's."""

    name = "lending_branch"
    after = ("lending",)

    @hookimpl
    def register_services(self) -> Sequence[Service]:
        return [Service("lending-branch", [RouteTable("Branch")], mounts=("/v1/lending/branch",))]
