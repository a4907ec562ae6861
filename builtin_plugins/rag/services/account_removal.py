"""What happens to an account's knowledge bases and pipelines when the account is deleted."""

from __future__ import annotations

from sqlalchemy import delete, select, update

from builtin_plugins.accounts.api import SharedThing, hand_over_owned
from builtin_plugins.rag.models import Document, KnowledgeBase, Pipeline
from builtin_plugins.rag.rights.audiences import remove_account
from builtin_plugins.rag.services.base_trash import remove_of_account
from builtin_plugins.rag.services.metadata import remove_person
from builtin_plugins.rag.services.receipts import SIGNER, of_base
from builtin_plugins.rag.services.removal import delete_base
from kernel.sdk import Account, Caller, Platform, Principal, Scope, Unit, audit


def hand_over(unit: Unit, account: Account, heir: Scope | None) -> list[SharedThing]:
    """Give what others can see to the heir; returns what is left."""
    bases = hand_over_owned(unit, KnowledgeBase, "knowledge_base", account.id, heir)
    return bases + hand_over_owned(unit, Pipeline, "pipeline", account.id, heir)


async def remove_owned(platform: Platform, account_id: int) -> None:
    """Delete all pipelines and knowledge bases of a deleted account, each knowledge base with a receipt."""
    await platform.database.write(_remove_pipelines, account_id)
    await platform.database.write(remove_person, account_id)
    await platform.database.write(remove_account, account_id)
    await platform.database.write(_forget_uploader, account_id)
    while await platform.database.write(_remove_base, platform, account_id):
        pass


def _remove_pipelines(unit: Unit, account_id: int) -> None:
    unit.session.execute(delete(Pipeline).where(Pipeline.owner_id == account_id))


def _forget_uploader(unit: Unit, account_id: int) -> None:
    mine = Document.uploaded_by == account_id
    unit.session.execute(update(Document).where(mine).values(uploaded_by=None))


def _remove_base(unit: Unit, platform: Platform, account_id: int) -> bool:
    """Delete one knowledge base; returns whether there was one."""
    query = select(KnowledgeBase).where(KnowledgeBase.owner_id == account_id).order_by(KnowledgeBase.id)
    found: KnowledgeBase | None = unit.session.scalar(query.limit(1).with_for_update(key_share=True))
    caller = Caller(platform, Principal("service", "service:deleted-accounts"))
    if found is None:
        return remove_of_account(unit, caller, account_id)
    kb_id, name = found.id, found.name
    delete_base(unit, platform, found)
    of_base(unit, caller, platform.resource(SIGNER), found, Scope(None, everything=True))
    audit(unit, "rag.knowledge_base.deleted", "knowledge_base", kb_id, before={"name": name})
    return True
