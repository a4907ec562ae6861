"""Every request body shows an example in the API's documents, one for each media type that it can have.

JSON is validated by the body's own model. Everything else is sent to its route, as a reader would send it.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import aiohttp
import numpy as np
import pytest
import pytest_asyncio
import soundfile
import yaml
from jsonschema import Draft7Validator, Draft202012Validator
from pydantic import TypeAdapter

from builtin_plugins.api_docs.openapi import build_document
from builtin_plugins.evaluation.services.reading import read_questions
from kernel.gateway.app import gateway_app, service_app
from kernel.http.application import Application
from kernel.http.endpoint import Endpoint
from kernel.http.routes import RawBody, Upload
from kernel.plugins.loading import installed
from kernel.plugins.offers import OFFERS
from kernel.testing import Actor, Reply, Running, platforms
from tests.builtin_plugins.marketplace.marketplace_support import draft
from tests.builtin_plugins.rag.rag_support import make_base
from tests.fakes.hash_embeddings import HashEmbeddings

ROOT = Path(__file__).parents[2]
JSON, FORM, MULTIPART = "application/json", "application/x-www-form-urlencoded", "multipart/form-data"
YAML, TEXT_YAML, JSONL, CSV = "application/yaml", "text/yaml", "application/jsonl", "text/csv"
RAG, SETS = "/v1/rag/knowledge-bases", "/v1/rag/evaluation/sets"
INSTALL, RELOAD, WEBHOOK = "/v1/plugins/install", "/v1/plugins/reload-webhook", "/webhook/{path}"
QUESTIONS = f"{SETS}/{{set_id}}/upload"
METADATA = "Metadata-Version: 2.4\nName: acme-tides\nVersion: 1.2\n"

pytestmark = pytest.mark.asyncio(loop_scope="module")


@dataclass(frozen=True)
class Content:
    """A body in one media type, as a document shows it."""

    app: str
    endpoint: Endpoint
    media_type: str
    shown: dict[str, Any]

    @property
    def path(self) -> str:
        return self.endpoint.template.openapi

    @property
    def parts(self) -> dict[str, Any]:
        return dict(self.shown["schema"].get("properties", {}))

    @property
    def example(self) -> Any:
        return self.shown["example"]


@dataclass(frozen=True)
class Api:
    """A platform's documents: the gateway's, and each service's as on its own port."""

    running: Running
    admin: Actor
    contents: list[Content]

    def content(self, path: str, media_type: str) -> Content:
        return self.of_gateway()[path, media_type]

    def of_gateway(self) -> dict[tuple[str, str], Content]:
        return {(c.path, c.media_type): c for c in self.contents if c.app == "gateway"}


@dataclass(frozen=True)
class Ready:
    """What a request needs besides the example: the path's parameters, and the bytes of the file."""

    values: dict[str, str] = field(default_factory=dict)
    file: bytes = b""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def api(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Api]:
    """Every built-in plugin, and words hashed where a model would embed."""
    plugins = [candidate.name for candidate in installed() if candidate.name != "embeddings"]
    async with platforms(tmp_path_factory.mktemp("examples")) as start:
        running = await start(*plugins, HashEmbeddings())
        yield Api(running, await running.user(role="admin"), list(contents(running)))


def contents(running: Running) -> Iterator[Content]:
    """The bodies of all documents, in each of their media types."""
    for name, app in applications(running):
        document = build_document(app.endpoints, name)
        for endpoint in app.endpoints:
            if endpoint.route.body is not None and not endpoint.route.hidden:
                item = document["paths"][endpoint.template.openapi]
                body = item[endpoint.route.method.lower()]["requestBody"]
                for media_type, shown in body["content"].items():
                    yield Content(name, endpoint, media_type, shown)


def applications(running: Running) -> Iterator[tuple[str, Application]]:
    yield "gateway", gateway_app(running.platform)
    for name, (_, service) in running.platform.resource(OFFERS).services.items():
        yield name, service_app(running.platform, service)


async def no_manifest(api: Api) -> Ready:
    await api.admin.delete("/v1/plugins/station-notes")
    return Ready()


async def manifest(api: Api) -> Ready:
    answer = await send(api, api.content(INSTALL, YAML), await no_manifest(api))
    assert answer.status == 200, answer.body
    return Ready({"path": answer.json()["webhook_path"].lstrip("/")})


async def base(api: Api) -> Ready:
    """A knowledge base, and the sample that the example names."""
    found = await make_base(api.admin, embedding_model="all-minilm")
    name = api.content(f"{RAG}/{{kb_id}}/upload", MULTIPART).example["file"]
    return Ready({"kb_id": found}, (ROOT / "builtin_plugins" / "demo" / "samples" / name).read_bytes())


async def exported(api: Api) -> Ready:
    found = await api.admin.get(f"{RAG}/{await make_base(api.admin, embedding_model='all-minilm')}/export")
    assert found.status == 200, found.body
    return Ready(file=found.body)


async def questions(api: Api) -> Ready:
    found = await make_base(api.admin, embedding_model="all-minilm")
    made = await api.admin.post(SETS, json={"knowledge_base_id": found, "name": "Travel"})
    assert made.status == 201, made.body
    return Ready({"set_id": made.json()["id"]})


async def listing(api: Api) -> Ready:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("acme_tides-1.2.dist-info/METADATA", METADATA)
    return Ready({"plugin_id": (await draft(api.admin))["id"]}, packed.getvalue())


async def recording(_api: Api) -> Ready:
    packed = io.BytesIO()
    soundfile.write(packed, np.zeros(8000, dtype=np.int16), 16_000, format="WAV")
    return Ready(file=packed.getvalue())


async def notes(_api: Api) -> Ready:
    return Ready(file=b"# Notes")


SENT: dict[tuple[str, str], Callable[[Api], Awaitable[Ready]]] = {
    (INSTALL, YAML): no_manifest,
    (INSTALL, TEXT_YAML): no_manifest,
    (RELOAD, YAML): manifest,
    (RELOAD, TEXT_YAML): manifest,
    (WEBHOOK, JSON): manifest,
    (WEBHOOK, FORM): manifest,
    (WEBHOOK, MULTIPART): manifest,
    (QUESTIONS, JSONL): questions,
    (QUESTIONS, CSV): questions,
    (f"{RAG}/{{kb_id}}/upload", MULTIPART): base,
    ("/v1/rag/knowledge-base/{kb_id}/upload", MULTIPART): base,
    (f"{RAG}/import", MULTIPART): exported,
    ("/v1/marketplace/submissions/{plugin_id}/package", MULTIPART): listing,
    ("/v1/files", MULTIPART): notes,
    ("/v1/ai/files", MULTIPART): notes,
    ("/v1/stt", MULTIPART): recording,
    ("/v1/ai/audio/transcriptions", MULTIPART): recording,
}
UPLOADS = [path for path, media_type in SENT if media_type == MULTIPART and path != WEBHOOK]
NOT_SENT = {
    # It names a knowledge base in its note: see `tests/builtin_plugins/oikb_sync/test_oikb_sync.py`.
    ("/v1/rag/oikb/api/v1/files/", MULTIPART),
    # Only the identity provider can sign such a token: see `tests/builtin_plugins/oidc/test_sign_out.py`.
    ("/v1/auth/oidc/backchannel-logout", FORM),
    # The form of an upload, which is put here: see `tests/builtin_plugins/rag/test_versions.py`.
    (f"{RAG}/{{kb_id}}/documents/by-path/{{path}}", MULTIPART),
    ("/v1/rag/knowledge-base/{kb_id}/documents/by-path/{path}", MULTIPART),
    # It is put, and names a document: see `tests/builtin_plugins/rag/test_metadata.py`.
    (f"{RAG}/{{kb_id}}/metadata.csv", CSV),
}


async def send(api: Api, content: Content, ready: Ready) -> Reply:
    """Send an example as its media type wants it."""
    data, headers = content.example, {"Content-Type": content.media_type}
    if content.media_type == MULTIPART:
        data, headers = multipart(content, ready.file), {}
    elif content.media_type == JSON:
        data = json.dumps(data)
    return await api.admin.post(content.path.format(**ready.values), data=data, headers=headers)


def multipart(content: Content, file: bytes) -> aiohttp.FormData:
    """The parts of an example; a file under the name that stands for it."""
    form = aiohttp.FormData(default_to_multipart=True)
    for name, value in content.example.items():
        if "contentMediaType" in content.parts.get(name, {}):
            form.add_field(name, file, filename=value)
        else:
            form.add_field(name, value if isinstance(value, str) else json.dumps(value))
    return form


async def test_every_body_has_an_example(api: Api) -> None:
    without = [(c.app, c.path, c.media_type) for c in api.contents if "example" not in c.shown]
    assert without == []


async def test_examples_fit_their_models(api: Api) -> None:
    """JSON is taken by the body's model; what the handler reads itself fits the schema that it declares."""
    for content in api.contents:
        body, example = content.endpoint.route.body, content.example
        if isinstance(body, Upload | RawBody):
            meant = yaml.safe_load(example) if content.media_type in (YAML, TEXT_YAML) else example
            Draft202012Validator(content.shown["schema"]).validate(meant)
        else:
            TypeAdapter(body).validate_json(json.dumps(example))


async def test_forms_are_described(api: Api) -> None:
    """Each part says what it is; the example has those that must be there, and none that is unknown."""
    forms = [content for content in api.contents if content.media_type in (FORM, MULTIPART)]
    assert {content.path for content in forms} >= {*UPLOADS, WEBHOOK}
    for content in forms:
        assert all(part["description"] for part in content.parts.values()), content.path
        required = set(content.shown["schema"].get("required", ()))
        assert required <= set(content.example) <= set(content.parts), content.path
        shown = {name: part["examples"] for name, part in content.parts.items() if "examples" in part}
        assert shown == {name: [value] for name, value in content.example.items()}, content.path


async def test_all_are_sent(api: Api) -> None:
    found = {key for key in api.of_gateway() if key[1] != JSON}
    assert found - NOT_SENT == {key for key in SENT if key[1] != JSON}


@pytest.mark.parametrize(("path", "media_type"), SENT)
async def test_routes_take_their_examples(api: Api, path: str, media_type: str) -> None:
    """The answer is a success, and nothing was left out."""
    answer = await send(api, api.content(path, media_type), await SENT[path, media_type](api))
    assert answer.status in (200, 202), answer.body
    assert "skipped" not in answer.json()


@pytest.mark.parametrize("path", UPLOADS)
async def test_every_part_is_read(api: Api, path: str) -> None:
    """A wrong value of any part of the example is refused, and so is a form without the file."""
    content, ready = api.content(path, MULTIPART), await SENT[path, MULTIPART](api)
    for name in content.example:
        wrong = {**content.example, name: "\u2603"}
        if name == "file":
            del wrong[name]
            wrong["other"] = "A form without any part is none."
        shown = {**content.shown, "example": wrong}
        answer = await send(api, replace(content, shown=shown), ready)
        assert answer.status == 422, answer.body
        assert answer.json()["detail"][0]["loc"] == ["body", name]


async def test_all_ways_say_the_same(api: Api) -> None:
    """Examples of one body differ in nothing but their notation."""
    for path in (INSTALL, RELOAD):
        for media_type in (YAML, TEXT_YAML):
            written = yaml.safe_load(api.content(path, media_type).example)
            assert written == api.content(path, JSON).example
    lines = read_questions(api.content(QUESTIONS, JSONL).example.encode(), "jsonl")
    assert read_questions(api.content(QUESTIONS, CSV).example.encode(), "csv") == lines
    sent = [api.content(WEBHOOK, media_type).example for media_type in (JSON, FORM, MULTIPART)]
    assert sent == sent[:1] * 3


async def test_manifests_are_valid(api: Api) -> None:
    schema = json.loads((ROOT / "schemas" / "manifest.v1alpha1.schema.json").read_text(encoding="utf-8"))
    for path in (INSTALL, RELOAD):
        Draft7Validator(schema).validate(api.content(path, JSON).example)
