"""Gemini's embeddings, through google-genai or through google-generativeai."""

from __future__ import annotations

import warnings
from dataclasses import replace
from importlib import import_module
from typing import Annotated, Any, Literal

import msgspec
import numpy as np

from bakeoff_providers.answers import HEADERS, Envelope, guard_requests, httpx_options
from bakeoff_providers.base import ModelCard, Role, Vectors
from bakeoff_providers.cards import price
from bakeoff_providers.hosted import Hosted, open_card
from bakeoff_providers.needs import Needs
from bakeoff_providers.options import Transport
from bakeoff_providers.registry import importable

PRICES = "https://ai.google.dev/gemini-api/docs/pricing"
FULL = 3072
Sdk = Literal["google-genai", "google-generativeai"]
SDKS: dict[Sdk, tuple[str, str]] = {  # each SDK's module and extra, the default first
    "google-genai": ("google.genai", "gemini"),
    "google-generativeai": ("google.generativeai", "gemini-legacy"),
}


class _GeminiVector(msgspec.Struct, frozen=True):
    values: list[float]


class _GeminiVectors(Envelope, frozen=True):
    embeddings: list[_GeminiVector]


class Gemini(Hosted):
    """Google's hosted models; default: gemini-embedding-001.

    Both SDKs call the same service, so the SDK is not part of a vector's identity.
    """

    name = "gemini"
    default_model = "gemini-embedding-001"
    extra = "gemini"
    keys = ("GEMINI_API_KEY", "GOOGLE_API_KEY")
    own_url = "https://generativelanguage.googleapis.com"
    url_variable = "GEMINI_BASE_URL"
    tasks = ("RETRIEVAL_DOCUMENT", "RETRIEVAL_QUERY")
    cards = (
        ModelCard(
            name="gemini-embedding-001",
            dimensions=FULL,
            context=2048,
            batch_items=100,
            price=price(0.15, "2026-11", PRICES),
        ),
        ModelCard(
            name="gemini-embedding-2",
            dimensions=FULL,
            context=8192,
            batch_items=100,
            document_prompt="title: none | text: ",
            query_prompt="task: search result | query: ",
            price=price(0.20, "2026-11", PRICES),
        ),
    )
    open_card = open_card(batch_items=100)
    embeds_nothing = r"(models/)?(gemini-(?!embedding)|gemma-)"
    shape = _GeminiVectors

    def __init__(
        self,
        *,
        sdk: Annotated[Sdk | None, "SDK to use; default: google-genai if both are installed", Transport] = None,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self._sdk_name = sdk

    @classmethod
    def needs(cls, **options: Any) -> Needs:
        """One of the two SDKs, or the one named in the line-up."""
        needs = super().needs(**options)
        if (sdk := options.get("sdk")) in SDKS:
            module, extra = SDKS[sdk]
            return replace(needs, modules=(module,), extra=extra)
        return replace(needs, either=tuple(module for module, _ in SDKS.values()))

    def _own_needs(self) -> Needs:
        return self.needs(sdk=self._sdk_name, key_env=self._key_env, base_url=self._given_url)

    def task(self, role: Role) -> str | None:
        """The task type; none for a model that reads its task from a prompt."""
        index = 1 if role is Role.QUERY else 0
        if self._known.document_prompt and self._tasks[index] is None:
            return None
        return super().task(role)

    def _connect(self, key: str) -> Any:
        default: Sdk = "google-genai" if importable("google.genai") else "google-generativeai"
        kind = Genai if (self._sdk_name or default) == "google-genai" else _Legacy
        return kind(key, self.base_url, self._timeout)

    def _call(self, sdk: Any, inputs: list[str], role: Role) -> tuple[Any, Any]:
        return sdk.embed(self.card.name, inputs, self.task(role), self._asked)  # type: ignore[no-any-return]

    def _vectors(self, rows: Any) -> Vectors:
        """Only full-length output is normalised; shortened vectors are normalised here."""
        vectors = super()._vectors(rows)
        if self._asked is None or vectors.ndim != 2:
            return vectors
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.asarray(vectors / np.where(lengths > 0, lengths, 1.0), dtype=np.float32)


class Genai:
    """google-genai. Each text is a separate Content: a list of strings would give one vector."""

    def __init__(self, key: str, url: str, timeout: float) -> None:
        genai: Any = import_module("google.genai")
        types = self.types = genai.types
        options = types.HttpOptions(
            base_url=url,
            timeout=int(timeout * 1000),
            retry_options=types.HttpRetryOptions(attempts=1),
            client_args=httpx_options(),
        )
        self.client = genai.Client(api_key=key, vertexai=False, http_options=options)

    def embed(self, model: str, texts: list[str], task: str | None, dimensions: int | None) -> tuple[Any, Any]:
        """The rows and tokens of one request."""
        types = self.types
        answer = self.client.models.embed_content(
            model=model,
            contents=[types.Content(parts=[types.Part(text=text)]) for text in texts],
            config=types.EmbedContentConfig(task_type=task, output_dimensionality=dimensions),
        )
        rows = None if answer.embeddings is None else [row.values for row in answer.embeddings]
        usage = getattr(answer, "usage_metadata", None)
        return rows, getattr(usage, "prompt_token_count", None)

    def close(self) -> None:
        """Closes the connections, if this SDK version can."""
        if close := getattr(self.client, "close", None):
            close()


class _Legacy:
    """google-generativeai, at its end of support: no token counts, and retries in two places."""

    def __init__(self, key: str, url: str, timeout: float) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            genai: Any = import_module("google.generativeai")
            service: Any = import_module("google.ai.generativelanguage")
            options: Any = import_module("google.api_core.client_options")
        self._protos, self._timeout = genai.protos, timeout
        self._client = service.GenerativeServiceClient(
            transport="rest", client_options=options.ClientOptions(api_key=key, api_endpoint=url)
        )
        session = self._client.transport._session
        session._max_refresh_attempts = 0
        session.headers.update(HEADERS)
        session.hooks["response"].append(guard_requests)

    def embed(self, model: str, texts: list[str], task: str | None, dimensions: int | None) -> tuple[Any, Any]:
        """The request of `embed_content`, without its detour over a dict, which doubles the time."""
        name = model if "/" in model else f"models/{model}"
        common = {"model": name, "task_type": task, "output_dimensionality": dimensions}
        common = {option: value for option, value in common.items() if value is not None}
        requests = [{"content": {"parts": [{"text": text}]}, **common} for text in texts]
        answer = self._client.batch_embed_contents(
            self._protos.BatchEmbedContentsRequest(model=name, requests=requests), timeout=self._timeout, retry=None
        )
        rows = self._protos.BatchEmbedContentsResponse.pb(answer).embeddings
        return [np.array(row.values, dtype=np.float32) for row in rows], None

    def close(self) -> None:
        self._client.transport.close()
