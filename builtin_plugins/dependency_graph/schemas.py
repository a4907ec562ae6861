"""Queries and answers of the graph (spec 2.10, wire-facts 10.7)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from pydantic import AfterValidator, BaseModel, Field
from typing_extensions import TypedDict

DependencyType = Literal["requires", "suggests", "conflicts_with"]
DependsOnType = Literal["plugin", "bundle"]
Verdict = Literal["resolved", "missing", "version_mismatch", "conflict"]
Id = Annotated[str, Field(min_length=1, max_length=100)]
Name = Annotated[str, Field(max_length=200)]


def _constraint(value: str) -> str:
    try:
        return str(SpecifierSet(value))
    except InvalidSpecifier:
        raise ValueError("not a range of versions; write one such as >=1.2,<2 (PEP 440)") from None


class AddDependency(BaseModel):
    """An edge to be written, or changed."""

    plugin_id: Id
    depends_on: Id
    dependency_type: DependencyType = "requires"
    depends_on_type: DependsOnType = "plugin"
    version_constraint: Annotated[str, Field(max_length=200), AfterValidator(_constraint)] | None = None
    plugin_name: Name | None = None
    depends_on_name: Name | None = None


class RemoveDependency(BaseModel):
    """An edge to be removed."""

    plugin_id: Id
    depends_on: Id
    depends_on_type: DependsOnType = "plugin"


class DependencyAdded(BaseModel):
    """The edge as it is now."""

    status: str = "success"
    plugin_id: str
    depends_on: str
    type: DependencyType
    depends_on_type: DependsOnType
    version_constraint: str | None


class Dependency(TypedDict):
    """A plugin that is required, directly (depth 1) or through others."""

    plugin_id: str
    name: str
    depth: int


class Resolution(BaseModel):
    """All that a plugin requires, and whether it is compatible."""

    plugin_id: str
    resolves: bool
    resolve_failures: list[str] = Field(
        description="What is incompatible, each with its shortest explanation."
    )
    nodes: list[dict[str, Any]] = Field(
        description="Plugins and bundles that are required, with depth, version and who requires them; "
        "suggested plugins have dependency_type suggests."
    )
    verdict: Verdict
    reason: str | None
    dependencies: list[Dependency]
    total_count: int


class ConflictOut(BaseModel):
    """A plugin that conflicts with the given one."""

    plugin_id: str
    name: str
    reason: str | None


class Conflicts(BaseModel):
    """Conflicts in both directions."""

    plugin_id: str
    conflicts: list[ConflictOut]
    conflict_count: int


class RecommendQuery(BaseModel):
    """How many."""

    limit: int = Field(5, ge=1, le=50, description="Largest number of items to return.")


class Recommendation(BaseModel):
    """A plugin that goes with the given ones, and why."""

    plugin_id: str
    name: str
    score: float
    reason: str


class Recommendations(BaseModel):
    """Plugins that go with those in the request."""

    installed_plugins: list[str]
    recommendations: list[Recommendation]
    count: int


class BundleRequired(BaseModel):
    """Whether plugins need a bundle."""

    bundle: str
    confirmed: bool
    required: bool | None
    requiring_plugins: list[str]
    reason: str | None


class GraphHealthResponse(BaseModel):
    """Health of the graph."""

    status: Literal["healthy", "unhealthy"]
    database: str = "rdf"
    checks: dict[str, str]
