"""Chat models served by Ollama."""

from __future__ import annotations

from typing import Any

import msgspec

from bakeoff_providers.chat.base import ChatModel, Reply, Schema
from bakeoff_providers.ollama import OllamaServer


class _OllamaMessage(msgspec.Struct, frozen=True):
    content: str | None = None


class _OllamaChatAnswer(msgspec.Struct, frozen=True):
    message: _OllamaMessage


class OllamaChat(OllamaServer, ChatModel):
    """Ollama enforces the schema while it generates. Free, because it runs on the user's own machine."""

    default_model = "llama3.1"
    free = True
    shape = _OllamaChatAnswer

    def _call(self, sdk: Any, prompt: str, schema: Schema, seed: int) -> Reply:
        options: dict[str, Any] = {"seed": seed}
        if self.temperature is not None:
            options["temperature"] = self.temperature
        if self.max_tokens is not None:
            options["num_predict"] = self.max_tokens
        answer = sdk.chat(
            model=self.model, messages=[{"role": "user", "content": prompt}], format=dict(schema), options=options
        )
        return Reply(answer.message.content or "", answer.prompt_eval_count, answer.eval_count)
