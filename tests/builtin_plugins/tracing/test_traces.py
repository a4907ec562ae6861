"""Traces as a collector receives them: one over all processes, and nothing in them that is private."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from pydantic import BaseModel

from builtin_plugins.inference import api as inference
from builtin_plugins.tracing.jobs import job_spans
from kernel.db.tables import JobRecord
from kernel.jobs.stopping import Cancelled
from kernel.observe.tracing import NoSpan, Span, Tracing
from kernel.sdk import (
    AUTHENTICATED,
    OUTGOING,
    PUBLIC,
    TRACING,
    Context,
    Job,
    Platform,
    PlatformError,
    Plugin,
    RouteTable,
    Unavailable,
    Unit,
    hookimpl,
    send_events,
)
from kernel.sdk.jobs import Gather, Together
from kernel.testing import Start
from tests.fakes.collector import Collector, Received, collecting
from tests.fakes.model_server import Script, model_server
from tests.fakes.processes import free_port, served_platform, without_plugins
from tests.fakes.speech import SpeechPlugin

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
TRACEPARENT = {"traceparent": f"00-{TRACE}-{SPAN}-01", "tracestate": "vendor=abc"}
SECRET = "hunter22-secret"

routes = RouteTable("Sample")


class Count(BaseModel):
    """A number."""

    number: int


async def _count(platform: Platform, payload: Count) -> None:
    if payload.number < 0:
        raise ValueError(SECRET)


async def _count_together(platform: Platform, jobs: Together[Count]) -> None:
    for job_id in jobs.payloads:
        jobs.done(job_id)


COUNT = Job("sample.count", Count, _count, retries=0)
MANY = Job("sample.many", Count, _count, lane="quick", together=_count_together)


def _enqueue(unit: Unit, number: int) -> None:
    unit.enqueue(COUNT, Count(number=number))


def _enqueue_gathered(unit: Unit, number: int) -> None:
    unit.enqueue(MANY, Count(number=number), lane="quick", gather=Gather())


@routes.get("/v1/sample/invitations/{code}", access=PUBLIC, returns=dict)
async def invitation(ctx: Context, code: str) -> dict[str, str]:
    """A path that holds a secret."""
    return {"code": code}


@routes.get("/v1/sample/fails/{kind}", access=PUBLIC, returns=dict)
async def fails(ctx: Context, kind: str) -> dict[str, str]:
    """An error nobody foresaw, or a declared one."""
    if kind == "known":
        raise Unavailable(SECRET)
    raise RuntimeError(SECRET)


@routes.get("/v1/sample/call/{port:int}", access=PUBLIC, returns=dict)
async def call(ctx: Context, port: int) -> dict[str, int]:
    """Ask another server."""
    outgoing = ctx.platform.resource(OUTGOING)
    async with outgoing.client("sample", named=[f"http://127.0.0.1:{port}"]) as client:
        url = f"http://127.0.0.1:{port}/{SECRET}?key={SECRET}"
        async with await client.call("POST", url, headers={"Authorization": SECRET}, json={}) as reply:
            await reply.read()
            return {"status": reply.status}


@routes.get("/v1/sample/unsendable", access=PUBLIC, returns=dict)
async def unsendable(ctx: Context) -> dict[str, int]:
    """Ask another server for what no JSON can say."""
    outgoing = ctx.platform.resource(OUTGOING)
    async with outgoing.client("sample", named=["http://127.0.0.1:1"]) as client:
        await client.call("PUT", "http://127.0.0.1:1", json=object())
    return {}


@routes.post("/v1/sample/count/{number:int}", access=AUTHENTICATED, returns=dict)
async def count(ctx: Context, number: int) -> dict[str, int]:
    """Leave a job."""
    await ctx.write(_enqueue, number)
    return {"number": number}


@routes.post("/v1/sample/many/{number:int}", access=AUTHENTICATED, returns=dict)
async def many(ctx: Context, number: int) -> dict[str, int]:
    """Leave a job that is taken up with others."""
    await ctx.write(_enqueue_gathered, number)
    return {"number": number}


@routes.get("/v1/sample/stream", access=PUBLIC)
async def stream(ctx: Context) -> web.StreamResponse:
    """Three events."""

    async def events() -> AsyncGenerator[tuple[str, Any], None]:
        for number in range(3):
            yield "count", number

    return await send_events(ctx.request, events())


class SamplePlugin(Plugin):
    """The routes and jobs above."""

    name = "sample"

    @hookimpl
    def register_routes(self) -> list[RouteTable]:
        return [routes]

    @hookimpl
    def register_jobs(self) -> list[Job[Any]]:
        return [COUNT, MANY]


@pytest.fixture
async def collector(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Collector]:
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "20")
    async with collecting() as fake:
        yield fake


@pytest.fixture
async def running(collector: Collector, start_platform: Start) -> Any:
    return await start_platform("tracing", SamplePlugin, env={"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url})


async def test_a_request_continues_its_callers_trace(running: Any, collector: Collector) -> None:
    """A server span by the conventions, the handler below it; the path is its template."""
    answer = await running.anonymous.get(
        f"/v1/sample/invitations/{SECRET}?token={SECRET}", headers={**TRACEPARENT, "X-Note": SECRET}
    )
    assert answer.status == 200
    server = await collector.span("GET /v1/sample/invitations/{code}")
    handler = await collector.span("sample invitation")
    assert (server.kind, server.trace, server.parent) == ("server", TRACE, SPAN)
    assert (handler.kind, handler.trace, handler.parent) == ("internal", TRACE, server.id)
    expected = {
        "http.request.method": "GET",
        "http.route": "/v1/sample/invitations/{code}",
        "http.response.status_code": 200,
        "url.path": "/v1/sample/invitations/{code}",
        "url.scheme": "http",
        "network.protocol.version": "1.1",
        "platform.request_id": answer.headers["X-Request-ID"],
    }
    assert server.attributes == expected
    assert server.resource["service.name"] == "platform"
    assert server.resource["platform.role"] == "api"
    assert SECRET not in repr(collector.spans)


@pytest.mark.parametrize("header", ["", "00-0-0-01", f"00-{'0' * 32}-{SPAN}-01", "\udcff", "x" * 4000])
async def test_a_senseless_traceparent_begins_a_trace(
    running: Any, collector: Collector, header: str
) -> None:
    sent = {"traceparent": header.encode("utf-8", "surrogateescape").decode("latin-1")}
    assert (await running.anonymous.get("/v1/sample/invitations/1", headers=sent)).status == 200
    server = await collector.span("GET /v1/sample/invitations/{code}")
    assert server.parent == ""


async def test_errors_are_told_without_their_text(running: Any, collector: Collector) -> None:
    """5xx fails the span; a 404 and what matches no route do not, and leave no path behind."""
    assert (await running.anonymous.get("/v1/sample/fails/other")).status == 500
    server = await collector.span("GET /v1/sample/fails/{kind}")
    handler = await collector.span("sample fails")
    assert (server.failed, server.attributes["error.type"]) == (True, "500")
    assert (handler.failed, handler.attributes["error.type"]) == (True, "RuntimeError")
    assert (await running.anonymous.get("/v1/sample/fails/known")).status == 503
    await collector.until(lambda spans: any(s.attributes.get("error.type") == "unavailable" for s in spans))
    assert (await running.anonymous.get(f"/nowhere/{SECRET}")).status == 404
    missed = await collector.span("GET")
    assert not missed.failed
    assert missed.attributes["http.response.status_code"] == 404
    assert SECRET not in repr(collector.spans)


async def test_monitors_are_not_traced(running: Any, collector: Collector) -> None:
    for path in ("/health", "/livez", "/readyz", "/metrics"):
        assert (await running.anonymous.get(path)).status == 200
    await running.anonymous.get("/v1/sample/invitations/1")
    await collector.span("GET /v1/sample/invitations/{code}")
    assert {span.kind for span in collector.spans} == {"server", "internal"}
    assert len({span.trace for span in collector.spans}) == 1


async def test_a_stream_is_a_span_until_its_end(running: Any, collector: Collector) -> None:
    answer = await running.anonymous.get("/v1/sample/stream")
    assert answer.body.count(b"event: count") == 3
    assert (await collector.span("GET /v1/sample/stream")).attributes["http.response.status_code"] == 200


async def test_calls_to_others_pass_the_trace_on(running: Any, collector: Collector) -> None:
    """The other server gets our span's context; the span has no more of the address than its origin."""
    async with model_server(Script()) as other:
        port = int(other.url.rpartition(":")[2])
        answer = await running.anonymous.get(f"/v1/sample/call/{port}", headers=TRACEPARENT)
        assert answer.json() == {"status": 404}
        sent = {name.lower(): value for name, value in other.requests[0].headers.items()}
    span = await collector.span("POST")
    assert sent["traceparent"] == f"00-{TRACE}-{span.id}-01"
    assert sent["tracestate"] == "vendor=abc"
    assert span.parent == (await collector.span("sample call")).id
    assert (span.kind, span.failed) == ("client", True)
    assert span.attributes == {
        "http.request.method": "POST",
        "url.scheme": "http",
        "server.address": "127.0.0.1",
        "server.port": port,
        "platform.client": "sample",
        "http.response.status_code": 404,
        "error.type": "404",
    }
    assert (await running.anonymous.get(f"/v1/sample/call/{free_port()}")).status == 500
    await collector.until(lambda spans: any(s.attributes.get("error.type") == "CallFailed" for s in spans))


async def test_a_call_that_is_never_sent_is_a_span(running: Any, collector: Collector) -> None:
    """With the class of its error, like one that the other server refuses."""
    assert (await running.anonymous.get("/v1/sample/unsendable")).status == 500
    span = await collector.span("PUT")
    assert (span.failed, span.attributes["error.type"]) == (True, "TypeError")


@pytest.mark.parametrize(("raised", "failures"), [(Cancelled, []), (ValueError, ["ValueError"])])
def test_a_job_that_a_person_cancels_did_not_fail(raised: type[Exception], failures: list[str]) -> None:
    failed: list[str] = []

    class Noted(NoSpan):
        def fail(self, kind: str) -> None:
            failed.append(kind)

    class Recorder:
        def begin(self, *_: object) -> Span:
            return Noted()

    tracing = Tracing()
    tracing.tracer = Recorder()
    job = JobRecord(id="1", name="sample.count", lane="standard", attempts=1)
    with pytest.raises(raised), job_spans(tracing, [job], (Cancelled,)):
        raise raised
    assert failed == failures


async def test_a_model_that_nobody_has_leaves_no_name(collector: Collector, start_platform: Start) -> None:
    """What a client sends as the model's name may be anything; that of an answer is the runtime's word."""
    async with model_server(Script(answer="Yes.", models=("writer",))) as models:
        env = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "OPENAI_BASE_URL": f"{models.url}/v1"}
        running = await start_platform("tracing", "models", env=env)
        platform = running.platform
        for model in (SECRET, "writer"):
            request = inference.ChatRequest([{"role": "user", "content": "Hello?"}], model=model)
            turn = platform.hooks.ask_now(inference.chat_with_model, platform=platform, request=request)
            assert turn is not None
            with suppress(PlatformError):
                async for _ in turn:
                    pass

        def both(spans: list[Received]) -> list[Received] | None:
            found = [span for span in spans if span.name == "chat"]
            return found if len(found) == 2 else None

        spans = await collector.until(both)
    assert {span.attributes.get("gen_ai.request.model") for span in spans} == {None, "writer"}
    assert SECRET not in repr(collector.spans)


async def test_jobs_continue_the_trace(running: Any, collector: Collector) -> None:
    """One by one and in batches; an error is recorded by its class."""
    user = await running.user()
    await user.post("/v1/sample/count/1", headers=TRACEPARENT)
    await running.run_jobs()
    job = await collector.span("job sample.count")
    handler = await collector.span("sample count")
    assert (job.kind, job.trace, job.parent, job.failed) == ("consumer", TRACE, handler.id, False)
    assert job.attributes["messaging.destination.name"] == "standard"
    await user.post("/v1/sample/count/-1")
    await running.run_jobs()
    await collector.until(lambda spans: any(s.attributes.get("error.type") == "ValueError" for s in spans))
    traces = [f"{number:032x}" for number in (1, 2, 3)]
    for trace in traces:
        await user.post("/v1/sample/many/1", headers={"traceparent": f"00-{trace}-{SPAN}-01"})
    await running.run_jobs()

    def together(spans: list[Received]) -> list[Received] | None:
        found = [span for span in spans if span.name == "job sample.many"]
        return found if len(found) == 3 else None

    found = await collector.until(together)
    assert sorted(span.trace for span in found) == traces
    lead = next(span for span in found if not span.links)
    assert [span.links for span in found if span is not lead] == [(lead.id,), (lead.id,)]
    assert "kernel.carry" not in repr(collector.spans)
    assert SECRET not in repr(collector.spans)


async def test_a_collector_that_is_away_harms_nobody(
    start_platform: Start, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Requests are answered, the log says it once, and the end waits a moment only."""
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "5")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    gone = f"http://127.0.0.1:{free_port()}"
    running = await start_platform("tracing", SamplePlugin, env={"OTEL_EXPORTER_OTLP_ENDPOINT": gone})
    for _ in range(200):
        assert (await running.anonymous.get("/v1/sample/invitations/1")).status == 200
    async with asyncio.timeout(20):
        while "spans were lost" not in caplog.text:  # noqa: ASYNC110
            await asyncio.sleep(0.02)  # told by a thread of the library's
    assert len([text for text in caplog.messages if "spans" in text]) == 1
    assert "Traceback" not in caplog.text


async def test_a_collector_that_refuses_harms_nobody(
    running: Any, collector: Collector, caplog: pytest.LogCaptureFixture
) -> None:
    """The next spans go out when it takes them again."""
    collector.refusing = True
    assert (await running.anonymous.get("/v1/sample/invitations/1")).status == 200
    async with asyncio.timeout(20):
        while not collector.refused:  # noqa: ASYNC110
            await asyncio.sleep(0.02)  # told by a thread of the library's
    collector.refusing = False
    assert (await running.anonymous.get("/v1/sample/stream")).status == 200
    await collector.span("GET /v1/sample/stream")


async def test_nothing_is_recorded_without_a_collector(start_platform: Start) -> None:
    running = await start_platform("tracing", SamplePlugin)
    assert running.platform.resource(TRACING).tracer is None
    async with model_server(Script()) as other:
        port = int(other.url.rpartition(":")[2])
        await running.anonymous.get(f"/v1/sample/call/{port}", headers=TRACEPARENT)
        assert "traceparent" not in {name.lower() for name in other.requests[0].headers}


@pytest.mark.parametrize(
    ("name", "value"),
    [("OTEL_SDK_DISABLED", "true"), ("OTEL_TRACES_EXPORTER", "none"), ("OTEL_EXPORTER_OTLP_ENDPOINT", "")],
)
async def test_traces_can_be_switched_off(start_platform: Start, name: str, value: str) -> None:
    env = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318", name: value}
    running = await start_platform("tracing", env=env)
    assert running.platform.resource(TRACING).tracer is None
    assert running.platform.is_on("tracing")


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "http/protobuf"),
        ("OTEL_TRACES_EXPORTER", "zipkin", "otlp"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4318", "address"),
        ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "collector:4318", "address"),
    ],
)
async def test_what_can_not_be_used_is_said(
    start_platform: Start, name: str, value: str, expected: str
) -> None:
    """The plugin is out of service, the platform is not."""
    env = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318", name: value}
    running = await start_platform("tracing", env=env)
    record = next(one for one in running.platform.plugins if one.name == "tracing")
    assert f"{name}: " in str(record.reason) and expected in str(record.reason)
    assert (await running.anonymous.get("/health")).status == 200


async def test_a_service_on_another_machine_continues_the_trace(
    collector: Collector, start_platform: Start, tmp_path: Path
) -> None:
    """The gateway's call is a span, and what the service does is below it."""
    env = {
        "JWT_SECRET": "a secret of at least thirty-two bytes, for tests",
        "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
    }
    service = await start_platform(
        "tracing", SpeechPlugin(), only="tts-stt", env={**env, "TRUSTED_PROXY_CIDRS": "127.0.0.0/8"}
    )
    env["PLATFORM_SERVICE_URLS"] = f"tts-stt={service.url}"
    gateway = await start_platform("tracing", "remote_services", env=env, home=tmp_path / "gateway")
    assert (await gateway.anonymous.get("/v1/tts/voices", headers=TRACEPARENT)).status < 500

    def both(spans: list[Received]) -> list[Received] | None:
        found = [span for span in spans if span.kind in ("server", "client")]
        return found if len(found) == 3 else None

    spans = {(span.kind, span.resource["service.instance.id"]): span for span in await collector.until(both)}
    (call,) = [span for (kind, _), span in spans.items() if kind == "client"]
    first = next(span for span in spans.values() if span.parent == SPAN)
    second = next(span for span in spans.values() if span.parent == call.id)
    assert (call.parent, call.attributes["platform.service"]) == (first.id, "tts-stt")
    assert second.kind == first.kind == "server"
    assert {span.trace for span in spans.values()} == {TRACE}


def ending_with(spans: list[Received], last: Received) -> list[Received]:
    """A span and those above it, the lowest first."""
    by_id = {span.id: span for span in spans}
    chain = [last]
    while chain[-1].parent in by_id:
        chain.append(by_id[chain[-1].parent])
    return chain


@pytest.mark.long
@pytest.mark.durability
async def test_one_trace_over_api_worker_and_models(
    collector: Collector, platform_home: Path, database_url: str | None
) -> None:
    """An upload in one process, its ingestion in another, calls of two models: one trace."""
    script = Script(answer="The harbour opens at six [1].", models=("embedder", "writer"))
    async with model_server(script) as models:
        env = {
            **without_plugins("tracing", "rag", "extractive_answers", "models"),
            "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
            "OTEL_BSP_SCHEDULE_DELAY": "50",
            "OTEL_SERVICE_NAME": "harbour",
            "OPENAI_BASE_URL": f"{models.url}/v1",
            "OLLAMA_LLM_MODEL": "writer",
        }
        if database_url is not None:
            env["DATABASE_URL"] = database_url
        async with served_platform(platform_home, env=env) as served:
            account = await served.sign_up()
            bases = served.url + "/v1/rag/knowledge-bases"
            body: dict[str, Any] = {"name": "Harbour", "embedding_model": "embedder"}
            async with served.session.post(bases, headers=account, json=body) as answer:
                base = await answer.json()
                assert answer.status == 200, base
            traced = {**account, **TRACEPARENT}
            form = aiohttp.FormData()
            form.add_field("file", b"The harbour opens at six in the morning.", filename="harbour.txt")
            async with served.session.post(
                f"{bases}/{base['id']}/upload", headers=traced, data=form
            ) as answer:
                assert answer.status == 202, await answer.text()
            job = await collector.span("job rag.ingest_document")
            pipelines = served.url + "/v1/rag/pipeline"
            body = {"name": "Harbour", "knowledge_base_ids": [base["id"]]}
            async with served.session.post(pipelines, headers=account, json=body) as answer:
                pipeline = await answer.json()
                assert answer.status < 300, pipeline
            question = {"question": "When does the harbour open?"}
            path = f"{pipelines}/{pipeline['pipeline_id']}/query"
            async with served.session.post(path, headers=traced, json=question) as answer:
                assert answer.status == 200, await answer.text()
            chat = await collector.span("chat")
            await collector.span("POST /v1/rag/pipeline/{pipeline_id}/query")
    spans = [span for span in collector.spans if span.trace == TRACE]
    assert {span.resource["service.name"] for span in spans} == {"harbour"}
    assert job.resource["platform.role"] == "worker"
    below = [one for one in spans if one.name == "embeddings" and one.parent == job.id]
    assert below, [(one.name, one.parent) for one in spans]
    call = next(one for one in spans if one.kind == "client" and one.parent == below[0].id)
    assert [one.name for one in ending_with(spans, call)] == [
        "POST",
        "embeddings",
        "job rag.ingest_document",
        "rag-pipeline upload",
        "POST /v1/rag/knowledge-bases/{kb_id}/upload",
    ]
    assert ending_with(spans, call)[-1].parent == SPAN
    assert chat.attributes["gen_ai.operation.name"] == "chat"
    assert chat.attributes["gen_ai.system"] == "openai"
    assert chat.attributes["gen_ai.request.model"] == "writer"
    assert chat.attributes["gen_ai.usage.input_tokens"] == 11
    assert chat.attributes["gen_ai.usage.output_tokens"] == 7
    assert ending_with(spans, chat)[-1].name == "POST /v1/rag/pipeline/{pipeline_id}/query"
    sent = [request.headers for request in models.requests if request.path == "/v1/chat/completions"]
    assert sent[0]["traceparent"].startswith(f"00-{TRACE}-")
    assert "harbour opens" not in repr(spans)
