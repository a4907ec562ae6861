"""`platformctl plugins`: listed, explained, installed and uninstalled, in its own environment."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import sqlite3
import sys
import venv
from contextlib import closing
from pathlib import Path

import pytest

from kernel.plugins.loading import PluginRecord, write_report
from kernel.testing import Start
from tests.cli.conftest import Cli
from tests.cli.environments import ROOT, Environment
from tests.cli.packages import GOOD, Package

PYPROJECT = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "acme-folder"
version = "0.3"
dependencies = [{dependencies}]

[project.entry-points."platform.plugins"]
acme_folder = "acme_folder:ThePlugin"

[tool.hatch.build.targets.wheel]
only-include = ["acme_folder.py"]
"""


EVIL = """from kernel.sdk import Plugin, hookimpl


class ThePlugin(Plugin):
    name = "acme_evil"
    version = "1.0"

    @hookimpl
    def find_disabled_plugins(self, platform, session):
        raise RuntimeError("boom")
"""


SHELF = """from pathlib import Path
from kernel.sdk import Plugin, Tables, hookimpl, plugin_base
from sqlalchemy import Column, Integer, Table

Base = plugin_base("acme_shelf")
Table("acme_shelf_book", Base.metadata, Column("id", Integer, primary_key=True))

class ThePlugin(Plugin):
    name = "acme_shelf"
    version = "{version}"

    @hookimpl
    def register_tables(self):
        return Tables(Base, Path(__file__).parent / "acme_shelf_migrations")
"""

BOOKS = """import sqlalchemy as sa
from alembic import op

revision, down_revision = "0001", None

def upgrade():
    op.create_table("acme_shelf_book", sa.Column("id", sa.Integer, primary_key=True))
"""


GOOD_THEN_BAD = """from kernel.sdk import Plugin, hookimpl

class ThePlugin(Plugin):
    name = "acme_declares"

    @hookimpl
    def register_routes(self):
        return [int("many")]
"""


UNMARKED = """from kernel.sdk import Plugin, hookimpl


class ThePlugin(Plugin):
    name = "acme_unmarked"

    def register_routes(self):
        return []
"""


@pytest.fixture
def strangers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two plugins by somebody else on the path: one good, one that fails at import."""
    folder = tmp_path / "packages"
    Package("acme-good").unpack(folder)
    Package("acme-broken", body="raise RuntimeError('no license')").unpack(folder)
    monkeypatch.syspath_prepend(folder)
    return folder


class TestExplaining:
    def test_list(self, cli: Cli, strangers: Path) -> None:
        """Each plugin has its state, its package, and a reason when it is out of service."""
        found = {item["name"]: item for item in json.loads(cli("plugins", "list", "--json").stdout)}
        assert (found["acme_good"]["status"], found["acme_good"]["distribution"]) == ("loaded", "acme-good")
        assert found["acme_broken"]["reason"].endswith("RuntimeError: no license")
        assert found["rag"]["distribution"] == "platform-kernel"

    def test_packages_of_others(self, cli: Cli, strangers: Path) -> None:
        """The package is shown of plugins that were added; the platform's own name none."""
        shown = cli("plugins", "list").stdout
        assert "PACKAGE" in shown and "acme-good" in shown and "platform-kernel" not in shown

    def test_nothing_at_the_path(self, cli: Cli, tmp_path: Path) -> None:
        result = cli("plugins", "install", str(tmp_path / "nowhere"))
        assert (result.exit_code, f"'{tmp_path}/nowhere'" in result.stderr) == (3, True)

    def test_why_of_a_good_one(self, cli: Cli, strangers: Path) -> None:
        shown = cli("plugins", "why", "embeddings")
        assert shown.exit_code == 0
        assert "embed_texts" in shown.stdout
        assert "PLATFORM_EMBEDDINGS_ENGINE" in shown.stdout

    def test_why_of_nobody(self, cli: Cli) -> None:
        """A plugin that is not installed ends with exit code 3 and names those that are."""
        result = cli("plugins", "why", "telepathy")
        assert result.exit_code == 3
        assert "rag" in result.stderr

    def test_disabled(self, cli: Cli, strangers: Path) -> None:
        """A plugin that the operator turned off is not a failure."""
        result = cli("plugins", "why", "acme_broken", env={"PLATFORM_PLUGINS_DISABLED": "acme_broken"})
        assert (result.exit_code, "disabled" in result.stdout) == (0, True)
        assert "PLATFORM_PLUGINS_DISABLED" in result.stdout

    def test_never_enabled(self, bare_cli: Cli, platform_home: Path) -> None:
        """One that is off by default says so and how to enable it, also before there is a database."""
        shown = bare_cli("plugins", "why", "news")
        assert (shown.exit_code, platform_home.exists()) == (0, False)
        said = " ".join(shown.stdout.split())
        assert "disabled" in said and "loaded" not in said
        assert "POST /v1/plugins/news/enable" in said

    async def test_switched(self, cli: Cli, start_platform: Start) -> None:
        """What an administrator switched shows as /health shows it, with who did that and when."""
        running = await start_platform("plugin_registry", "news", "speech")
        ada = await running.user("ada", role="admin")
        assert (await ada.post("/v1/plugins/speech/disable")).status == 200
        assert (await ada.post("/v1/plugins/news/enable")).status == 200
        health = (await running.anonymous.get("/health")).json()["plugins"]
        listed = await asyncio.to_thread(cli, "plugins", "list", "--json")
        found = {item["name"]: item for item in json.loads(listed.stdout)}
        for name in ("news", "speech", "plugin_registry"):
            assert found[name]["status"] == health[name]["status"]
        assert (found["news"]["status"], found["speech"]["status"]) == ("loaded", "disabled")
        shown = await asyncio.to_thread(cli, "plugins", "why", "speech")
        assert shown.exit_code == 0
        assert re.search(r"why +disabled by ada on 20\d\d-\d\d-\d\d \d\d:\d\d UTC", shown.stdout)
        assert "POST /v1/plugins/speech/enable" in " ".join(shown.stdout.split())

    async def test_switched_manifest(self, cli: Cli, start_platform: Start, tmp_path: Path) -> None:
        """A manifest's plugin that is disabled is not live; `doctor` counts neither it nor other plugins."""
        folder = tmp_path / "manifests"
        folder.mkdir()
        shutil.copy(ROOT / "manifests" / "samples" / "crm-form.yaml", folder)
        env = {"PLATFORM_MANIFESTS_DIR": str(folder), "PLATFORM_SECRET_CRM_FORM": "x" * 32}
        running = await start_platform(
            "owner_secrets", "plugin_registry", "manifest_webhooks", "speech", env=env
        )
        ada = await running.user("ada", role="admin")
        before = await asyncio.to_thread(cli, "doctor", env=env)
        (shown,) = json.loads((await asyncio.to_thread(cli, "manifests", "list", "--json", env=env)).stdout)
        assert shown["status"] == "live"
        for name in (shown["name"], "speech"):
            assert (await ada.post(f"/v1/plugins/{name}/disable")).status == 200
        (shown,) = json.loads((await asyncio.to_thread(cli, "manifests", "list", "--json", env=env)).stdout)
        assert shown["status"] == "disabled" and shown["reason"].startswith("disabled by ada on ")
        after = await asyncio.to_thread(cli, "doctor", env=env)
        assert ("1 live in" in before.stdout, "0 live in" in after.stdout) == (True, True)
        counts = [re.search(r"(\d+) loaded without", one.stdout) for one in (before, after)]
        first, second = [int(found[1]) for found in counts if found]
        assert first - second == 1

    async def test_list_agrees_with_the_server(self, cli: Cli, start_platform: Start, tmp_path: Path) -> None:
        """Of two manifests with one webhook path, the one listed as live is the one that takes deliveries."""
        folder = tmp_path / "manifests"
        folder.mkdir()
        sample = (ROOT / "manifests" / "samples" / "crm-form.yaml").read_text()
        (folder / "b.yaml").write_text(sample)
        env = {"PLATFORM_MANIFESTS_DIR": str(folder)}
        await start_platform("owner_secrets", "plugin_registry", "manifest_webhooks", env=env)
        (folder / "a.yaml").write_text(sample)
        listed = await asyncio.to_thread(cli, "manifests", "list", "--json", env=env)
        found = {item["name"]: item for item in json.loads(listed.stdout)}
        assert set(found) == {"crm-form", "a.yaml"}
        assert (found["a.yaml"]["status"], "b.yaml" in found["a.yaml"]["reason"]) == ("refused", True)

    @pytest.mark.parametrize(
        ("variable", "value", "named"),
        [
            ("DATABASE_URL", "postgresql://nobody@127.0.0.1:9/nothing", ""),
            (
                "PLATFORM_PLUGINS_DISABLED",
                "plugin_registry,marketplace,orchestrator,mcp_client,news",
                "RuntimeError",
            ),
        ],
    )
    def test_unknown_states(self, cli: Cli, strangers: Path, variable: str, value: str, named: str) -> None:
        """If the database is away, or another author's plugin fails, the list comes with a warning."""
        Package("acme-evil", body=EVIL).unpack(strangers)
        result = cli("plugins", "list", "--json", env={variable: value})
        assert "acme_evil" in {item["name"] for item in json.loads(result.stdout)}
        assert (result.exit_code, result.stderr[:2], named in result.stderr) == (0, "! ", True)

    def test_what_only_a_start_shows(self, cli: Cli, strangers: Path, platform_home: Path) -> None:
        """A plugin that loads, but failed when the server started, has failed."""
        write_report(platform_home, [PluginRecord("acme_good", "failed", "on_start hung", version="1.0")])
        result = cli("plugins", "why", "acme_good", "--json")
        assert result.exit_code == 1
        assert json.loads(result.stdout)["reason"].startswith("on_start hung (")
        write_report(platform_home, [PluginRecord("acme_good", "failed", "on_start hung", version="0.9")])
        assert cli("plugins", "why", "acme_good").exit_code == 0, "that was another version"

    @pytest.mark.parametrize(
        ("name", "body", "line"),
        [
            ("acme-raises", "import json\n\njson.loads('')\n", 3),
            ("acme-syntax", "import json\n\nx = = 1\n", 3),
            ("acme-declares", GOOD_THEN_BAD, 8),
            ("acme-unmarked", UNMARKED, 7),
        ],
    )
    def test_why_names_file_and_line(
        self, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, body: str, line: int
    ) -> None:
        """The line of the plugin's own code is shown: where it raised an error, or what doesn't fit."""
        package = Package(name, body=body)
        monkeypatch.syspath_prepend(package.unpack(tmp_path / "packages"))
        shown = cli("plugins", "why", package.module).stdout
        assert re.search(rf"where +{tmp_path}/packages/{package.module}.py:{line}\n", shown)

    def test_older_than_its_tables(self, cli: Cli, strangers: Path, platform_home: Path) -> None:
        """A plugin that the next start will refuse is not called loaded until then."""
        more = {"acme_shelf_migrations/0001_books.py": BOOKS}
        Package("acme-shelf", body=SHELF, more=more).unpack(strangers)
        assert cli("plugins", "why", "acme_shelf").exit_code == 0
        with closing(sqlite3.connect(platform_home / "platform.db")) as database:
            database.execute("CREATE TABLE acme_shelf_alembic_version (version_num TEXT)")
            database.execute("INSERT INTO acme_shelf_alembic_version VALUES ('0002')")
            database.commit()
        result = cli("plugins", "why", "acme_shelf", "--json")
        shown = json.loads(result.stdout)
        assert (result.exit_code, shown["status"]) == (1, "failed")
        assert " 0002" in shown["reason"]


class TestInstalling:
    @pytest.mark.long
    def test_wheel(self, environment: Environment, tmp_path: Path) -> None:
        """A wheel is installed and loads, a newer one takes its place, and it is uninstalled by name."""
        result = environment.plugins("install", str(Package("acme-good").wheel(tmp_path)))
        assert result.returncode == 0, result.stderr
        assert "plugin 'acme_good' starts" in result.stderr
        assert "Resolving" in result.stderr and "Installing acme-good" in result.stderr
        newer = environment.plugins("install", str(Package("acme-good", version="1.1").wheel(tmp_path)))
        assert "installed acme-good 1.1" in newer.stderr
        assert environment.plugins("uninstall", "acme_good").returncode == 0
        assert environment.installed() == set()

    @pytest.mark.long
    def test_name_with_a_dependency(self, environment: Environment, tmp_path: Path) -> None:
        """A plugin found by name brings a library that is new here; a trial changes nothing."""
        Package("acme-new", requires=["acme-lib>=1"]).wheel(tmp_path)
        Package("acme-lib", version="1.2", plugin=False, body="").wheel(tmp_path)
        options = ("acme-new", "--find-links", str(tmp_path))
        trial = environment.plugins("install", *options, "--dry-run")
        assert "would install acme-lib 1.2" in trial.stderr
        assert environment.installed() == set()
        assert environment.plugins("install", *options).returncode == 0
        assert environment.installed() == {"acme_new", "acme_lib"}

    def test_a_dependency_that_is_nowhere(self, environment: Environment, tmp_path: Path) -> None:
        """The missing requirement is named, not the plugin."""
        wheel = Package("acme-needy", requires=["acme-nowhere>=1"]).wheel(tmp_path)
        result = environment.plugins("install", str(wheel))
        said = " ".join(result.stderr.split())
        assert (result.returncode, environment.installed()) == (3, set())
        assert "acme-nowhere>=1" in said and "--find-links" in said

    def test_conflict_is_refused_before_anything_changes(
        self, environment: Environment, tmp_path: Path
    ) -> None:
        """What would change a package of the platform is refused, naming the package and both versions."""
        import numpy

        wheel = Package("acme-old", requires=["numpy<1.20"]).wheel(tmp_path)
        result = environment.plugins("install", str(wheel))
        assert result.returncode == 4
        said = " ".join(result.stderr.split())
        assert "acme-old 1.0" in said and "numpy<1.20" in said
        assert f"platform needs numpy {numpy.__version__}" in said
        assert environment.installed() == set()

    @pytest.mark.long
    def test_conflict_with_a_package_of_another_plugin(
        self, environment: Environment, tmp_path: Path
    ) -> None:
        """What another plugin brought, or left behind, is not called the platform's."""
        Package("acme-lib", version="2.0", plugin=False, body="").unpack(environment.site)
        wheel = Package("acme-second", requires=["acme-lib<2"]).wheel(tmp_path)
        alone = environment.plugins("install", str(wheel))
        assert (alone.returncode, "pip uninstall acme-lib" in alone.stderr) == (4, True)
        Package("acme-first", requires=["acme-lib"]).unpack(environment.site)
        result = environment.plugins("install", str(wheel))
        assert (result.returncode, "acme-first" in result.stderr) == (4, True)
        assert "platform needs" not in alone.stderr + result.stderr

    @pytest.mark.long
    def test_the_platforms_folder(self, environment: Environment) -> None:
        """The platform's own folder is no plugin, although it has the same version."""
        result = environment.plugins("install", str(ROOT), "--offline", "--dry-run")
        assert (result.returncode, environment.installed()) == (4, set())

    @pytest.mark.parametrize(
        ("package", "named"),
        [
            (Package("acme-lib", plugin=False, body=""), "platform.plugins"),
            (Package("acme-broken", body="raise RuntimeError('no license')"), "RuntimeError: no license"),
            (Package("acme-needs", body=GOOD + '    requires = ("rag",)\n'), "'rag'"),
        ],
        ids=["no entry point", "does not start", "requires a disabled plugin"],
    )
    def test_refused_before_anything_changes(
        self, environment: Environment, tmp_path: Path, package: Package, named: str
    ) -> None:
        result = environment.plugins("install", str(package.wheel(tmp_path)))
        assert (result.returncode, environment.installed()) == (4, set())
        assert named in result.stderr

    def test_name_of_another_plugin_is_refused(self, environment: Environment, tmp_path: Path) -> None:
        """Of two plugins with one name, one would be ignored: the second is not installed."""
        entry = {"acme_rag-1.0.dist-info/entry_points.txt": "[platform.plugins]\nrag = acme_rag:ThePlugin\n"}
        wheel = Package("acme-rag", plugin=False, more=entry).wheel(tmp_path)
        result = environment.plugins("install", str(wheel))
        assert (result.returncode, environment.installed()) == (4, set())
        assert "'rag'" in result.stderr

    def test_unknown_name(self, environment: Environment) -> None:
        result = environment.plugins("install", "acme-nowhere")
        assert (result.returncode, environment.installed()) == (3, set())

    @pytest.mark.long
    def test_folder_without_a_network(self, environment: Environment, tmp_path: Path) -> None:
        """A source folder is built with what is here and installed."""
        (tmp_path / "acme").mkdir()
        (tmp_path / "acme" / "pyproject.toml").write_text(PYPROJECT.format(dependencies=""))
        body = Package("acme-folder").files()["acme_folder.py"]
        (tmp_path / "acme" / "acme_folder.py").write_text(body)
        result = environment.plugins("install", str(tmp_path / "acme"), "--offline")
        assert result.returncode == 0, result.stderr
        assert environment.installed() == {"acme_folder"}
        (tmp_path / "acme" / "acme_folder.py").write_text(f"{body}    author = 'Ada'\n")
        again = environment.plugins("install", str(tmp_path / "acme"), "--offline")
        assert again.returncode == 0, again.stderr
        assert "author = 'Ada'" in (environment.site / "acme_folder.py").read_text()

    @pytest.mark.long
    def test_wheel_of_the_same_version(self, environment: Environment, tmp_path: Path) -> None:
        """A wheel that was built again takes the place of the one before, and its library stays."""
        Package("acme-again", requires=["acme-lib"]).unpack(environment.site)
        Package("acme-lib", plugin=False, body="").unpack(environment.site)
        wheel = Package("acme-again", body=f"{GOOD}    author = 'Ada'\n", requires=["acme-lib"]).wheel(
            tmp_path
        )
        result = environment.plugins("install", str(wheel))
        assert result.returncode == 0, result.stderr
        assert "author = 'Ada'" in (environment.site / "acme_again.py").read_text()
        assert environment.installed() == {"acme_again", "acme_lib"}

    @pytest.mark.long
    def test_a_wheel_that_writes_elsewhere(self, environment: Environment, tmp_path: Path) -> None:
        """A wheel with a path that leads out of the environment is refused before anything changes."""
        outside = {"../../../outside.py": "print('here')"}
        Package("acme-evil", requires=["acme-lib"], more=outside).wheel(tmp_path)
        Package("acme-lib", plugin=False, body="").wheel(tmp_path)
        result = environment.plugins("install", "acme-evil", "--find-links", str(tmp_path))
        assert (result.returncode, environment.installed()) == (1, set())

    @pytest.mark.long
    def test_half_an_installation_is_undone(self, environment: Environment, tmp_path: Path) -> None:
        """When pip fails at the plugin, the library that it had installed before is removed again."""
        Package("acme-blocked", requires=["acme-lib"]).wheel(tmp_path)
        Package("acme-lib", plugin=False, body="").wheel(tmp_path)
        in_the_way = environment.site / "acme_blocked.py"
        (in_the_way / "folder").mkdir(parents=True)
        result = environment.plugins("install", "acme-blocked", "--find-links", str(tmp_path))
        shutil.rmtree(in_the_way)
        assert (result.returncode, environment.installed()) == (1, set())

    @pytest.mark.long
    def test_one_that_does_not_start_by_force(self, environment: Environment, tmp_path: Path) -> None:
        wheel = Package("acme-broken", body="raise RuntimeError('no license')").wheel(tmp_path)
        assert environment.plugins("install", str(wheel), "--force").returncode == 0
        assert environment.installed() == {"acme_broken"}

    @pytest.mark.long
    def test_a_release_older_than_the_database(self, environment: Environment, tmp_path: Path) -> None:
        """A release that lacks the database's migrations would not start: it is refused, unless forced."""
        more = {"acme_shelf_migrations/0001_books.py": BOOKS}
        wheel = Package("acme-shelf", body=SHELF, more=more).wheel(tmp_path)
        environment.home.mkdir()
        with closing(sqlite3.connect(environment.home / "platform.db")) as database:
            database.execute("CREATE TABLE acme_shelf_alembic_version (version_num TEXT)")
            database.execute("INSERT INTO acme_shelf_alembic_version VALUES ('0002')")
            database.commit()
        result = environment.plugins("install", str(wheel), "--dry-run")
        assert (result.returncode, " 0002 " in result.stderr) == (4, True), result.stderr
        assert environment.plugins("install", str(wheel), "--dry-run", "--force").returncode == 0

    @pytest.mark.long
    def test_what_was_there_comes_back(self, environment: Environment, tmp_path: Path) -> None:
        """A release that starts in the trial, but not once it is installed, gives way to the one before."""
        Package("acme-moody").unpack(environment.site)
        moody = "if 'site-packages' in __file__:\n    raise RuntimeError('not here')\n" + GOOD
        second = Package("acme-moody", version="2.0", body=moody).wheel(tmp_path)
        result = environment.plugins("install", str(second))
        assert (result.returncode, "RuntimeError: not here" in result.stderr) == (1, True)
        shown = json.loads(environment.plugins("why", "acme_moody", "--json").stdout)
        assert (shown["status"], shown["version"]) == ("loaded", "1.0")


class TestUninstalling:
    def test_built_in_plugin_is_refused(self, environment: Environment) -> None:
        """What is part of the platform is turned off, not uninstalled."""
        result = environment.plugins("uninstall", "rag")
        assert result.returncode == 4
        assert "PLATFORM_PLUGINS_DISABLED=rag" in result.stderr

    def test_required_plugin_is_refused(self, environment: Environment) -> None:
        """A plugin that another one requires stays, unless it is forced."""
        needs = Package("acme-good").files()["acme_good.py"].replace("acme_good", "acme_needs")
        needs += '    requires = ("acme_good",)\n'
        for package in (Package("acme-good"), Package("acme-needs", body=needs)):
            package.unpack(environment.site)
        result = environment.plugins("uninstall", "acme_good")
        assert (result.returncode, "acme_needs" in result.stderr) == (4, True)
        assert environment.plugins("uninstall", "acme_good", "--force").returncode == 0

    def test_packages_that_stay(self, environment: Environment) -> None:
        """What only this plugin needed is named with the command to remove it; shared packages are not."""
        requires = ["acme-lib>=1", "acme-shared", "platform-kernel", "numpy"]
        Package("acme-good", requires=requires).unpack(environment.site)
        Package("acme-lib", plugin=False, body="", requires=["acme-deep"]).unpack(environment.site)
        for name in ("acme-deep", "acme-shared"):
            Package(name, plugin=False, body="").unpack(environment.site)
        Package("acme-other", requires=["acme-shared; extra == 'more'"]).unpack(environment.site)
        said = " ".join(environment.plugins("uninstall", "acme_good").stderr.split())
        assert "-m pip uninstall acme-deep acme-lib" in said
        assert environment.installed() == {"acme_lib", "acme_deep", "acme_shared", "acme_other"}
        assert "pip uninstall acme-shared" in environment.plugins("uninstall", "acme_other").stderr

    def test_unknown_plugin(self, environment: Environment) -> None:
        assert environment.plugins("uninstall", "telepathy").returncode == 3


def test_environment_without_pip(tmp_path: Path) -> None:
    venv.create(tmp_path / "env", with_pip=False)
    site = next((tmp_path / "env" / "lib").glob("python*/site-packages"))
    libraries = [Path(path) for path in sys.path if path.endswith("site-packages")]
    for item in (item for folder in libraries for item in folder.iterdir()):
        if not item.name.startswith("pip") and item.suffix != ".pth" and not (site / item.name).exists():
            (site / item.name).symlink_to(item)
    (site / "platform.pth").write_text(f"{ROOT}\n")
    environment = Environment(tmp_path / "env", tmp_path / "home")
    result = environment.plugins("install", "acme")
    assert (result.returncode, "ensurepip" in result.stderr) == (1, True), sys.version
