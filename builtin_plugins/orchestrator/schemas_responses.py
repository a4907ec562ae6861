"""Bodies and answers of OpenAI's Responses API, as far as plain and tool use needs it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError

from builtin_plugins.orchestrator.schemas import MOST_MESSAGES, MOST_TOOLS, ChatBody, ModelName
from kernel.sdk import Unprocessable, example

Items = list[dict[str, Any]]
_FILE_SEARCH = "file_search"
_NOT_SENT = ("reasoning", "file_search_call")
"""Items of earlier answers that a model doesn't get again: its thoughts, and its searches."""


def _refuse_reference(value: Any) -> None:
    if value is not None:
        raise PydanticCustomError(
            "value_error", "nothing is stored here; send the whole conversation in 'input'"
        )


NotKept = Annotated[None, BeforeValidator(_refuse_reference)]


@dataclass(frozen=True, slots=True)
class FileSearch:
    """The tool `file_search` of a request, and its place among the tools."""

    place: int
    tool: Mapping[str, Any]


class ResponsesBody(BaseModel):
    """A request for a response. Nothing is stored: each request contains the whole conversation."""

    model_config = ConfigDict(
        extra="allow", **example(model="llama3.2", input="How much may a hotel in Oslo cost per night?")
    )

    model: ModelName | None = None
    input: str | Items = Field(max_length=1_000_000)
    instructions: str | None = None
    stream: bool | None = False
    tools: Items | None = Field(None, max_length=MOST_TOOLS)
    tool_choice: str | dict[str, Any] | None = None
    parallel_tool_calls: bool | None = None
    max_output_tokens: int | None = Field(None, ge=1)
    temperature: float | None = Field(None, ge=0, le=2)
    top_p: float | None = Field(None, ge=0, le=1)
    text: dict[str, Any] | None = None
    reasoning: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None
    include: list[str] | None = Field(
        None, max_length=32, description="`file_search_call.results` adds the passages to the search's item."
    )
    previous_response_id: NotKept = Field(
        None, description="Not supported, as nothing is stored; must be null."
    )
    conversation: NotKept = Field(None, description="Not supported, as nothing is stored; must be null.")
    prompt: NotKept = Field(None, description="Not supported, as nothing is stored; must be null.")
    platform_tools: bool | Literal["read_only"] = False
    platform_approvals: list[str] | None = Field(None, max_length=8)

    @property
    def shows_results(self) -> bool:
        """Whether the item of a search in files shall list what was found."""
        return "file_search_call.results" in (self.include or ())

    def file_search(self) -> FileSearch | None:
        """The search in files that is asked for. Raises Unprocessable for more than one."""
        searches = [
            FileSearch(place, tool)
            for place, tool in enumerate(self.tools or ())
            if tool.get("type") == _FILE_SEARCH
        ]
        if len(searches) > 1:
            message = "there is a file_search already: name all vector stores in one"
            raise Unprocessable.field(("body", "tools", searches[1].place), message)
        return searches[0] if searches else None

    def as_chat(self) -> ChatBody:
        """The same as a chat. Raises Unprocessable."""
        messages = _messages(self.input)
        if self.instructions:
            messages.insert(0, {"role": "system", "content": self.instructions})
        options = {
            "max_tokens": self.max_output_tokens,
            "temperature": self.temperature,
            "top_p": self.top_p,
            "tool_choice": _choice(self.tool_choice),
            "parallel_tool_calls": self.parallel_tool_calls,
            "reasoning_effort": (self.reasoning or {}).get("effort"),
            "response_format": _format((self.text or {}).get("format")),
        }
        return ChatBody.model_validate(
            {
                "model": self.model,
                "messages": messages,
                "stream": self.stream,
                "tools": [
                    _tool(place, tool)
                    for place, tool in enumerate(self.tools or ())
                    if tool.get("type") != _FILE_SEARCH
                ]
                or None,
                "platform_tools": self.platform_tools,
                "platform_approvals": self.platform_approvals,
                **{name: value for name, value in options.items() if value is not None},
            }
        )


class ResponseOut(BaseModel):
    """A response."""

    model_config = ConfigDict(extra="allow")

    id: str
    object: Literal["response"] = "response"
    created_at: int
    status: Literal["completed", "incomplete", "in_progress"]
    model: str
    output: Items
    usage: dict[str, Any] | None


def _messages(text_or_items: str | Items) -> Items:
    if isinstance(text_or_items, str):
        return [{"role": "user", "content": text_or_items}]
    if not 1 <= len(text_or_items) <= MOST_MESSAGES:
        raise Unprocessable.field(("body", "input"), f"must hold 1 to {MOST_MESSAGES} items")
    messages: Items = []
    for place, item in enumerate(text_or_items):
        _add(messages, place, item)
    return messages


def _add(messages: Items, place: int, item: dict[str, Any]) -> None:
    kind = item.get("type", "message")
    if kind == "message" and item.get("role") in ("user", "assistant", "system", "developer"):
        messages.append({"role": item["role"], "content": _content(place, item.get("content"))})
    elif kind == "function_call":
        function = {"name": str(item.get("name", "")), "arguments": str(item.get("arguments", ""))}
        call = {"id": str(item.get("call_id", "")), "type": "function", "function": function}
        if messages and messages[-1].get("tool_calls"):
            messages[-1]["tool_calls"].append(call)
        else:
            messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
    elif kind == "function_call_output":
        output = item.get("output")
        text = output if isinstance(output, str) else _texts(output)
        messages.append({"role": "tool", "tool_call_id": str(item.get("call_id", "")), "content": text})
    elif kind == "item_reference":
        raise Unprocessable.field(
            ("body", "input", place),
            "refers to an earlier answer, and none is stored; send the item itself (in the AI SDK: "
            "store: false)",
        )
    elif kind not in _NOT_SENT:
        raise Unprocessable.field(
            ("body", "input", place), "must be a message, a function_call or a function_call_output"
        )


def _content(place: int, content: Any) -> str | Items:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise Unprocessable.field(("body", "input", place, "content"), "must be a text or a list of parts")
    if all(isinstance(part, dict) and "text" in part for part in content):
        return _texts(content)
    parts: Items = []
    for part in content:
        if isinstance(part, dict) and "text" in part:
            parts.append({"type": "text", "text": str(part["text"])})
        elif isinstance(part, dict) and isinstance(part.get("image_url"), str):
            parts.append({"type": "image_url", "image_url": {"url": part["image_url"]}})
        else:
            raise Unprocessable.field(
                ("body", "input", place, "content"),
                "may contain only texts, and pictures with an 'image_url'",
            )
    return parts


def _texts(parts: Any) -> str:
    dicts = [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
    return "\n".join(str(part.get("text", "")) for part in dicts)


def _tool(place: int, tool: dict[str, Any]) -> dict[str, Any]:
    if tool.get("type") != "function":
        raise Unprocessable.field(
            ("body", "tools", place),
            "must be a function or file_search; the platform's tools come with platform_tools",
        )
    function = {name: value for name, value in tool.items() if name != "type" and value is not None}
    return {"type": "function", "function": function}


def _choice(choice: str | dict[str, Any] | None) -> Any:
    if isinstance(choice, dict) and choice.get("type") == "function":
        return {"type": "function", "function": {"name": choice.get("name", "")}}
    return choice if isinstance(choice, str) else None


def _format(text_format: Any) -> Any:
    if not isinstance(text_format, dict) or text_format.get("type") in (None, "text"):
        return None
    if text_format["type"] != "json_schema":
        return text_format
    inner = {name: value for name, value in text_format.items() if name != "type" and value is not None}
    return {"type": "json_schema", "json_schema": inner}
