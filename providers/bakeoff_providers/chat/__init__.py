"""Prompt → answer, for query generation and grading. A new one is a file here and a line below (`bakeoff.chats`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bakeoff_providers.registry import Registry

if TYPE_CHECKING:
    from bakeoff_providers.chat.base import ChatModel

CHATS: Registry[ChatModel] = Registry(
    "chat provider",
    "bakeoff.chats",
    {
        "ollama": "bakeoff_providers.chat.ollama:OllamaChat",
        "gemini": "bakeoff_providers.chat.gemini:GeminiChat",
        "openai": "bakeoff_providers.chat.openai:OpenAIChat",
    },
)
