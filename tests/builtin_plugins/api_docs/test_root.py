"""`GET /`: whoever opens the address learns what it is."""

from __future__ import annotations

from kernel.testing import Start

BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}


async def test_a_program(start_platform: Start) -> None:
    running = await start_platform("api_docs")
    answer = await running.anonymous.get("/")
    found = answer.json()
    assert (answer.status, found["service"], found["client"]) == (200, "api-gateway", None)
    for name in ("docs", "redoc", "openapi", "health", "status"):
        assert (await running.anonymous.get(found[name])).status == 200


async def test_a_browser(start_platform: Start) -> None:
    """A page without anything from elsewhere, with a link to the client where there is one."""
    running = await start_platform("api_docs", env={"PLATFORM_CLIENT_BASE_URL": "https://ask.example.org/"})
    answer = await running.anonymous.get("/", headers=BROWSER)
    page = answer.body.decode()
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    assert answer.headers["Vary"] == "Accept"
    assert 'href="https://ask.example.org"' in page
    for path in ("/docs", "/openapi.json", "/health"):
        assert f'href="{path}"' in page
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    assert "src=" not in page
