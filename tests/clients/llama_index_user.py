"""What a user of LlamaIndex does, against the platform: ``python llama_index_user.py BASE_URL TOKEN``."""

from __future__ import annotations

import sys

from llama_index.core.llms import ChatMessage
from llama_index.core.tools import FunctionTool
from llama_index.llms.openai_like import OpenAILike

base_url, token = sys.argv[1:]


def beep(times: int) -> str:
    return "beep " * times


model = OpenAILike(
    model="llama3.2",
    api_base=base_url,
    api_key=token,
    is_chat_model=True,
    is_function_calling_model=True,
    max_retries=0,
)
asked = [ChatMessage(role="user", content="How are you?")]
assert model.chat(asked).message.content == "Done."
assert "".join(chunk.delta or "" for chunk in model.stream_chat(asked)) == "Done."
called = model.chat_with_tools([FunctionTool.from_defaults(beep)], user_msg="Beep twice!")
calls = model.get_tool_calls_from_response(called)
assert [(call.tool_name, call.tool_kwargs) for call in calls] == [("beep", {"times": 2})], called
pipeline = OpenAILike(
    model="pipeline/Travel handbook", api_base=base_url, api_key=token, is_chat_model=True, max_retries=0
)
hotel = [ChatMessage(role="user", content="How much may a hotel cost per night?")]
assert pipeline.chat(hotel).message.content
