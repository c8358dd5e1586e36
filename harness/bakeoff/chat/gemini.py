"""Gemini's chat models, through google-genai."""

from __future__ import annotations

from typing import Any, ClassVar

from bakeoff_providers.gemini import Gemini, Genai

from bakeoff.chat.base import ChatModel, Reply, Schema


class GeminiChat(ChatModel):
    """The keys and the server are those of Gemini's embeddings."""

    name = "gemini"
    default_model = "gemini-2.5-flash"
    extra: ClassVar[str | None] = "gemini"
    modules: ClassVar[tuple[str, ...]] = ("google.genai",)
    keys = Gemini.keys
    own_url = Gemini.own_url

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
        thought = getattr(usage, "thoughts_token_count", None) or 0
        written = getattr(usage, "candidates_token_count", None)
        return Reply(
            answer.text or "",
            getattr(usage, "prompt_token_count", None),
            None if written is None else written + thought,  # thoughts are charged as answers
        )
