"""What is served: the page at each address, files that never change, a policy that lets in no other code."""

from __future__ import annotations

import gzip
import re
from pathlib import Path
from urllib.parse import urljoin

import pytest

from kernel.testing import Reply, Start, eventually
from tests.fakes.processes import served_platform, without_plugins

BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
PLAIN = ("pages/documents/page.js", "main.js", "styles.css", "icon.svg")


def asset_folder(page: Reply) -> str:
    found = re.search(rb'src="(?:\.\./|\./)*(static/client/[0-9a-f]{16})/main\.js"', page.body)
    assert found is not None
    return f"/{found[1].decode()}"


async def test_the_gateway_leads_to_the_client(start_platform: Start) -> None:
    """A browser at `/` gets to the client, whose page stands for all its addresses; a program gets JSON."""
    running = await start_platform("web_client")
    first = await running.anonymous.get("/", headers=BROWSER, allow_redirects=False)
    assert (first.status, first.headers["Location"], first.headers["Vary"]) == (302, "app", "Accept")
    for_programs = (await running.anonymous.get("/")).json()
    assert (for_programs["service"], for_programs["client"]) == ("api-gateway", "/app")
    pages = [await running.anonymous.get(path, headers=BROWSER) for path in ("/app", "/app/documents/x/y")]
    assert {page.status for page in pages} == {200}
    assert pages[0].body == pages[1].body.replace(b"../../../", b"./")
    assert b'<meta name="platform-base" content="/app">' in pages[0].body


async def test_policy(start_platform: Start) -> None:
    """No inline script, no eval, no other host, no frame; the page has neither inline script nor style."""
    running = await start_platform("web_client")
    page = await running.anonymous.get("/app")
    policy = dict(part.strip().split(" ", 1) for part in page.headers["Content-Security-Policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert policy["frame-ancestors"] == policy["base-uri"] == policy["form-action"] == "'none'"
    assert re.findall(rb"<script(?![^>]*src=)|<style|style=|https?://", page.body) == []
    assert page.headers["Cache-Control"] == "no-cache"
    assert page.headers["Referrer-Policy"] == "no-referrer"


async def test_files(start_platform: Start) -> None:
    """Files may be kept for ever under an address with their digest, and come compressed if wanted."""
    running = await start_platform("web_client")
    folder = asset_folder(await running.anonymous.get("/app"))
    for name in PLAIN:
        plain = await running.anonymous.get(f"{folder}/{name}", headers={"Accept-Encoding": "identity"})
        packed = await running.anonymous.get(f"{folder}/{name}", headers={"Accept-Encoding": "gzip"})
        assert (plain.status, packed.headers["Content-Encoding"]) == (200, "gzip"), name
        assert gzip.decompress(packed.body) == plain.body
        assert "immutable" in plain.headers["Cache-Control"]
        assert plain.headers["X-Content-Type-Options"] == "nosniff"
    script = await running.anonymous.get(f"{folder}/main.js")
    assert script.headers["Content-Type"] == "text/javascript; charset=utf-8"


async def test_only_its_files(start_platform: Start) -> None:
    """A name is looked up among the files, never on the disk; another release's files are gone."""
    running = await start_platform("web_client")
    folder = asset_folder(await running.anonymous.get("/app"))
    for name in ("../plugin.py", "..%2fplugin.py", "%2e%2e/plugin.py", "/etc/passwd", "vendor", "none.js"):
        assert (await running.anonymous.get(f"{folder}/{name}")).status == 404, name
    assert (await running.anonymous.get("/static/client/0123456789abcdef/main.js")).status == 404


async def test_many_files_are_no_flood(start_platform: Start) -> None:
    """The gateway's limit for addresses doesn't count the page's files."""
    env = {"RATE_LIMIT_ENABLED": "true", "RATE_LIMIT_PER_MINUTE": "5"}
    running = await start_platform("web_client", env=env)
    folder = asset_folder(await running.anonymous.get("/app"))
    answers = [await running.anonymous.get(f"{folder}/main.js") for _ in range(20)]
    assert {answer.status for answer in answers} == {200}


async def test_not_at_the_gateway(start_platform: Start) -> None:
    """With the setting off, the gateway has its plain page, and nothing at /app; nor does it link to a port
    that this process doesn't serve.
    """
    running = await start_platform("web_client", env={"PLATFORM_WEB_CLIENT_AT_GATEWAY": "false"})
    page = await running.anonymous.get("/", headers=BROWSER)
    assert (page.status, b"This is the address of the API." in page.body) == (200, True)
    assert (await running.anonymous.get("/app")).status == 404
    assert (await running.anonymous.get("/")).json()["client"] is None


async def test_a_configured_address_wins(start_platform: Start) -> None:
    """The setting that links in e-mail use is where `/` leads programs, too."""
    env = {"PLATFORM_WEB_CLIENT_AT_GATEWAY": "false", "PLATFORM_CLIENT_BASE_URL": "https://ask.example.org"}
    running = await start_platform("web_client", env=env)
    assert (await running.anonymous.get("/")).json()["client"] == "https://ask.example.org"


async def test_only_on_its_own_port(tmp_path: Path) -> None:
    """`/` links to the port, on the host that the browser asked for, where the client then is."""
    env = {
        **without_plugins("web_client"),
        "PLATFORM_WEB_CLIENT_AT_GATEWAY": "false",
        "PLATFORM_WEB_CLIENT_PORT": "0",
    }
    async with served_platform(tmp_path / "home", "--no-worker", env=env) as served:

        async def client(**headers: str) -> str | None:
            found: str | None = (await served.get("/", headers=headers))[1]["client"]
            return found

        await eventually(lambda: "is ready" in served.process.output())  # the other port comes after
        here = await client()
        assert here is not None
        port = here.rpartition(":")[2]
        assert here == f"http://127.0.0.1:{port}"
        async with served.session.get(here) as page:
            assert b'name="platform-base"' in await page.read()
        async with served.session.get(served.url, headers=BROWSER) as page:
            assert f'<a href="{here}">Client</a>' in await page.text()
        assert await client(Host="box.example:8000") == f"http://box.example:{port}"
        assert await client(Host="[::1]:8000") == f"http://[::1]:{port}"
        assert await client(Host='"><script>') is None
        for through in ("Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "Via"):
            assert await client(Host="box.example", **{through: "https"}) is None


async def test_its_own_port(start_platform: Start) -> None:
    """At its own root every address is the page, which knows the API by the host that was asked for."""
    running = await start_platform("web_client", only="web-client", env={"PLATFORM_PORT": "8000"})
    page = await running.anonymous.get("/documents/1", headers={"Host": "box.example:8009"})
    assert (page.status, page.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert b'<meta name="platform-api" content="http://box.example:8000">' in page.body
    assert "connect-src 'self' http://box.example:8000;" in page.headers["Content-Security-Policy"]
    assert (await running.anonymous.get("/health")).json()["service"] == "web-client"
    hostile = await running.anonymous.get("/", headers={"Host": "x; script-src *"})
    assert "script-src *" not in hostile.headers.get("Content-Security-Policy", "")


async def test_a_named_api(start_platform: Start) -> None:
    """Behind a proxy, the setting says where the API is."""
    env = {"PLATFORM_WEB_CLIENT_API_URL": "https://api.example.org/"}
    running = await start_platform("web_client", env=env)
    page = await running.anonymous.get("/app")
    assert b'content="https://api.example.org"' in page.body
    assert "connect-src 'self' https://api.example.org;" in page.headers["Content-Security-Policy"]


@pytest.mark.parametrize("path", ["/app", "/app/", "/app/documents/x", "/app/a%2Fb/c"])
async def test_addresses_fit_below_any_path(start_platform: Start, path: str) -> None:
    """From the page upwards: a proxy may take a path away before it passes a request on."""
    running = await start_platform("web_client")
    page = await running.anonymous.get(path)
    (script,) = re.findall(rb'src="([^"]*)/main\.js"', page.body)
    whole = urljoin(f"https://www.example.org/below/this{path}", script.decode())
    assert whole == f"https://www.example.org/below/this{asset_folder(page)}"
    assert re.findall(rb'(?:href|src)="/', page.body) == []


async def test_a_page_stays_small(start_platform: Start) -> None:
    running = await start_platform("web_client")
    usual = len((await running.anonymous.get("/app/documents")).body)
    assert len((await running.anonymous.get("/app" + "/" * 3000)).body) < usual + 1000
