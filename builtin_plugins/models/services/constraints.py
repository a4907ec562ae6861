"""Set and show limits on models."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from builtin_plugins.inference import api as inference
from builtin_plugins.models.models import ModelRule
from builtin_plugins.models.names import canonical
from builtin_plugins.models.schemas import Constraints, ConstraintsOut
from builtin_plugins.models.services.catalog import find
from builtin_plugins.models.services.model_calls import MODELS
from builtin_plugins.models.services.rules import CHANGED
from kernel.sdk import Account, Caller, Context, Unit, audit, utc_now


async def change(ctx: Context, model_id: str, body: Constraints) -> ConstraintsOut:
    """Replace the limits on a model. Raises UnknownModel for one that neither a runtime nor a plugin has."""
    is_of_plugin = await _is_a_plugins(ctx, model_id)
    model = canonical(model_id if is_of_plugin else await _of_a_runtime(ctx, model_id))
    await ctx.write(_change, ctx.caller, model, body)
    return ConstraintsOut(model=model, **body.model_dump())


async def show(ctx: Context, model_id: str) -> ConstraintsOut:
    """The limits on a model; empty if none were set."""
    model = canonical(model_id)
    return ConstraintsOut(model=model, **await ctx.read(_read, model))


async def _is_a_plugins(ctx: Context, model_id: str) -> bool:
    """Whether a plugin embeds by that name, such as with the built-in models."""
    lists = await ctx.platform.hooks.ask(inference.list_embedding_models, platform=ctx.platform)
    return any(model_id in names for names in lists)


async def _of_a_runtime(ctx: Context, model_id: str) -> str:
    _, info = await find(ctx.resource(MODELS), model_id)
    return info.id


def _change(unit: Unit, caller: Caller, model: str, body: Constraints) -> None:
    before = _read(unit.session, model)
    row = unit.session.get(ModelRule, model)
    if row is None:
        row = ModelRule(model=model)
        unit.session.add(row)
    row.rate_limit, row.max_tokens = body.rate_limit, body.max_tokens
    row.allowed_users, row.allowed_roles = list(body.allowed_users), list(body.allowed_roles)
    row.changed_at = utc_now()
    after = body.model_dump(include=set(before))
    audit(unit, "model.constrained", "model", model, before=before, after=after, origin=caller.origin)
    unit.notify(CHANGED, model)


def _read(session: Session, model: str) -> dict[str, object]:
    row = session.get(ModelRule, model) or ModelRule(model=model)
    return {
        "rate_limit": row.rate_limit,
        "max_tokens": row.max_tokens,
        "allowed_users": list(row.allowed_users or ()),
        "allowed_roles": list(row.allowed_roles or ()),
    }


def forget_name(unit: Unit, account: Account) -> None:
    """Replace a deleted account's name with its id in every list, since somebody else may take the name.

    The entry stays: an empty list would let everybody in.
    """
    for row in unit.session.scalars(select(ModelRule).order_by(ModelRule.model).with_for_update()):
        allowed = row.allowed_users or ()
        if account.username in allowed:
            row.allowed_users = [str(account.id) if one == account.username else one for one in allowed]
            unit.notify(CHANGED, row.model)
