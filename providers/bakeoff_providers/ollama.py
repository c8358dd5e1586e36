"""Models served by Ollama, on this machine or another."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

from bakeoff_providers.answers import Envelope, Expected, httpx_options
from bakeoff_providers.base import ModelCard, Role
from bakeoff_providers.cards import FREE, find_card
from bakeoff_providers.connection import NO_KEY, Connection
from bakeoff_providers.errors import CallFailed, Unavailable, lack
from bakeoff_providers.hosted import Hosted, open_card
from bakeoff_providers.needs import Needs


def _card(name: str, dimensions: int | None, context: int, *, outputs: tuple[int, ...] = ()) -> ModelCard:
    card = ModelCard(name=name, dimensions=dimensions, output_dimensions=outputs, context=context, price=FREE)
    return find_card(name, (), card)


class OllamaServer(Connection):
    """Ollama's address and models, for embeddings and chat. Needs no key."""

    name = "ollama"
    modules: ClassVar[tuple[str, ...]] = ("ollama",)
    distributions: ClassVar[tuple[str, ...]] = ("ollama",)
    own_url = "http://127.0.0.1:11434"
    url_variable = "OLLAMA_HOST"
    optional_keys = ("OLLAMA_API_KEY",)

    @classmethod
    def needs(cls, **options: Any) -> Needs:
        """The library. Only a call shows whether the server runs."""
        return replace(super().needs(**options), running=True)

    @property
    def base_url(self) -> str:
        """OLLAMA_HOST may be abbreviated, and names the listening address: 0.0.0.0 is reached at 127.0.0.1."""
        url = super().base_url
        if "://" not in url:
            url = f"http://{url}"
        for here in ("localhost", "0.0.0.0"):
            url = url.replace(f"://{here}", "://127.0.0.1")
        scheme, _, rest = url.partition("://")
        host = rest.partition("/")[0].rpartition("@")[2]
        if scheme == "http" and ":" not in host.rpartition("]")[2]:
            url = url.replace(host, f"{host}:11434", 1)
        return url

    def ready(self) -> None:
        """Checks that the server is up and has the model."""
        super().ready()
        sdk = self._get_sdk()
        try:
            served = [str(model.model) for model in self._run_call(sdk.list, Expected()).models]
        except Exception as error:
            failed = self._failure(error)
            if isinstance(failed, CallFailed) and failed.status is None:
                raise Unavailable(lack("server_stopped", url=self.public_url, command="ollama serve")) from None
            raise Unavailable(str(failed)) from None
        name = self.model
        if not {name, f"{name}:latest"} & set(served):
            command = f"ollama pull {name}"
            raise Unavailable(lack("model_not_served", model=name, url=self.public_url, command=command))

    def _connect(self, key: str) -> Any:
        import ollama

        headers = {} if key == NO_KEY else {"Authorization": f"Bearer {key}"}
        options = httpx_options()
        options["headers"] |= headers
        return ollama.Client(host=self.base_url, timeout=self._timeout, trust_env=False, **options)

    def _disconnect(self, sdk: Any) -> None:
        close = getattr(sdk, "close", None)
        if close is not None:
            close()

    def _hints(self) -> dict[int, str]:
        return {**super()._hints(), 404: f"run ollama pull {self.model}"}


class _OllamaVectors(Envelope, frozen=True):
    embeddings: list[list[float]]


class Ollama(OllamaServer, Hosted):
    """Any embedding model served by Ollama; default: nomic-embed-text (English, 768 dimensions).

    The prompts that a model was trained with are added here, as the server adds none.
    """

    default_model = "nomic-embed-text"
    cuts = True
    cards = (
        _card("nomic-embed-text", 768, 2048),
        _card("mxbai-embed-large", 1024, 512),
        _card("all-minilm", 384, 256),
        _card("bge-m3", 1024, 8192),
        _card("bge-large", 1024, 512),
        _card("embeddinggemma", 768, 2048),
        _card("snowflake-arctic-embed2", 1024, 8192),
        _card("qwen3-embedding", None, 32_768),
    )
    open_card = open_card(price=FREE)
    shape = _OllamaVectors

    def _call(self, sdk: Any, inputs: list[str], role: Role) -> tuple[Any, Any]:  # noqa: ARG002 - by prompt
        wanted = {} if self._asked is None else {"dimensions": self._asked}
        answer = sdk.embed(model=self.card.name, input=inputs, truncate=self._truncate, **wanted)
        return answer.embeddings, answer.prompt_eval_count
