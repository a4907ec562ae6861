"""The kernel's own answers to `identify_actor` and `decide_access`; plugins may answer first."""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Awaitable, Mapping
from typing import Any

from aiohttp import web

from kernel.auth.permissions import Decision, Permission
from kernel.auth.principals import ANONYMOUS, Principal
from kernel.auth.states import AccountState, AccountStates
from kernel.auth.tokens import Tokens, account_id
from kernel.errors import Unauthorized
from kernel.hooks.types import hookimpl
from kernel.http.context import ClientAddresses, Context
from kernel.http.routes import Access
from kernel.plugins.resource_keys import ResourceKey
from kernel.settings.loading import KernelSettings

_PRINCIPALS = 10_000
SERVICE_TOKEN = "X-Service-Token"


class Identity:
    """Bearer tokens, the service token header, and the kernel's own kinds of access."""

    name = "kernel"

    def __init__(
        self,
        settings: KernelSettings,
        tokens: Tokens,
        states: AccountStates,
        permissions: Mapping[str, Permission],
    ) -> None:
        self._tokens = tokens
        self._states = states
        self._permissions = permissions
        token = settings.service_sync_token
        self._service_token = token.get_secret_value().encode() if token else b""
        self._addresses = ClientAddresses(settings.trusted_proxy_cidrs)
        self._recent: dict[bytes, tuple[Principal, AccountState, float]] = {}

    def recall(self, authorization: str) -> Principal | None:
        """The remembered principal of a header, as long as its token is valid and its account unchanged."""
        key = _digest(authorization)
        entry = self._recent.get(key)
        if entry is None or entry[2] <= time.time():
            return None
        principal, state, expires = entry
        current = self._states.peek(state.id)
        if current is not state:  # the account was read again
            if current is None or current != state:
                return None
            self._recent[key] = (principal, current, expires)
        return principal

    @hookimpl(trylast=True)
    async def identify_actor(self, request: web.Request, authorization: str | None) -> Principal | None:
        """Anonymous without a credential; raises Unauthorized for an invalid bearer token."""
        if authorization is None:
            return self._from_service_header(request)
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer":
            return None
        token = token.strip()
        if not token:
            raise Unauthorized("The Authorization header must be 'Bearer <token>'")
        principal, state = await self._judge(self._tokens.verify(token))
        if state is not None:
            self._remember(authorization, principal, state)
        return principal

    async def principal_of(self, claims: dict[str, Any]) -> Principal:
        """The principal of verified claims, checked against the account's present state."""
        return (await self._judge(claims))[0]

    async def _judge(self, claims: dict[str, Any]) -> tuple[Principal, AccountState | None]:
        if claims.get("role") == "service":
            return _service(claims["sub"], claims), None
        subject = account_id(claims)
        if subject is None:
            raise Unauthorized("Invalid token")
        state = await self._states.get(subject)
        if state is None or not state.is_active:
            raise Unauthorized("The account is disabled or was deleted")
        if claims.get("epoch", 0) != state.epoch:
            raise Unauthorized("The session was revoked; sign in again")
        return _user(claims, state), state

    def _remember(self, authorization: str, principal: Principal, state: AccountState) -> None:
        if len(self._recent) >= _PRINCIPALS:
            self._recent.clear()
        self._recent[_digest(authorization)] = (principal, state, float(principal.claims["exp"]))

    def _from_service_header(self, request: web.Request) -> Principal:
        """The service principal. From another machine, the header counts only through a configured proxy."""
        sent = request.headers.get(SERVICE_TOKEN)
        if not sent or not self._service_token or not self._addresses.is_near(request):
            return ANONYMOUS
        if not hmac.compare_digest(sent.encode(errors="replace"), self._service_token):
            raise Unauthorized("Invalid service token")
        return Principal("service", "internal-service", username="internal-service", role="service")

    @hookimpl(trylast=True)
    def decide_access(
        self, ctx: Context, principal: Principal, access: Access, params: Mapping[str, int | str]
    ) -> Awaitable[Decision | None] | Decision | None:
        """Decide the kernel's own kinds of access; a permission by its default grant."""
        if access.kind == "platform_admin":
            return self._judge_platform_admin(principal)
        return self.decide(principal, access, params)

    def decide(
        self, principal: Principal, access: Access, params: Mapping[str, int | str]
    ) -> Decision | None:
        """Decide the kinds of access that need no query."""
        if access.kind == "public":
            return Decision.ALLOW
        if principal.kind == "anonymous":
            return None
        if access.kind == "permission":
            return _allow(self._holds(principal, access) or _is_own(principal, access, params))
        return _allow(_fits(principal, access.kind))

    def _holds(self, principal: Principal, access: Access) -> bool:
        needed = self._permissions[access.permission or ""]
        if needed.scope != "instance":
            return access.or_admin and principal.is_admin
        granted = needed.granted_to
        if principal.is_service or principal.is_admin:
            return granted != "nobody"
        return granted == "user"

    async def _judge_platform_admin(self, principal: Principal) -> Decision | None:
        if not principal.is_user or principal.id is None:
            return None
        return _allow(await self._states.is_platform_admin(principal.id))


IDENTITY: ResourceKey[Identity] = ResourceKey("identity")


def _user(claims: dict[str, Any], state: AccountState) -> Principal:
    return Principal(
        "user", str(state.id), state.id, state.username, state.role, state.platform_admin, claims
    )


def _digest(authorization: str) -> bytes:
    """A cache key that reveals no token in a memory dump."""
    return hashlib.blake2b(authorization.encode(errors="replace"), digest_size=16).digest()


def _fits(principal: Principal, kind: str) -> bool:
    if kind == "authenticated":
        return True
    if kind == "admin":
        return principal.is_admin
    return principal.is_admin or principal.is_service


def _is_own(principal: Principal, access: Access, params: Mapping[str, int | str]) -> bool:
    return access.or_self is not None and principal.is_user and params[access.or_self] == principal.id


def _allow(yes: bool) -> Decision | None:
    return Decision.ALLOW if yes else None


def _service(subject: Any, claims: dict[str, Any]) -> Principal:
    if not isinstance(subject, str) or not subject.startswith("service:"):
        raise Unauthorized("Invalid token")
    return Principal("service", subject, username=subject, role="service", claims=claims)
