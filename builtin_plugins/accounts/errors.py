"""Errors of identity (spec section 7)."""

from __future__ import annotations

from kernel.sdk import BadRequest, Conflict, Forbidden, NotFound, Unauthorized


class AlreadyExists(Conflict):
    code = "already_exists"
    default_detail = "A user with this username or email already exists"


class BadCredentials(Unauthorized):
    code = "invalid_credentials"
    default_detail = "Invalid username or password"


class AccountDisabled(Forbidden):
    code = "account_disabled"
    default_detail = "This account is disabled; ask an administrator"


class RegistrationClosed(Forbidden):
    code = "registration_closed"
    default_detail = "Registration is closed; ask an administrator for an account"


class FirstAccountExists(Conflict):
    code = "first_account_exists"
    default_detail = "There is an administrator already; sign in, or ask them for an account"


class WrongFirstCode(Forbidden):
    code = "wrong_first_code"
    default_detail = "This is not the code that the platform printed when it started last"


class SessionOver(Unauthorized):
    code = "session_over"
    default_detail = "The session has reached its maximum length; sign in again"


class WrongPassword(BadRequest):
    code = "wrong_password"
    default_detail = "The current password is wrong"


class SamePassword(BadRequest):
    code = "same_password"
    default_detail = "The new password must differ from the current one"


class SsoAccount(Conflict):
    code = "sso_account"
    default_detail = "This account signs in through the identity provider and has no password here"


class OwnAccount(Conflict):
    code = "own_account"
    default_detail = "You can't do this to your own account"


class LastPlatformAdmin(Conflict):
    code = "last_platform_admin"
    default_detail = "This is the last active Platform Admin; make another one first"


class LastAdmin(Conflict):
    code = "last_admin"
    default_detail = "This is the last active instance administrator; promote another account first"


class StillShared(Conflict):
    code = "still_shared"


class SignInAgain(Forbidden):
    code = "sign_in_again"
    default_detail = (
        "Sign in again through the identity provider, then delete your account within ten minutes"
    )


class MailOff(NotFound):
    code = "mail_off"
    default_detail = "This platform does not send e-mail; ask an administrator to reset your password"


class BadResetToken(BadRequest):
    code = "bad_reset_token"
    default_detail = "This link was already used or replaced, or it has expired; request a new one"
