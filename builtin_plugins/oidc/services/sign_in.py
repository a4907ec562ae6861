"""Single sign-on from the first redirect to the token."""

from __future__ import annotations

import logging
import re
from typing import Final

from builtin_plugins.accounts.api import sign_in_external
from builtin_plugins.oidc.errors import BadCallback, RefusedByProvider
from builtin_plugins.oidc.flow import LIFETIME, Flow
from builtin_plugins.oidc.schemas import CallbackQuery
from builtin_plugins.oidc.services.client import ProviderClient
from builtin_plugins.oidc.services.groups import groups_of, replace_groups
from builtin_plugins.oidc.services.marks import remember_session, use_up
from builtin_plugins.oidc.services.profile import identity_of
from builtin_plugins.oidc.services.provider import Provider, ProviderMetadata
from builtin_plugins.oidc.services.seal import FlowSeal
from builtin_plugins.oidc.services.tokens import TokenCheck
from builtin_plugins.oidc.settings import OidcSettings
from kernel.sdk import Account, Platform, Unit
from kernel.sdk.accounts import Origin

log = logging.getLogger("platform.oidc")

_ERROR_CODE: Final = re.compile(r"[a-z_]{1,60}")


class SignIn:
    """The two steps: send the browser to the provider, and receive it back."""

    def __init__(
        self,
        platform: Platform,
        settings: OidcSettings,
        provider: Provider,
        client: ProviderClient,
        check: TokenCheck,
        seal: FlowSeal,
    ) -> None:
        self._platform = platform
        self._settings = settings
        self._provider = provider
        self._client = client
        self._check = check
        self._seal = seal

    async def begin(self) -> tuple[str, Flow, str]:
        """The provider's address, the flow, and its sealed cookie. Raises ProviderFault."""
        metadata = await self._provider.metadata()
        flow = Flow.begin()
        return self._client.authorization_url(metadata, flow), flow, self._seal.seal(flow)

    async def finish(self, query: CallbackQuery, state: str, sealed: str, origin: Origin) -> str:
        """The token for a browser that returns. Raises errors to show on the login page."""
        flow = self._seal.open(sealed, state)
        if flow is None:
            raise BadCallback()
        metadata = await self._provider.metadata()
        self._check_issuer(metadata, query.iss)
        await self._use_up(flow)
        if query.error is not None:
            raise _refusal(query.error, query.error_description)
        if not query.code:
            raise BadCallback("The identity provider sent neither a code nor a reason")
        return await self._exchange(metadata, query.code, flow, origin)

    def _check_issuer(self, metadata: ProviderMetadata, named: str | None) -> None:
        """Refuse another provider's answer (mix-up attack, RFC 9207 section 2.4)."""
        if named != self._provider.issuer and (named is not None or metadata.names_itself):
            log.warning("an authorization response came from %.200r", named)
            raise BadCallback("The response did not come from this platform's identity provider")

    async def _use_up(self, flow: Flow) -> None:
        """Accept a state only once, across all processes, so that a callback can't be replayed."""
        if not await self._platform.database.write(use_up, "state", flow.state, LIFETIME):
            raise BadCallback("This sign-in was already completed; start again")

    async def _exchange(self, metadata: ProviderMetadata, code: str, flow: Flow, origin: Origin) -> str:
        access, identity_token = await self._client.exchange(metadata, code, flow.verifier)
        claims = await self._check.id_token(identity_token, nonce=flow.nonce, access_token=access)
        userinfo = await self._client.userinfo(metadata, access, claims["sub"])
        sid = claims.get("sid")
        if isinstance(sid, str):
            await self._platform.database.write(remember_session, sid, claims["sub"])
        groups = groups_of(self._settings, claims, userinfo)
        identity = identity_of(self._settings, claims, userinfo, groups)

        def note_groups(unit: Unit, account: Account) -> bool:
            return replace_groups(unit, self._settings, account, groups, origin)

        _, token = await sign_in_external(self._platform, identity, origin, note_groups)
        return token


def _refusal(error: str, description: str | None) -> RefusedByProvider:
    """The provider's refusal in our words: its own text came through the browser, and could be anybody's."""
    log.info("the identity provider refused a sign-in: %.60r (%.200r)", error, description)
    code = error if _ERROR_CODE.fullmatch(error) else "unknown error"
    return RefusedByProvider(f"The identity provider refused the sign-in ({code})")
