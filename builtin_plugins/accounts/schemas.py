"""Request and response bodies for accounts (spec 2.1 to 2.4)."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, EmailStr, Field, ValidationInfo, field_validator

from builtin_plugins.accounts.external_schemas import SignInMethod
from kernel.sdk import Body, PageQuery, example

_USERNAME = re.compile(r"[A-Za-z0-9_.-]{1,50}", re.ASCII)
_PASSWORD_LIMIT = 1024

AccountChange = Literal[
    "created",
    "signed_in",
    "refreshed",
    "activated",
    "deactivated",
    "deleted",
    "promoted",
    "demoted",
    "password_reset",
    "linked",
    "regrouped",
    "platform_admin_granted",
    "platform_admin_revoked",
]


def _username(value: str) -> str:
    if not _USERNAME.fullmatch(value):
        raise ValueError("use 1 to 50 letters, digits, '_', '.' or '-'")
    return value


Username = Annotated[
    str,
    AfterValidator(_username),
    Field(min_length=1, max_length=50, json_schema_extra={"pattern": "^[A-Za-z0-9_.-]+$"}),
]
Email = Annotated[EmailStr, Field(max_length=254)]
NewPassword = Annotated[str, Field(min_length=8, max_length=_PASSWORD_LIMIT)]
GivenPassword = Annotated[str, Field(min_length=1, max_length=_PASSWORD_LIMIT)]
InstanceRole = Literal["user", "admin"]


class RegisterRequest(Body):
    """A new account; a `role` in the body is ignored, as any other field."""

    model_config = ConfigDict(
        extra="ignore",
        **example(username="ada", email="ada@example.org", password="correct horse battery"),
    )

    username: Username
    email: Email
    password: NewPassword


class FirstAccountRequest(Body):
    """The first account, and the code that the platform printed when it started."""

    model_config = example(code="the printed code", username="ada", password="correct horse battery")

    code: str = Field(min_length=1, max_length=100)
    username: Username
    email: Email | None = Field(None, description="Without one, NAME@localhost.localdomain.")
    password: NewPassword


class RegisteredUser(BaseModel):
    """The account that was created."""

    id: int
    username: str
    email: str
    role: str
    created_at: datetime


class RegisterResult(BaseModel):
    """The result of a registration. No token is issued."""

    message: str
    user: RegisteredUser


class LoginRequest(Body):
    """Username (or email) and password; other fields, such as those of the registration, are ignored."""

    model_config = ConfigDict(extra="ignore", **example(username="ada", password="correct horse battery"))

    username: str = Field(min_length=1, max_length=320)
    password: GivenPassword


class User(RegisteredUser):
    """A user, as returned when signing in."""

    must_change_password: bool


class TokenResult(BaseModel):
    """A token."""

    access_token: str
    token_type: str = "bearer"
    expires_in: int = Field(description="Seconds until the token expires.")


class LoginResult(TokenResult):
    """A token and the account it belongs to."""

    user: User


class ChangePasswordRequest(Body):
    """The current and the new password."""

    model_config = example(current_password="correct horse battery", new_password="a better staple")

    current_password: GivenPassword
    new_password: NewPassword


class ForgottenPasswordRequest(Body):
    """The e-mail address of the account."""

    model_config = example(email="ada@example.org")

    email: Email


class ForgottenPasswordConfirm(Body):
    """The token from the e-mail and the new password."""

    model_config = example(token="the token of the e-mail", new_password="a better staple")

    token: str = Field(min_length=1, max_length=256)
    new_password: NewPassword


class Capabilities(BaseModel):
    """What this server offers for signing in and registering."""

    password_reset_email: bool
    email_verification: bool
    registration_mode: str
    first_account_wanted: bool = Field(
        False, description="Whether nobody has an account yet: the operator creates the first one."
    )
    password_reset_link_minutes: int | None = None
    self_serve_personal_orgs: bool = False
    sign_in_methods: list[SignInMethod] = Field([], description="Ways to sign in besides a password.")


class AccountStatusRequest(Body):
    """Whether the account can be used."""

    model_config = example(is_active=False)

    is_active: bool


class RoleRequest(Body):
    """The new instance role."""

    model_config = example(role="admin")

    role: InstanceRole


class ResetPasswordRequest(Body):
    """How to reset the password."""

    model_config = example(mode="generate")

    mode: Literal["set", "generate"]
    new_password: NewPassword | None = Field(
        None, validate_default=True, description="Needed when `mode` is `set`, ignored otherwise."
    )

    @field_validator("new_password")
    @classmethod
    def _require_new_password(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value is None and info.data.get("mode") == "set":
            raise ValueError("is needed when mode is 'set'")
        return value


class DeleteOwnRequest(Body):
    """The password, as confirmation."""

    model_config = example(password="correct horse battery")

    password: str | None = Field(
        None,
        max_length=_PASSWORD_LIMIT,
        description="Required unless you sign in through an identity provider.",
    )


class HeirQuery(BaseModel):
    """Who takes over what others use."""

    heir_id: int | None = Field(
        None,
        ge=1,
        le=2**31 - 1,
        description="The account that becomes the owner of what the deleted account shares. It must"
        " be in the teams and organizations concerned.",
    )


class AccountDeletion(BaseModel):
    """A deletion under way. The account is gone; a job removes what belonged to it."""

    account_id: int
    job_id: str
    job: str = Field(description="Where administrators can follow the job.")


class ResetPasswordResult(BaseModel):
    """The temporary password. It is shown only now."""

    temporary_password: str


class OrganizationMembership(BaseModel):
    """An organization that an account belongs to, and what the account is there."""

    id: int
    name: str
    slug: str
    role: str


class UserRecord(User):
    """An account as administrators see it."""

    is_active: bool
    platform_admin: bool
    sso: bool = Field(description="Signs in through an identity provider and has no password here.")
    organizations: list[OrganizationMembership]


class UsersQuery(PageQuery):
    """Which accounts to list."""

    org_id: int | None = Field(None, ge=1, le=2**31 - 1, description="Members of this organization.")
    q: str | None = Field(None, min_length=1, max_length=320, description="Part of the name or the e-mail.")
    role: InstanceRole | None = Field(None, description="Accounts with this instance role.")
    is_active: bool | None = Field(None, description="Active or deactivated accounts.")
    platform_admin: bool | None = Field(None, description="Platform Admins, or all others.")
    sso: bool | None = Field(None, description="Accounts of an identity provider, or local ones.")
