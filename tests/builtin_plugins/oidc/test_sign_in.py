"""Single sign-on from the button to the token, against a certified provider."""

from __future__ import annotations

from tests.builtin_plugins.oidc.conftest import Site


async def test_first_sign_in_makes_the_account(site: Site) -> None:
    """Code flow with PKCE: the client gets a token in the fragment that works, and is who the provider says."""
    await site.idp.knows("anna", email="anna@corp.example", email_verified=True, groups=["staff"])
    page = await site.visit("anna")
    print(page)
    assert page.url.startswith("https://client.example.org/auth/callback#token=")
