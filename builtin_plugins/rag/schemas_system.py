"""Answers about the RAG service itself (wire-facts 11.6)."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field


class RetrieverState(BaseModel):
    """Whether a retriever can be used."""

    available: bool
    note: str | None = None


class EnhancerState(BaseModel):
    """Whether an enhancer can be used, and by what."""

    available: bool
    backend: str | None = None
    place: Literal["folder", "server"] | None = Field(
        None, description="Where a cross-encoder runs: from a folder on this machine, or on a server."
    )


class RagCapabilities(BaseModel):
    """What is available on this server."""

    methods: dict[str, bool]
    enhancers: dict[str, EnhancerState]
    retrievers: dict[str, RetrieverState]
    optional_deps: dict[str, bool]


class RootOut(BaseModel):
    """The root of the service."""

    name: str
    version: str
    status: str
    ollama_available: bool


class Allowance(BaseModel):
    """How much of something is used, and how much may be."""

    used: int
    limit: int | None = Field(description="Null if there is no limit.")


class OrganizationUsage(BaseModel):
    """What the knowledge bases shared with one organization use."""

    organization_id: int
    storage_bytes: Allowance
    passages: Allowance


class UsageOut(BaseModel):
    """What the caller's account and its organizations use and may use."""

    storage_bytes: Allowance = Field(description="Files in the knowledge bases of this account.")
    passages: Allowance
    queued_bytes: Allowance = Field(description="Files that wait to be read.")
    streams: Allowance = Field(
        description="Streamed responses that are open now, in the process that answered this request."
    )
    organizations: list[OrganizationUsage] = Field(description="The caller's organizations.")
