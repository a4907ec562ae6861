"""Automatic checks of a submission, before a person reviews it. They inform; a person decides.

They run in the transaction of the submission, under the listing's lock, so that they match what was
submitted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name
from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from builtin_plugins.plugin_registry import api as plugin_registry
from builtin_plugins.tools.api import Directory
from kernel.sdk import API_VERSION, Platform
from kernel.sdk.operations import fits_contract

from ..models import Listing
from ..schemas import Check
from ..states import PUBLIC

_SHORTEST = 20
_NO_WHEEL = "No wheel was uploaded: POST it to /v1/marketplace/submissions/{plugin_id}/package"


def run_checks(session: Session, platform: Platform, listing: Listing) -> list[Check]:
    """The results of the checks for a listing that is about to be submitted."""
    installed_names = Directory(platform).taken_names()
    return [
        _metadata(listing),
        _source(listing),
        _package(listing),
        _license(listing.wheel),
        _api_version(listing.wheel),
        _names(session, listing, installed_names),
        _conflicts(session, platform, listing, installed_names),
        _files(listing.wheel),
    ]


def _check(name: str, problems: Iterable[str], fine: str) -> Check:
    messages = list(problems)
    return Check(check=name, ok=not messages, message="; ".join(messages) or fine)


def _metadata(listing: Listing) -> Check:
    short = len((listing.description or "").strip()) < _SHORTEST
    problems = [f"The description has fewer than {_SHORTEST} characters"] if short else []
    return _check("metadata", problems, "There is a description")


def _source(listing: Listing) -> Check:
    problems = [] if listing.repository_url else ["No repository_url: a reviewer can't see the source"]
    return _check("source", problems, f"The source is at {listing.repository_url}")


def _package(listing: Listing) -> Check:
    return _check("package", _package_problems(listing), f"The pip package is {listing.package}")


def _package_problems(listing: Listing) -> Iterable[str]:
    if listing.package is None:
        yield "No pip package is named: nobody can install it"
        return
    try:
        versions = SpecifierSet(listing.version_range or "")
    except InvalidSpecifier:
        yield f"'{listing.version_range}' is not a version range; write one such as >=1.2,<2"
        return
    wheel = listing.wheel
    if not wheel:
        return
    if canonicalize_name(wheel["name"]) != canonicalize_name(listing.package):
        yield f"The wheel's package is '{wheel['name']}', the listing names '{listing.package}'"
    if not _contains(versions, wheel["version"]):
        yield f"The wheel's version {wheel['version']} is not in the range {versions}"
    if not wheel["plugins"]:
        yield "The wheel has no entry point in the group 'platform.plugins'"


def _contains(versions: SpecifierSet, version: str) -> bool:
    try:
        return versions.contains(version, prereleases=True)
    except ValueError:
        return False


def _license(wheel: Mapping[str, Any] | None) -> Check:
    # All of SPDX, which takes 4 % of the startup time: only submissions need it.
    from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression

    if not wheel:
        return _check("license", [_NO_WHEEL], "")
    stated = wheel["license"]
    if not stated:
        return _check("license", ["The wheel's metadata name no license"], "")
    try:
        return _check("license", [], f"The license is {canonicalize_license_expression(stated)}")
    except InvalidLicenseExpression:
        return _check("license", [], f"The license is stated as '{stated}', which is not an SPDX expression")


def _api_version(wheel: Mapping[str, Any] | None) -> Check:
    if not wheel:
        return _check("api_version", [_NO_WHEEL], "")
    fine = f"It fits this platform's plugin API {API_VERSION}"
    return _check("api_version", _api_problems(wheel["api_versions"]), fine)


def _api_problems(versions: Mapping[str, str | None]) -> Iterable[str]:
    for plugin, version in versions.items():
        if version == "?":
            yield f"The source of plugin '{plugin}' can't be read in the wheel"
        elif version is not None and not fits_contract(version):
            yield f"Plugin '{plugin}' is written for plugin API {version}; this platform offers {API_VERSION}"


def _names(session: Session, listing: Listing, installed_names: frozenset[str]) -> Check:
    return _check("names", _name_problems(session, listing, installed_names), "No other plugin has its names")


def _name_problems(session: Session, listing: Listing, installed_names: frozenset[str]) -> Iterable[str]:
    names = [listing.name_key, *(listing.wheel or {}).get("plugins", ())]
    for name in dict.fromkeys(name for name in names if name in installed_names):
        yield f"A plugin of this platform is called '{name}'"
    if listing.package is None:
        return
    # The author reads this: don't reveal names of others' unpublished listings, or their drafts at all.
    named = or_(Listing.status == PUBLIC, Listing.submitted_by == listing.submitted_by)
    others = select(Listing.name, Listing.package, named.label("named")).where(
        Listing.package.is_not(None),
        Listing.id != listing.id,
        Listing.status != "archived",
        or_(named, Listing.status.in_(("submitted", "in_review"))),
    )
    own = canonicalize_name(listing.package)
    rows = [row for row in session.execute(others) if canonicalize_name(str(row.package)) == own]
    for row in rows:
        if row.named:
            yield f"The package '{row.package}' is already listed as '{row.name}'"
    if not all(row.named for row in rows):
        yield "Another listing with this package is under review"


def _conflicts(
    session: Session, platform: Platform, listing: Listing, installed_names: frozenset[str]
) -> Check:
    problems = list((listing.wheel or {}).get("clashes", ()))
    judged = platform.hooks.ask_now(
        plugin_registry.judge_dependencies, platform=platform, session=session, plugin_id=listing.id
    )
    if judged is not None:
        problems += judged.failures
        problems += [reason or name for name, reason in judged.conflicts if name in installed_names]
    if not problems and not listing.wheel:
        problems = [_NO_WHEEL]
    return _check("conflicts", problems, "It needs nothing that clashes with this platform")


def _files(wheel: Mapping[str, Any] | None) -> Check:
    if not wheel:
        return _check("files", [_NO_WHEEL], "")
    return _check("files", wheel["forbidden"], "It contains no file that a plugin may not contain")
