"""What `platformctl doctor` says about the groups of sign-ins."""

from __future__ import annotations

from collections.abc import AsyncIterator

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from builtin_plugins.oidc.models import GroupStatement
from builtin_plugins.oidc.settings import OidcSettings
from kernel.sdk import Account, Diagnostic, Finding, Platform


async def check_groups(platform: Platform) -> AsyncIterator[Finding]:
    """Check that the provider named the groups of all accounts at their last sign-ins."""
    if platform.settings_of(OidcSettings).hidden_because is not None:
        return
    counts = await platform.database.read(_count)
    facts = {problem or "known": number for problem, number in counts.items()}
    unknown = sum(number for problem, number in counts.items() if problem is not None)
    if not unknown:
        yield Finding("sso groups", "ok", "the groups of all who signed in are known", facts=facts)
        return
    yield Finding(
        "sso groups",
        "warning",
        f"the groups of {unknown} accounts are unknown since their last sign-ins, so they are in none",
        "Let the provider send only the groups that are assigned to this application; the log says more.",
        facts=facts,
    )


def _count(session: Session) -> dict[str | None, int]:
    query = select(GroupStatement.problem, func.count()).join(
        Account, Account.id == GroupStatement.account_id
    )
    rows = session.execute(query.where(Account.is_active).group_by(GroupStatement.problem)).all()
    return {row[0]: row[1] for row in rows}


DIAGNOSTICS = (Diagnostic("rows", check_groups),)
