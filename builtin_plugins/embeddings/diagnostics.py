"""What `platformctl doctor` says about embedding models: their files, and the models that settings name."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Final

from builtin_plugins.embeddings.catalog import E5_SMALL, MINILM, MODELS, find_model, is_left_out
from builtin_plugins.embeddings.e5.file import find_file
from builtin_plugins.embeddings.engines.base import EngineError
from builtin_plugins.embeddings.service import load_engine
from builtin_plugins.embeddings.settings import EmbeddingsSettings
from builtin_plugins.embeddings.weights import WeightsError, find_weights
from builtin_plugins.inference.api import ModelDescription, find_availability, name_embedding_models
from kernel.sdk import Diagnostic, Finding, Platform

_PASSAGES: Final = 6
_PASSAGE: Final = "passage: " + " ".join(["word"] * 251)  # 256 tokens
_PLAIN: Final = "fp32"
_FASTER: Final = (
    "A processor with VNNI or AMX makes about twice as many. So does a server with a graphics card, "
    "which PLATFORM_EMBEDDINGS_MODELS can name."
)


async def check_files(platform: Platform) -> AsyncIterator[Finding]:
    """Check that the models' files are the published ones. Reads 163 MB."""
    yield await asyncio.to_thread(_check_files, platform.settings_of(EmbeddingsSettings))


def _check_files(settings: EmbeddingsSettings) -> Finding:
    minilm = "all-MiniLM-L6-v2 is not installed (./setup.sh --full adds it)"
    try:
        _, e5 = find_file(settings.e5_file)
        if not is_left_out(MINILM, settings):
            weights = find_weights(settings.weights)
            minilm = f"{weights.model} {weights.fingerprint}…"
    except WeightsError as error:
        remedy = "Documents can't be ingested or searched without them."
        return Finding("model files", "failed", str(error), remedy)
    return Finding("model files", "ok", f"{minilm}, multilingual-e5-small {e5}…: as published")


async def check_speed(platform: Platform) -> AsyncIterator[Finding]:
    """Say how many passages the default model embeds here. Takes a few seconds of all cores."""
    finding = await asyncio.to_thread(_measure_speed, platform.settings_of(EmbeddingsSettings))
    if finding is not None:
        yield finding


def _measure_speed(settings: EmbeddingsSettings) -> Finding | None:
    """None if the model's files aren't right, which another check says."""
    try:
        engine = load_engine(E5_SMALL, settings)
    except WeightsError:
        return None
    except EngineError as error:
        return Finding("embedding", "failed", str(error), "Set PLATFORM_EMBEDDINGS_PRECISION to auto.")
    engine.encode([_PASSAGE] * 2)
    started = time.perf_counter()
    engine.encode([_PASSAGE] * _PASSAGES)
    rate = _PASSAGES / (time.perf_counter() - started)
    precision = engine.identity.split("/")[2]
    text = f"{E5_SMALL.name} embeds {rate:.1f} passages of 256 tokens a second now, in {precision}"
    facts = {"precision": precision, "passages_per_second": round(rate, 1)}
    return Finding("embedding", "ok", text, _FASTER if precision == _PLAIN else "", facts=facts)


async def check_named_models(platform: Platform) -> AsyncIterator[Finding]:
    """Check that somebody offers each model that a setting names."""
    unsure: set[str] = set()
    is_sound = True
    for named in await platform.hooks.ask(name_embedding_models, platform=platform):
        for variable, model in named:
            availability = await find_availability(platform, model)
            if availability.is_offered is False:
                is_sound = False
                text = f"{variable} names '{model}', which is not available"
                remedy = f"Correct it, or configure a server that has it. {availability.choices}"
                yield Finding("models", "failed", text, remedy)
            elif availability.is_offered is None:
                unsure.add(model)
    if unsure:
        names = ", ".join(sorted(unsure))
        yield Finding("models", "ok", f"only a model server or a plugin can have {names}; none was asked")
    elif is_sound:
        yield Finding("models", "ok", "all models that settings name are available")


def describe_model(settings: EmbeddingsSettings, name: str) -> ModelDescription:
    """Whether a model runs here, and what does; the plugin need not be opened for that."""
    model = find_model(name)
    if model is not None:
        is_offered = not is_left_out(model, settings)
    else:
        is_offered = name.lower() in {other.lower() for other in settings.models}
    absent = [model.name for model in MODELS if is_left_out(model, settings)]
    present = [*(model.name for model in MODELS if model.name not in absent), *settings.models]
    more = f"; {', '.join(absent)} with the full installation (./setup.sh --full)" if absent else ""
    return ModelDescription(is_offered, f"Available here: {', '.join(present)}{more}")


DIAGNOSTICS = tuple(
    Diagnostic("installation", check) for check in (check_files, check_speed, check_named_models)
)
