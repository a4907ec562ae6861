"""What the command line tells about the platform: settings, hooks, the API, benchmarks."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from cli.hooks import Hook
from tests.cli.conftest import Cli


class TestSettings:
    def test_value_in_effect(self, bare_cli: Cli, platform_home: Path) -> None:
        """The environment wins over config.yaml, which wins over the default."""
        platform_home.mkdir(mode=0o700)
        (platform_home / "config.yaml").write_text("kernel: {port: 8111, workers: 3}\n")
        result = bare_cli("settings", "--json", env={"PLATFORM_PORT": "8222"})
        values = {item["variable"]: item["value"] for item in json.loads(result.stdout)}
        assert (values["PLATFORM_PORT"], values["PLATFORM_WORKERS"]) == ("8222", "3")
        assert values["PLATFORM_DATABASE_POOL_SIZE"] == "10"

    def test_secrets_are_hidden(self, cli: Cli) -> None:
        """Values of secret settings are not shown in any form."""
        env = {"JWT_SECRET": "0123456789abcdef0123456789abcdef"}
        for option in ("--json", "--markdown"):
            assert env["JWT_SECRET"] not in cli("settings", option, env=env).output
        assert env["JWT_SECRET"] not in cli("settings", env=env).output

    def test_every_setting_is_explained(self, cli: Cli) -> None:
        found = json.loads(cli("settings", "--json").stdout)
        assert [item["variable"] for item in found if not item["description"]] == []
        assert {item["owner"] for item in found} >= {"kernel", "cli", "rag", "embeddings"}

    def test_a_wrong_setting(self, cli: Cli) -> None:
        """A plugin that a wrong setting keeps out of service is missing from the list, which says so."""
        shown = cli("settings", "schedule", env={"PLATFORM_BACKUP_SCHEDULE": "nightly"})
        assert "PLATFORM_BACKUP_SCHEDULE" in shown.stderr and "'@daily'" in shown.stderr

    def test_a_word_chooses(self, cli: Cli) -> None:
        """The beginning of a word finds it anywhere in name and meaning; the middle of one finds nothing."""
        found = json.loads(cli("settings", "rate", "--json").stdout)
        variables = {item["variable"] for item in found}
        assert {"RATE_LIMIT_PER_MINUTE", "AUTH_RATE_LIMIT_PER_MINUTE"} <= variables
        assert "TRUSTED_PROXY_CIDRS" not in variables  # "separated by commas"


class TestHooks:
    def test_every_specification_is_printed(self, cli: Cli) -> None:
        """All hooks of the kernel and of plugins are there, each with its text."""
        from kernel.hooks import hookspecs
        from kernel.hooks.types import specs_in

        names = {spec.name for spec in specs_in(hookspecs)}
        found = [Hook(**item) for item in json.loads(cli("hooks", "--json").stdout)]
        assert {hook.name for hook in found if hook.brought_by == "kernel"} == names
        assert {hook.brought_by for hook in found} >= {"kernel", "rag", "tenancy"}
        assert [hook.name for hook in found if not hook.text] == []

    def test_one_hook(self, cli: Cli) -> None:
        shown = cli("hooks", "identify_actor").stdout
        assert "identify_actor(platform: Platform, request: web.Request, authorization: str | None)" in shown
        assert "Stops at" in shown and "async" in shown

    def test_texts_stand_alone(self, cli: Cli) -> None:
        """No text refers to a document that users do not have."""
        found = [Hook(**item) for item in json.loads(cli("hooks", "--json").stdout)]
        cited = re.compile(r"\bspec (section )?\d|wire-facts|\bsection \d", re.IGNORECASE)
        assert [hook.name for hook in found if cited.search(hook.text)] == []

    def test_unknown_hook(self, cli: Cli) -> None:
        """A hook that does not exist ends with exit code 3."""
        assert cli("hooks", "register_rotues").exit_code == 3


class TestOpenApi:
    def test_same_as_the_gateway(self, cli: Cli) -> None:
        """The printed document describes the API of the installed plugins in OpenAPI 3.1."""
        document = json.loads(cli("openapi").stdout)
        assert document["openapi"].startswith("3.1")
        assert {"/health", "/v1/auth/login", "/v1/rag/pipeline"} <= set(document["paths"])

    def test_service_at_its_own_root(self, cli: Cli) -> None:
        document = json.loads(cli("openapi", "--service", "rag-pipeline").stdout)
        assert "/pipeline" in document["paths"]
        assert "/v1/auth/login" not in document["paths"]

    def test_snapshot_has_no_free_text(self, cli: Cli, tmp_path: Path) -> None:
        """The published snapshot is written to a file, without descriptions."""
        file = tmp_path / "openapi.json"
        result = cli("openapi", "--snapshot", "--output", str(file))
        assert result.exit_code == 0
        assert '"summary": "' not in file.read_text()
        assert json.loads(file.read_text())["paths"]

    def test_unknown_service(self, cli: Cli) -> None:
        """A service that nobody offers ends with exit code 3 and names those there are."""
        result = cli("openapi", "--service", "telepathy")
        assert result.exit_code == 3
        assert "rag-pipeline" in result.stderr


class TestBenchmarks:
    def test_list(self, cli: Cli) -> None:
        """Scripts of tests/benchmarks are listed with what they print."""
        found = {item["name"]: item["about"] for item in json.loads(cli("bench", "list", "--json").stdout)}
        assert found
        assert [name for name, about in found.items() if not about] == []

    def test_unknown_benchmark(self, cli: Cli) -> None:
        """A benchmark that does not exist ends with exit code 3."""
        assert cli("bench", "run", "telepathy").exit_code == 3


class TestManifests:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        """A manifests folder with a good file and a bad one."""
        folder = tmp_path / "manifests"
        folder.mkdir()
        sample = Path(__file__).parents[2] / "manifests" / "samples" / "github-issues.yaml"
        (folder / "good.yaml").write_text(sample.read_text())
        (folder / "bad.yaml").write_text("apiVersion: platform.dev/v1alpha1\nkind: Plugin\nspec: {}\n")
        return folder

    def test_defects_are_listed_with_remedies(self, cli: Cli, folder: Path) -> None:
        """Each defect has its path; the good file is good; the exit code says that one is not."""
        result = cli("manifests", "validate", str(folder))
        assert result.exit_code == 1
        assert f"✗ {folder / 'bad.yaml'}" in result.stdout
        assert f"✓ {folder / 'good.yaml'}" in result.stdout
        assert "'metadata'" in result.stdout

    def test_valid_ones_end_well(self, cli: Cli, folder: Path) -> None:
        """Valid files alone end with exit code 0, and with empty lists for a program."""
        file = str(folder / "good.yaml")
        assert json.loads(cli("manifests", "validate", file, "--json").stdout) == {file: []}
        assert cli("manifests", "validate", file).exit_code == 0

    def test_two_files_that_want_the_same(self, cli: Cli, folder: Path) -> None:
        """Of two files with one name and path, the second is refused, if they are in one folder."""
        (folder / "bad.yaml").unlink()
        again, elsewhere = folder / "more.yaml", folder.parent / "good.yaml"
        for copy in (again, elsewhere):
            copy.write_text((folder / "good.yaml").read_text())
        result = cli("manifests", "validate", str(folder), str(elsewhere), "--json")
        found = json.loads(result.stdout)
        assert result.exit_code == 1
        assert (found[str(folder / "good.yaml")], found[str(elsewhere)]) == ([], [])
        assert [(one["path"], "good.yaml" in one["message"]) for one in found[str(again)]] == [
            ("metadata -> name", True),
            ("spec -> trigger -> webhook -> path", True),
        ]

    def test_links_that_the_platform_does_not_follow(self, cli: Cli, folder: Path) -> None:
        """What lies elsewhere is refused by the check and the list."""
        elsewhere = (folder / "good.yaml").rename(folder.parent / "good.yaml")
        (folder / "bad.yaml").unlink()
        (folder / "out.yaml").symlink_to(elsewhere)
        (folder / "circle.yaml").symlink_to("circle.yaml")
        (folder / "dangling.yaml").symlink_to("nowhere.yaml")
        result = cli("manifests", "validate", str(folder), "--json")
        defects = {Path(path).name: len(found) for path, found in json.loads(result.stdout).items()}
        links = ("circle.yaml", "dangling.yaml", "out.yaml")
        assert (result.exit_code, defects) == (1, dict.fromkeys(links, 1))
        listed = cli("manifests", "list", "--json", env={"PLATFORM_MANIFESTS_DIR": str(folder)})
        status = {item["name"]: item["status"] for item in json.loads(listed.stdout)}
        assert status == dict.fromkeys(links, "refused")

    def test_the_plugin_is_out_of_service(self, cli: Cli) -> None:
        """Nothing is live without the plugin, and its reason says why."""
        refused = cli("manifests", "list", env={"MAX_WEBHOOK_BODY_SIZE_MB": "many"})
        assert (refused.exit_code, "MAX_WEBHOOK_BODY_SIZE_MB" in refused.stderr) == (1, True), refused.output

    def test_nothing_to_check(self, cli: Cli, tmp_path: Path) -> None:
        """A folder without manifests is an error, not a success."""
        (tmp_path / "empty").mkdir()
        assert cli("manifests", "validate", str(tmp_path / "empty")).exit_code == 1

    def test_deliveries_of_nobody(self, cli: Cli, folder: Path) -> None:
        """A manifest that doesn't exist is not one without deliveries."""
        env = {"PLATFORM_MANIFESTS_DIR": str(folder)}
        assert cli("manifests", "deliveries", "github-issues", env=env).exit_code == 0
        missing = cli("manifests", "deliveries", "github-issue", env=env)
        assert (missing.exit_code, "Available: github-issues." in missing.stderr) == (3, True)

    def test_list_tells_what_is_missing(self, cli: Cli, folder: Path) -> None:
        """A manifest without its secret is incomplete and names the command; with it, it is live."""
        env = {"PLATFORM_MANIFESTS_DIR": str(folder)}

        def listed() -> dict[str, tuple[str, str]]:
            found = json.loads(cli("manifests", "list", "--json", env=env).stdout)
            return {item["name"]: (item["status"], item["reason"]) for item in found}

        status, reason = listed()["github-issues"]
        assert (status, "platformctl secret set github-issues" in reason) == ("incomplete", True)
        assert listed()["bad.yaml"][0] == "refused"
        cli("secret", "set", "github-issues", input="s3cret")
        assert listed()["github-issues"][0] == "live"
