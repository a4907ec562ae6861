"""Settings of the manifest plugins."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from pydantic import Field, field_validator

from kernel.sdk import Settings, env


class WebhookSettings(Settings):
    """Where manifests lie and what their webhooks accept."""

    configurable: ClassVar[frozenset[str]] = frozenset(
        {"max_webhook_body_size_mb", "webhook_rate_per_minute"}
    )

    manifests_dir: Path = Field(
        Path("manifests"), description="Watched folder of manifests, relative to the working directory."
    )
    # GitHub sends at most 25 MB; a body is held in memory while its signature is checked.
    max_webhook_body_size_mb: int = Field(
        1,
        ge=1,
        le=25,
        validation_alias=env("MAX_WEBHOOK_BODY_SIZE_MB"),
        description="Largest body of an inbound webhook, in MB.",
    )
    webhook_rate_per_minute: int = Field(
        10, ge=1, le=600, description="Webhook calls per caller, path and minute."
    )
    webhook_embed_models: str = Field(
        "",
        description="Comma list of embedModel=model: the platform's model that stands for a manifest's.",
    )

    @field_validator("webhook_embed_models")
    @classmethod
    def _pairs(cls, value: str) -> str:
        if any(not name or not model for name, model in _parse(value)):
            raise ValueError("expected embedModel=model, separated by commas")
        return value

    def platform_model(self, embed_model: str) -> str:
        """The model to ask `embed_texts` for; a manifest's own word where none is mapped."""
        return dict(_parse(self.webhook_embed_models)).get(embed_model, embed_model)


def _parse(text: str) -> list[tuple[str, str]]:
    pairs = (item.partition("=") for item in text.split(",") if item.strip())
    return [(name.strip(), model.strip()) for name, _, model in pairs]
