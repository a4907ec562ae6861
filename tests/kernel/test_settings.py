"""Settings: where values come from, and what is said about one that does not fit."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import ClassVar, Self

import pytest
from pydantic import Field, SecretStr, field_validator, model_validator

from builtin_plugins.graph_rdf.settings import RdfSettings
from kernel.errors import StartupError
from kernel.sdk import PLUGIN_STATES, Plugin, Settings, env, hookimpl
from kernel.settings.loading import KernelSettings, SettingsLoader
from kernel.testing import Start


class ShelfSettings(Settings):
    """Settings of a plugin."""

    env_prefix: ClassVar[str] = "SHELF_"

    size: int = Field(3, ge=1, le=9, description="Books on a shelf.")
    colour: str = Field(
        "brown", validation_alias=env("SHELF_PAINT", "SHELF_COLOUR"), description="Its colour."
    )
    key: SecretStr | None = Field(None, min_length=4, description="Its key.")

    @field_validator("colour")
    @classmethod
    def _is_paint(cls, value: str) -> str:
        if value == "plaid":
            raise ValueError("expected one colour")
        return value

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.size == 9 and self.key is None:
            raise ValueError("a shelf of 9 needs SHELF_KEY")
        return self


class Shelf(Plugin):
    """A plugin with settings."""

    name = "shelf"

    @hookimpl
    def register_settings(self) -> type[Settings]:
        return ShelfSettings


def load(environ: dict[str, str], **section: object) -> ShelfSettings:
    return SettingsLoader(environ, {"shelf": section}).load("shelf", ShelfSettings)


def refusal(environ: dict[str, str], **section: object) -> str:
    with pytest.raises(StartupError) as caught:
        load(environ, **section)
    return str(caught.value)


class TestSources:
    def test_precedence(self) -> None:
        """The environment wins over config.yaml, which wins over the default."""
        assert load({}).size == 3
        assert load({}, size=4).size == 4
        assert load({"SHELF_SIZE": "5"}, size=4).size == 5

    def test_several_names(self) -> None:
        assert load({"SHELF_COLOUR": "red"}).colour == "red"
        assert load({"SHELF_COLOUR": "red", "SHELF_PAINT": "blue"}).colour == "blue"

    def test_empty_is_unset(self) -> None:
        """A variable that is set to nothing, as compose files do, counts as unset."""
        assert load({"SHELF_SIZE": ""}).size == 3

    def test_config_file(self, tmp_path: Path) -> None:
        """`config.yaml` in the home has a section for each owner."""
        (tmp_path / "config.yaml").write_text("kernel:\n  port: 8123\nshelf:\n  size: 7\n")
        loader = SettingsLoader.from_home({"PLATFORM_HOME": str(tmp_path)})
        assert loader.load("kernel", KernelSettings).port == 8123
        assert loader.load("shelf", ShelfSettings).size == 7

    @pytest.mark.parametrize(
        "content", ["a: [", "- a\n- b\n", "just text", "\xff\xfe", "!!python/object:os.system {}"]
    )
    def test_unfit_config_file(self, tmp_path: Path, content: str) -> None:
        (tmp_path / "config.yaml").write_bytes(content.encode("latin-1"))
        with pytest.raises(StartupError, match=r"config\.yaml"):
            SettingsLoader.from_home({"PLATFORM_HOME": str(tmp_path)})

    def test_frozen(self) -> None:
        with pytest.raises(Exception, match="frozen"):
            load({}).size = 5  # type: ignore[misc]


class TestProblems:
    def test_each_names_variable_and_remedy(self) -> None:
        said = refusal({"SHELF_SIZE": "ten", "SHELF_PAINT": "x"}, key=["a"])
        assert "SHELF_SIZE (setting 'shelf.size')" in said
        assert "valid integer" in said
        assert "SHELF_KEY (setting 'shelf.key')" in said
        assert " 9" in refusal({"SHELF_SIZE": "10"})

    def test_in_plain_words(self) -> None:
        """The text of a plugin's own check is shown unchanged, about one setting or several."""
        begins = "wrong settings: "
        assert refusal({"SHELF_SIZE": "9"}) == begins + "a shelf of 9 needs SHELF_KEY (settings of 'shelf')"
        painted = "SHELF_PAINT or SHELF_COLOUR (setting 'shelf.colour'): expected one colour"
        assert refusal({"SHELF_PAINT": "plaid"}) == begins + painted
        short = "SHELF_KEY (setting 'shelf.key'): must have at least 4 characters"
        assert refusal({"SHELF_KEY": "abc"}) == begins + short

    def test_no_value_is_repeated(self) -> None:
        """A wrong value may be a secret in the wrong place."""
        assert "hunter22" not in refusal({"SHELF_SIZE": "hunter22"})

    def test_an_unknown_key(self) -> None:
        """A key of config.yaml that nobody declares is refused, with a suggestion if one is close."""
        assert re.findall("'([^']+)'", refusal({}, sise=4)) == ["shelf.sise", "size"]
        assert re.findall("'([^']+)'", refusal({}, zzz=4)) == ["shelf.zzz"]

    def test_a_section_of_the_wrong_kind(self) -> None:
        with pytest.raises(StartupError, match="'shelf'"):
            SettingsLoader({}, {"shelf": [1]}).load("shelf", ShelfSettings)

    @pytest.mark.parametrize(
        ("variable", "value"),
        [
            ("PLATFORM_PORT", "99999"),
            ("PLATFORM_SMTP_HOST", "smtp://mail.example.org"),
            ("PLATFORM_SMTP_HOST", "mail.example.org:587"),
            ("PLATFORM_CLIENT_BASE_URL", "https://platform.example.org:80x"),
            ("PLATFORM_OUTGOING_ALLOWED", "10.0.0.0/99"),
            ("TRUSTED_PROXY_CIDRS", "10.0.0.0/99"),
            ("RATE_LIMIT_PER_MINUTE", "0"),
            ("LOG_LEVEL", "LOUD"),
            ("CORS_ALLOWED_ORIGINS", "app.example.org"),
            ("CORS_ALLOWED_ORIGINS", "https://app.example.org/page"),
            ("PLATFORM_PLUGIN_START_TIMEOUT", "1e12"),
            ("ENVIRONMENT", "moon"),
            ("JWT_EXPIRATION_MINUTES", "0"),
            ("DATABASE_URL", "sqlite://"),
            ("DATABASE_URL", "sqlite:///:memory:"),
        ],
    )
    async def test_the_kernels_own(self, start_platform: Start, variable: str, value: str) -> None:
        """A wrong setting of the kernel stops the start and names the variable."""
        with pytest.raises(StartupError, match=variable):
            await start_platform(env={variable: value})

    @pytest.mark.parametrize(
        "address", ["sqlite:/srv/platform.db", "SQLite:////srv/platform.db", "postgresql:"]
    )
    def test_a_misspelt_database(self, address: str) -> None:
        """It is refused, rather than taken for a database in memory or on this machine."""
        with pytest.raises(StartupError, match=r"DATABASE_URL .*expected postgresql://"):
            SettingsLoader({"DATABASE_URL": address}).load("kernel", KernelSettings)


class TestAtStart:
    async def test_hook_register_settings(self, start_platform: Start) -> None:
        """The kernel reads a plugin's settings and hands them back by their class."""
        running = await start_platform(Shelf, env={"SHELF_SIZE": "8"})
        assert running.platform.settings_of(ShelfSettings).size == 8

    async def test_a_wrong_setting_refuses_its_plugin(self, start_platform: Start) -> None:
        """A wrong value of a plugin's setting refuses that plugin alone, and /health says which."""
        running = await start_platform(Shelf, env={"SHELF_SIZE": "80"})
        told = (await running.anonymous.get("/health")).json()["plugins"]["shelf"]
        assert told["status"] == "failed"
        assert "SHELF_SIZE" in told["reason"]

    async def test_a_variable_of_the_kernel(self, start_platform: Start) -> None:
        """A plugin that forgot its prefix would take the platform's port for its own."""

        class CopySettings(Settings):
            port: int = Field(9000, description="Where it listens.")

        class Copy(Plugin):
            name = "copy"

            @hookimpl
            def register_settings(self) -> type[Settings]:
                return CopySettings

        running = await start_platform(Copy)
        copy = (await running.anonymous.get("/health")).json()["plugins"]["copy"]
        assert copy["status"] == "failed"
        for name in ("'port'", "PLATFORM_PORT", "env_prefix"):
            assert name in copy["reason"]

    async def test_a_misspelt_variable(self, start_platform: Start, caplog: pytest.LogCaptureFixture) -> None:
        """A PLATFORM_ variable that nobody declares is warned about, with a suggestion."""
        caplog.set_level(logging.WARNING)
        await start_platform(env={"PLATFORM_HEADER_TIMEOT": "5", "PLATFORM_SECRET_GITHUB": "s"})
        assert re.search("PLATFORM_HEADER_TIMEOT .*PLATFORM_HEADER_TIMEOUT", caplog.text)
        assert "GITHUB" not in caplog.text

    async def test_a_plugin_that_is_not_there(
        self, start_platform: Start, caplog: pytest.LogCaptureFixture
    ) -> None:
        """Disabling a plugin that does not exist is warned about: its name may be misspelt."""
        caplog.set_level(logging.WARNING)
        running = await start_platform(Shelf, env={"PLATFORM_PLUGINS_DISABLED": "shelf, shelv"})
        assert running.platform.resource(PLUGIN_STATES).records["shelf"].status == "disabled"
        assert re.search("PLATFORM_PLUGINS_DISABLED: .*'shelv'", caplog.text)

    async def test_a_section_of_nobody(self, platform_home: Path, caplog: pytest.LogCaptureFixture) -> None:
        """A section of config.yaml for a plugin that is not there is warned about."""
        from kernel.boot import open_platform
        from kernel.plugins.loading import direct_candidates

        caplog.set_level(logging.WARNING)
        loader = SettingsLoader({"PLATFORM_HOME": str(platform_home)}, {"shelv": {"size": 3}})
        async with open_platform(loader, candidates=direct_candidates([Shelf])):
            pass
        assert re.search(r"config\.yaml: .*'shelv'.*'shelf'", caplog.text)


class TestMisspeltVariables:
    @pytest.mark.parametrize(
        ("variable", "meant"),
        [
            ("SHELF_SIZ", "SHELF_SIZE"),
            ("RATE_LIMIT_PER_MINUT", "RATE_LIMIT_PER_MINUTE"),
            ("DATABASE_URI", "DATABASE_URL"),
            ("PLATFROM_PORT", "PLATFORM_PORT"),
            ("SMTP_HOST", "PLATFORM_SMTP_HOST"),
        ],
    )
    def test_close_to_a_setting(self, variable: str, meant: str) -> None:
        """A variable without the prefix that is close to a setting is named with the setting."""
        [warning] = unknown({variable: "1"})
        assert re.findall("[A-Z_]{5,}", warning) == [variable, meant]

    def test_the_right_one_is_set_too(self) -> None:
        """A variable that only resembles a setting is left alone where the setting itself is set."""
        assert unknown({"DATABASE_URL": "sqlite:////x", "DATABASE_URL_2": "sqlite:////y"}) == []

    def test_those_of_other_programs(self) -> None:
        foreign = "HOME PATH PORT HOST LANG LOGNAME HOSTNAME USER TERM SHELL EDITOR PWD TZ TMPDIR LC_ALL"
        foreign += " HTTP_PROXY NO_COLOR PYTHONPATH PIP_INDEX_URL VIRTUAL_ENV OPENAI_ORG_ID OLLAMA_MODELS"
        foreign += " PGHOST PGUSER JAVA_HOME SSH_AUTH_SOCK XDG_RUNTIME_DIR DBUS_SESSION_BUS_ADDRESS CI"
        assert unknown(dict.fromkeys(foreign.split(), "x")) == []


def unknown(environ: dict[str, str]) -> list[str]:
    """What a loader of the kernel's settings and the shelf's says about variables."""
    loader = SettingsLoader(environ)
    loader.load("shelf", ShelfSettings, {"size": 1})
    loader.load("kernel", KernelSettings, {"port": 1})
    return list(loader.unknown_variables())


@pytest.mark.parametrize(
    ("plugin", "variable"),
    [
        ("rag", "PLATFORM_RAG_RERANK_URL"),
        ("speech", "PLATFORM_SPEECH_TTS_URL"),
        ("speech", "PLATFORM_SPEECH_STT_URL"),
        ("mcp_server", "PLATFORM_MCP_PUBLIC_URL"),
        ("mcp_server", "PLATFORM_MCP_ALLOWED_ORIGINS"),
        ("mcp_server", "PLATFORM_MCP_AUTHORIZATION_SERVERS"),
        ("graph_rdf", "PLATFORM_GRAPH_RAG_SPARQL_URL"),
        ("graph_rdf", "PLATFORM_GRAPH_RAG_SPARQL_STORE_URL"),
    ],
)
@pytest.mark.parametrize("value", ["models.lan:8080", "http://[::bad"])
async def test_addresses_of_servers(start_platform: Start, plugin: str, variable: str, value: str) -> None:
    """An invalid address stops the start with the setting's name, instead of failing at every call."""
    server = dict.fromkeys(("URL", "STORE_URL"), "http://127.0.0.1:9") if plugin == "graph_rdf" else {}
    others = {f"PLATFORM_GRAPH_RAG_SPARQL_{name}": address for name, address in server.items()}
    assert variable in await reason(start_platform, plugin, {**others, variable: value})


async def test_addresses_with_parameters(start_platform: Start) -> None:
    """A SPARQL server may want parameters of its own in the address, such as for a data set."""
    server = {"URL": " http://127.0.0.1:9/query?set=a", "STORE_URL": "http://127.0.0.1:9/store?set=a"}
    env = {f"PLATFORM_GRAPH_RAG_SPARQL_{name}": address for name, address in server.items()}
    running = await start_platform("graph_rdf", env=env)
    assert running.platform.resource(PLUGIN_STATES).is_loaded("graph_rdf")
    assert running.platform.settings_of(RdfSettings).sparql_url == "http://127.0.0.1:9/query?set=a"


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("PLATFORM_SERVICES_TRUSTED", "invoices.corp"),
        ("PLATFORM_SERVICES_TRUSTED", "invoices.corp:http"),
        ("PLATFORM_SERVICES_TRUSTED", "http://invoices.corp:9000"),
        ("PLATFORM_SERVICES_ALLOWED", "10.0.0.0/99"),
    ],
)
async def test_registered_services(start_platform: Start, variable: str, value: str) -> None:
    """A service that could never be meant is refused at the start: without a port, none would be trusted."""
    assert variable in await reason(start_platform, "platform_ops", {variable: f"10.0.0.1:80, {value}"})


async def reason(start_platform: Start, plugin: str, env: dict[str, str]) -> str:
    """Why a plugin is out of service when it starts with these settings."""
    running = await start_platform(plugin, env=env)
    (record,) = (one for one in running.platform.plugins if one.name == plugin)
    assert record.status == "failed"
    return record.reason or ""


async def test_a_folder_that_is_not_there(
    start_platform: Start, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    """A setting that names a missing folder is warned about at the start; the plugin works without it."""
    caplog.set_level(logging.WARNING)
    missing = {"TTS_VOICES_DIR": f"{tmp_path}/voices", "PLATFORM_SPEECH_WHISPER_MODEL": f"{tmp_path}"}
    running = await start_platform("speech", env=missing)
    assert running.platform.resource(PLUGIN_STATES).is_loaded("speech")
    assert re.search(f"TTS_VOICES_DIR: .*{tmp_path}/voices", caplog.text)
    assert "WHISPER" not in caplog.text
