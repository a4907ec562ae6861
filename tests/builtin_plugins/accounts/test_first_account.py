"""`POST /v1/auth/first-account`: the first account, made by whoever was shown the code, once."""

from __future__ import annotations

import asyncio

from kernel.testing import Running, Start

PATH = "/v1/auth/first-account"
CODE = "the code that was printed"


async def started(start_platform: Start) -> Running:
    running = await start_platform()
    running.platform.secrets.set("first-account", CODE)
    return running


def body(code: str, username: str = "ada") -> dict[str, str]:
    return {"code": code, "username": username, "password": "correct horse battery"}


async def test_once(start_platform: Start) -> None:
    """It signs an administrator in, who becomes Platform Admin; afterwards the code is worth nothing."""
    running = await started(start_platform)
    refused = await running.anonymous.post(PATH, json=body("another code"))
    assert (refused.status, refused.json()["code"]) == (403, "wrong_first_code")
    made = await running.anonymous.post(PATH, json=body(CODE))
    assert (made.status, made.json()["user"]["role"]) == (201, "admin")
    ada = await running.sign_in("ada", "correct horse battery")
    [account] = (await ada.get("/v1/auth/users")).json()["items"]
    assert (account["username"], account["platform_admin"]) == ("ada", True)
    again = await running.anonymous.post(PATH, json=body(CODE, "eve"))
    assert (again.status, again.json()["code"]) == (409, "first_account_exists")
    assert running.platform.secrets.get("first-account") is None


async def test_after_a_stranger_registered(start_platform: Start) -> None:
    """Whoever registers before does not keep the one with the code out; an administrator does."""
    running = await started(start_platform)
    eve = {"username": "eve", "email": "eve@example.org", "password": "correct horse battery"}
    assert (await running.anonymous.post("/v1/auth/register", json=eve)).status == 201
    taken = await running.anonymous.post(PATH, json=body(CODE, "eve"))
    assert (taken.status, taken.json()["code"]) == (409, "already_exists")
    assert (await running.anonymous.post(PATH, json=body(CODE))).status == 201
    again = await running.anonymous.post(PATH, json=body(CODE, "mallory"))
    assert (again.status, again.json()["code"]) == (409, "first_account_exists")


async def test_two_at_the_same_time(start_platform: Start) -> None:
    """Of two requests with the right code, one makes the account."""
    running = await started(start_platform)
    answers = await asyncio.gather(
        *(running.anonymous.post(PATH, json=body(CODE, name)) for name in ("ada", "eve"))
    )
    statuses = sorted(answer.status for answer in answers)
    assert statuses[0] == 201 and statuses[1] in (403, 409)


async def test_without_a_code(start_platform: Start) -> None:
    """Where none was printed, none is right."""
    running = await start_platform()
    assert (await running.anonymous.post(PATH, json=body("any"))).status == 403
