"""The kernel's own answers to `identify_actor` and `decide_access`; plugins may answer first."""

from __future__ import annotations

import hmac
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from aiohttp import web

from kernel.auth.permissions import Decision
from kernel.auth.principals import ANONYMOUS, Principal
from kernel.auth.states import AccountState
from kernel.auth.tokens import account_id
from kernel.errors import Unauthorized
from kernel.hookspecs import hookimpl
from kernel.http.addresses import ClientAddresses
from kernel.http.context import Context
from kernel.http.routes import Access

if TYPE_CHECKING:
    from kernel.platform import Platform

_PRINCIPALS = 10_000


class Identity:
    """Bearer tokens, the service token header, and the access kinds that the kernel knows."""

    name = "kernel"

    def __init__(self, platform: Platform) -> None:
        self._platform = platform
        token = platform.settings.service_sync_token
        self._service_token = token.get_secret_value().encode() if token else b""
        self._addresses = ClientAddresses(platform.settings.trusted_proxy_cidrs)
        self._principals: OrderedDict[int, tuple[dict[str, Any], AccountState, Principal]] = OrderedDict()

    @hookimpl(trylast=True)
    async def identify_actor(self, request: web.Request, authorization: str | None) -> Principal | None:
        """Anonymous without a credential; raises Unauthorized for a bearer that does not hold."""
        if authorization is None:
            return self._from_service_header(request)
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer":
            return None
        token = token.strip()
        if not token:
            raise Unauthorized("The Authorization header must be 'Bearer <token>'")
        return await self.principal_of(self._platform.tokens.verify(token))

    async def principal_of(self, claims: dict[str, Any]) -> Principal:
        """The principal of verified claims, held against the account as it is now."""
        if claims.get("role") == "service":
            return _service(claims["sub"], claims)
        subject = account_id(claims)
        if subject is None:
            raise Unauthorized("Invalid token")
        state = await self._platform.account_states.get(subject)
        if state is None or not state.is_active:
            raise Unauthorized("The account is disabled or gone")
        if claims.get("epoch", 0) != state.epoch:
            raise Unauthorized("The session was revoked; sign in again")
        return self._user(claims, state)

    def _user(self, claims: dict[str, Any], state: AccountState) -> Principal:
        known = self._principals.get(id(claims))
        if known is not None and known[0] is claims and known[1] is state:
            return known[2]
        principal = Principal(
            "user", str(state.id), state.id, state.username, state.role, state.platform_admin, claims
        )
        self._principals[id(claims)] = (claims, state, principal)
        if len(self._principals) > _PRINCIPALS:
            self._principals.popitem(last=False)
        return principal

    def _from_service_header(self, request: web.Request) -> Principal:
        """The service principal; from another machine the header counts only through a configured proxy."""
        sent = request.headers.get("X-Service-Token")
        if not sent or not self._service_token or not self._addresses.is_near(request):
            return ANONYMOUS
        if not hmac.compare_digest(sent.encode(errors="replace"), self._service_token):
            raise Unauthorized("Invalid service token")
        return Principal("service", "internal-service", username="internal-service", role="service")

    @hookimpl(trylast=True)
    async def decide_access(self, ctx: Context, principal: Principal, access: Access) -> Decision | None:
        """The access kinds of the kernel; a permission goes by its default grant."""
        if access.kind == "public":
            return Decision.ALLOW
        if principal.kind == "anonymous":
            return None
        if access.kind == "permission":
            return _allow(self._holds(principal, access))
        if access.kind == "platform_admin":
            return _allow(await self._is_platform_admin(principal))
        return _allow(_fits(principal, access.kind))

    def _holds(self, principal: Principal, access: Access) -> bool:
        granted = self._platform.permissions[access.permission or ""].granted_to
        if principal.is_service or principal.is_admin:
            return granted != "nobody"
        return granted == "user"

    async def _is_platform_admin(self, principal: Principal) -> bool:
        if not principal.is_user or principal.id is None:
            return False
        return await self._platform.account_states.is_platform_admin(principal.id)


def _fits(principal: Principal, kind: str) -> bool:
    if kind == "authenticated":
        return True
    if kind == "admin":
        return principal.is_admin
    return principal.is_admin or principal.is_service


def _allow(yes: bool) -> Decision | None:
    return Decision.ALLOW if yes else None


def _service(subject: Any, claims: dict[str, Any]) -> Principal:
    if not isinstance(subject, str) or not subject.startswith("service:"):
        raise Unauthorized("Invalid token")
    return Principal("service", subject, username=subject, role="service", claims=claims)
