"""Chat models of OpenAI, and with `base_url` any server with its API: vLLM, llama.cpp, LM Studio, Mistral."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from bakeoff_providers.chat.base import ChatModel, Reply, Schema
from bakeoff_providers.openai import OpenAIServer


class _OpenAIPart(msgspec.Struct, frozen=True):
    """Mistral's reasoning models answer in parts: thoughts, then text."""

    type: str = "text"
    text: str | None = None


class _OpenAIMessage(msgspec.Struct, frozen=True):
    content: str | list[_OpenAIPart] | None = None


class _Choice(msgspec.Struct, frozen=True):
    message: _OpenAIMessage


class _OpenAIChatAnswer(msgspec.Struct, frozen=True):
    choices: list[_Choice]


class OpenAIChat(OpenAIServer, ChatModel):
    """Requests a JSON object without a schema, because few servers of this API support schemas."""

    default_model = "gpt-4o-mini"
    shape = _OpenAIChatAnswer

    def _call(self, sdk: Any, prompt: str, schema: Schema, seed: int) -> Reply:  # noqa: ARG002 - the prompt tells it
        optional: dict[str, Any] = {}
        if self.temperature is not None:
            optional["temperature"] = self.temperature
        if self.max_tokens is not None:
            optional["max_tokens"] = self.max_tokens
        answer = sdk.chat.completions.create(
            model=self.model,
            messages=[{"role": "user", "content": prompt}],
            response_format={"type": "json_object"},
            seed=seed,
            **optional,
        )
        if isinstance(answer, str):
            raise json.JSONDecodeError("a page instead of JSON", answer, 0)
        choices = getattr(answer, "choices", None)
        usage = getattr(answer, "usage", None)
        return Reply(
            _text(choices[0].message.content) if choices else "",
            getattr(usage, "prompt_tokens", None),
            getattr(usage, "completion_tokens", None),
        )


def _text(content: Any) -> str:
    if isinstance(content, list):
        parts = msgspec.convert(content, list[_OpenAIPart])
        return "".join(part.text or "" for part in parts if part.type == "text")
    return content or ""
