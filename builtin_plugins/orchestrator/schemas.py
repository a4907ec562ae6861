"""Bodies and answers of the routes that speak OpenAI's protocol (decisions.md, Chat completions)."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from builtin_plugins.orchestrator.shapes import CallIn, ChoiceIn, PartIn, ToolIn
from kernel.sdk import example

ModelName = Annotated[str, Field(min_length=1, max_length=255)]
Usage = dict[str, Any]

# A photo in a message is several MB in Base64, and clients send a thousand texts for embedding at once.
LARGEST_BODY = 16 * 1024 * 1024
MOST_MESSAGES = 2000
MOST_TOOLS = 128
MOST_PARTS = 2000


class ChatMessageIn(BaseModel):
    """A message as OpenAI's API takes it; further keys go to the model runtime."""

    model_config = ConfigDict(extra="allow")

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | Annotated[list[PartIn], Field(max_length=MOST_PARTS)] | None = None
    tool_calls: Annotated[list[CallIn], Field(max_length=MOST_PARTS)] | None = None
    tool_call_id: str | None = None


class StreamOptions(BaseModel):
    """What else a stream reports."""

    model_config = ConfigDict(extra="allow")

    include_usage: bool | None = False


class ChatBody(BaseModel):
    """A chat. Further keys are parameters of the model: OpenAI's, or Ollama's with its `options`."""

    model_config = ConfigDict(
        extra="allow",
        **example(
            model="llama3.2",
            messages=[{"role": "user", "content": "How much may a hotel in Oslo cost per night?"}],
            platform_tools="read_only",
        ),
    )

    model: ModelName | None = Field(
        None, description="A model of the runtime, or `pipeline/<name>`; the default model when omitted."
    )
    messages: list[ChatMessageIn] = Field(min_length=1, max_length=MOST_MESSAGES)
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    tools: list[ToolIn] | None = Field(
        None, max_length=MOST_TOOLS, description="Functions of the client, which it runs itself."
    )
    tool_choice: ChoiceIn | None = Field(
        None, description="`none`, `auto`, `required`, or the function that the model has to call."
    )
    n: Literal[1] | None = Field(None, description="Only one choice is supported.")
    platform_tools: bool | Literal["read_only"] = Field(
        False, description="Let the model call the platform's tools as the caller: all, or read-only ones."
    )
    platform_approvals: list[Annotated[str, Field(max_length=64)]] | None = Field(
        None, max_length=8, description="Calls of an earlier answer that the user confirms."
    )

    @property
    def options(self) -> dict[str, Any]:
        """The model's parameters."""
        sent = {**(self.model_extra or {}), "tool_choice": self.tool_choice}
        return {name: value for name, value in sent.items() if value is not None}

    @property
    def given_messages(self) -> list[dict[str, Any]]:
        """The messages as sent."""
        return [message.model_dump(exclude_unset=True) for message in self.messages]

    @property
    def wants_usage(self) -> bool:
        """Whether a stream ends with the usage."""
        return self.stream_options is not None and bool(self.stream_options.include_usage)


class ChatCompletion(BaseModel):
    """A whole answer, in OpenAI's shape and in that of a model runtime at once."""

    model_config = ConfigDict(extra="allow")

    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    created_at: datetime
    model: str
    choices: list[dict[str, Any]]
    message: dict[str, Any]
    done: bool = True
    usage: Usage | None


class ModelOut(BaseModel):
    """A model, or a pipeline that is asked like one."""

    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: str


class ModelList(BaseModel):
    """Models in OpenAI's shape."""

    object: Literal["list"] = "list"
    data: list[ModelOut]


class FunctionResult(BaseModel):
    """What a tool answered (wire-facts 8.1)."""

    result: Any
    status: Literal["success"] = "success"
    timestamp: datetime


class EmbeddingsBody(BaseModel):
    """Texts to embed."""

    model_config = ConfigDict(
        extra="allow", **example(model="multilingual-e5-small", input=["A hotel may cost 130 EUR a night."])
    )

    model: ModelName
    input: str | list[Any]
    encoding_format: Literal["float", "base64"] | None = "float"
    dimensions: int | None = None
    input_type: Literal["passage", "query"] = Field(
        "passage",
        description="Whether the texts are questions or passages, for models that treat them differently.",
    )


class EmbeddingOut(BaseModel):
    """One vector: numbers, or little-endian 32-bit floats in base64."""

    object: Literal["embedding"] = "embedding"
    index: int
    embedding: list[float] | str


class EmbeddingList(BaseModel):
    """Vectors in the order of the texts."""

    object: Literal["list"] = "list"
    data: list[EmbeddingOut]
    model: str
    usage: Usage
