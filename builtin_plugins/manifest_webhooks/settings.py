"""Settings of the manifest plugins."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import Field, field_validator

from kernel.sdk import Settings, env
from kernel.sdk.operations import WrittenFolder


class WebhookSettings(Settings):
    """Where manifests are and what their webhooks accept."""

    configurable: ClassVar[frozenset[str]] = frozenset(
        {
            "max_webhook_body_size_mb",
            "webhook_rate_per_minute",
            "webhook_proven_per_minute",
            "webhook_proven_burst",
        }
    )

    manifests_dir: Annotated[Path, WrittenFolder()] = Field(
        Path("manifests"), description="Folder of manifests to watch; relative to the working directory."
    )
    # GitHub sends at most 25 MB; a body is in memory while its signature is checked.
    max_webhook_body_size_mb: int = Field(
        1,
        ge=1,
        le=25,
        validation_alias=env("MAX_WEBHOOK_BODY_SIZE_MB"),
        description="Largest body of an incoming webhook in MB.",
    )
    webhook_rate_per_minute: int = Field(
        10,
        ge=1,
        le=600,
        description="Webhook deliveries without a valid signature, per client address and path in "
        "60 seconds.",
    )
    webhook_proven_per_minute: int = Field(
        600,
        ge=1,
        le=100_000,
        description="Webhook deliveries with a valid signature, per manifest in 60 seconds.",
    )
    webhook_proven_burst: int = Field(
        100,
        ge=0,
        le=100_000,
        description="Extra signed deliveries that a manifest accepts above that limit in ten minutes.",
    )
    webhook_embed_models: str = Field(
        "",
        description="Models to use for names in manifests: embedModel=model, separated by commas.",
    )

    @field_validator("webhook_embed_models")
    @classmethod
    def _pairs(cls, value: str) -> str:
        if any(not name or not model for name, model in _parse(value)):
            raise ValueError("expected embedModel=model, separated by commas")
        return value

    def platform_model(self, embed_model: str) -> str:
        """The model to ask `embed_texts` for; the manifest's own name if none is mapped."""
        return dict(self.mapped_models()).get(embed_model, embed_model)

    def mapped_models(self) -> list[tuple[str, str]]:
        """Names in manifests, with the models that stand for them."""
        return _parse(self.webhook_embed_models)


def _parse(text: str) -> list[tuple[str, str]]:
    pairs = (item.partition("=") for item in text.split(",") if item.strip())
    return [(name.strip(), model.strip()) for name, _, model in pairs]
