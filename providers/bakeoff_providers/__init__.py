"""Embedding and chat models. A new provider is one file here and one line below (plug-ins: `bakeoff.providers`).

Errors, options, secrets, weights and file locks live here too: adapters need them, and this package never imports
`bakeoff`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bakeoff_providers.registry import Registry

if TYPE_CHECKING:
    from bakeoff_providers.base import Provider

BUILTIN = {
    "fake": "bakeoff_providers.fake:Fake",
    "tfidf": "bakeoff_providers.tfidf:Tfidf",
    "wordllama": "bakeoff_providers.wordllama:WordLlama",
    "minilm": "bakeoff_providers.minilm:MiniLM",
    "own": "bakeoff_providers.own:Own",
    "own_hosted": "bakeoff_providers.own:OwnHosted",
    "granite": "bakeoff_providers.granite:Granite",
    "use": "bakeoff_providers.use:UniversalSentenceEncoder",
    "precomputed": "bakeoff_providers.precomputed:Precomputed",
    "sentence_transformers": "bakeoff_providers.sentence_transformers:SentenceTransformers",
    "ollama": "bakeoff_providers.ollama:Ollama",
    "voyage": "bakeoff_providers.voyage:Voyage",
    "gemini": "bakeoff_providers.gemini:Gemini",
    "openai": "bakeoff_providers.openai:OpenAI",
    "cohere": "bakeoff_providers.cohere:Cohere",
}

PROVIDERS: Registry[Provider] = Registry("provider", "bakeoff.providers", BUILTIN, given=("target",))
