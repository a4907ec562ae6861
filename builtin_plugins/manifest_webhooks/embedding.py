"""One text into one vector, by whichever plugin implements `embed_texts`."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from kernel.sdk import Platform, PlatformError, contracts

from .errors import EmbeddingUnavailable
from .manifest import EmbedModel
from .settings import WebhookSettings

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

log = logging.getLogger("platform.manifests")


async def embed(
    platform: Platform, model: EmbedModel, text: str, purpose: contracts.Purpose
) -> tuple[npt.NDArray[np.float32], str]:
    """The vector of `text` (float32 [d], unit length) and its engine. Raises EmbeddingUnavailable (503)."""
    wanted = platform.settings_of(WebhookSettings).platform_model(model)
    try:
        found = await platform.hooks.ask(
            contracts.embed_texts, platform=platform, model=wanted, texts=[text], purpose=purpose
        )
    except PlatformError:
        raise
    except Exception:  # boundary: another plugin's engine may fail in any way
        log.exception("embedding with '%s' failed", wanted)
        raise EmbeddingUnavailable("Embedding failed; try again") from None
    if found is None:
        raise EmbeddingUnavailable(f"No plugin offers the embedding model '{wanted}'")
    return found.vectors[0], found.engine
