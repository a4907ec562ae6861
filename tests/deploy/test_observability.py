"""The alert rules and the dashboard in docs/deploy speak of metrics that the platform has."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import yaml

from kernel.testing import Running, Start, missing

DOCS = Path(__file__).resolve().parents[2] / "docs" / "deploy"
PLUGINS = ("platform_ops", "rag", "extractive_answers", "embeddings", "models", "speech", "plugin_registry")
METRIC = re.compile(r"\b(\w+)\{")
LABELS = re.compile(r"\b(\w+)\{([^}]*)\}")


def dashboard() -> list[dict[str, Any]]:
    return list(json.loads((DOCS / "grafana-dashboard.json").read_text())["panels"])


def expressions() -> list[str]:
    rules = yaml.safe_load((DOCS / "prometheus-rules.yaml").read_text())
    alerts = [rule["expr"] for group in rules["groups"] for rule in group["rules"]]
    return alerts + [target["expr"] for panel in dashboard() for target in panel["targets"]]


def test_promtool_accepts_them() -> None:
    """The scrape configuration with its rules, and each query of the dashboard as a rule."""
    promtool = shutil.which("promtool")
    if promtool is None:
        missing("promtool is not installed")
    done = subprocess.run(
        [str(promtool), "check", "config", "prometheus.yaml"], cwd=DOCS, capture_output=True
    )
    assert done.returncode == 0, done.stderr.decode()


def test_alerts_fire_when_they_should(tmp_path: Path) -> None:
    """A worker that is gone, jobs that wait, a full disk, an old backup; and not before."""
    promtool = shutil.which("promtool")
    if promtool is None:
        missing("promtool is not installed")
    shutil.copy(DOCS / "prometheus-rules.yaml", tmp_path)
    shutil.copy(Path(__file__).parent / "alerts.yaml", tmp_path)
    done = subprocess.run(
        [str(promtool), "test", "rules", str(tmp_path / "alerts.yaml")], capture_output=True
    )
    assert done.returncode == 0, (done.stdout + done.stderr).decode()


async def test_what_is_only_known_when_asked_for(start_platform: Start) -> None:
    """The queue, the workers, the disk, the newest backup; a place that can't be read hides nothing else."""
    running = await start_platform("platform_ops")
    admin = await running.user("boss", role="admin")
    assert (await admin.post("/v1/backups")).status == 202
    found = await figures(running)
    waiting = [value for name, value in found.items() if "jobs_under_way" in name and "queued" in name]
    assert len(waiting) == 3 and sum(waiting) >= 1
    assert found["backup_newest_timestamp_seconds"] == 0
    assert found["disk_free_bytes"] > 0
    await running.run_jobs()
    again = await start_platform("platform_ops", home=running.platform.settings.home)
    assert abs((await figures(again))["backup_newest_timestamp_seconds"] - time.time()) < 300
    broken = await start_platform("platform_ops", env={"PLATFORM_BACKUP_TO": "s3://no bucket/backups"})
    assert (await figures(broken))["disk_free_bytes"] > 0


async def figures(running: Running) -> dict[str, float]:
    text = (await running.anonymous.get("/metrics")).body.decode()
    pairs = [line.rpartition(" ") for line in text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in pairs}


def test_promtool_accepts_the_queries_of_the_dashboard(tmp_path: Path) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        missing("promtool is not installed")
    queries = [target["expr"] for panel in dashboard() for target in panel["targets"]]
    filled = [one.replace("$__rate_interval", "5m").replace("$instance", ".*") for one in queries]
    rules = [{"record": f"query:{number}", "expr": expr} for number, expr in enumerate(filled)]
    file = tmp_path / "rules.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}))
    done = subprocess.run([str(promtool), "check", "rules", str(file)], capture_output=True)
    assert done.returncode == 0, done.stderr.decode()


async def test_they_name_metrics_and_labels_that_there_are(start_platform: Start) -> None:
    """A renamed metric or label would leave an alert silent for ever."""
    running = await start_platform(*PLUGINS)
    await running.anonymous.get("/v1/status")
    text = (await running.anonymous.get("/metrics")).body.decode()
    known = set(re.findall(r"^# TYPE (\w+) ", text, re.M))
    labels = {"job", "instance", "le"}
    for name, inside in re.findall(r"^(http_\w+)\{([^}]*)\}", text, re.M):
        labels |= set(re.findall(r"(\w+)=", inside)) if name in known else set()
    labels |= {"status", "outcome", "client", "model", "plugin", "lane"}
    for expression in expressions():
        for name, inside in LABELS.findall(expression):
            base = re.sub(r"_(bucket|count|sum)$", "", name)
            assert name == "up" or base in known, name
            assert set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", inside)) <= labels, inside
        assert METRIC.search(expression), expression


def test_every_alert_says_what_to_do() -> None:
    rules = yaml.safe_load((DOCS / "prometheus-rules.yaml").read_text())
    for rule in (rule for group in rules["groups"] for rule in group["rules"]):
        assert rule["labels"]["severity"] in ("warning", "critical")
        assert rule["annotations"]["summary"] and rule["annotations"]["description"]
