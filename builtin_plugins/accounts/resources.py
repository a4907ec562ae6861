"""The parts of the plugin, in the order in which they need each other."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any, TypeVar

from builtin_plugins.accounts.accounts import ACCOUNTS, Accounts
from builtin_plugins.accounts.administration import ADMINISTRATION, Administration
from builtin_plugins.accounts.attempts import ATTEMPTS, Attempts
from builtin_plugins.accounts.mail import MAIL, Mail
from builtin_plugins.accounts.password_resets import PASSWORD_RESETS, PasswordResets
from builtin_plugins.accounts.passwords import PASSWORDS, Passwords
from builtin_plugins.accounts.platform_admins import PLATFORM_ADMINS, PlatformAdmins
from builtin_plugins.accounts.setup_codes import SETUP_CODES, SetupCodes
from kernel.sdk import ACCOUNT_STATES, RATE_LIMITS, Platform, Resource
from kernel.sdk.accounts import TOKENS

T = TypeVar("T")


@asynccontextmanager
async def _passwords(platform: Platform) -> AsyncIterator[Passwords]:
    passwords = Passwords(platform.settings.password_memory_mb)
    try:
        yield passwords
    finally:
        passwords.close()


def _opener(make: Callable[[Platform], T]) -> Callable[[Platform], AbstractAsyncContextManager[T]]:
    """Opens what needs no closing."""

    @asynccontextmanager
    async def opened(platform: Platform) -> AsyncIterator[T]:
        yield make(platform)

    return opened


def _setup_codes(platform: Platform) -> SetupCodes:
    return SetupCodes(platform.database, platform.resource(PLATFORM_ADMINS))


def _administration(platform: Platform) -> Administration:
    return Administration(platform, platform.resource(PASSWORDS))


def _password_resets(platform: Platform) -> PasswordResets:
    part = platform.resource
    return PasswordResets(platform, mail=part(MAIL), passwords=part(PASSWORDS), limits=part(RATE_LIMITS))


def _accounts(platform: Platform) -> Accounts:
    part = platform.resource
    return Accounts(
        platform,
        passwords=part(PASSWORDS),
        tokens=part(TOKENS),
        states=part(ACCOUNT_STATES),
        admins=part(PLATFORM_ADMINS),
        limits=part(RATE_LIMITS),
    )


RESOURCES: tuple[Resource[Any], ...] = (
    Resource(PASSWORDS, _passwords),
    Resource(ATTEMPTS, _opener(lambda platform: Attempts(platform.resource(RATE_LIMITS)))),
    Resource(MAIL, _opener(lambda platform: Mail(platform.settings))),
    Resource(PLATFORM_ADMINS, _opener(PlatformAdmins)),
    Resource(SETUP_CODES, _opener(_setup_codes)),
    Resource(ADMINISTRATION, _opener(_administration)),
    Resource(PASSWORD_RESETS, _opener(_password_resets)),
    Resource(ACCOUNTS, _opener(_accounts)),
)


async def open_parts(platform: Platform, stack: AsyncExitStack) -> None:
    """Open them for a command, whose platform opens no plugin's resources."""
    for part in RESOURCES:
        platform.resources.add(part.key, await stack.enter_async_context(part.open(platform)))
