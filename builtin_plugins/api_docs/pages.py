"""The pages of the API documentation: Swagger UI and ReDoc, served entirely from the package."""

from __future__ import annotations

from html import escape
from pathlib import Path

STATIC_DIR = Path(__file__).parent / "static"
"""The folder to serve at `static_url`; nothing in it is private."""

# Both viewers add style elements at run time, and ReDoc runs its search in a worker made from a blob.
DOCS_CSP = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data:",
        "font-src 'self' data:",
        "connect-src 'self'",
        "worker-src 'self' blob:",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
"""The Content-Security-Policy header to send with both pages."""

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<link rel="icon" type="image/png" href="{static}/swagger-ui/favicon-32x32.png">
{styles}
</head>
<body>
{before}<div id="{root}" data-openapi-url="{openapi}"></div>
<noscript>This page needs JavaScript. The document itself is at <a href="{openapi}">{openapi}</a>.</noscript>
{scripts}
</body>
</html>
"""


# Sent by the script: the policy forbids form submission.
_SIGN_IN = """<form id="sign-in" hidden>
<label>Username <input name="username" autocomplete="username" required></label>
<label>Password <input name="password" type="password" autocomplete="current-password" required></label>
<button type="submit">Sign in</button>
<output></output>
</form>
"""


def swagger_page(openapi_url: str, static_url: str, title: str = "API") -> str:
    """Return the Swagger UI page for the document at `openapi_url`.

    `static_url` is where STATIC_DIR is served, without a trailing slash. Send DOCS_CSP with the page.
    """
    return _page(
        "swagger-ui",
        openapi_url,
        static_url,
        title,
        styles=("page.css", "swagger-ui/swagger-ui.css"),
        scripts=("swagger-ui/swagger-ui-bundle.js", "sign-in.js", "swagger-init.js"),
        before=_SIGN_IN,
    )


def redoc_page(openapi_url: str, static_url: str, title: str = "API") -> str:
    """Return the ReDoc page for the document at `openapi_url`; the arguments are those of swagger_page."""
    return _page(
        "redoc",
        openapi_url,
        static_url,
        title,
        styles=("page.css",),
        scripts=("redoc/redoc.standalone.js", "redoc-init.js"),
    )


def _page(
    root: str,
    openapi_url: str,
    static_url: str,
    title: str,
    styles: tuple[str, ...],
    scripts: tuple[str, ...],
    before: str = "",
) -> str:
    static = escape(static_url.rstrip("/"))
    return _PAGE.format(
        root=root,
        before=before,
        title=escape(title),
        openapi=escape(openapi_url),
        static=static,
        styles="\n".join(f'<link rel="stylesheet" href="{static}/{name}">' for name in styles),
        scripts="\n".join(f'<script src="{static}/{name}"></script>' for name in scripts),
    )
