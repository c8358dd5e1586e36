"""Text → vectors. A new provider is one file here and one line below (third parties: `bakeoff.providers`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from providers.registry import Registry

if TYPE_CHECKING:
    from providers.base import Provider

PROVIDERS: Registry[Provider] = Registry(
    "provider",
    "bakeoff.providers",
    {
        "fake": "providers.fake:Fake",
        "tfidf": "providers.tfidf:Tfidf",
        "wordllama": "providers.wordllama:WordLlama",
        "minilm": "providers.minilm:MiniLM",
        "precomputed": "providers.precomputed:Precomputed",
        "sentence_transformers": "providers.sentence_transformers:SentenceTransformers",
        "ollama": "providers.ollama:Ollama",
        "voyage": "providers.voyage:Voyage",
        "gemini": "providers.gemini:Gemini",
        "openai": "providers.openai:OpenAI",
        "cohere": "providers.cohere:Cohere",
    },
)
