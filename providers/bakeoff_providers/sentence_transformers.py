"""Any sentence-transformers model, from a local folder or the Hugging Face hub, run on this machine."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from threading import Lock
from typing import Annotated, Any, ClassVar

import numpy as np

from bakeoff_providers.base import TEXT, EmbeddingBatch, ModelCard, Provider, Role, check_batch
from bakeoff_providers.cards import FREE, check_prompt, find_card, find_prompt, override_card
from bakeoff_providers.errors import EmbeddingFailed, InputError, Unavailable
from bakeoff_providers.options import Transport
from bakeoff_providers.registry import missing_modules
from bakeoff_providers.secrets import scrub
from bakeoff_providers.shared_options import (
    MANY,
    BatchItems,
    Dimensions,
    DocumentPrompt,
    Model,
    Price,
    QueryPrompt,
)


class SentenceTransformers(Provider):
    """Any sentence-transformers model, from a folder or the hub, on this machine.

    The model's own prompts come first, then those of its family; the line-up's replace both.
    """

    name: ClassVar[str] = "sentence_transformers"
    default_model: ClassVar[str] = "sentence-transformers/all-MiniLM-L6-v2"
    local: ClassVar[bool] = True
    own_tokens: ClassVar[bool] = True
    extra: ClassVar[str | None] = "sentence-transformers"
    modules: ClassVar[tuple[str, ...]] = ("sentence_transformers",)

    def __init__(
        self,
        *,
        model: Model = None,
        revision: Annotated[str | None, "branch, tag or commit on the hub"] = None,
        device: Annotated[str | None, "device, such as cpu or cuda; default: the library's choice", Transport] = None,
        dimensions: Dimensions = None,
        context: Annotated[int | None, "maximum tokens per text; longer texts are truncated", MANY] = None,
        document_prompt: DocumentPrompt = None,
        query_prompt: QueryPrompt = None,
        trust_remote_code: Annotated[bool, "run code that comes with the model", Transport] = False,
        batch_items: BatchItems = None,
        price: Price = None,
    ) -> None:
        known = find_card(model or self.default_model, (), ModelCard(name="", batch_items=64, price=FREE))
        self.card = override_card(
            known,
            dimensions=dimensions,
            context=context,
            document_prompt=document_prompt if isinstance(document_prompt, str) else None,
            query_prompt=query_prompt if isinstance(query_prompt, str) else None,
            batch_items=batch_items,
            price=price,
        )
        self._given = {Role.DOCUMENT: document_prompt, Role.QUERY: query_prompt}
        self._check_prompts()
        self._revision, self._device, self._trusted = revision, device, trust_remote_code
        self._lock = Lock()
        self._model: Any = None

    def identity(self, role: Role) -> dict[str, str | int | float | bool | None]:
        """A folder is identified by its content, a hub name by its revision, if given."""
        given = self._given[role]
        identity = {**super().identity(role), "own_prompt": given is None}
        if isinstance(given, Mapping):
            identity |= {"prompt": "", "prompt_name": given["name"]}
        if self._revision is not None:
            identity["revision"] = self._revision
        if self.card.context is not None:
            identity["context"] = self.card.context
        if (folder := Path(self.card.name)).is_dir():
            identity["files"] = _fingerprint(folder)
        return identity

    def ready(self) -> None:
        """Loads the model, so that a wrong name or a missing network fails early."""
        self._get_model()

    def embed(self, texts: Sequence[str], role: Role) -> EmbeddingBatch:
        """Not normalised here; the harness does that."""
        model = self._get_model()
        prompt = self._prompt(model, role)
        before, after = self._around(model, role)
        encode = model.encode_query if role is Role.QUERY else model.encode_document
        named = {} if prompt is None else {"prompt": before}
        try:
            with self._lock:
                vectors = encode(
                    [text + after for text in texts],
                    batch_size=self.card.batch_items,
                    convert_to_numpy=True,
                    show_progress_bar=False,
                    **named,
                )
        except Exception as error:
            said = scrub(str(error))
            raise EmbeddingFailed(f"{self.card.name}: {type(error).__name__}: {said}") from error
        inputs = [before + text + after for text in texts]
        matrix = np.asarray(vectors, dtype=np.float32).reshape(len(texts), -1)
        return check_batch(EmbeddingBatch(matrix, truncated=_too_long(model, inputs)), texts, self.card)

    def count_tokens(self, text: str) -> int:
        """The model's own count, with the prompt and the special tokens."""
        model = self._get_model()
        before, after = self._around(model, Role.DOCUMENT)
        ids = model.tokenizer(before + text + after, truncation=False, padding=False, verbose=False)["input_ids"]
        return len(ids)

    def context_tokens(self) -> int | None:
        """The line-up's value or, once loaded, the model's."""
        limit = getattr(self._model, "max_seq_length", None)
        return self.card.context or (limit if isinstance(limit, int) else None)

    def close(self) -> None:
        """Frees the weights."""
        self._model = None

    def _prompt(self, model: Any, role: Role) -> str | None:
        """None leaves the prompt to the model."""
        given, own = self._given[role], getattr(model, "prompts", None) or {}
        if isinstance(given, Mapping):
            return find_prompt(given["name"], own, self.card.name, f"{role}_prompt")
        if given is not None:
            return given
        return None if any(own.values()) else self.card.prompt(role) or None

    def _around(self, model: Any, role: Role) -> tuple[str, str]:
        prompt = self._prompt(model, role)
        before, _, after = (_own_prompt(model, role), "", "") if prompt is None else prompt.partition(TEXT)
        return before, after

    def _check_prompts(self) -> None:
        """Checks named prompts if the model's files are here; otherwise when it is loaded."""
        for role, prompt in self._given.items():
            if prompt is not None:
                check_prompt(prompt, f"{role}_prompt")
            if isinstance(prompt, Mapping) and (own := _read_prompts(Path(self.card.name))) is not None:
                find_prompt(prompt["name"], own, self.card.name, f"{role}_prompt")

    def _get_model(self) -> Any:
        with self._lock:
            if self._model is None:
                self._model = self._load()
            return self._model

    def _load(self) -> Any:
        if reason := missing_modules(self.modules, self.extra):
            raise Unavailable(reason, of=self.name)
        library: Any = import_module("sentence_transformers")
        try:
            model = library.SentenceTransformer(
                self.card.name,
                revision=self._revision,
                device=self._device,
                truncate_dim=self.card.dimensions,
                trust_remote_code=self._trusted,
            )
        except Exception as error:  # the hub, the disk and the model's own code raise all kinds of errors
            secrets = [os.environ.get(name, "") for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN")]
            said = scrub(f"{error}".partition("\n")[0], secrets)
            raise Unavailable(f"{self.card.name} can't be loaded (a folder, or a name on the hub?): {said}") from None
        if self.card.context is not None:
            model.max_seq_length = self.card.context
        return model


def _own_prompt(model: Any, role: Role) -> str:
    """The library's prompt for this role, which it looks up under these names."""
    own = getattr(model, "prompts", None) or {}
    names = ("query",) if role is Role.QUERY else ("document", "passage", "corpus")
    return next((str(own[name]) for name in names if own.get(name)), "")


def _read_prompts(folder: Path) -> dict[str, str] | None:
    """A folder's named prompts; None if it is not a folder."""
    if not folder.is_dir():
        return None
    file = folder / "config_sentence_transformers.json"
    try:
        return dict(json.loads(file.read_bytes()).get("prompts") or {})
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, AttributeError, TypeError):
        raise InputError("can't be read", file=file) from None


def _too_long(model: Any, texts: Sequence[str]) -> int:
    """How many texts were truncated. A text has no more tokens than bytes, so most need no count."""
    limit, tokenizer = getattr(model, "max_seq_length", None), getattr(model, "tokenizer", None)
    if not isinstance(limit, int) or not callable(tokenizer):
        return 0
    long = [text for text in texts if len(text.encode()) > limit - 2]
    if not long:
        return 0
    encoded = tokenizer(long, truncation=False, padding=False, verbose=False)["input_ids"]
    return sum(len(ids) > limit for ids in encoded)


def _fingerprint(folder: Path) -> str:
    """Names, sizes and times: cheap. A touched folder is merely embedded again."""
    digest = hashlib.sha256()
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        stat = file.stat()
        digest.update(f"{file.relative_to(folder)}\0{stat.st_size}\0{stat.st_mtime_ns}\n".encode())
    return digest.hexdigest()[:32]
