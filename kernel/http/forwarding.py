"""Headers of a message that is passed on."""

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
    """The headers of a message but those for one hop (RFC 9110, 7.6.1) and `dropped`, lower-case names.

    Headers that `Connection` names are for one hop, too.
    """
    named = {item.strip().lower() for value in headers.getall("Connection", ()) for item in value.split(",")}
    out = HOP_BY_HOP | dropped | named
    return CIMultiDict((name, value) for name, value in headers.items() if name.lower() not in out)
