"""The pages of the API documents and their assets."""

from __future__ import annotations

import re
from collections.abc import Callable
from html.parser import HTMLParser

import pytest
from yarl import URL

from builtin_plugins.api_docs.pages import DOCS_CSP, STATIC_DIR, redoc_page, swagger_page
from kernel.testing import Start
from tests.fakes.echo import EchoPlugin

Page = Callable[..., str]


class Links(HTMLParser):
    """Collects what a page loads, its inline scripts and styles, and its data attributes."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.inline: list[str] = []
        self.data: dict[str, str] = {}
        self._inside = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._inside = tag
        for name, value in attrs:
            if name == "src" or (name == "href" and tag == "link"):
                self.loads.append(value or "")
            if name.startswith("data-"):
                self.data[name] = value or ""
            if name.startswith("on") or name == "style":
                self.inline.append(f"{name}={value}")

    def handle_data(self, data: str) -> None:
        if self._inside in ("script", "style") and data.strip():
            self.inline.append(data)


@pytest.mark.parametrize("page", [swagger_page, redoc_page])
def test_page_loads_existing_local_assets_only(page: Page) -> None:
    """Every asset is a file of the package under the given address; nothing is inline."""
    links = Links(page("/openapi.json", "/static/"))
    assert links.inline == []
    assert len(links.loads) >= 4
    for address in links.loads:
        assert address.startswith("/static/")
        assert (STATIC_DIR / address.removeprefix("/static/")).is_file()


@pytest.mark.parametrize("page", [swagger_page, redoc_page])
def test_addresses_are_escaped(page: Page) -> None:
    """An address or title with markup in it stays text."""
    html = page('/x?a=1&b="><script>alert(1)</script>', "/s", title="<b>")
    links = Links(html)
    assert links.data["data-openapi-url"] == '/x?a=1&b="><script>alert(1)</script>'
    assert links.inline == []
    assert "<b>" not in html


def test_policy_allows_no_other_host() -> None:
    """The policy names no host and allows no inline or evaluated script."""
    assert "//" not in DOCS_CSP
    scripts = next(part for part in DOCS_CSP.split("; ") if part.startswith("script-src"))
    assert scripts == "script-src 'self'"


def test_assets_carry_their_licenses_and_call_no_maker() -> None:
    """Both packages come with their license; known calls to their makers' hosts are gone."""
    for folder in ("swagger-ui", "redoc"):
        assert (STATIC_DIR / folder / "LICENSE").stat().st_size > 500
    redoc = (STATIC_DIR / "redoc" / "redoc.standalone.js").read_text(encoding="utf-8")
    assert "cdn.redoc.ly" not in redoc
    assert "validatorUrl: null" in (STATIC_DIR / "swagger-init.js").read_text(encoding="utf-8")


def test_styles_load_nothing_from_elsewhere() -> None:
    for path in STATIC_DIR.rglob("*.css"):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"@import|url\(\s*[\"']?(?:https?:)?//", text)


def test_readme_names_the_versions() -> None:
    readme = (STATIC_DIR / "README.md").read_text(encoding="utf-8")
    bundle = (STATIC_DIR / "swagger-ui" / "swagger-ui-bundle.js").read_text(encoding="utf-8")
    version = re.search(r"`swagger-ui-dist` \| ([0-9.]+)", readme)
    assert version is not None
    assert version[1] in bundle


NO_ASSETS = (
    *("nothing.js", "swagger-ui", "", "page.css/", "a" * 5000, "a%00.css"),
    *("..%2f..%2fapp.py", "%2e%2e/docs.py", "..\\docs.py", "/etc/passwd"),
)


async def test_unknown_assets(start_platform: Start) -> None:
    """What is no asset is a plain 404 with its reason: folders, other files, names that no file can have."""
    running = await start_platform("api_docs", EchoPlugin)
    for name in NO_ASSETS:
        async with running.session.get(URL(f"{running.url}/static/docs/{name}", encoded=True)) as answer:
            assert answer.status == 404, name
            assert await answer.json() == {"detail": "Not found", "code": "not_found"}
    assert (await running.anonymous.get("/static/docs/page.css")).headers["Content-Type"] == "text/css"
