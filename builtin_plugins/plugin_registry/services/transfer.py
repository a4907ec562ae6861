"""Plugins' configuration in the bundle of an organization (spec 4.4), for the tenancy plugin.

There is one configuration for the whole instance, so a bundle reports it, but an import changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from sqlalchemy import select
from sqlalchemy.orm import Session

from builtin_plugins.tenancy import api as tenancy
from kernel.sdk import Platform, Unit, Unprocessable
from kernel.sdk.operations import PLUGIN_SETTINGS

from ..models import ConfigValue
from .fields import is_secret, keys_of

SECTION = "plugin_config"
_NOT_HERE = "plugin settings apply to the whole instance: change them with PUT /v1/plugins/{name}/config"


class _Row(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    name: Annotated[str, Field(min_length=1, max_length=255)]
    values: Annotated[dict[str, str | int | float | bool], Field(max_length=500)]


_ROWS = TypeAdapter(Annotated[list[_Row], Field(max_length=500)])


def export_config(platform: Platform, session: Session) -> list[dict[str, Any]]:
    """Settings changed by clients, by plugin and key, without secrets."""
    rows = session.scalars(select(ConfigValue).order_by(ConfigValue.plugin, ConfigValue.field))
    values_by_plugin: dict[str, dict[str, Any]] = {}
    for row in rows:
        cls = platform.resource(PLUGIN_SETTINGS).class_of(row.plugin)
        keys = {} if cls is None else {field: key for key, field in keys_of(cls).items()}
        if cls is not None and row.field in keys and not is_secret(cls, row.field):
            values_by_plugin.setdefault(row.plugin, {})[keys[row.field]] = row.value
    return [{"name": plugin, "values": values} for plugin, values in values_by_plugin.items()]


def read_config(sections: Mapping[str, Any]) -> tenancy.ImportPlan:
    """Check the section, whose rows are all skipped. Raises Unprocessable."""
    if SECTION not in sections:
        return tenancy.ImportPlan([], _nothing)
    try:
        rows = _ROWS.validate_python(sections[SECTION])
    except ValidationError as error:
        problems = error.errors(include_url=False, include_context=False, include_input=False)
        raise Unprocessable([_problem(item) for item in problems[:50]]) from None
    outcomes = [tenancy.ImportedRow("skipped", SECTION, row.name, _NOT_HERE) for row in rows]
    return tenancy.ImportPlan([SECTION], lambda _unit: {SECTION: outcomes})


def _nothing(_unit: Unit) -> dict[str, list[tenancy.ImportedRow]]:
    return {}


def _problem(item: Any) -> dict[str, Any]:
    loc = ["body", "bundle", SECTION, *item["loc"]]
    return {"type": item["type"], "loc": loc, "msg": item["msg"], "input": None}
