"""The setting that says where services are."""

from __future__ import annotations

import pytest

from builtin_plugins.remote_services.settings import RemoteServicesSettings
from kernel.errors import StartupError
from kernel.settings.loading import SettingsLoader
from kernel.testing import Start


def addresses(text: str) -> dict[str, str]:
    loader = SettingsLoader({"PLATFORM_SERVICE_URLS": text})
    return loader.load("remote_services", RemoteServicesSettings).addresses


@pytest.mark.parametrize("spelled", ["rag-pipeline = http://host:80/", "rag-pipeline=http://host:80/#top"])
def test_addresses_of_services(spelled: str) -> None:
    """Spaces, a final slash and a fragment aren't part of a service's address."""
    assert addresses(spelled) == {"rag-pipeline": "http://host:80"}


@pytest.mark.parametrize(
    "spelled", ["rag-pipeline", "rag-pipeline=http://", "rag-pipeline=http://user:password@host"]
)
def test_what_is_no_address(spelled: str) -> None:
    """A service without an address is refused, and so is a password in the settings."""
    with pytest.raises(StartupError):
        addresses(spelled)


async def test_an_unknown_service(start_platform: Start) -> None:
    """A misspelt name stops the start: its requests would silently be served here."""
    with pytest.raises(StartupError, match=r"'rag-pipelime'.*rag-pipeline"):
        await start_platform("remote_services", env={"PLATFORM_SERVICE_URLS": "rag-pipelime=http://host:1"})
