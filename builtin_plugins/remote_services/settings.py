"""Where the services are that run on other machines."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import AfterValidator, Field
from yarl import URL

from kernel.sdk import Settings, base_address, split_list


def _addresses(value: str) -> str:
    """Services and their base addresses, separated by commas."""
    services: list[str] = []
    for item in split_list(value):
        name, _, url = item.partition("=")
        if not name or not url or URL(url).user is not None:
            raise ValueError("expected name=http://host:port, separated by commas, without a user name")
        services.append(f"{name.strip()}={base_address(url)}")
    return ",".join(services)


class RemoteServicesSettings(Settings):
    """Services by the machines that they run on."""

    env_prefix: ClassVar[str] = "PLATFORM_"

    service_urls: Annotated[str, AfterValidator(_addresses)] = Field(
        "", description="Services that run on other machines: name=http://host:port, …"
    )

    @property
    def addresses(self) -> dict[str, str]:
        """Service name to base address."""
        pairs = (item.partition("=") for item in split_list(self.service_urls))
        return {name: url for name, _, url in pairs}
