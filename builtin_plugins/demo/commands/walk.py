"""The steps of `platformctl demo`, over HTTP like any client's."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import re
import secrets
import shutil
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import Any

import aiohttp
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)
from rich.text import Text

from cli import console
from cli.failures import CommandFailed
from cli.instance import Instance, log_tail, throw_away_instance
from cli.running import cli_settings
from kernel.sdk import SecretStore
from kernel.sdk.operations import data_folder

# Manifests name all-MiniLM-L6-v2 by default, which a light installation lacks.
SETTINGS = {"PLATFORM_WEBHOOK_EMBED_MODELS": "all-minilm=multilingual-e5-small"}
SAMPLES = Path(__file__).resolve().parents[1] / "samples"
QUESTIONS = (
    "How many days a week may employees work from home?",
    "How much may a hotel in Oslo cost per night?",
    "How often should I calibrate the anemometer?",
)
UNANSWERABLE = "Who wins the football championship?"
SEARCH = "negative wind speed"
_INGEST_SECONDS = 300.0
_WATCH_SECONDS = 10.0
_CITED = re.compile(r"\[(\d+)\]")
_MANIFEST = "github-issues"
_ISSUE = {
    "action": "opened",
    "repository": {"full_name": "nordlys/aurora-firmware"},
    "issue": {
        "number": 318,
        "title": "Negative wind speed after the update to 4.2",
        "body": "Since the update two stations on Senja report -0.4 m/s in calm air. A new calibration helps "
        "until the next restart; it looks as if the stored offset is read with the wrong sign.",
        "html_url": "https://git.example.com/nordlys/aurora-firmware/issues/318",
        "state": "open",
        "user": {"login": "ingrid"},
    },
}


class Stopwatch:
    """The duration of each step, in seconds; steps are printed as they end."""

    def __init__(self, out: Console) -> None:
        self.out = out
        self.times: list[tuple[str, float]] = []

    @contextmanager
    def step(self, doing: str, done: str) -> Iterator[None]:
        """Time a step."""
        started = time.perf_counter()
        with console.busy(doing):
            yield
        self.note(done, time.perf_counter() - started)

    def note(self, done: str, seconds: float) -> None:
        """Record and print a step that has ended."""
        self.times.append((done, seconds))
        self.out.print(Text.assemble(("✓ ", "green"), done, (f"  {seconds:.1f} s", "dim")), soft_wrap=True)


async def demonstrate() -> None:
    """Run every step. Raises CommandFailed if one fails."""
    watch = Stopwatch(console.out())
    started = time.perf_counter()
    async with AsyncExitStack() as stack:
        with watch.step("Starting a temporary instance", "started a temporary instance"):
            instance = await stack.enter_async_context(throw_away_instance(SETTINGS))
        try:
            await _main_job(instance, watch)
        except Exception:  # boundary: whatever failed, the log helps
            console.note("The end of the instance's log:\n" + log_tail(instance.home))
            raise
        with watch.step("Stopping", "stopped it and removed everything it had created"):
            await stack.aclose()
    seconds = time.perf_counter() - started
    watch.out.print(f"\n[bold green]Done in {seconds:.1f} s.[/bold green]")
    watch.out.print(f"Start your own platform: [cyan]{cli_settings().command} serve[/cyan]\n")


async def _main_job(instance: Instance, watch: Stopwatch) -> None:
    with watch.step("Creating an account", "created an account over HTTP and signed in"):
        await instance.sign_up("demo")
    knowledge_base = await ingest(instance, watch)
    await _collect(instance, watch)
    await _ask_all(instance, watch, knowledge_base)


async def ingest(instance: Instance, watch: Stopwatch) -> str:
    """Upload every sample and wait until all are completed; returns the knowledge base's id."""
    body = {"name": "Nordlys Instruments", "description": "The sample documents"}
    knowledge_base = await instance.call("POST", "/v1/rag/knowledge-bases", json=body)
    base = f"/v1/rag/knowledge-bases/{knowledge_base['id']}"
    files = _samples()
    started = time.perf_counter()
    with _progress() as progress:
        uploaded = progress.add_task("uploading", total=len(files))
        ingested = progress.add_task("ingesting", total=len(files))
        for path in files:
            await _upload(instance, base, path)
            progress.advance(uploaded)
        documents = await _completed(instance, base, lambda done: progress.update(ingested, completed=done))
    chunks = sum(item["chunk_count"] for item in documents)
    types = len({path.suffix for path in files})
    text = f"ingested {len(files)} documents of {types} types: {chunks} passages, embedded on this machine"
    watch.note(text, time.perf_counter() - started)
    return str(knowledge_base["id"])


def _samples() -> list[Path]:
    return sorted(path for path in SAMPLES.iterdir() if path.name != "README.md")


def _progress() -> Progress:
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    err = console.err()
    return Progress(*columns, TimeElapsedColumn(), console=err, transient=True, disable=not err.is_terminal)


async def _upload(instance: Instance, base: str, path: Path) -> None:
    form = aiohttp.FormData()
    form.add_field("file", await asyncio.to_thread(path.read_bytes), filename=path.name)
    await instance.call("POST", f"{base}/upload", expect=(200, 202), data=form)


async def _completed(instance: Instance, base: str, show: Callable[[int], None]) -> Sequence[dict[str, Any]]:
    """Poll until no document is in progress. Raises CommandFailed if one failed."""
    deadline = time.monotonic() + _INGEST_SECONDS
    while time.monotonic() < deadline:
        items = (await instance.call("GET", f"{base}/documents"))["items"]
        failed = [f"{item['filename']}: {item['error']}" for item in items if item["status"] == "failed"]
        if failed:
            raise CommandFailed("a document could not be ingested: " + "; ".join(failed))
        done = sum(item["status"] == "completed" for item in items)
        show(done)
        if done == len(items):
            return list(items)
        await asyncio.sleep(0.1)
    raise CommandFailed(f"the documents were not ingested within {_INGEST_SECONDS:g} s")


async def _collect(instance: Instance, watch: Stopwatch) -> None:
    """Drop in a manifest, send the webhook that it declares, and search what it stored."""
    secret = secrets.token_hex(16)
    SecretStore(instance.home).set(_MANIFEST, secret)
    shutil.copy(data_folder("manifests") / "samples" / f"{_MANIFEST}.yaml", instance.manifests)
    with watch.step("Adding a manifest", f"added the manifest '{_MANIFEST}': live without a restart"):
        await _live(instance)
    with watch.step("Sending a webhook", "sent a signed GitHub webhook: stored before it was acknowledged"):
        await _send(instance, secret)
    path = f"/v1/plugins/{_MANIFEST}/actions/search"
    with watch.step("Searching", f"searched the collected webhooks for '{SEARCH}'"):
        answer = await instance.call("GET", path, params={"query": SEARCH, "limit": "1"})
    hits = answer["result"]["hits"]
    if not hits:
        raise CommandFailed(f"the search for '{SEARCH}' did not find what the webhook had sent")
    _print_hit(hits[0])


async def _live(instance: Instance) -> None:
    deadline = time.monotonic() + _WATCH_SECONDS
    while await instance.status(f"/v1/plugins/{_MANIFEST}") != 200:
        if time.monotonic() > deadline:
            raise CommandFailed(f"the manifest was not live after {_WATCH_SECONDS:g} s")
        await asyncio.sleep(0.1)


async def _send(instance: Instance, secret: str) -> None:
    body = json.dumps(_ISSUE).encode()
    headers = {
        "Content-Type": "application/json",
        "X-GitHub-Event": "issues",
        "X-GitHub-Delivery": str(uuid.uuid4()),
        "X-Hub-Signature-256": "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest(),
    }
    await instance.call("POST", "/webhook/github/issues", data=body, headers=headers)


def _print_hit(hit: dict[str, Any]) -> None:
    text = Text(hit["text"].partition("\n")[0])
    where = Text(f"{hit['metadata'].get('url', '')} · score {hit['score']:.2f}", style="dim")
    console.print_indented(text, 4)
    console.print_indented(where, 4)


async def _ask_all(instance: Instance, watch: Stopwatch, knowledge_base: str) -> None:
    body = {"name": "demo", "knowledge_base_ids": [knowledge_base]}
    pipeline = (await instance.call("POST", "/v1/rag/pipeline", json=body))["pipeline_id"]
    for question in QUESTIONS:
        if not await _ask(instance, watch, pipeline, question):
            raise CommandFailed(f"the question '{question}' got an answer without a source")
    if await _ask(instance, watch, pipeline, UNANSWERABLE):
        raise CommandFailed(f"the question '{UNANSWERABLE}' got a source, but no document answers it")


async def _ask(instance: Instance, watch: Stopwatch, pipeline: str, question: str) -> bool:
    """Ask and print; returns whether sources were cited."""
    started = time.perf_counter()
    body = {"question": question, "hybrid": True}
    answer = await instance.call("POST", f"/v1/rag/pipeline/{pipeline}/query", json=body)
    seconds = time.perf_counter() - started
    watch.times.append((question, seconds))
    watch.out.print(Text.assemble("\n", ("? ", "bold cyan"), (question, "bold")))
    console.print_indented(Text(answer["answer"]), 2)
    cited = _cited(answer)
    for number, source, sentence in cited:
        console.print_indented(_place(number, source), 2)
        passage = _around(" ".join(source["text"].split()), sentence)
        console.print_indented(Text(f"“{passage}”", style="dim"), 6)
    console.print_indented(Text(f"{seconds:.2f} s · {answer['model_used']}", style="dim"), 2)
    return bool(cited)


def _cited(answer: dict[str, Any]) -> list[tuple[int, dict[str, Any], str]]:
    """The number, source and first sentence of each citation in the answer."""
    sentences: dict[int, str] = {}
    text, start = answer["answer"], 0
    for match in _CITED.finditer(text):
        sentences.setdefault(int(match.group(1)), text[start : match.start()].strip())
        start = match.end()
    sources = answer["sources"]
    return [
        (number, sources[number - 1], sentence)
        for number, sentence in sentences.items()
        if number <= len(sources)
    ]


def _place(number: int, source: dict[str, Any]) -> Text:
    """The file, page and offsets of a cited passage."""
    page = f", page {source['page']}" if source.get("page") else ""
    place = f"characters {source['char_start']} to {source['char_end']}"
    return Text.assemble(
        (f"[{number}] ", "cyan"), f"{source['source']}{page}, {place}, score {source['score']:.2f}"
    )


def _around(passage: str, sentence: str) -> str:
    """About 200 characters of the passage, with the sentence in them."""
    start = max(0, passage.find(sentence) - 60) if len(passage) > 200 else 0
    excerpt = passage[start : start + 200]
    return ("…" if start else "") + excerpt + ("…" if start + 200 < len(passage) else "")
