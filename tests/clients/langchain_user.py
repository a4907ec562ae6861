"""What a user of langchain-openai does, against the platform: ``python langchain_user.py BASE_URL TOKEN``."""

from __future__ import annotations

import sys

from langchain_core.tools import tool
from langchain_openai import ChatOpenAI, OpenAIEmbeddings

base_url, token = sys.argv[1:]


@tool
def beep(times: int) -> str:
    """Beeps."""
    return "beep " * times


chat = ChatOpenAI(base_url=base_url, api_key=token, model="llama3.2", max_retries=0)
assert chat.invoke("How are you?").content == "Done."
assert "".join(str(chunk.content) for chunk in chat.stream("How are you?")) == "Done."
called = chat.bind_tools([beep]).invoke("Beep twice!")
assert [(call["name"], call["args"]) for call in called.tool_calls] == [("beep", {"times": 2})], called
steps = list(chat.bind(extra_body={"platform_tools": True}).stream("The weather?"))
assert "".join(str(chunk.content) for chunk in steps) == "Done."
asked = ChatOpenAI(base_url=base_url, api_key=token, model="pipeline/Travel handbook", max_retries=0)
assert asked.invoke("How much may a hotel cost per night?").content
embeddings = OpenAIEmbeddings(
    base_url=base_url, api_key=token, model="all-minilm", check_embedding_ctx_length=False
)
assert len(embeddings.embed_query("A hotel")) == 384
assert len(embeddings.embed_documents(["A hotel", "A train"])) == 2
