"""`platformctl secret change-key`: stored secrets are sealed with a new key, and stay what they were."""

from __future__ import annotations

from builtin_plugins.owner_secrets.api import OWNER_SECRETS, SecretOwner
from kernel.testing import Start
from tests.fakes.processes import process_environment, running_process


async def test_beside_a_running_platform(start_platform: Start) -> None:
    running = await start_platform("owner_secrets")
    platform, owner = running.platform, SecretOwner("plugin", "shop")
    secrets, home = platform.resource(OWNER_SECRETS), platform.settings.home
    await platform.database.write(secrets.put, owner, "token", "words")
    before = platform.secrets.get("owner-secrets")
    env = process_environment({"PLATFORM_HOME": str(home)})
    log = home / "change.log"
    async with running_process("-m", "cli", "secret", "change-key", env=env, log=log) as process:
        assert await process.wait(60) == 0
    assert "1 secret" in process.output()
    assert platform.secrets.get("owner-secrets") != before
    found = await platform.database.read(secrets.get, owner, "token")
    assert found is not None and found.get_secret_value() == "words"
