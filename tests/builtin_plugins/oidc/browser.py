"""A browser: cookies by origin, redirects one after the other, fragments kept to itself.

It speaks to public names, `https://…`, which stand for servers on loopback: what a TLS proxy does.
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import parse_qs, urljoin, urlsplit

import aiohttp
from yarl import URL

_MOST = 20
HTML = "text/html,application/xhtml+xml"


@dataclass
class Page:
    """Where the browser stands, and what it got there."""

    url: str
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def fragment(self) -> dict[str, str]:
        return {name: values[0] for name, values in parse_qs(urlsplit(self.url).fragment).items()}

    @property
    def query(self) -> dict[str, str]:
        return {name: values[0] for name, values in parse_qs(urlsplit(self.url).query).items()}


class Browser:
    """One person's browser. `hosts` says which server a public origin stands for."""

    def __init__(self, session: aiohttp.ClientSession, hosts: dict[str, str]) -> None:
        self._session = session
        self._hosts = hosts
        self.jar = aiohttp.CookieJar()
        self.visited: list[Page] = []

    def become(self, person: str | None, origin: str) -> None:
        self.jar.clear(lambda cookie: cookie.key == "person")
        if person is not None:
            self.jar.update_cookies({"person": person}, URL(origin))

    def cookie(self, name: str, url: str) -> str | None:
        morsel = self.jar.filter_cookies(URL(url)).get(name)
        return morsel.value if morsel else None

    def plant(self, name: str, value: str, url: str) -> None:
        """Have another cookie for `url`, as an attacker with a neighbouring host might arrange."""
        self.jar.clear(lambda cookie: cookie.key == name)
        self.jar.update_cookies({name: value}, URL(url).origin())

    async def load(self, url: str, *, method: str = "GET", accept: str = HTML, data: object = None) -> Page:
        parts = urlsplit(url)
        server = self._hosts[f"{parts.scheme}://{parts.netloc}"]
        target = f"{server}{parts.path}" + (f"?{parts.query}" if parts.query else "")
        cookies = self.jar.filter_cookies(URL(url))
        headers = {"Accept": accept, "X-Forwarded-Proto": parts.scheme}
        if cookies:
            headers["Cookie"] = "; ".join(f"{name}={cookie.value}" for name, cookie in cookies.items())
        async with self._session.request(
            method, URL(target, encoded=True), headers=headers, data=data, allow_redirects=False
        ) as answer:
            self.jar.update_cookies(answer.cookies, URL(url))
            page = Page(url, answer.status, dict(answer.headers), await answer.read())
            self.cookies_set = list(answer.headers.getall("Set-Cookie", ()))
        self.visited.append(page)
        return page

    async def go(self, url: str, *, until: str | None = None, **options: object) -> Page:
        """Follow redirects: to a page that answers, to `until` (not requested), or to a client's page."""
        page = await self.load(url, **options)  # type: ignore[arg-type]
        for _ in range(_MOST):
            if page.status not in (302, 303):
                return page
            following = urljoin(page.url, page.headers["Location"])
            if urlsplit(following).path == "/auth/callback" or (until and following.startswith(until)):
                return Page(following, 0, page.headers, b"")
            page = await self.load(following)
        raise AssertionError("the redirects do not end")
