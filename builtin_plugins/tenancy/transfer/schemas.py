"""Bundles of teams and organizations, and what an import returns (decisions.md, "Export bundles")."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from builtin_plugins.tenancy import api
from kernel.sdk import Body, example

MAX_BUNDLE = 16 * 1024 * 1024
MAX_MEMBERS = 20_000

Email = Annotated[str, Field(min_length=3, max_length=320)]
Name = Annotated[str, Field(min_length=1, max_length=255)]


class _Strict(Body):
    model_config = ConfigDict(strict=True)


class TeamAbout(_Strict):
    """The team that was exported. An import does not change the name and description of the target team."""

    name: Name
    description: Annotated[str, Field(max_length=10_000)] = ""


class TeamMemberRow(_Strict):
    """A member by e-mail. The role is for information only: everyone is imported as `member`."""

    email: Email
    team_role: Literal["team_admin", "member"] = "member"


class OrganizationAbout(_Strict):
    """The organization that was exported. An import does not change the name and slug of the target
    organization.
    """

    name: Name
    slug: Annotated[str, Field(min_length=1, max_length=63)]


class OrganizationMemberRow(_Strict):
    """A member by e-mail. The role is for information only; suspended members are not imported."""

    email: Email
    org_role: Literal["owner", "admin", "member"] = "member"
    suspended: bool = False


R = TypeVar("R", TeamMemberRow, OrganizationMemberRow)


def _once(rows: list[R]) -> list[R]:
    """Each member once, as it would be unclear which of two roles counts."""
    emails: set[str] = set()
    for row in rows:
        if row.email.casefold() in emails:
            raise ValueError(f"the e-mail address '{row.email}' appears twice")
        emails.add(row.email.casefold())
    return rows


class _Bundle(BaseModel):
    model_config = ConfigDict(extra="allow")

    version: Annotated[int, Field(strict=True, ge=1, le=1)]
    exported_at: datetime | None = None

    @property
    def sections(self) -> dict[str, Any]:
        """The sections that plugins added."""
        return dict(self.model_extra or {})


class TeamBundle(_Bundle):
    """A team as a file: its data, members and what is shared with it, without documents, ids or secrets.

    Additional keys are lists of rows from plugins, such as `knowledge_bases` and `pipelines`.
    """

    format: Literal["platform.team"]
    team: TeamAbout
    members: Annotated[list[TeamMemberRow], AfterValidator(_once)] = []


class OrganizationBundle(_Bundle):
    """An organization as a file: its data, members and what is shared with it, without documents, ids or
    secrets.

    Additional keys are lists of rows from plugins, such as `knowledge_bases` and `pipelines`.
    """

    format: Literal["platform.organization"]
    organization: OrganizationAbout
    members: Annotated[list[OrganizationMemberRow], AfterValidator(_once)] = []


B = TypeVar("B", TeamBundle, OrganizationBundle)


def _small(bundle: B) -> B:
    """Limit a bundle to what one transaction can import; an export may be larger."""
    if len(bundle.members) > MAX_MEMBERS:
        raise ValueError(f"it has more than {MAX_MEMBERS:,} members; import them in several bundles")
    return bundle


class TeamImport(Body):
    """A team's bundle, and what to do if a name is already taken."""

    model_config = example(
        bundle={
            "format": "platform.team",
            "version": 1,
            "team": {"name": "Field service", "description": "Stations north of the Arctic Circle"},
            "members": [{"email": "grace@example.org", "team_role": "member"}],
        },
        policy="skip",
    )

    bundle: Annotated[TeamBundle, AfterValidator(_small)]
    policy: api.ImportPolicy = "skip"


class OrganizationImport(Body):
    """An organization's bundle, and what to do if a name is already taken."""

    model_config = example(
        bundle={
            "format": "platform.organization",
            "version": 1,
            "organization": {"name": "Nordlys Instruments", "slug": "nordlys"},
            "members": [{"email": "grace@example.org", "org_role": "member"}],
        },
        policy="skip",
    )

    bundle: Annotated[OrganizationBundle, AfterValidator(_small)]
    policy: api.ImportPolicy = "skip"


class ImportQuery(BaseModel):
    """How to import."""

    dry_run: bool = Field(False, description="Return the same report without changing anything.")


class ImportItem(BaseModel):
    """One row of a bundle; `name` is its name after the import."""

    kind: str = Field(description="`member`, `knowledge_base`, `pipeline` …")
    name: str
    reason: str | None = None


class ImportReport(BaseModel):
    """What an import created, skipped, renamed, and could not import."""

    created: list[ImportItem] = []
    skipped: list[ImportItem] = []
    renamed: list[ImportItem] = []
    failed: list[ImportItem] = []
