"""Bodies and answers of the catalog (wire-facts 10.1 to 10.4). Times are naive UTC."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    EmailStr,
    Field,
    PlainSerializer,
    StringConstraints,
)
from yarl import URL

from kernel.sdk import READABLE, Body, example

from .states import Status


def _naive(moment: datetime) -> str:
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat()


def _web_address(value: str) -> str:
    try:
        url = URL(value)
    except ValueError:
        raise ValueError("not an address; write https://host/path") from None
    if url.scheme not in ("http", "https") or not url.host:
        raise ValueError("must begin with https:// or http:// and name a host")
    return value


def _clean(value: str) -> str:
    return " ".join(value.split())


_OLD: Any = {"deprecated": True}
NaiveUtc = Annotated[datetime, PlainSerializer(_naive, return_type=str)]
Name = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=100, pattern=r"^[^\x00-\x1f/]+$"),
    AfterValidator(_clean),
    READABLE,
]
DisplayName = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200), READABLE]
Author = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=100), READABLE]
Description = Annotated[str, Field(max_length=20_000)]
Address = Annotated[str, Field(max_length=2000), AfterValidator(_web_address)]
Uuid = Annotated[
    str, StringConstraints(to_lower=True, pattern=r"^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$")
]
Services = Annotated[list[Annotated[str, Field(min_length=1, max_length=100)]], Field(max_length=50)]
Tier = Literal["free", "community", "pro", "enterprise"]
Pricing = Literal["free", "paid", "freemium"]
Distribution = Literal["git", "docker", "hybrid"]
Package = Annotated[str, Field(max_length=200, pattern=r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$")]
VersionRange = Annotated[str, Field(max_length=200, pattern=r"^[0-9A-Za-z.,*+!<>=~ -]*$")]


class ListingCreate(Body):
    """A plugin to add to the catalog."""

    model_config = example(
        name="tide-tables",
        display_name="Tide tables",
        author="Ada Harbour",
        description="Shows the tides of a port.",
        repository_url="https://example.org/tide-tables",
        package="tide-tables",
        version_range=">=1.2,<2",
    )

    name: Name
    display_name: DisplayName
    author: Author
    description: Description | None = None
    author_email: EmailStr | None = None
    repository_url: Address | None = None
    distribution_type: Distribution = "git"
    docker_image: Annotated[str, Field(max_length=500)] | None = None
    package: Package | None = Field(None, description="Name of the pip package.")
    version_range: VersionRange | None = Field(None, description="Versions of the package, as in PEP 440.")
    current_version: Annotated[str, Field(max_length=100)] | None = None
    pricing_model: Pricing = "free"
    base_tier: Tier = "community"
    category_id: Uuid | None = None
    developer_id: Uuid | None = None
    requires_services: Services = Field(default_factory=list)


class ListingUpdate(BaseModel):
    """What is to change. Not `status`, which the submissions routes change."""

    model_config = ConfigDict(
        extra="allow", json_schema_extra={"examples": [{"description": "Shows the tides of 400 ports."}]}
    )

    name: Name | None = None
    display_name: DisplayName | None = None
    description: Description | None = None
    author: Author | None = None
    pricing_model: Pricing | None = None
    base_tier: Tier | None = None
    featured: bool | None = None
    requires_services: Services | None = None
    repository_url: Address | None = None
    package: Package | None = None
    version_range: VersionRange | None = None
    current_version: Annotated[str, Field(max_length=100)] | None = None
    category_id: Uuid | None = None


class Check(BaseModel):
    """An automatic check of a submission."""

    check: str
    ok: bool
    message: str


class WheelOut(BaseModel):
    """The metadata of the wheel that came with a submission."""

    filename: str
    sha256: str = Field(description="Compare it with that of the published package.")
    size_bytes: int
    uploaded_at: str
    name: str
    version: str
    license: str
    plugins: list[str]


class ListingOut(BaseModel):
    """A listing (wire-facts 10.1)."""

    id: str
    name: str
    display_name: str
    description: str | None
    author: str
    author_email: str | None = Field(description="Not shown: always null.")
    repository_url: str | None
    distribution_type: Distribution
    docker_image: str | None
    package: str | None
    version_range: str | None
    current_version: str | None
    pricing_model: Pricing
    base_tier: str
    status: Status
    featured: bool
    download_count: int
    rating_average: float | None
    rating_count: int
    created_at: NaiveUtc
    updated_at: NaiveUtc
    published_at: NaiveUtc | None
    developer_id: str | None
    category_id: str | None
    requires_services: list[str]
    origin: Literal["first_party", "submitted"]
    submitted_by: str | None
    reviewed_by: str | None
    review_notes: str | None
    checks: list[Check] | None = Field(
        None, description="What was checked at the submission; for its author and administrators."
    )
    wheel: WheelOut | None = Field(
        None, description="The wheel that was uploaded for review; for its author and administrators."
    )


class CatalogQuery(BaseModel):
    """Which part of a list to return. `page` and `page_size` are deprecated."""

    limit: int = Field(10, ge=1, le=100, description="Largest number of items to return.")
    offset: int = Field(0, ge=0, le=2**53, description="Number of items to skip.")
    page: int | None = Field(None, ge=1, le=2**31, json_schema_extra=_OLD, description="Use offset.")
    page_size: int | None = Field(None, ge=1, le=100, json_schema_extra=_OLD, description="Use limit.")

    @property
    def slice(self) -> tuple[int, int]:
        """(limit, offset), whichever way they were given."""
        if self.page is None and self.page_size is None:
            return self.limit, self.offset
        size = self.page_size or self.limit
        return size, ((self.page or 1) - 1) * size


class ListingsQuery(CatalogQuery):
    """Which listings."""

    category: str | None = Field(None, max_length=100, description="Id or slug of a category.")
    pricing_model: Pricing | None = None
    status: Status = "approved"


class SearchQuery(CatalogQuery):
    """What to look for."""

    q: str = Field(min_length=1, max_length=200, description="Words, or the beginning of a name.")


class FeaturedQuery(BaseModel):
    """How many featured listings."""

    limit: int = Field(10, ge=1, le=50, description="Largest number of items to return.")


class ListingPage(BaseModel):
    """A page of listings."""

    plugins: list[ListingOut]
    count: int = Field(description="Listings on this page.")
    total: int
    limit: int
    offset: int
    page: int
    page_size: int
    total_pages: int


class InstallationOut(BaseModel):
    """A plugin that an account has installed."""

    id: str
    user_id: str
    plugin_id: str
    version: str | None
    status: Literal["installing", "installed", "failed", "uninstalled"]
    enabled: bool
    config_json: Any = None
    installed_at: NaiveUtc
    last_updated_at: NaiveUtc


class InstallationPage(BaseModel):
    """A page of installations."""

    installations: list[InstallationOut]
    count: int
    total: int
    limit: int
    offset: int


class MyInstallation(BaseModel):
    """An installation of the caller, with what the catalog says about the plugin."""

    installation_id: str
    plugin_id: str
    version: str | None
    status: str
    enabled: bool
    installed_at: NaiveUtc
    last_updated_at: NaiveUtc
    name: str
    display_name: str
    description: str | None
    current_version: str | None
    pricing_model: str
    base_tier: str
    category_id: str | None
    author: str | None
    requires_services: list[str]


class MyInstallations(BaseModel):
    """All that the caller has installed."""

    installations: list[MyInstallation]
    count: int


class Switched(BaseModel):
    """What happened to an installation."""

    status: Literal["uninstalled", "enabled", "disabled"]
    plugin_id: str


class Enabled(Switched):
    """What was enabled, and with it."""

    auto_enabled_dependencies: list[str]


class RatingRequest(Body):
    """One to five stars, and why."""

    model_config = example(rating=5, review_text="Knows every port I asked for.")

    rating: int = Field(ge=1, le=5, strict=True)
    review_text: Annotated[str, Field(max_length=4000)] | None = None


class RatingOut(BaseModel):
    """A review."""

    id: str
    plugin_id: str
    user_id: str
    username: str
    rating: int
    review_text: str | None
    created_at: NaiveUtc
    updated_at: NaiveUtc


class RatingGiven(RatingOut):
    """A new review, and the overall rating."""

    rating_average: float | None
    rating_count: int


class RatingsQuery(BaseModel):
    """Which reviews."""

    limit: int = Field(20, ge=1, le=100, description="Largest number of items to return.")
    offset: int = Field(0, ge=0, le=2**53, description="Number of items to skip.")


class RatingPage(BaseModel):
    """The overall rating, and a page of reviews, newest first."""

    rating_average: float | None
    rating_count: int
    reviews: list[RatingOut]
    count: int
    total: int
    limit: int
    offset: int


class CategoryCreate(Body):
    """A category of the catalog, to create."""

    model_config = example(name="Weather", slug="weather", description="Forecasts and tides")

    name: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=100), READABLE]
    slug: Annotated[str, Field(max_length=100, pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")]
    description: Annotated[str, Field(max_length=1000)] = ""


class CategoryOut(BaseModel):
    """A category, and how many approved plugins are in it."""

    id: str
    name: str
    slug: str
    description: str
    plugin_count: int


class Categories(BaseModel):
    """All categories, by name."""

    categories: list[CategoryOut]
    count: int
