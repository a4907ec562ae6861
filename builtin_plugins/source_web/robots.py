"""What a site's robots.txt (RFC 9309) asks for."""

from __future__ import annotations

from typing import Final

from yarl import URL

from builtin_plugins.sources.api import SourceUnreachable, call_server
from kernel.sdk import CallLimits, OutgoingClient, OutgoingError

AGENT: Final = "Platform"
"""The name by which a robots.txt may address this reader; requests carry it, too."""
_LIMITS: Final = CallLimits(total_seconds=30, body_bytes=512 * 1024, redirects=5)
_LONGEST_PAUSE: Final = 60.0


class SiteRules:
    """What may be read, at which pace, and where the sitemaps are."""

    def __init__(self, text: str) -> None:
        from protego import Protego  # many processes never read a site

        self._rules = Protego.parse(text)

    def allow(self, url: URL) -> bool:
        """Whether a page may be read."""
        return self._rules.can_fetch(str(url), AGENT)

    def pause(self) -> float:
        """Seconds that should lie between two requests."""
        return min(self._rules.crawl_delay(AGENT) or 0.0, _LONGEST_PAUSE)

    def sitemaps(self) -> list[str]:
        """Addresses of sitemaps, as written."""
        return list(self._rules.sitemaps)


async def read_rules(client: OutgoingClient, site: URL) -> SiteRules:
    """The rules of a site; one without robots.txt has none. Raises SourceFault if it can't be had now."""
    async with await call_server(client, "GET", site.with_path("/robots.txt"), _LIMITS) as reply:
        if 400 <= reply.status < 500:
            return SiteRules("")
        if reply.status != 200:
            raise SourceUnreachable(
                f"The site's robots.txt can't be read: the server answered {reply.status}"
            )
        try:
            return SiteRules((await reply.read()).decode(errors="replace"))
        except OutgoingError as error:
            raise SourceUnreachable(f"The site's robots.txt can't be read: {error}") from None
