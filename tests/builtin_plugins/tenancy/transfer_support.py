"""What the tests of bundles share: teams and organizations with something to export."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, Literal

from kernel.testing import Actor, Reply, Running
from tests.builtin_plugins.rag.rag_support import make_base, make_pipeline
from tests.builtin_plugins.tenancy.tenancy_support import join, join_team, make_org, make_team, somebody

Kind = Literal["team", "organization"]

KINDS: tuple[Kind, Kind] = ("team", "organization")


@dataclass
class Home:
    """A team or an organization, and somebody who manages it."""

    running: Running
    kind: Kind
    id: int
    manager: Actor

    @property
    def path(self) -> str:
        return f"/v1/{self.kind}s/{self.id}"

    @property
    def shared(self) -> dict[str, Any]:
        """The fields of a row that is shared with it."""
        return {"visibility": self.kind, f"{self.kind}_id": self.id}

    async def export(self) -> dict[str, Any]:
        answer = await self.manager.get(f"{self.path}/export")
        assert answer.status == 200, answer.body
        return dict(answer.json())

    async def send(self, bundle: Any, policy: str | None = None, *, dry_run: bool = False) -> Reply:
        body = {"bundle": bundle} if policy is None else {"bundle": bundle, "policy": policy}
        query = "?dry_run=true" if dry_run else ""
        return await self.manager.post(f"{self.path}/import{query}", json=body)

    async def take(self, bundle: Any, policy: str | None = None, *, dry_run: bool = False) -> dict[str, Any]:
        answer = await self.send(bundle, policy, dry_run=dry_run)
        assert answer.status == 200, answer.body
        return dict(answer.json())

    async def admit(self, actor: Actor, role: str = "member") -> None:
        enter = join_team if self.kind == "team" else join
        await enter(self.running, self.id, actor, role)

    async def roles(self) -> dict[str, str]:
        field = "team_role" if self.kind == "team" else "org_role"
        return {row["email"]: row[field] for row in (await self.export())["members"]}


async def make_home(running: Running, kind: Kind, manager: Actor | None = None) -> Home:
    """A new team with its team_admin, or a new organization with its owner."""
    manager = manager or await somebody(running)
    make = make_team if kind == "team" else make_org
    return Home(running, kind, await make(running, manager), manager)


async def furnish(home: Home) -> dict[str, str]:
    """Two knowledge bases and a pipeline over them, shared with the home; ids by name."""
    manager, shared = home.manager, home.shared
    fields = {"description": "Rules", "chunk_size": 300, "chunk_overlap": 20, "llm_model": "tiny"}
    first = await make_base(manager, name="Handbook", **fields, **shared)
    second = await make_base(manager, name="Minutes", **shared)
    config = {"temperature": 0.5, "model": "tiny", "api_key": "sk-do-not-tell"}
    pipeline = await make_pipeline(
        manager,
        second,
        first,
        name="Ask us",
        retrieval_config={"top_k": 7, "hybrid": True},
        generation_config=config,
        **shared,
    )
    return {"Handbook": first, "Minutes": second, "Ask us": pipeline}


def bundle(kind: Kind, **fields: Any) -> dict[str, Any]:
    about: dict[str, Any] = {"name": "Elsewhere"}
    if kind == "organization":
        about["slug"] = "elsewhere"
    base = {"name": "Atlas", "embedding_model": "all-minilm", "chunk_size": 512, "chunk_overlap": 50}
    pipeline = {"name": "Guide", "knowledge_bases": ["Atlas"]}
    document = {
        "format": f"platform.{kind}",
        "version": 1,
        kind: about,
        "members": [],
        "knowledge_bases": [base],
        "pipelines": [pipeline],
    }
    return copy.deepcopy({**document, **fields})


def names(report: dict[str, Any], outcome: str) -> list[tuple[str, str]]:
    return [(item["kind"], item["name"]) for item in report[outcome]]
