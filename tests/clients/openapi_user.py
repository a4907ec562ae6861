"""What somebody does with a client generated from the API's document.

    python openapi_user.py DOCUMENT URL USER PASSWORD

The document is valid OpenAPI 3.1, and the client made from it signs in, lists, uploads, reads and asks.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import Any

from openapi_spec_validator import OpenAPIV31SpecValidator

document, url, username, password = sys.argv[1:]
problems = list(OpenAPIV31SpecValidator(json.loads(Path(document).read_text())).iter_errors())
assert not problems, [(list(one.absolute_path), one.message[:200]) for one in problems[:5]]

folder = tempfile.TemporaryDirectory()
programs = str(Path(sys.executable).parent)
options = ["--path", document, "--meta", "none", "--output-path", f"{folder.name}/platform_api"]
subprocess.run(
    [f"{programs}/openapi-python-client", "generate", *options],
    check=True,
    capture_output=True,
    env={**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"},
)
sys.path.insert(0, folder.name)


def call(path: str, **arguments: Any) -> Any:
    """The parsed answer of an operation; `path` is its module below `api`."""
    return import_module(f"platform_api.api.{path}").sync(**arguments)


models = import_module("platform_api.models")
types = import_module("platform_api.types")
client_module = import_module("platform_api.client")

anonymous = client_module.Client(base_url=url)
session = call(
    "authentication.api_gateway_login",
    client=anonymous,
    body=models.LoginRequest(username=username, password=password),
)
client = client_module.AuthenticatedClient(base_url=url, token=session.access_token)
bases = call("knowledge_bases.rag_pipeline_list_all_get_v1_rag_knowledge_bases", client=client)
assert bases.total == 0, bases
base = call(
    "knowledge_bases.rag_pipeline_create_post_v1_rag_knowledge_bases",
    client=client,
    body=models.KnowledgeBaseCreate(name="Travel"),
)
text = b"A hotel may cost at most 185 euro per night."
form = models.RagPipelineUploadPostV1RagKnowledgeBasesKbIdUploadBody(
    file=types.File(payload=BytesIO(text), file_name="travel.txt", mime_type="text/plain")
)
upload = "documents.rag_pipeline_upload_post_v1_rag_knowledge_bases_kb_id_upload"
uploaded = call(upload, client=client, kb_id=base.id, body=form)
assert uploaded.filename == "travel.txt", uploaded
sys.stdout.write("uploaded\n")
sys.stdout.flush()
sys.stdin.readline()  # until it has been read
one = call(
    "documents.rag_pipeline_get_get_v1_rag_knowledge_bases_kb_id_documents_document_id",
    client=client,
    kb_id=base.id,
    document_id=uploaded.document_id,
)
assert one.status == "completed", one
pipeline = call(
    "pipelines.rag_pipeline_create_post_v1_rag_pipeline",
    client=client,
    body=models.PipelineCreate(name="Travel", knowledge_base_ids=[base.id]),
)
answer = call(
    "pipelines.rag_pipeline_query",
    client=client,
    pipeline_id=pipeline.pipeline_id,
    body=models.QueryRequest(question="How much may a hotel cost per night?"),
)
assert "185 euro" in answer.answer, answer
assert answer.sources[0].document_id == uploaded.document_id, answer
