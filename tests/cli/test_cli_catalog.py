"""`platformctl plugins install NAME` through a catalog: this platform's own, and that of another instance."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from subprocess import CompletedProcess

import pytest
import pytest_asyncio

from kernel.testing import Actor, platforms
from tests.builtin_plugins.marketplace.marketplace_support import bring
from tests.builtin_plugins.tenancy.tenancy_support import somebody
from tests.cli.environments import Environment
from tests.cli.packages import Package

pytestmark = pytest.mark.asyncio(loop_scope="session")

PLUGINS = ("tenancy", "marketplace", "dependency_graph")
TIDES = """
from pydantic import BaseModel
from kernel.sdk import ADMIN, AUTHENTICATED, Action, Permission, Plugin, RouteTable, hookimpl

routes = RouteTable("Tides")

@routes.get("/v1/tides", access=ADMIN, returns=dict)
async def tides(ctx):
    '''Show the tides.'''
    return {}

async def tell(ctx, parameters):
    return {}

class Nothing(BaseModel):
    pass

class ThePlugin(Plugin):
    name = "{name}"
    version = "{version}"
    outgoing_hosts = ("tides.example.org",)

    @hookimpl
    def register_routes(self):
        return [routes]

    @hookimpl
    def register_actions(self):
        return [Action("tell", "Tell the tides", Nothing, tell, access=AUTHENTICATED, tier="pro")]

    @hookimpl
    def register_permissions(self):
        return [Permission("tides.read", "Read the tides")]
"""


@dataclass(frozen=True)
class Catalog:
    """A platform with a catalog that names packages, and a folder with their wheels."""

    admin: Actor
    home: Path
    wheels: Path

    async def edge(self, source: str, target: str, kind: str) -> None:
        query = {"plugin_id": source, "depends_on": target, "dependency_type": kind}
        answer = await self.admin.post("/v1/graph/dependencies", params=query)
        assert answer.status == 200, answer.body

    async def plugin(self, name: str, **fields: str) -> str:
        return str((await bring(self.admin, self.admin, "approved", name=name, **fields))["id"])

    async def install(
        self, environment: Environment, name: str, *options: str, address: str | None = None
    ) -> CompletedProcess[str]:
        """`plugins install` through this catalog: the platform's own, or the one at its address."""
        links = ("--offline", "--find-links", str(self.wheels))
        if address is not None:
            links = (*links, "--from", address)
        home = self.home if address is None else environment.home
        here = replace(environment, home=home, built_in=PLUGINS)
        return await asyncio.to_thread(here.plugins, "install", name, *links, *options)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def catalog(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Catalog]:
    """A catalog with plugins that can be installed, and some that can't."""
    home, wheels = tmp_path_factory.mktemp("catalog"), tmp_path_factory.mktemp("wheels")
    Package("acme-tides", version="1.4", body=TIDES).wheel(wheels)
    Package("acme-tides", version="2.0", body=TIDES).wheel(wheels)
    async with platforms(home) as start:
        running = await start(*PLUGINS)
        made = Catalog(await somebody(running, role="admin"), home, wheels)
        tides = await made.plugin(
            "Tide tables", package="acme-tides", version_range=">=1.2,<2", base_tier="pro"
        )
        await made.plugin("Bare", current_version="1")
        await made.plugin("Broken range", package="acme-tides", version_range="<>1")
        needy = await made.plugin("Needy", package="acme-tides")
        await made.edge(needy, tides, "requires")
        hostile = await made.plugin("Hostile", package="acme-tides")
        own = (await made.admin.get("/v1/marketplace/plugins?limit=100")).json()["plugins"]
        ids = {one["name"]: one["id"] for one in own}
        await made.edge(hostile, ids["marketplace"], "conflicts_with")
        yield made


def check_shown(shown: str) -> None:
    """What the catalog and the graph say, what the plugin declares, and what pip would do."""
    said = " ".join(shown.split())
    for text in (
        "acme_tides 1.4",
        "acme-tides<2,>=1.2; dependencies: resolved",
        "GET /v1/tides (admin)",
        "tell (authenticated)",
        "jobs none",
        "events none",
        "tides.read",
        "outgoing hosts tides.example.org",
        "tier pro (the catalog says pro)",
        "pip installs acme-tides 1.4 (new); no other package changes",
    ):
        assert text in said, (text, said)


@pytest.mark.long
async def test_what_is_shown_first(catalog: Catalog, environment: Environment) -> None:
    """Package and versions come from another instance's catalog; a trial changes nothing."""
    shown = await catalog.install(environment, "Tide tables", "--dry-run", address=catalog.admin.running.url)
    assert shown.returncode == 0, shown.stderr
    check_shown(shown.stdout)
    assert "acme-tides 1.4" in shown.stderr
    assert environment.installed() == set()


@pytest.mark.long
async def test_installing(
    catalog: Catalog, environment: Environment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder of wheels is index enough; the range of the platform's own catalog holds.

    A name is a name, whatever folder lies here.
    """
    monkeypatch.chdir(tmp_path)
    (tmp_path / "Tide tables").mkdir()
    done = await catalog.install(environment, "Tide tables", "--yes")
    assert done.returncode == 0, done.stderr
    check_shown(done.stdout)
    assert "plugin 'acme_tides' starts" in done.stderr
    assert environment.installed() == {"acme_tides"}
    again = await catalog.install(environment, "Tide tables")
    assert "already installed" in again.stderr


@pytest.mark.parametrize(
    ("name", "why", "elsewhere"),
    [
        ("Needy", "Tide tables", True),
        ("Needy", "Tide tables", False),
        ("Hostile", "marketplace", True),
        ("Hostile", "marketplace", False),
        ("Bare", "pip package", False),
        ("Broken range", "range", False),
    ],
)
async def test_what_the_catalog_rules_out(
    catalog: Catalog, environment: Environment, name: str, why: str, elsewhere: bool
) -> None:
    """Missing dependencies, conflicts, and listings that pip can't install are refused at once."""
    address = catalog.admin.running.url if elsewhere else None
    result = await catalog.install(environment, name, address=address)
    assert (result.returncode, environment.installed()) == (4, set())
    assert why in " ".join(result.stderr.split())


async def test_wrong_addresses(catalog: Catalog, environment: Environment) -> None:
    """Another instance's catalog that has no such plugin, that is none, or that does not answer."""
    url = catalog.admin.running.url
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        nobody = f"http://127.0.0.1:{closed.getsockname()[1]}"
        for address, code, why in (
            (url, 3, "has no plugin 'Nothing'"),
            (f"{url}/v1/nothing", 1, "is not a platform with a catalog"),
            (nobody, 1, "no platform answers at"),
            ("file:///etc", 1, "is not an address"),
        ):
            result = await catalog.install(environment, "Nothing", address=address)
            assert (result.returncode, why in " ".join(result.stderr.split())) == (code, True), result.stderr
