"""Limits on models: stored as rows, cached until they change, checked before each call."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import select
from sqlalchemy.orm import Session

from builtin_plugins.models.errors import ModelNotAllowed, ModelRateLimited
from builtin_plugins.models.models import ModelRule
from builtin_plugins.models.names import alias
from kernel.sdk import RATE_LIMITS, Account, LiveCache, Platform, acting
from kernel.sdk.accounts import Acting

CHANGED: Final = "models.rules"
_MOST_AGE: Final = 2.0
_LONGEST_WAITS: Final = 10


@dataclass(frozen=True)
class ModelLimits:
    """The limits on one model; None and empty mean none."""

    rate_limit: int | None = None
    max_tokens: int | None = None
    allowed_users: frozenset[str] = frozenset()
    allowed_roles: frozenset[str] = frozenset()

    @property
    def names_callers(self) -> bool:
        """Whether only some accounts may call it."""
        return bool(self.allowed_users or self.allowed_roles)


class Rules:
    """The rules of one platform."""

    def __init__(self, platform: Platform) -> None:
        self._platform = platform
        self._cache: LiveCache[str, ModelLimits] = LiveCache(self._read, _MOST_AGE, 1_000)
        platform.notices.listen(CHANGED, lambda model: self._cache.invalidate(alias(model)))

    async def admit(self, model: str) -> ModelLimits:
        """The model's rule, if the call may be made. Raises ModelNotAllowed, ModelRateLimited.

        When the rate limit is reached, a job waits for the next minute instead.
        """
        rule = await self._cache.get(alias(model))
        whose = acting()
        if rule.names_callers and whose is not None:
            await self._check_caller(model, rule, whose)
        if rule.rate_limit is not None:
            await self._count(model, rule.rate_limit, whose)
        return rule

    async def permits(self, model: str) -> bool:
        """Whether the caller may call the model."""
        return await self._permits(model, await self._cache.get(alias(model)), acting())

    async def permitted(self, models: Iterable[str]) -> set[str]:
        """Those of these models that the caller may call."""
        rules, whose = await self._platform.database.read(_by_alias), acting()
        return {model for model in models if await self._permits(model, rules.get(alias(model)), whose)}

    async def _permits(self, model: str, rule: ModelLimits | None, whose: Acting | None) -> bool:
        try:
            if rule is not None and rule.names_callers and whose is not None:
                await self._check_caller(model, rule, whose)
        except ModelNotAllowed:
            return False
        return True

    async def _read(self, model: str) -> ModelLimits:
        rules = await self._platform.database.read(_by_alias)
        return rules.get(model) or ModelLimits()

    async def _check_caller(self, model: str, rule: ModelLimits, whose: Acting) -> None:
        principal = whose.principal
        if principal is not None and principal.is_service:
            return
        names: Sequence[str] = ()
        role = ""
        if principal is not None and principal.is_user:
            names, role = (principal.username, principal.subject), principal.role
        elif whose.account_id is not None:
            account = await self._platform.database.read(_account, whose.account_id)
            if account is not None:
                names, role = (account.username, str(account.id)), account.role
        elif whose.in_background:
            return  # the platform's own work
        if rule.allowed_users.isdisjoint(names) and role not in rule.allowed_roles:
            raise ModelNotAllowed(f"You may not use the model '{model}'")

    async def _count(self, model: str, limit: int, whose: Acting | None) -> None:
        caller = "platform"
        if whose is not None:
            principal = whose.principal
            caller = (
                str(whose.account_id)
                if whose.account_id is not None
                else principal.subject
                if principal
                else ""
            )
        key = f"models:{alias(model)}:{caller}"
        for waits in range(_LONGEST_WAITS + 1):
            try:
                await self._platform.resource(RATE_LIMITS).count(key, limit, error=ModelRateLimited)
                return
            except ModelRateLimited as error:
                if whose is None or not whose.in_background or waits == _LONGEST_WAITS:
                    raise
                await asyncio.sleep(float(error.headers.get("Retry-After", "1")))


def _by_alias(session: Session) -> dict[str, ModelLimits]:
    """All limits; a row may have any of its model's names, whichever the runtime listed."""
    rows = session.scalars(select(ModelRule).order_by(ModelRule.model.desc()))
    return {alias(row.model): _limits(row) for row in rows}


def _limits(row: ModelRule) -> ModelLimits:
    users, roles = row.allowed_users or (), row.allowed_roles or ()
    return ModelLimits(row.rate_limit, row.max_tokens, frozenset(users), frozenset(roles))


def _account(session: Session, account_id: int) -> Account | None:
    return session.get(Account, account_id)
