"""What a plugin that signs people in passes to the kernel, and what sign-in pages get."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, Field


@dataclass(frozen=True)
class ExternalIdentity:
    """A person whose identity a provider has confirmed.

    `issuer` and `subject` identify the person; the other fields describe them. `is_email_verified`: the
    provider says that the address is proven. None means that the provider
    did not say: an existing account keeps what it has, and a new one gets a name made from the subject, the
    address ``<subject>@<host of the issuer>`` and the role `user`.
    """

    issuer: str
    subject: str
    username: str | None = None
    email: str | None = None
    role: Literal["user", "admin"] | None = None
    is_email_verified: bool = False


class SignInMethod(BaseModel):
    """A way to sign in besides username and password: a button that opens `login_url`."""

    name: str = Field(description="Stable name, such as `sso`.")
    label: str = Field(description="What to write on the button.")
    login_url: str = Field(
        description="Where the browser goes; it comes back to the client's /auth/callback."
    )
