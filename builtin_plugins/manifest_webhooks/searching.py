"""The action `search` of every manifest plugin; the manifest decides who may call it."""

from __future__ import annotations

from functools import partial
from typing import Any

from pydantic import BaseModel, Field

from builtin_plugins.vectors.api import VECTORS, EngineMismatch, Query
from builtin_plugins.vectors.api import Hit as StoreHit
from kernel.sdk import AUTHENTICATED, PUBLIC, Action, Context, NotFound

from .errors import CollectionEngineChanged
from .folder import LiveManifest, ManifestFolder
from .storing import collection_name, embed


class SearchParameters(BaseModel):
    """What to look for."""

    query: str = Field(min_length=1, max_length=1000, description="What to look for, in plain words.")
    limit: int = Field(10, ge=1, le=100, description="Largest number of hits to return.")


class SearchHit(BaseModel):
    """A collected text that matches the query."""

    text: str
    score: float
    metadata: dict[str, Any]
    timestamp: str
    point_id: str


class SearchResult(BaseModel):
    """Hits, best first."""

    hits: list[SearchHit]


def search_action(live: LiveManifest, folder: ManifestFolder) -> Action:
    """The `search` action of one plugin."""
    about = live.manifest.metadata.description or f"what {live.name} collected"
    return Action(
        name="search",
        description=f"Search the texts that the plugin {live.name} collected. {about}".strip(),
        parameters=SearchParameters,
        handler=partial(_search, folder, live.name),
        access=PUBLIC if live.manifest.spec.access.search == "public" else AUTHENTICATED,
        read_only=True,
        open_world=False,
        owner=live.name,
    )


async def _search(
    folder: ManifestFolder, plugin: str, ctx: Context, parameters: SearchParameters
) -> SearchResult:
    """The plugin's own points in its manifest's collection, by meaning and by words."""
    live = folder.get(plugin)
    if live is None:
        raise NotFound(f"The plugin '{plugin}' was removed")
    target = live.manifest.store
    vectors, engine = await embed(ctx.platform, target.embed_model, [parameters.query], "query")
    query = Query(vectors[0], parameters.limit, text=parameters.query, engine=engine)
    try:
        hits = await ctx.platform.resource(VECTORS).search(collection_name(target.collection, plugin), query)
    except EngineMismatch:
        raise CollectionEngineChanged() from None
    return SearchResult(hits=[_hit(hit) for hit in hits])


def _hit(hit: StoreHit) -> SearchHit:
    payload = hit.point.payload
    return SearchHit(
        text=hit.point.text,
        score=round(hit.score, 6),
        metadata=dict(payload["metadata"]),
        timestamp=str(payload["timestamp"]),
        point_id=hit.point.id,
    )
