"""The rules of the house that can be read off a running platform: routes, settings, tables, schemas."""

from __future__ import annotations

import json
import typing
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from jsonschema import Draft7Validator
from pydantic import BaseModel, TypeAdapter, ValidationError

from builtin_plugins.api_docs.openapi import build_document, without_descriptions
from kernel.gateway.app import gateway_app
from kernel.http.endpoint import Endpoint
from kernel.http.routes import Access, RawBody, Upload
from kernel.platform import Platform
from kernel.plugins.loading import installed
from kernel.sdk.operations import PLUGIN_SETTINGS
from kernel.settings.loading import KernelSettings
from kernel.testing import platforms

ROOT = Path(__file__).parents[2]
NAMED = {"name", "display_name", "author", "title"}
NAMES = [candidate.name for candidate in installed()]


pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def platform(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Platform]:
    """A platform with every built-in plugin, which no test changes."""
    async with platforms(tmp_path_factory.mktemp("declarations")) as start:
        yield (await start(*NAMES)).platform


def endpoints(platform: Platform) -> list[Endpoint]:
    """All that the gateway serves."""
    return gateway_app(platform).endpoints


async def test_every_route_is_declared_whole(platform: Platform) -> None:
    """House rule 2: access, a summary and, but for 204 and redirects, what is returned."""
    for endpoint in endpoints(platform):
        route, place = endpoint.route, f"{endpoint.route.method} {endpoint.template.path}"
        assert isinstance(route.access, Access), place
        assert route.handler.__doc__, place
        assert route.status in (204, 302) or route.returns is not None, place
        if route.access.kind == "permission":
            assert route.access.permission in platform.permissions, place


async def test_names_can_be_read(platform: Platform) -> None:
    seen = set()
    for endpoint in endpoints(platform):
        body, place = endpoint.route.body, f"{endpoint.route.method} {endpoint.template.openapi}"
        if body is None or isinstance(body, Upload | RawBody) or "/graph-rag/" in place:
            continue  # titles of a graph's documents are their own, and can be empty
        adapter = TypeAdapter(body)
        schema = adapter.json_schema()
        for field in NAMED & set(schema.get("properties", ())):
            seen.add(place)
            [sample] = schema["examples"]
            for unfit in ("\u202e", "\u200b", "\u3164"):
                with pytest.raises(ValidationError) as refused:
                    adapter.validate_python({**sample, field: unfit})
                places = [error["loc"] for error in refused.value.errors()]
                assert places == [(field,)], (place, field, unfit)
    assert len(seen) > 20


OPEN_BODIES = {
    "LoginRequest": "clients send what they registered with",
    "RegisterRequest": "a `role` is ignored (wire-facts)",
    "SpeechRequest": "OpenAI's clients send what only its own models know",
    "ChatBody": "the same",
    "EmbeddingsBody": "the same",
    "ResponsesBody": "the same",
    **dict.fromkeys(
        ("StoreCreate", "StoreUpdate", "StoreFileCreate", "StoreFileUpdate", "BatchCreate", "StoreSearch"),
        "OpenAI's clients send what only its own stores know",
    ),
    **dict.fromkeys(("SyncDiff", "SyncCleanup", "FolderCreate"), "later versions of oikb may send more"),
    "DifyRetrieval": "later versions of Dify may send more",
    "MetadataChange": "its fields are those of a knowledge base",
    "ListingUpdate": "a `status` is refused with the way to change it",
}


async def test_unknown_fields_are_refused(platform: Platform) -> None:
    """Each body says what becomes of a field that it doesn't know; few accept one."""
    found = set()
    for endpoint in endpoints(platform):
        body = endpoint.route.body
        for model in (body, *typing.get_args(body)):
            if isinstance(model, type) and issubclass(model, BaseModel):
                extra = model.model_config.get("extra")
                assert extra is not None, f"{endpoint.route.method} {endpoint.template.openapi}: use Body"
                if extra != "forbid":
                    found.add(model.__name__)
    assert found == set(OPEN_BODIES)


async def test_open_routes_are_known(platform: Platform) -> None:
    """What answers without a token is listed here, so that a new open route is a decision."""
    public = (e for e in endpoints(platform) if e.route.access.kind == "public")
    found = {f"{endpoint.route.method} {endpoint.template.openapi}" for endpoint in public}
    assert found == {
        "GET /",
        "GET /.well-known/oauth-protected-resource",
        "GET /.well-known/oauth-protected-resource/mcp",
        "GET /app",
        "GET /app/{view}",
        "GET /health",
        "GET /livez",
        "GET /metrics",
        "GET /readyz",
        "GET /static/client/{digest}/{name}",
        "GET /v1/ai/functions/definitions",
        "GET /v1/ai/tools/openapi.json",
        "GET /v1/ai/tools/v1/plugins/{plugin}/actions/{action}",
        "GET /v1/auth/capabilities",
        "GET /v1/auth/oidc/callback",
        "GET /v1/auth/oidc/login",
        "GET /v1/bundles",
        "GET /v1/bundles/ready",
        "GET /v1/chat/{slug}",
        "GET /v1/chat/{slug}/widget.js",
        "GET /v1/graph/bundles/{bundle}/required",
        "GET /v1/graph/conflicts/{plugin_id}",
        "GET /v1/graph/dependencies/{plugin_id}",
        "GET /v1/graph/health",
        "GET /v1/invites/by-token/{token}",
        "GET /v1/licensing/plugins/{name}/license/tier",
        "GET /v1/marketplace/ai/plugins/{plugin_id}/tools",
        "GET /v1/marketplace/ai/tools",
        "GET /v1/marketplace/ai/tools/{tool_name}",
        "GET /v1/marketplace/categories",
        "GET /v1/marketplace/plugins",
        "GET /v1/marketplace/plugins/featured",
        "GET /v1/marketplace/plugins/search",
        "GET /v1/marketplace/plugins/{plugin_id}",
        "GET /v1/marketplace/plugins/{plugin_id}/ratings",
        "GET /v1/models",
        "GET /v1/models/{model_id}",
        "GET /v1/plugins",
        "GET /v1/plugins/ai/tools",
        "GET /v1/plugins/schema",
        "GET /v1/plugins/{name}",
        "GET /v1/plugins/{name}/actions/{action}",
        "GET /v1/plugins/{name}/health",
        "GET /v1/status",
        "GET /v1/stt/languages",
        "GET /v1/tools",
        "GET /v1/tools/plugins/{plugin_id}/tools",
        "GET /v1/tools/{tool_name}",
        "GET /v1/tts/languages",
        "GET /v1/tts/voices",
        "POST /mcp",
        "POST /v1/ai/functions/{name}",
        "POST /v1/auth/first-account",
        "POST /v1/auth/login",
        "POST /v1/auth/oidc/backchannel-logout",
        "POST /v1/auth/password-reset/confirm",
        "POST /v1/auth/password-reset/request",
        "POST /v1/auth/refresh",
        "POST /v1/auth/register",
        "POST /v1/chat/{slug}/feedback",
        "POST /v1/chat/{slug}/messages",
        "POST /v1/chat/{slug}/session",
        "POST /v1/marketplace/checkout/{provider}/notices",
        "POST /v1/rag/source-pushes/{token}",
        "POST /webhook/{path}",
    }


SPEC_PREFIXES = ("org", "team")  # tenancy's keys are named by spec 2.6


async def test_permissions_are_explained(platform: Platform) -> None:
    """Every key starts with its plugin's name and has a sentence."""
    for key, permission in platform.permissions.items():
        assert key.split(".")[0] in (*NAMES, *SPEC_PREFIXES)
        assert permission.description.endswith(".")


async def test_plugins_keep_nothing(platform: Platform) -> None:
    """House rule 7: what lives as long as the platform hangs there, not on a plugin."""
    assert {record.name: vars(record.instance) for record in platform.plugins if vars(record.instance)} == {}


async def test_settings_are_described(platform: Platform) -> None:
    """House rule 7: each field of each settings class says what it is for."""
    classes = [KernelSettings, *(platform.resource(PLUGIN_SETTINGS).class_of(name) for name in NAMES)]
    for cls in filter(None, classes):
        undescribed = [name for name, field in cls.model_fields.items() if not field.description]
        assert not undescribed, f"{cls.__name__}: {undescribed}"


async def test_openapi_snapshot_is_current(platform: Platform) -> None:
    """`schemas/openapi.json` is the API; renew it: platformctl openapi --snapshot -o schemas/openapi.json."""
    document = without_descriptions(build_document(endpoints(platform), "Platform"))
    published = json.loads((ROOT / "schemas" / "openapi.json").read_text(encoding="utf-8"))
    assert published == json.loads(json.dumps(document))


async def test_manifest_schema_is_draft_07() -> None:
    """The published schema is valid by its own dialect and refers to nothing outside."""
    schema = json.loads((ROOT / "schemas" / "manifest.v1alpha1.schema.json").read_text(encoding="utf-8"))
    Draft7Validator.check_schema(schema)
    assert schema["$schema"].startswith("http://json-schema.org/draft-07/")
    assert "$ref" not in json.dumps(schema)
