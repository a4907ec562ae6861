"""Single sign-on through an OpenID Connect provider."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sqlalchemy import Select, delete

from builtin_plugins.accounts.api import SignInMethod
from builtin_plugins.oidc.diagnostics import DIAGNOSTICS
from builtin_plugins.oidc.handlers import sign_in, sign_out
from builtin_plugins.oidc.models import Base, ProviderSession
from builtin_plugins.oidc.service import SSO, Sso, open_sso
from builtin_plugins.oidc.services.groups import forget_groups, select_groups
from builtin_plugins.oidc.settings import OidcSettings
from kernel.sdk import Account, Diagnostic, Platform, Plugin, Resource, RouteTable, Tables, Unit, hookimpl


class OidcPlugin(Plugin):
    """Signs people in through an identity provider. Hidden if none is configured."""

    name = "oidc"
    version = "0.1.0"
    description = "Single sign-on through an OpenID Connect provider"
    author = "Platform"
    requires = ("accounts",)

    @hookimpl
    def register_settings(self) -> type[OidcSettings]:
        return OidcSettings

    @hookimpl
    def register_tables(self) -> Tables:
        return Tables(Base, Path(__file__).parent / "migrations")

    @hookimpl
    def register_routes(self) -> Sequence[RouteTable]:
        return [sign_in.routes, sign_out.routes]

    @hookimpl
    def register_resources(self) -> Sequence[Resource[Sso | None]]:
        return [Resource(SSO, open_sso)]

    @hookimpl
    def sign_in_methods(self, platform: Platform) -> Sequence[SignInMethod]:
        settings = platform.settings_of(OidcSettings)
        if settings.hidden_because is not None:
            return []
        return [SignInMethod(name="oidc", label=settings.label, login_url=settings.login_url)]

    @hookimpl
    def register_diagnostics(self) -> Sequence[Diagnostic]:
        return DIAGNOSTICS

    @hookimpl
    def select_sign_in_groups(self, platform: Platform) -> Select[str, int] | None:
        settings = platform.settings_of(OidcSettings)
        return None if settings.hidden_because is not None else select_groups(settings)

    @hookimpl
    def on_account_event(self, unit: Unit, account: Account, change: str) -> None:
        """Forget a deleted account's sessions at the provider."""
        if change == "deleted" and account.sso_subject is not None:
            of_account = ProviderSession.subject == account.sso_subject
            unit.session.execute(delete(ProviderSession).where(of_account))

    @hookimpl
    async def on_account_deleted(self, platform: Platform, account_id: int) -> None:
        await platform.database.write(forget_groups, account_id)
