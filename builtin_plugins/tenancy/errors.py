"""Errors of tenancy."""

from __future__ import annotations

from kernel.sdk import Conflict, Forbidden, NotFound


class OrganizationNotFound(NotFound):
    code = "organization_not_found"
    default_detail = "Organization not found"


class MemberNotFound(NotFound):
    code = "member_not_found"
    default_detail = "This account is not a member here"


class TeamNotFound(NotFound):
    code = "team_not_found"
    default_detail = "Team not found"


class NotAMember(Forbidden):
    code = "not_a_member"
    default_detail = "You are not an active member of this organization"


class NotManaged(Forbidden):
    code = "not_managed"
    default_detail = "This account is not managed by this organization"


class AboveYou(Forbidden):
    code = "needs_roles_manage"
    default_detail = "Acting on owners and admins needs the permission org.roles.manage here"


class SlugTaken(Conflict):
    code = "slug_taken"
    default_detail = "An organization with this slug already exists; choose another"


class TooDeep(Conflict):
    code = "too_deep"


class LastOwner(Conflict):
    code = "last_owner"
    default_detail = "This is the last active owner of the organization; make somebody else owner first"
