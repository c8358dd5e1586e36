"""Gemini's chat models, through google-genai."""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec

from bakeoff_providers.answers import read_count
from bakeoff_providers.chat.base import ChatModel, Reply, Schema
from bakeoff_providers.gemini import Gemini, Genai


class _GeminiPart(msgspec.Struct, frozen=True):
    text: str | None = None


class _Content(msgspec.Struct, frozen=True):
    parts: list[_GeminiPart] | None = None


class _Candidate(msgspec.Struct, frozen=True):
    content: _Content | None = None


class _GeminiChatAnswer(msgspec.Struct, frozen=True):
    """Candidates are missing if the prompt was blocked."""

    candidates: list[_Candidate] | None = None


class GeminiChat(ChatModel):
    """The keys and the server are those of Gemini's embeddings."""

    name = "gemini"
    default_model = "gemini-2.5-flash"
    extra: ClassVar[str | None] = "gemini"
    modules: ClassVar[tuple[str, ...]] = ("google.genai",)
    keys = Gemini.keys
    own_url = Gemini.own_url
    url_variable = Gemini.url_variable
    shape = _GeminiChatAnswer

    def _connect(self, key: str) -> Any:
        return Genai(key, self.base_url, self._timeout)

    def _call(self, sdk: Any, prompt: str, schema: Schema, seed: int) -> Reply:
        config = sdk.types.GenerateContentConfig(
            temperature=self.temperature,
            seed=seed,
            max_output_tokens=self.max_tokens,
            response_mime_type="application/json",
            response_json_schema=dict(schema),
        )
        answer = sdk.client.models.generate_content(model=self.model, contents=prompt, config=config)
        usage = answer.usage_metadata
        thought = read_count(getattr(usage, "thoughts_token_count", None)) or 0
        written = read_count(getattr(usage, "candidates_token_count", None))
        return Reply(
            answer.text or "",
            getattr(usage, "prompt_token_count", None),
            None if written is None else written + thought,  # thoughts are charged as answers
        )
