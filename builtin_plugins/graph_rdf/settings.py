"""Settings of SPARQL over the graphs."""

from __future__ import annotations

from typing import Annotated, ClassVar, Self

from pydantic import AfterValidator, Field, SecretStr, model_validator

from kernel.sdk import Settings, base_address


def _address(value: str) -> str:
    base_address(value.partition("?")[0])
    return value.strip()


class RdfSettings(Settings):
    """SPARQL and RDF over the graphs of documents; named as settings of `graph_rag`, which they extend."""

    env_prefix: ClassVar[str] = "PLATFORM_GRAPH_RAG_"

    sparql_seconds: int = Field(10, ge=1, le=250, description="Time limit in seconds for one SPARQL query.")
    sparql_memory_mb: int = Field(1024, ge=64, description="Memory that one SPARQL query may use, in MB.")
    sparql_at_once: int = Field(
        4,
        ge=1,
        le=64,
        description="SPARQL queries and RDF imports that one process runs at once; one account gets at "
        "most half of them.",
    )
    sparql_wait_seconds: int = Field(
        30, ge=0, le=250, description="Seconds that further queries wait before they are refused."
    )
    sparql_rows: int = Field(
        10_000, ge=1, le=100_000, description="Most rows or statements in the result of a SPARQL query."
    )
    sparql_url: Annotated[str, AfterValidator(_address)] | None = Field(
        None,
        description="Query address of a SPARQL 1.1 server that stores the graphs, such as "
        "http://127.0.0.1:7878/query; when unset, this server stores them itself.",
    )
    sparql_store_url: Annotated[str, AfterValidator(_address)] | None = Field(
        None,
        description="Address of that server's Graph Store HTTP Protocol, such as http://127.0.0.1:7878/store.",
    )
    sparql_key: SecretStr | None = Field(None, description="Bearer token for that server.")

    @model_validator(mode="after")
    def _both_addresses(self) -> Self:
        if (self.sparql_url is None) != (self.sparql_store_url is None):
            raise ValueError(
                "set PLATFORM_GRAPH_RAG_SPARQL_URL and PLATFORM_GRAPH_RAG_SPARQL_STORE_URL together"
            )
        return self
