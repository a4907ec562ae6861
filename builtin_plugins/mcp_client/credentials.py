"""The credentials of accounts, for servers that accounts sign in to individually."""

from __future__ import annotations

from pydantic import SecretStr
from sqlalchemy.orm import Session

from builtin_plugins.mcp_client.servers import Server
from builtin_plugins.owner_secrets.api import OWNER_SECRETS, OwnerSecrets, SecretOwner
from kernel.sdk import Context, Forbidden, Unit

_PREFIX = "mcp_client."


async def credential_of(ctx: Context, server: Server) -> str | None:
    """The credential for this caller's calls: the operator's, or the account's own. Raises Forbidden."""
    if server.settings.credentials == "operator":
        return server.secret
    if ctx.principal.id is None:
        raise Forbidden(
            f"The server '{server.name}' is called for accounts; a service has no credential there"
        )
    secret = await ctx.read(_read, ctx.resource(OWNER_SECRETS), ctx.principal.id, server.name)
    if secret is None:
        raise Forbidden(
            f"Store your credential for '{server.name}' first: PUT /v1/mcp/servers/{server.name}/credential"
        )
    return secret.get_secret_value()


async def listing_credential(ctx: Context, server: Server) -> str | None:
    """The caller's own credential, if only accounts can list the server's tools and the caller stored one."""
    if not server.lists_for_accounts or ctx.principal.id is None:
        return None
    secret = await ctx.read(_read, ctx.resource(OWNER_SECRETS), ctx.principal.id, server.name)
    return None if secret is None else secret.get_secret_value()


async def stored_for(ctx: Context) -> set[str]:
    """The servers for which the caller has stored a credential."""
    if ctx.principal.id is None:
        return set()
    return await ctx.read(_names, ctx.resource(OWNER_SECRETS), ctx.principal.id)


async def store(ctx: Context, account_id: int, server: Server, value: SecretStr) -> None:
    """Store the caller's credential for a server, encrypted."""
    await ctx.write(_put, ctx.resource(OWNER_SECRETS), account_id, server.name, value, ctx.audit_origin())


async def forget(ctx: Context, account_id: int, server: Server) -> bool:
    """Delete it; returns whether there was one."""
    return await ctx.write(_remove, ctx.resource(OWNER_SECRETS), account_id, server.name, ctx.audit_origin())


def _read(session: Session, secrets: OwnerSecrets, account_id: int, server: str) -> SecretStr | None:
    return secrets.get(session, SecretOwner("account", account_id), _PREFIX + server)


def _names(session: Session, secrets: OwnerSecrets, account_id: int) -> set[str]:
    entries = secrets.list(session, SecretOwner("account", account_id))
    return {entry.name.removeprefix(_PREFIX) for entry in entries if entry.name.startswith(_PREFIX)}


def _put(
    unit: Unit,
    secrets: OwnerSecrets,
    account_id: int,
    server: str,
    value: SecretStr,
    origin: dict[str, object],
) -> None:
    secrets.put(unit, SecretOwner("account", account_id), _PREFIX + server, value, origin)


def _remove(
    unit: Unit, secrets: OwnerSecrets, account_id: int, server: str, origin: dict[str, object]
) -> bool:
    return secrets.remove(unit, SecretOwner("account", account_id), _PREFIX + server, origin)
