"""The Dockerfile and compose.yaml name files, settings and services that there are."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from kernel.plugins.plugin_settings import PLUGIN_SETTINGS
from kernel.settings.loading import KernelSettings
from kernel.testing import Start

ROOT = Path(__file__).resolve().parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text()
OTHERS = {"PATH", "PYTHONUNBUFFERED"}  # what the image sets for other programs


def services() -> dict[str, Any]:
    return dict(yaml.safe_load((ROOT / "compose.yaml").read_text())["services"])


def ours() -> dict[str, Any]:
    return {name: one for name, one in services().items() if "build" in one}


def test_the_image_is_made_from_what_the_build_may_see() -> None:
    """Each file that is copied by name, and all that the package is built from, passes .dockerignore."""
    seen = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert all((ROOT / name).exists() for name in seen)
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", DOCKERFILE, re.M)
    assert {name for names in copied for name in names.split()} - {"."} <= seen
    assert {"kernel", "builtin_plugins", "cli", "schemas", "manifests", "pyproject.toml", "README.md"} <= seen


def test_it_runs_as_nobody_in_particular() -> None:
    """The last user is no root, and containers may do nothing that they need not."""
    assert re.findall(r"^USER (\S+)$", DOCKERFILE, re.M)[-1] == "10001:10001"
    for one in ours().values():
        assert one["read_only"] and one["cap_drop"] == ["ALL"]
        assert all(port.startswith("127.0.0.1:") for port in one.get("ports", ()))


async def test_their_variables_are_settings(start_platform: Start) -> None:
    running = await start_platform("platform_ops", "models", "manifest_webhooks")
    plugins = running.platform.resource(PLUGIN_SETTINGS).classes().values()
    classes = [KernelSettings, *plugins]
    known = {name for cls in classes for names in cls.env_names().values() for name in names}
    block = re.findall(r"^ENV (PATH=.*?)(?<!\\)$", DOCKERFILE, re.M | re.S)[-1]
    named = set(re.findall(r"(\w+)=", block.replace("$PATH", "")))
    for one in ours().values():
        named |= set(one.get("environment", {}))
    assert named - OTHERS <= known


def test_settings_beside_the_compose_file_reach_the_platform() -> None:
    """Compose itself takes from .env only what compose.yaml mentions: a setting such as
    PLATFORM_REGISTRATION_MODE=closed would be ignored silently.
    """
    for one in ours().values():
        assert one["env_file"] == [{"path": ".env", "required": False}]


def test_settings_of_a_platform_outside_stay_there() -> None:
    """An address or a folder in .env, meant for a platform without a container, changes neither inside."""
    image = dict(re.findall(r"\b(PLATFORM_\w+)=(\S+)", DOCKERFILE))
    for one in ours().values():
        assert image.items() <= one["environment"].items()
        published = [port.rpartition(":")[2] for port in one.get("ports", ())]
        assert set(published) <= {one["environment"]["PLATFORM_PORT"]}


async def test_what_compose_takes_from_env_is_no_misspelling(start_platform: Start) -> None:
    """The platform gets its variables, too, and knows them or lets them pass."""
    names = re.findall(r"\$\{(\w+)", (ROOT / "compose.yaml").read_text())
    env = {name: "postgres" for name in names if "PASSWORD" in name or "VERSION" in name}
    running = await start_platform("models", env=env)
    assert list(running.platform.resource(PLUGIN_SETTINGS).unread("")) == []


def test_profiles_are_complete() -> None:
    """What a service waits for starts in each of its profiles; volumes and health checks are there."""
    found = services()
    volumes = yaml.safe_load((ROOT / "compose.yaml").read_text())["volumes"]
    for one in found.values():
        for name, condition in one.get("depends_on", {}).items():
            assert set(one["profiles"]) <= set(found[name]["profiles"])
            assert condition == {"condition": "service_healthy"}
            assert "healthcheck" in found[name] or "build" in found[name]
        assert all(volume.partition(":")[0] in volumes for volume in one.get("volumes", ()))
        assert "image" in one and not one["image"].endswith(":latest")
