"""Filters requests to llama.cpp: one process answers all users, and some requests crash or stall it.

A deeply nested grammar overflows its stack, as does a schema with a long chain of references; a penalty over
two billion tokens takes 8 GB and blocks everybody for half a minute. Some schemas are slow to enforce: 4,000
choices delay everybody by 20 seconds, and the pattern `(a{0,100}){0,100}` by 10.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from builtin_plugins.inference import api as inference
from builtin_plugins.models.runtimes.errors import RuntimeObjects

Json = dict[str, Any]

# Parameters of OpenAI and Ollama; llama.cpp's own, such as `grammar`, are left out.
_SUPPORTED: Final = frozenset(
    {
        *("temperature", "top_p", "top_k", "min_p", "typical_p", "seed", "stop"),
        *("max_tokens", "max_completion_tokens", "num_predict"),
        *("presence_penalty", "frequency_penalty", "repeat_penalty", "repeat_last_n"),
        *("mirostat", "mirostat_tau", "mirostat_eta", "logit_bias", "logprobs", "top_logprobs"),
        *("response_format", "tool_choice", "parallel_tool_calls"),
        *("reasoning_effort", "chat_template_kwargs"),
    }
)
_CHOICES: Final = ("enum", "anyOf", "oneOf")
_MOST: Final = {"top_logprobs": 20, "repeat_last_n": 65_536}
# A third of what overflows the stack, and several times what 128 ordinary tools need.
_LARGEST_FORMS: Final = 65_536
# Delays others by a second or two; all time zones are 600 choices.
_MOST_CHOICES: Final = 1_000
_MOST_REPEATS: Final = 1_000
_COUNTS: Final = re.compile(r"\{(?:[0-9]+,)?([0-9]+),?\}")


def checked_options(options: Mapping[str, Any], tools: Sequence[Mapping[str, Any]] = ()) -> Json:
    """The options that may be sent on, together with these tools.

    Raises RuntimeObjects for one that would stall or end the process.
    """
    allowed = {name: value for name, value in options.items() if name in _SUPPORTED}
    for name, most in _MOST.items():
        value = allowed.get(name)
        if isinstance(value, int | float) and value > most:
            raise RuntimeObjects(400, f"'{name}' may be at most {most}")
    if isinstance(inner := options.get("options"), Mapping):  # where Ollama has them
        allowed["options"] = checked_options(inner)
    _check_forms([allowed.get("response_format"), *tools])
    return allowed


def checked_chat(request: inference.ChatRequest) -> inference.ChatRequest:
    """The chat with the options that may be sent on. Raises RuntimeObjects for what llama.cpp can't take."""
    options = checked_options(request.options, request.tools)
    for tool in request.tools:
        if tool.get("type", "function") != "function":
            raise RuntimeObjects(400, "a local model can call only functions, not other kinds of tools")
    for part in _parts(request.messages):
        if part.get("type") != "text":
            raise RuntimeObjects(400, "a local model reads only text, not pictures, sound or files")
    return replace(request, options=options)


def _check_forms(forms: Sequence[Any]) -> None:
    if len(json.dumps(forms, ensure_ascii=False)) > _LARGEST_FORMS:
        raise RuntimeObjects(
            400, f"tools and response_format may have {_LARGEST_FORMS} characters in all for a local model"
        )
    choices, rest = 0, list(forms)
    while rest:
        part = rest.pop()
        if isinstance(part, Mapping):
            choices += sum(
                len(alternatives) for name in _CHOICES if isinstance(alternatives := part.get(name), list)
            )
            _check_pattern(part.get("pattern"))
            rest += part.values()
        elif isinstance(part, list):
            rest += part
    if choices > _MOST_CHOICES:
        raise RuntimeObjects(
            400, f"schemas may have {_MOST_CHOICES} choices (enum, anyOf, oneOf) in all for a local model"
        )


def _check_pattern(pattern: Any) -> None:
    """Refuse too many nested repetitions: llama.cpp expands each repeated group."""
    if isinstance(pattern, str) and "){" in pattern:
        repeats = math.prod(max(1, int(count[:9])) for count in _COUNTS.findall(pattern))
        if repeats > _MOST_REPEATS:
            raise RuntimeObjects(
                400, f"a 'pattern' may repeat groups {_MOST_REPEATS} times in all for a local model"
            )


def _parts(messages: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    for message in messages:
        content = message.get("content")
        yield from (
            (part for part in content if isinstance(part, Mapping)) if isinstance(content, list) else ()
        )
