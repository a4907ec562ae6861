"""Looking at a knowledge base as another member: the answer comes from the predicate that every read uses."""

from __future__ import annotations

from typing import Final

from sqlalchemy import select
from sqlalchemy.orm import Session

from builtin_plugins.rag.errors import MemberUnknown
from builtin_plugins.rag.metadata.people import scope_of_account, share_a_group
from builtin_plugins.rag.models import KnowledgeBase
from builtin_plugins.rag.schemas_visibility import Reason, Sight
from builtin_plugins.rag.services.knowledge_bases import find_own
from kernel.sdk import Caller, Scope, scope_of

_WORDS: Final[dict[Reason, str]] = {
    "owner": "The knowledge base is theirs.",
    "administrator": "Administrators of this server see everything.",
    "everyone": "Every account of this server sees it.",
    "team": "It is shared with a team that they belong to.",
    "organization": "It is shared with an organization that they belong to.",
    "private": "It is private: only its owner and administrators see it.",
    "not_in_team": "It is shared with a team that they don't belong to.",
    "not_in_organization": "It is shared with an organization that they don't belong to or are suspended in.",
    "inactive": "The account is deactivated and can't sign in.",
}


async def look_as(caller: Caller, kb_id: str, user_id: int) -> Sight:
    """Whether an account sees a knowledge base of the caller's, and why.

    Raises KnowledgeBaseNotFound, NotOwner, and MemberUnknown for an account that shares no team and no
    organization with the caller, whether there is one or not. Administrators can ask about anybody.
    """
    own = await scope_of(caller.platform, caller.principal)
    base = await caller.platform.database.read(find_own, own, kb_id)
    scope = await scope_of_account(caller.platform, user_id)
    if scope is None or not (own.everything or scope.account_id == caller.id or share_a_group(own, scope)):
        raise MemberUnknown()
    sees = await caller.platform.database.read(_sees, scope, kb_id)
    reason = _reason(base, scope)
    return Sight(
        user_id=user_id,
        sees=sees,
        changes=sees and scope.owns(base),
        reason=reason,
        explanation=_WORDS[reason],
    )


def _sees(session: Session, scope: Scope, kb_id: str) -> bool:
    query = select(KnowledgeBase.id).where(KnowledgeBase.id == kb_id, scope.sees(KnowledgeBase))
    return session.scalar(query) is not None


def _reason(base: KnowledgeBase, scope: Scope) -> Reason:
    if scope.nothing:
        return "inactive"
    if base.owner_id is not None and base.owner_id == scope.account_id:
        return "owner"
    if base.visibility == "shared":
        return "everyone"
    if base.visibility == "team" and base.team_id in scope.teams:
        return "team"
    if base.visibility == "organization" and base.organization_id in scope.organizations:
        return "organization"
    if scope.everything:
        return "administrator"
    refusals: dict[str, Reason] = {"team": "not_in_team", "organization": "not_in_organization"}
    return refusals.get(base.visibility, "private")
