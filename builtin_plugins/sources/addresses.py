"""Settings of sources that are addresses of servers."""

from __future__ import annotations

from pydantic import AfterValidator
from yarl import URL


def address_of(
    example: str, *, has_path: bool, schemes: tuple[str, ...] = ("http", "https")
) -> AfterValidator:
    """The check of a setting, with or without a path. It takes no credentials, query or fragment, and cuts
    off a slash at the end; an empty setting stays.
    """

    def check(value: str) -> str:
        url = URL(value)
        if not value:
            return value
        if url.user is not None or url.password is not None:
            raise ValueError("the address must hold no user or password; give them in their own fields")
        if url.scheme not in schemes or not url.host or url.query_string or url.fragment:
            raise ValueError(f"expected an address such as {example}")
        if not has_path and url.path.strip("/"):
            raise ValueError(f"expected an address without a path, such as {example}")
        return value.rstrip("/")

    return AfterValidator(check)
