"""Requests that make something: their retries make nothing more."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from pydantic import BaseModel
from sqlalchemy import delete, select

from builtin_plugins.openai_files.models import MakingRequest
from kernel.sdk import Caller, Unit, utc_now

RETRIED: Final = timedelta(minutes=10)
"""How long after a request its retry may come: the clients wait as long for an answer."""
_KEYED: Final = timedelta(days=1)
_RETRIES: Final = "x-stainless-retry-count"
_KEY: Final = "idempotency-key"


@dataclass(frozen=True)
class Attempt:
    """What a request says of its repetitions: the client's key for it, and whether it is a retry."""

    key: str = ""
    is_retry: bool = False

    @classmethod
    def of(cls, headers: Mapping[str, str]) -> Attempt:
        """From the request's headers."""
        return cls(headers.get(_KEY, ""), headers.get(_RETRIES, "0") != "0")


async def id_for(caller: Caller, attempt: Attempt, body: BaseModel, base_id: str = "") -> str:
    """The id of what a request makes: of a batch for this knowledge base, else of a knowledge base.

    The same again for a request with the same key and body within a day, and for a retry of the same body.
    """
    request = MakingRequest(
        id=str(uuid.uuid4()), owner_id=caller.id, digest=_digest(attempt, body, base_id), created_at=utc_now()
    )
    request.knowledge_base_id = base_id or request.id

    def write(unit: Unit) -> str:
        unit.lock(f"openai_files.requests.{request.owner_id}")
        mine = MakingRequest.owner_id == request.owner_id
        unit.session.execute(delete(MakingRequest).where(mine, MakingRequest.created_at < utc_now() - _KEYED))
        if attempt.key or attempt.is_retry:
            since = request.created_at - (_KEYED if attempt.key else RETRIED)
            same = (MakingRequest.digest == request.digest) & (MakingRequest.created_at > since)
            latest = select(MakingRequest.id).where(mine, same).order_by(MakingRequest.created_at.desc())
            earlier_id = unit.session.scalar(latest.limit(1))
            if earlier_id is not None:
                return str(earlier_id)
        unit.session.add(request)
        return request.id

    return await caller.platform.database.write(write)


def _digest(attempt: Attempt, body: BaseModel, base_id: str) -> str:
    parts = (attempt.key, base_id, body.model_dump_json())
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
