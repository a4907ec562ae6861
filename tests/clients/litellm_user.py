"""What a user of LiteLLM's proxy in front of the platform does: ``python litellm_user.py BASE_URL KEY``."""

from __future__ import annotations

import sys
from typing import Any

from openai import OpenAI

base_url, key = sys.argv[1:]
client = OpenAI(base_url=base_url, api_key=key, max_retries=0)
BEEP: Any = {
    "type": "function",
    "function": {
        "name": "beep",
        "description": "Beeps.",
        "parameters": {"type": "object", "properties": {"times": {"type": "integer"}}},
    },
}


def said(question: str) -> Any:
    return [{"role": "user", "content": question}]


assert {model.id for model in client.models.list()} == {"small", "handbook", "vectors"}
plain = client.chat.completions.create(model="small", messages=said("How are you?"))
assert plain.choices[0].message.content == "Done."
assert plain.usage is not None and plain.usage.total_tokens == 18
stream = client.chat.completions.create(
    model="small", messages=said("How are you?"), stream=True, stream_options={"include_usage": True}
)
chunks = list(stream)
assert "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices) == "Done."
assert [chunk.usage.total_tokens for chunk in chunks if chunk.usage] == [18]

called = client.chat.completions.create(model="small", messages=said("Beep twice!"), tools=[BEEP])
[call] = called.choices[0].message.tool_calls or []
assert call.type == "function" and (call.function.name, call.function.arguments) == ("beep", '{"times": 2}')
answered = [
    *said("Beep twice!"),
    called.choices[0].message.model_dump(exclude_none=True),
    {"role": "tool", "tool_call_id": call.id, "content": "beep beep"},
]
assert (
    client.chat.completions.create(model="small", messages=answered, tools=[BEEP]).choices[0].message.content
    == "Done."
)

with_tools = {"platform_tools": True}
weather = client.chat.completions.create(model="small", messages=said("The weather?"), extra_body=with_tools)
assert weather.choices[0].message.content == "Done."
assert weather.usage is not None and weather.usage.total_tokens == 36  # two rounds
steps = client.chat.completions.create(
    model="small", messages=said("The weather?"), stream=True, extra_body=with_tools
)
assert "".join(choice.delta.content or "" for chunk in steps for choice in chunk.choices) == "Done."

asked = client.chat.completions.create(
    model="handbook", messages=said("How much may a hotel cost per night?")
)
assert asked.choices[0].message.content
vectors = client.embeddings.create(model="vectors", input=["A hotel", "A train"])
assert [len(item.embedding) for item in vectors.data] == [384, 384]
made = client.responses.create(model="small", input="How are you?")
assert made.output_text == "Done."
