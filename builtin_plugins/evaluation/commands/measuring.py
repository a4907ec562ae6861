"""The work of `platformctl eval run`: upload, run, wait, compare, and check the demands."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import typer

from cli.broken_rules import in_words
from cli.failures import CommandFailed

SHOWN = ("quality", "ndcg@10", "recall@5", "mrr", "contains", "refused_wrong", "failed", "latency_ms")
_RISING = ("quality", "ndcg@10", "recall@5", "mrr", "contains", "refused_right", "citations_supported")
_API = "/v1/rag/evaluation"
_WORST = 10
_SIGNIFICANT = 0.05


@dataclass(frozen=True)
class Demands:
    """What must be met: minimum means of measures, no significant loss against an earlier run."""

    least: dict[str, float]
    earlier: str | None

    @classmethod
    def read(cls, texts: Sequence[str], earlier: str | None) -> Demands:
        """Parse the command line's values. Raises typer.BadParameter."""
        least = {}
        for text in texts:
            name, _, value = text.partition("=")
            if name not in _RISING:
                raise typer.BadParameter(f"name one of {', '.join(_RISING)}", param_hint="--fail-under")
            try:
                least[name] = float(value)
            except ValueError:
                message = f"'{value}' is not a number; write {name}=0.8"
                raise typer.BadParameter(message, param_hint="--fail-under") from None
        return cls(least, earlier)


@dataclass
class RunReport:
    """A finished run, the demands that it misses, and, if it misses any, its worst questions."""

    run: dict[str, Any]
    failures: list[str]
    worst: list[tuple[str, str]]


class Api:
    """The platform to evaluate."""

    def __init__(self, session: aiohttp.ClientSession, url: str, token: str) -> None:
        self._session = session
        self._url = url.rstrip("/")
        self._headers = {"Authorization": f"Bearer {token}"}

    async def call(self, method: str, path: str, **options: Any) -> Any:
        """The JSON of a response, or its text. Raises CommandFailed for an error."""
        headers = {**self._headers, **options.pop("headers", {})}
        url = self._url + path
        async with self._session.request(method, url, headers=headers, **options) as answer:
            is_json = answer.content_type == "application/json"
            body = await answer.json() if is_json else await answer.text()
            if answer.status >= 400:
                detail = body.get("detail") if isinstance(body, dict) else answer.reason
                raise CommandFailed(f"{method} {path} failed with status {answer.status}: {in_words(detail)}")
            return body


async def evaluate(
    base: str, file: Path, configurations: Sequence[dict[str, Any]], demands: Demands, out: Path | None
) -> RunReport:
    """Create a question set from the file, run it, and wait for its end. Raises CommandFailed."""
    from cli.running import cli_settings

    settings = cli_settings()
    if settings.api_token is None:
        raise CommandFailed("no token", "Put a personal access token into PLATFORM_API_TOKEN.")
    if urlsplit(settings.api_url).scheme not in ("http", "https"):
        raise CommandFailed(f"'{settings.api_url}' is not a URL", "Correct PLATFORM_API_URL.")
    raw = await asyncio.to_thread(file.read_bytes)
    try:
        async with aiohttp.ClientSession() as session:
            api = Api(session, settings.api_url, settings.api_token.get_secret_value())
            run = await _run(api, base, file, raw, configurations)
            if out is not None:
                await _save(api, run, out)
            return await _checked(api, run, demands)
    except aiohttp.ClientConnectionError:
        raise CommandFailed(
            f"no platform answers at {settings.api_url}", "Start it, or correct PLATFORM_API_URL."
        ) from None


async def _run(
    api: Api, base: str, file: Path, raw: bytes, configurations: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    new_set = await api.call("POST", f"{_API}/sets", json={"knowledge_base_id": base, "name": file.name})
    kind = "text/csv" if file.suffix.lower() == ".csv" else "application/jsonl"
    await api.call("POST", f"{_API}/sets/{new_set['id']}/upload", data=raw, headers={"Content-Type": kind})
    body = {"set_id": new_set["id"], "configurations": list(configurations)}
    run: dict[str, Any] = await api.call("POST", f"{_API}/runs", json=body)
    path = f"{_API}/runs/{run['id']}"
    while (run := await api.call("GET", path))["status"] == "running":  # noqa: ASYNC110 - on a server
        await asyncio.sleep(1)
    if run["status"] == "failed":
        raise CommandFailed(f"run {run['id']} failed: {run['error']}")
    return run


async def _save(api: Api, run: dict[str, Any], out: Path) -> None:
    texts = {
        name: await api.call("GET", f"{_API}/runs/{run['id']}/{name}") for name in ("table.md", "plot.svg")
    }

    def write() -> None:
        out.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            (out / name).write_text(text, encoding="utf-8")

    await asyncio.to_thread(write)


async def _checked(api: Api, run: dict[str, Any], demands: Demands) -> RunReport:
    report = RunReport(run, [], [])
    earlier = {}
    if demands.earlier is not None:
        before = await api.call("GET", f"{_API}/runs/{demands.earlier}")
        earlier = {summary["label"]: at for at, summary in enumerate(before["summaries"])}
    for at, summary in enumerate(run["summaries"]):
        failures = _below(summary, demands.least)
        if demands.earlier is not None:
            failures += await _worse(api, run["id"], demands.earlier, at, summary["label"], earlier)
        if failures:
            report.failures += failures
            report.worst += await _worst(api, run["id"], at)
    return report


def _below(summary: dict[str, Any], least: dict[str, float]) -> list[str]:
    failures = []
    for name, value in least.items():
        measured = summary["measures"].get(name)
        if measured is None:
            failures.append(f"{summary['label']}: {name} applies to none of the questions")
        elif measured["mean"] < value:
            failures.append(f"{summary['label']}: {name} is {measured['mean']}, less than {value}")
    return failures


async def _worse(api: Api, run: str, other: str, at: int, label: str, earlier: dict[str, int]) -> list[str]:
    if label not in earlier:
        return [f"{label}: the earlier run has no such configuration"]
    query = {"with": other, "configuration": at, "other_configuration": earlier[label]}
    comparison = await api.call("GET", f"{_API}/runs/{run}/comparison", params=query)
    change = comparison["differences"].get("quality")
    if change is None:
        return [f"{label}: the earlier run has none of these questions"]
    if change["difference"] < 0 and change["p"] < _SIGNIFICANT:
        return [f"{label}: quality changed by {change['difference']} (p = {change['p']})"]
    return []


async def _worst(api: Api, run: str, at: int) -> list[tuple[str, str]]:
    query = {"configuration": at, "limit": _WORST}
    page = await api.call("GET", f"{_API}/runs/{run}/results", params=query)
    return [(f"{one['values']['quality']:.3f}", one["question"]) for one in page["items"]]
