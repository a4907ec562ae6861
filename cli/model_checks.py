"""The checks of `platformctl doctor` that concern embedding models. Nothing here changes anything."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import get_args

from cli.machine_checks import Finding
from kernel.contracts import embed_texts
from kernel.platform import Platform


def check_models(platform: Platform, loaded: Collection[str]) -> Iterator[Finding]:
    """Check that somebody offers each model that a setting names."""
    wanted = list(_wanted(platform, loaded))
    unknown = [item for item in wanted if not _is_known(platform, loaded, item[1])]
    yield from _mapped_in_vain(platform, loaded)
    if not unknown:
        yield Finding("models", "ok", "all models that settings name are available")
    elif _others(platform, loaded):
        names = ", ".join(sorted({model for _, model in unknown}))
        yield Finding("models", "ok", f"only a model server or a plugin can have {names}; none was asked")
    else:
        remedy = f"Correct it, or configure a server that has it. {_available(platform, loaded)}"
        for setting, model in unknown:
            yield Finding("models", "failed", f"{setting} names '{model}', which is not available", remedy)


def _wanted(platform: Platform, loaded: Collection[str]) -> Iterator[tuple[str, str]]:
    """Settings that name embedding models, each with its model."""
    if "rag" in loaded:
        from builtin_plugins.rag.settings import RagSettings

        settings = platform.settings_of(RagSettings)
        if "embedding_model" in settings.model_fields_set:
            yield "PLATFORM_RAG_EMBEDDING_MODEL", settings.embedding_model
    for _, model in _webhook_models(platform, loaded):
        yield "PLATFORM_WEBHOOK_EMBED_MODELS", model


def _webhook_models(platform: Platform, loaded: Collection[str]) -> list[tuple[str, str]]:
    if "manifest_webhooks" not in loaded:
        return []
    from builtin_plugins.manifest_webhooks.settings import WebhookSettings

    return platform.settings_of(WebhookSettings).mapped_models()


def _mapped_in_vain(platform: Platform, loaded: Collection[str]) -> Iterator[Finding]:
    from builtin_plugins.manifest_webhooks.manifest import EmbedModel

    names = get_args(EmbedModel)
    for name, _ in _webhook_models(platform, loaded):
        if name not in names:
            text = f"PLATFORM_WEBHOOK_EMBED_MODELS maps '{name}', which no manifest can name"
            yield Finding("models", "warning", text, f"Manifests can name: {', '.join(names)}")


def lacks_model(platform: Platform, named: str) -> str | None:
    """Why webhooks whose manifest names this model are refused, and what to do; None if they need not be."""
    from builtin_plugins.manifest_webhooks.settings import WebhookSettings

    loaded = {record.name for record in platform.plugins if record.status == "loaded"}
    model = platform.settings_of(WebhookSettings).platform_model(named)
    if _is_known(platform, loaded, model) or _others(platform, loaded):
        return None
    return (
        f"the embedding model '{model}' is not available; add it, or name another in "
        f"PLATFORM_WEBHOOK_EMBED_MODELS={named}=MODEL. {_available(platform, loaded)}"
    )


def _is_known(platform: Platform, loaded: Collection[str], model: str) -> bool:
    """Whether the plugin `embeddings` has the model; the plugin need not be opened for that."""
    if "embeddings" not in loaded:
        return False
    from builtin_plugins.embeddings.catalog import find_model, is_left_out
    from builtin_plugins.embeddings.settings import EmbeddingsSettings

    settings = platform.settings_of(EmbeddingsSettings)
    own = find_model(model)
    if own is not None:
        return not is_left_out(own, settings)
    return model.lower() in {name.lower() for name in settings.models}


def _available(platform: Platform, loaded: Collection[str]) -> str:
    """The models that can be named, and how to get those that a light installation lacks."""
    if "embeddings" not in loaded:
        return "None is available here, as the plugin embeddings is out of service"
    from builtin_plugins.embeddings.catalog import MODELS, is_left_out
    from builtin_plugins.embeddings.settings import EmbeddingsSettings

    settings = platform.settings_of(EmbeddingsSettings)
    absent = [model.name for model in MODELS if is_left_out(model, settings)]
    here = [*(model.name for model in MODELS if model.name not in absent), *settings.models]
    added = f"; {', '.join(absent)} with the full installation (./setup.sh --full)" if absent else ""
    return f"Available here: {', '.join(here)}{added}"


def _others(platform: Platform, loaded: Collection[str]) -> bool:
    """Whether a model server or another plugin may have it, which only a running platform can ask."""
    asked = {one.plugin for one in platform.hooks.implementations(embed_texts)} - {"embeddings"}
    if "models" not in asked or "models" not in loaded:
        return bool(asked)
    from builtin_plugins.models.settings import ModelsSettings

    settings = platform.settings_of(ModelsSettings)
    servers = (settings.ollama_url, settings.openai_url, settings.runtimes, settings.local_files)
    return bool(asked - {"models"}) or any(servers)
