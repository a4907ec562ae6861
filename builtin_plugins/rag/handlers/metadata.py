"""Routes of the fields of documents: their declarations, rules and values, relative to the service root."""

from __future__ import annotations

import asyncio
from typing import Final

from aiohttp import web

from builtin_plugins.rag.errors import (
    BuiltInField,
    DocumentNotFound,
    FieldInUse,
    FieldNotFound,
    KnowledgeBaseNotFound,
    NotOwner,
)
from builtin_plugins.rag.metadata import declaring, editing, rules, tables
from builtin_plugins.rag.schemas_metadata import (
    DocumentMetadata,
    FieldOut,
    FieldPut,
    MetadataChange,
    MetadataEdit,
    MetadataEdited,
    RulesChanged,
    RulesOut,
    RulesPut,
)
from builtin_plugins.rag.services import loading
from kernel.sdk import (
    AUTHENTICATED,
    Context,
    Message,
    Page,
    PayloadTooLarge,
    RawBody,
    RouteTable,
    UnsupportedMediaType,
    read_body,
)

routes = RouteTable("Fields of documents")

_BASE: Final = "/knowledge-bases/{kb_id:uuid}"
_FIELDS: Final = f"{_BASE}/fields"
_FIELD: Final = f"{_FIELDS}/{{name}}"
_RULES: Final = f"{_BASE}/metadata-rules"
_ONE: Final = f"{_BASE}/documents/{{document_id:uuid}}/metadata"
_TABLE: Final = f"{_BASE}/metadata.csv"
_CSV: Final = "text/csv"
_LARGEST: Final = 32 * 1024 * 1024
_SILENCE: Final = 30.0


@routes.get(
    _FIELDS,
    access=AUTHENTICATED,
    returns=Page[FieldOut],
    errors=(KnowledgeBaseNotFound,),
    token_scopes=("ask",),
)
async def list_fields(ctx: Context, kb_id: str) -> Page[FieldOut]:
    """List the fields that documents can have: those of every knowledge base, then its own."""
    fields = await declaring.list_fields(ctx.caller, kb_id)
    return Page(items=fields, total=len(fields), limit=len(fields), offset=0)


@routes.get(
    _FIELD,
    access=AUTHENTICATED,
    returns=FieldOut,
    errors=(KnowledgeBaseNotFound, FieldNotFound),
    token_scopes=("ask",),
)
async def get_field(ctx: Context, kb_id: str, name: str) -> FieldOut:
    """Show one field."""
    return await declaring.show_field(ctx.caller, kb_id, name)


@routes.put(
    _FIELD,
    access=AUTHENTICATED,
    body=FieldPut,
    returns=FieldOut,
    errors=(KnowledgeBaseNotFound, NotOwner, BuiltInField, FieldInUse),
)
async def put_field(ctx: Context, kb_id: str, name: str, body: FieldPut) -> FieldOut:
    """Declare a field, or change its description. Its kind can be changed while no document has a value."""
    return await declaring.declare(ctx.caller, kb_id, name, body)


@routes.delete(
    _FIELD,
    access=AUTHENTICATED,
    returns=Message,
    errors=(KnowledgeBaseNotFound, NotOwner, FieldNotFound, BuiltInField),
)
async def delete_field(ctx: Context, kb_id: str, name: str) -> Message:
    """Remove a field, its values in all documents, and the rules that give them."""
    await declaring.remove(ctx.caller, kb_id, name)
    return Message(message="Field deleted")


@routes.get(
    _RULES,
    access=AUTHENTICATED,
    returns=RulesOut,
    errors=(KnowledgeBaseNotFound,),
    token_scopes=("ask",),
)
async def get_rules(ctx: Context, kb_id: str) -> RulesOut:
    """Show the rules by which documents get values from their paths."""
    return await rules.list_rules(ctx.caller, kb_id)


@routes.put(
    _RULES,
    access=AUTHENTICATED,
    body=RulesPut,
    returns=RulesChanged,
    status=202,
    errors=(KnowledgeBaseNotFound, NotOwner),
)
async def put_rules(ctx: Context, kb_id: str, body: RulesPut) -> RulesChanged:
    """Replace the rules. They apply to new documents from now on; a job applies them to those that are
    there. What was set by hand or by a source stays.
    """
    return await rules.put_rules(ctx.caller, kb_id, body.rules)


@routes.get(
    _ONE,
    access=AUTHENTICATED,
    returns=DocumentMetadata,
    errors=(KnowledgeBaseNotFound, DocumentNotFound),
    token_scopes=("ask",),
)
async def get_metadata(ctx: Context, kb_id: str, document_id: str) -> DocumentMetadata:
    """Show the values of a document's fields, and where they come from."""
    return await editing.show(ctx.caller, kb_id, document_id)


@routes.patch(
    _ONE,
    access=AUTHENTICATED,
    body=MetadataChange,
    returns=DocumentMetadata,
    errors=(KnowledgeBaseNotFound, NotOwner, DocumentNotFound),
)
async def change_metadata(
    ctx: Context, kb_id: str, document_id: str, body: MetadataChange
) -> DocumentMetadata:
    """Set values of a document's fields; null removes one, also one that its file gives."""
    return await editing.change(ctx.caller, kb_id, document_id, body.values)


@routes.post(
    f"{_BASE}/documents/metadata",
    access=AUTHENTICATED,
    body=MetadataEdit,
    returns=MetadataEdited,
    errors=(KnowledgeBaseNotFound, NotOwner, DocumentNotFound),
    long=True,
)
async def edit_metadata(ctx: Context, kb_id: str, body: MetadataEdit) -> MetadataEdited:
    """Set, add or remove values of many documents at once."""
    return await editing.edit_many(ctx.caller, kb_id, body)


@routes.get(
    _TABLE,
    access=AUTHENTICATED,
    media_type=_CSV,
    returns=str,
    errors=(KnowledgeBaseNotFound,),
    long=True,
    token_scopes=("ask",),
)
async def get_table(ctx: Context, kb_id: str) -> web.Response:
    """Download the values of all documents as a table (CSV), a line for each document. Several values of a
    field are separated by `|`.
    """
    text = await tables.write_table(ctx.caller, kb_id)
    headers = {"Content-Disposition": 'attachment; filename="metadata.csv"'}
    return web.Response(text=text, content_type=_CSV, headers=headers)


@routes.put(
    _TABLE,
    access=AUTHENTICATED,
    body=RawBody(
        (_CSV,),
        {
            "type": "string",
            "description": "The first line names the columns: `document_id` or `path`, and fields; "
            "`filename` is for who reads it.",
        },
        example="path,year,tags\ncontracts/2026/lease.pdf,2026,contract|signed\n",
    ),
    returns=MetadataEdited,
    errors=(KnowledgeBaseNotFound, NotOwner, UnsupportedMediaType, PayloadTooLarge),
    long=True,
)
async def put_table(ctx: Context, kb_id: str) -> MetadataEdited:
    """Set values by a table (CSV) as it can be downloaded. An empty cell removes; documents and fields that
    are not in it stay as they are. If anything is wrong, nothing is changed.
    """
    await loading.own_knowledge_base(ctx.caller, kb_id)
    if ctx.request.content_type != _CSV:
        raise UnsupportedMediaType(f"Send the table as {_CSV}")
    raw = await read_body(ctx.request, _LARGEST, _SILENCE)
    table = await asyncio.to_thread(tables.read_table, raw)
    return await tables.apply_table(ctx.caller, kb_id, table)
