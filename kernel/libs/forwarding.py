"""Headers of a forwarded message."""

from __future__ import annotations

from multidict import CIMultiDict, CIMultiDictProxy

HOP_BY_HOP = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)


def end_to_end_headers(headers: CIMultiDictProxy[str], dropped: frozenset[str]) -> CIMultiDict[str]:
    """A message's headers without hop-by-hop ones (RFC 9110, 7.6.1) and `dropped` (lower-case names).

    Headers named in `Connection` are hop-by-hop, too.
    """
    named = {item.strip().lower() for value in headers.getall("Connection", ()) for item in value.split(",")}
    out = HOP_BY_HOP | dropped | named
    return CIMultiDict((name, value) for name, value in headers.items() if name.lower() not in out)
