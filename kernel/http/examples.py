"""Examples of request bodies, beside the models that they show."""

from __future__ import annotations

from typing import Any

from pydantic import ConfigDict


def example(**fields: Any) -> ConfigDict:
    """The `model_config` for a body's model, with an example for the API documentation."""
    return ConfigDict(json_schema_extra={"examples": [fields]})
