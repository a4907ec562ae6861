"""Addresses of pages: in one form for each page, and below the beginning of a site."""

from __future__ import annotations

from typing import Final
from urllib.parse import unquote

from yarl import URL

_LONGEST: Final = 1000
_TRACKING: Final = ("utm_", "fbclid", "gclid", "mc_cid", "mc_eid", "phpsessid", "jsessionid")
_INDEX: Final = "index"


def start_of(address: str) -> URL:
    """The beginning of a site. Raises ValueError with the remedy."""
    url = URL(address)
    if url.scheme not in ("http", "https") or not url.host or url.user or url.password:
        raise ValueError("expected an address such as https://example.org/docs/, without a password in it")
    if url.query_string or url.fragment:
        raise ValueError("expected an address without ? and #")
    return url.with_path(url.path or "/")


class SiteAddresses:
    """What belongs to a site: the address it begins at, and what is below the last slash of that."""

    def __init__(self, address: str) -> None:
        self.start = start_of(address)
        self._above = unquote(self.start.raw_path[: self.start.raw_path.rindex("/") + 1])

    def normal(self, base: URL, reference: str) -> URL | None:
        """The address that a reference on a page leads to, if it belongs to the site; without what only
        counts visitors, and without a place on the page.
        """
        try:
            url = base.join(URL(reference.strip()))
            if url.scheme not in ("http", "https") or url.origin() != self.start.origin():
                return None
            if url.user or url.password:  # a password is nothing for readers
                return None
        except ValueError:  # malformed
            return None
        parameters = [
            (name, value) for name, value in url.query.items() if not name.lower().startswith(_TRACKING)
        ]
        url = url.with_fragment(None).with_query(parameters or None)
        path = unquote(url.raw_path)
        if ".." in path.split("/") or not path.startswith(self._above) or len(str(url)) > _LONGEST:
            return None
        return url

    def path_of(self, url: URL) -> str:
        """Its path below the beginning; a page at the end of a folder is called ``index``."""
        path = unquote(url.raw_path).removeprefix(self._above)
        query = f"?{url.query_string}" if url.query_string else ""
        return (f"{path}{_INDEX}" if path.endswith("/") or not path else path) + query
