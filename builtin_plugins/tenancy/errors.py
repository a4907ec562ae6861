"""Errors of tenancy."""

from __future__ import annotations

from kernel.sdk import Conflict, Forbidden, NotFound


class OrganizationNotFound(NotFound):
    code = "organization_not_found"
    default_detail = "Organization not found"


class MemberNotFound(NotFound):
    code = "member_not_found"
    default_detail = "This account is not a member of this organization"


class TeamNotFound(NotFound):
    code = "team_not_found"
    default_detail = "Team not found"


class NotAMember(Forbidden):
    code = "not_a_member"
    default_detail = "You are not an active member of this organization"


class NotManaged(Forbidden):
    code = "not_managed"
    default_detail = (
        "This account is not managed by this organization: it must belong to this organization and no other, "
        "and have agreed to be managed"
    )


class OnlyWayIn(Conflict):
    code = "only_way_in"
    default_detail = (
        "This organization gave you your only way to sign in; choose a password of your own first "
        "(POST /v1/auth/change-password)"
    )


class AboveYou(Forbidden):
    code = "above_you"
    default_detail = "To act on owners and admins you need the permission org.roles.manage here"


class OwnerNotReset(Forbidden):
    code = "owner_not_reset"
    default_detail = "An organization can't reset the password of an owner; a Platform Admin can"


class SlugTaken(Conflict):
    code = "slug_taken"
    default_detail = "An organization with this slug already exists; choose another"


class TooDeep(Conflict):
    code = "too_deep"


class LastOwner(Conflict):
    code = "last_owner"
    default_detail = "This is the last active owner of the organization; make another member an owner first"


class TeamNameTaken(Conflict):
    code = "team_name_taken"
    default_detail = "A team with this name already exists (case does not matter); choose another"


class UserNotFound(NotFound):
    code = "user_not_found"
    default_detail = "There is no active account with this id"


class AlreadyMember(Conflict):
    code = "already_member"
    default_detail = "This account is already a member"


class OutsideOrganization(Conflict):
    code = "outside_organization"
    default_detail = (
        "The team belongs to an organization, and this account is not an active member of it; "
        "add it there first"
    )


class LastTeamAdmin(Conflict):
    code = "last_team_admin"
    default_detail = (
        "This is the last active team_admin; make another member team_admin first, or delete the team"
    )


class InviteNotFound(NotFound):
    code = "invite_not_found"
    default_detail = "Invite not found"


class InviteNotPending(Conflict):
    code = "invite_not_pending"


class IdempotencyKeyUsed(Conflict):
    code = "idempotency_key_used"
    default_detail = (
        "You have already used this idempotency_key to invite this address, with another role or number of "
        "uses; use a new key for another invite"
    )


class InviteRevoked(Conflict):
    code = "invite_revoked"
    default_detail = "The invite was revoked; ask for a new one"


class InviteExpired(Conflict):
    code = "invite_expired"
    default_detail = "The invite has expired; ask for a new one"


class InviteSpent(Conflict):
    code = "invite_spent"
    default_detail = "The invite has already been used; ask for a new one"


class InviteWithdrawn(Conflict):
    code = "invite_withdrawn"
    default_detail = "The sender of this invite may no longer invite people; ask for a new one"


class InviteClosed(Conflict):
    code = "invite_closed"
    default_detail = (
        "You can't use this invite again: you used it before, or were removed after it was sent; "
        "ask for a new one"
    )


class InviteForAnother(Forbidden):
    code = "invite_for_another"
    default_detail = (
        "This invite was sent to another e-mail address; sign in with the account that has that address"
    )


class MembershipSuspended(Forbidden):
    code = "membership_suspended"
    default_detail = "Your membership is suspended, and an invite does not lift that; ask an administrator"


class RoleNotFound(NotFound):
    code = "role_not_found"
    default_detail = "Role not found"


class PermissionGroupNotFound(NotFound):
    code = "permission_group_not_found"
    default_detail = "Permission group not found"


class AssignmentNotFound(NotFound):
    code = "assignment_not_found"
    default_detail = "The member does not have this role in this organization"


class KeyNotHeld(Forbidden):
    code = "key_not_held"


class DefinedAbove(Forbidden):
    code = "defined_above"


class BuiltinRole(Conflict):
    code = "builtin_role"
    default_detail = "Built-in roles can't be changed; create your own role instead"


class NameTaken(Conflict):
    code = "name_taken"


class InUse(Conflict):
    code = "in_use"


class GroupCycle(Conflict):
    code = "group_cycle"
    default_detail = "A permission group can't be nested in itself, neither directly nor through others"


class GroupsTooDeep(Conflict):
    code = "groups_too_deep"


class LimitReached(Conflict):
    code = "limit_reached"


class MemberSuspended(Conflict):
    code = "member_suspended"
    default_detail = "The membership is suspended; lift the suspension first"
