"""Prompt → answer, for making queries and grading. A new one is a file here and a line below (`bakeoff.chats`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bakeoff_providers.registry import Registry

if TYPE_CHECKING:
    from bakeoff.chat.base import ChatModel

CHATS: Registry[ChatModel] = Registry(
    "chat provider",
    "bakeoff.chats",
    {
        "ollama": "bakeoff.chat.ollama:OllamaChat",
        "gemini": "bakeoff.chat.gemini:GeminiChat",
        "openai": "bakeoff.chat.openai:OpenAIChat",
    },
)
