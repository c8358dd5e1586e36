"""Prompt → answer, for making queries and grading. A new one is a file here and a line below (`bakeoff.chats`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from providers.registry import Registry

if TYPE_CHECKING:
    from harness.chat.base import ChatModel

CHATS: Registry[ChatModel] = Registry(
    "chat provider",
    "bakeoff.chats",
    {
        "ollama": "harness.chat.ollama:OllamaChat",
        "gemini": "harness.chat.gemini:GeminiChat",
        "openai": "harness.chat.openai:OpenAIChat",
    },
)
