"""Tenancy at scale: the permission check of a request, members and effective permissions, by size.

`python -m tests.benchmarks.tenancy [sqlite|postgresql] [factors]` (default: sqlite, 0.1 1 3). At the factor 1
there are 10,000 accounts, 1,000 teams, and 500 organizations six deep; one organization has half of all
accounts. A tenth of the accounts have a custom role with groups three deep. The check is measured through the
hook `decide_access`, answers over HTTP by one client in the same process.
"""

from __future__ import annotations

import asyncio
import random
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from sqlalchemy import insert

from builtin_plugins.tenancy import models
from builtin_plugins.tenancy.access.remembered import EVERYBODY, TOPIC, lineage_of
from builtin_plugins.tenancy.permissions import SETTINGS_MANAGE
from kernel import hookspecs
from kernel.sdk import TOKENS, Account, Principal, Unit, permission, utc_now
from kernel.testing import Actor, Running, platforms, postgres_database
from tests.benchmarks.table import Row, print_table

ACCOUNTS, TEAMS, LEVELS = 10_000, 1_000, (1, 4, 20, 75, 150, 250)
ROLES = 50
ACTIVE = 100  # accounts whose requests come while their standing is remembered
CHECKS = 20_000
ANSWERS = 200
BLOCK = 2_000


@dataclass
class World:
    """Who is where: the ids that questions are asked about."""

    accounts: int
    organizations: int
    lineages: dict[int, list[int]]
    homes: dict[int, int]
    biggest: int


def tree(factor: float) -> dict[int, list[int]]:
    """By organization its lineage, itself first; every level has its share of children."""
    lineages: dict[int, list[int]] = {}
    above: list[int] = []
    for count in LEVELS:
        level = range(len(lineages) + 1, len(lineages) + 1 + max(1, round(count * factor)))
        for place, number in enumerate(level):
            lineages[number] = [number, *(lineages[above[place % len(above)]] if above else [])]
        above = list(level)
    return lineages


async def fill(running: Running, factor: float) -> World:
    """Write the rows in bulk."""
    chance = random.Random(7)
    accounts, teams = round(ACCOUNTS * factor), round(TEAMS * factor)
    lineages = tree(factor)
    last = len(lineages)
    homes = {user: last if user % 2 else chance.randint(1, last) for user in range(1, accounts + 1)}
    roles = {user: "owner" if user <= 20 else "admin" if user % 50 == 0 else "member" for user in homes}
    now = utc_now()
    rows: list[tuple[Any, list[dict[str, Any]]]] = [
        (Account, [_account(user) for user in homes]),
        (
            models.Organization,
            [
                {"name": f"Org {one}", "slug": f"org-{one}", "parent_id": line[1] if line[1:] else None}
                for one, line in lineages.items()
            ],
        ),
        (
            models.OrganizationAncestor,
            [
                {"organization_id": one, "ancestor_id": above, "distance": distance}
                for one, line in lineages.items()
                for distance, above in enumerate(line)
            ],
        ),
        (
            models.Membership,
            [
                {"organization_id": place, "user_id": user, "org_role": roles[user], "joined_at": now}
                for user, place in homes.items()
            ],
        ),
        (models.Team, [{"name": f"T{n}", "name_key": f"t{n}"} for n in range(teams)]),
        (
            models.TeamMember,
            [
                {"team_id": team, "user_id": user, "team_role": "member"}
                for user in homes
                for team in {1 + user % teams, 1 + user * 7 % teams}
            ],
        ),
        *_custom_roles(homes),
    ]
    for table, values in rows:
        for start in range(0, len(values), BLOCK):
            await running.platform.database.write(_insert, table, values[start : start + BLOCK])
    return World(accounts, last, lineages, homes, last)


def _insert(unit: Unit, table: Any, values: list[dict[str, Any]]) -> None:
    unit.session.execute(insert(table), values)


def _account(user: int) -> dict[str, Any]:
    name, email = f"user-{user}", f"user-{user}@example.org"
    return {"username": name, "username_key": name, "email": email, "email_key": email, "password_hash": "x"}


def _custom_roles(homes: dict[int, int]) -> list[tuple[Any, list[dict[str, Any]]]]:
    """Roles of the root, each with a key of its own and a chain of three groups; a tenth have one."""
    groups = range(1, 3 * ROLES + 1)
    first = 4  # the built-in roles come before
    named = [{"organization_id": 1, "name": f"G{n}", "name_key": f"g{n}"} for n in groups]
    return [
        (models.PermissionGroup, named),
        (models.GroupPermission, [{"group_id": n, "permission_key": "org.audit.read"} for n in groups]),
        (models.GroupChild, [{"group_id": n, "child_group_id": n + 1} for n in groups if n % 3]),
        (
            models.Role,
            [{"organization_id": 1, "name": f"R{n}", "name_key": f"r{n}"} for n in range(ROLES)],
        ),
        (
            models.RolePermission,
            [{"role_id": first + n, "permission_key": "org.settings.manage"} for n in range(ROLES)],
        ),
        (models.RoleGroup, [{"role_id": first + n, "group_id": 1 + 3 * n} for n in range(ROLES)]),
        (
            models.RoleAssignment,
            [
                {"organization_id": place, "user_id": user, "role_id": first + user % ROLES}
                for user, place in homes.items()
                if user % 10 == 0
            ],
        ),
    ]


async def timed(count: int, call: Callable[[int], Awaitable[Any]]) -> list[float]:
    """Milliseconds of each of `count` calls, sorted."""
    took = []
    for number in range(count):
        started = time.perf_counter()
        await call(number)
        took.append((time.perf_counter() - started) * 1000)
    return sorted(took)


def pick(sorted_values: Sequence[float], share: float) -> float:
    """A percentile."""
    return sorted_values[int(share * (len(sorted_values) - 1))]


async def checks(running: Running, world: World) -> dict[str, list[float]]:
    """The hook's answer in the own organization, remembered or read again, and in one of strangers."""
    chance = random.Random(8)
    ctx = SimpleNamespace(platform=running.platform)
    access = permission(SETTINGS_MANAGE, within="org_id")
    everybody = [
        Principal("user", str(user), user, f"user-{user}", "user") for user in range(1, world.accounts + 1)
    ]
    active = chance.sample(everybody, min(ACTIVE, len(everybody)))

    async def check(principal: Principal, place: int | None = None) -> None:
        params = {"org_id": place or world.homes[principal.id or 0]}
        await running.platform.hooks.ask(
            hookspecs.decide_access, ctx=ctx, principal=principal, access=access, params=params
        )

    async def anew(number: int) -> None:
        running.platform.notices.deliver(TOPIC, EVERYBODY)
        await check(everybody[number * 31 % len(everybody)])

    async def again(_number: int) -> None:
        await check(chance.choice(active))

    async def elsewhere(_number: int) -> None:
        await check(chance.choice(active), chance.randint(1, world.organizations))

    for place in range(1, world.organizations + 1):
        await lineage_of(running.platform, place)
    cold = await timed(1000, anew)
    for principal in active:
        await check(principal)
    return {
        "warm": await timed(CHECKS, again),
        "standing read anew": cold,
        "refused to strangers": await timed(1000, elsewhere),
    }


async def answers(running: Running, world: World) -> dict[str, list[float]]:
    """Whole answers over HTTP, to the owner of everything."""
    await running.platform.database.write(
        lambda unit: unit.session.add(models.Membership(organization_id=1, user_id=1, org_role="owner"))
    )
    boss = await running.platform.database.read(lambda session: session.get_one(Account, 1))
    actor = Actor(running, running.platform.resource(TOKENS).mint(boss, {}))
    members = f"/v1/organizations/{world.biggest}/members"
    inside = [user for user, place in world.homes.items() if place == world.biggest]

    async def get(path: str) -> None:
        answer = await actor.get(path)
        assert answer.status == 200, answer.body

    return {
        "members, first 50": await timed(ANSWERS, lambda _: get(f"{members}?limit=50")),
        "members, last 50": await timed(ANSWERS, lambda _: get(f"{members}?offset={len(inside) - 50}")),
        "effective permissions": await timed(
            ANSWERS, lambda n: get(f"{members}/{inside[n * 17 % len(inside)]}/effective-permissions")
        ),
    }


@asynccontextmanager
async def serving(dialect: str) -> AsyncIterator[Running]:
    """A fresh platform with tenancy alone."""
    with ExitStack() as stack:
        url = stack.enter_context(postgres_database()) if dialect == "postgresql" else None
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        async with platforms(Path(folder)) as start:
            yield await start("tenancy", env={"DATABASE_URL": url})


async def measure(dialect: str, factor: float) -> list[Row]:
    """The rows of one size."""
    async with serving(dialect) as running:
        world = await fill(running, factor)
        size = f"{world.accounts:,} accounts, {world.organizations} organizations"
        rows = []
        for what, took in (await checks(running, world)).items():
            p99 = pick(took, 0.99)
            figure = f"{pick(took, 0.5):.3f} / {p99:.3f} ms"
            wanted, met = ("< 1 ms", p99 < 1) if what == "warm" else ("-", True)
            rows.append(Row("T1", f"permission check, {what}, p50 / p99 ({size})", figure, wanted, met))
        for what, took in (await answers(running, world)).items():
            p99 = pick(took, 0.99)
            figure = f"{pick(took, 0.5):.1f} / {p99:.1f} ms"
            rows.append(Row("T2", f"{what}, p50 / p99 ({size})", figure, "< 50 ms", p99 < 50))
        return rows


async def main(dialect: str = "sqlite", *factors: str) -> None:
    """All sizes."""
    rows = [row for factor in factors or ("0.1", "1", "3") for row in await measure(dialect, float(factor))]
    print_table(rows)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
