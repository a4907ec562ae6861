"""Knowledge bases and pipelines in the bundles of teams and organizations.

Used by the tenancy plugin through its hooks `export_rows` and `import_rows`.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import ValidationError
from sqlalchemy import ColumnElement, select
from sqlalchemy.orm import Session

from builtin_plugins.rag.metadata.fields import BUILT_IN, known_date_field
from builtin_plugins.rag.models import KnowledgeBase, Pipeline, PipelineSource
from builtin_plugins.rag.schemas_transfer import (
    SECTIONS,
    GenerationRow,
    KnowledgeBaseRow,
    PipelineRow,
    RagSections,
    RetrievalRow,
)
from builtin_plugins.rag.services.embedding import check_embedding_model
from builtin_plugins.tenancy import api as tenancy
from kernel.sdk import Platform, Unit, Unprocessable

Rows = list[dict[str, Any]]
R = TypeVar("R", KnowledgeBase, Pipeline)

_LONGEST_NAME = 255
_IDS_AT_ONCE = 500


@dataclass(frozen=True)
class ShareTarget:
    """The team or organization that rows are shared with."""

    team_id: int | None
    organization_id: int | None

    @property
    def visibility(self) -> str:
        """The visibility of rows shared with it."""
        return "team" if self.team_id is not None else "organization"

    def holds(self, table: type[KnowledgeBase] | type[Pipeline]) -> ColumnElement[bool]:
        """A condition for rows that are shared with it."""
        shared: ColumnElement[bool] = table.visibility == self.visibility
        if self.team_id is not None:
            return shared & (table.team_id == self.team_id)
        return shared & (table.organization_id == self.organization_id)


def export_rows(session: Session, place: ShareTarget) -> dict[str, Rows]:
    """The settings of what is shared there. Duplicate names get numbers."""
    bases = _shared(session, place, KnowledgeBase)
    names = dict(zip((base.id for base in bases), _numbered([base.name for base in bases]), strict=True))
    pipelines = _shared(session, place, Pipeline)
    sources = _sources(session, [pipeline.id for pipeline in pipelines])
    titles = _numbered([pipeline.name for pipeline in pipelines])
    sections = {
        "knowledge_bases": [_base_row(base, names[base.id]) for base in bases],
        "pipelines": [
            _pipeline_row(
                pipeline, title, [names[one] for one in sources.get(pipeline.id, ()) if one in names]
            )
            for pipeline, title in zip(pipelines, titles, strict=True)
        ],
    }
    return {section: sorted(rows, key=lambda row: str(row["name"])) for section, rows in sections.items()}


async def read_sections(
    platform: Platform,
    sections: Mapping[str, Any],
    place: ShareTarget,
    owner_id: int,
    policy: tenancy.ImportPolicy,
) -> tenancy.ImportPlan:
    """Check the sections that this plugin knows; returns how to write them. Raises Unprocessable."""
    mine = {key: sections[key] for key in SECTIONS if key in sections}
    try:
        parsed_sections = RagSections.model_validate(mine)
    except ValidationError as error:
        raise Unprocessable([_problem(item) for item in error.errors()[:50]]) from None
    problems = await _unavailable_models(platform, parsed_sections.knowledge_bases)
    arrival = Arrival(place, owner_id, policy, parsed_sections, problems)
    return tenancy.ImportPlan(list(mine), arrival.write)


async def _unavailable_models(platform: Platform, rows: Sequence[KnowledgeBaseRow]) -> dict[str, str]:
    """Why embedding models are unavailable here, by model."""
    problems = {}
    for model in dict.fromkeys(row.embedding_model for row in rows):
        try:
            await check_embedding_model(platform, model)
        except Unprocessable as error:
            problems[model] = str(error.detail[0]["msg"])
    return problems


class Names:
    """Names that are taken."""

    def __init__(self, names_in_use: Iterable[str]) -> None:
        self._names_in_use = set(names_in_use)
        self._last: dict[str, int] = {}

    def claim(self, name: str) -> str:
        """Take the name, or the first free one of 'name (2)', 'name (3)' …."""
        number, free = self._last.get(name, 1), name
        while free in self._names_in_use:
            number += 1
            suffix = f" ({number})"
            free = name[: _LONGEST_NAME - len(suffix)] + suffix
        self._last[name] = number
        self._names_in_use.add(free)
        return free


class Arrival:
    """Imports the rows of one bundle into a team or organization."""

    def __init__(
        self,
        place: ShareTarget,
        owner_id: int,
        policy: tenancy.ImportPolicy,
        sections: RagSections,
        problems: Mapping[str, str],
    ) -> None:
        self._place = place
        self._owner_id = owner_id
        self._policy = policy
        self._sections = sections
        self._problems = problems
        self._bases: dict[str, str] = {}  # from names in the bundle to ids here

    def write(self, unit: Unit) -> dict[str, list[tenancy.ImportedRow]]:
        """Add what is missing; knowledge bases first, as pipelines refer to them."""
        ids_by_name = self._shared_ids(unit.session, KnowledgeBase)
        names = Names(ids_by_name)
        bases = [self._base(unit, row, ids_by_name, names) for row in self._sections.knowledge_bases]
        ids_by_name = self._shared_ids(unit.session, Pipeline)
        names = Names(ids_by_name)
        pairs = [self._pipeline(unit, row, ids_by_name, names) for row in self._sections.pipelines]
        unit.session.flush()
        unit.session.add_all(source for _, sources in pairs for source in sources)
        return {"knowledge_bases": bases, "pipelines": [outcome for outcome, _ in pairs]}

    def _shared_ids(self, session: Session, table: type[R]) -> Mapping[str, str]:
        """The ids of what is shared there, by name; the oldest one's for duplicate names."""
        query = select(table.name, table.id).where(self._place.holds(table))
        rows = session.execute(query.order_by(table.created_at.desc(), table.id.desc()))
        return {row.name: row.id for row in rows}

    def _base(
        self, unit: Unit, row: KnowledgeBaseRow, ids_by_name: Mapping[str, str], names: Names
    ) -> tenancy.ImportedRow:
        kind, problem = "knowledge_base", self._problems.get(row.embedding_model)
        if row.name in ids_by_name and self._policy != "rename":
            self._bases[row.name] = ids_by_name[row.name]
            return self._existing_row(kind, row.name)
        if problem is not None:
            return tenancy.ImportedRow("failed", kind, row.name, problem)
        name = names.claim(row.name)
        date_field = known_date_field(BUILT_IN, row.date_field)  # others are not in the bundle
        settings = row.model_dump(exclude={"name", "date_field"})
        base = KnowledgeBase(**settings, name=name, date_field=date_field, **self._stamp())
        unit.session.add(base)
        self._bases[row.name] = base.id
        return _new_row(kind, row.name, name)

    def _pipeline(
        self, unit: Unit, row: PipelineRow, ids_by_name: Mapping[str, str], names: Names
    ) -> tuple[tenancy.ImportedRow, list[PipelineSource]]:
        kind = "pipeline"
        if row.name in ids_by_name and self._policy != "rename":
            return self._existing_row(kind, row.name), []
        missing = next((name for name in row.knowledge_bases if name not in self._bases), None)
        if missing is not None:
            reason = f"its knowledge base '{missing}' could not be created"
            return tenancy.ImportedRow("failed", kind, row.name, reason), []
        name = names.claim(row.name)
        pipeline = Pipeline(
            name=name,
            retrieval_config=row.retrieval_config.model_dump(mode="json", exclude_none=True),
            generation_config=row.generation_config.model_dump(exclude_none=True),
            **self._stamp(),
        )
        unit.session.add(pipeline)
        sources = [
            PipelineSource(pipeline_id=pipeline.id, position=at, knowledge_base_id=self._bases[one])
            for at, one in enumerate(row.knowledge_bases)
        ]
        return _new_row(kind, row.name, name), sources

    def _stamp(self) -> dict[str, Any]:
        return {
            "id": str(uuid.uuid4()),
            "owner_id": self._owner_id,
            "visibility": self._place.visibility,
            "team_id": self._place.team_id,
            "organization_id": self._place.organization_id,
        }

    def _existing_row(self, kind: str, name: str) -> tenancy.ImportedRow:
        outcome: tenancy.ImportOutcome = "collision" if self._policy == "fail" else "skipped"
        return tenancy.ImportedRow(outcome, kind, name, "the name is already taken")


def _new_row(kind: str, bundle_name: str, name: str) -> tenancy.ImportedRow:
    if name == bundle_name:
        return tenancy.ImportedRow("created", kind, name)
    return tenancy.ImportedRow("renamed", kind, name, f"'{bundle_name}' is already taken")


def _shared(session: Session, place: ShareTarget, table: type[R]) -> list[R]:
    query = select(table).where(place.holds(table)).order_by(table.created_at, table.id)
    return list(session.scalars(query))


def _sources(session: Session, pipelines: Sequence[str]) -> dict[str, list[str]]:
    ids_by_pipeline: dict[str, list[str]] = {}
    for start in range(0, len(pipelines), _IDS_AT_ONCE):
        query = (
            select(PipelineSource.pipeline_id, PipelineSource.knowledge_base_id)
            .where(PipelineSource.pipeline_id.in_(pipelines[start : start + _IDS_AT_ONCE]))
            .order_by(PipelineSource.pipeline_id, PipelineSource.position)
        )
        for pipeline_id, kb_id in session.execute(query):
            ids_by_pipeline.setdefault(pipeline_id, []).append(kb_id)
    return ids_by_pipeline


def _base_row(base: KnowledgeBase, name: str) -> dict[str, Any]:
    fields = {field: getattr(base, field) for field in KnowledgeBaseRow.model_fields}
    dates = {field: fields.pop(field) for field in ("date_field", "accept_dates")}
    return {**fields, **{field: value for field, value in dates.items() if value}, "name": name}


def _pipeline_row(pipeline: Pipeline, name: str, bases: list[str]) -> dict[str, Any]:
    return {
        "name": name,
        "knowledge_bases": bases,
        "retrieval_config": _fields_of(pipeline.retrieval_config, RetrievalRow),
        "generation_config": _fields_of(pipeline.generation_config, GenerationRow),
    }


def _fields_of(config: Mapping[str, Any], row: type[RetrievalRow] | type[GenerationRow]) -> dict[str, Any]:
    return {key: config[key] for key in row.model_fields if config.get(key) is not None}


def _numbered(names: Sequence[str]) -> list[str]:
    """The names without duplicates."""
    used_names = Names(names)
    earlier: set[str] = set()
    unique = []
    for name in names:
        unique.append(used_names.claim(name) if name in earlier else name)
        earlier.add(name)
    return unique


def _problem(item: Any) -> dict[str, Any]:
    """A problem, with its location in the request; the input is not echoed."""
    return {"type": item["type"], "loc": ["body", "bundle", *item["loc"]], "msg": item["msg"], "input": None}
