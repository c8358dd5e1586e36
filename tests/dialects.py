"""How each provider's protocol reads and writes, with the limits that its documentation gives."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[np.float32]]
VOYAGE_TOKENS = {"large": 120_000, "lite": 1_000_000}


@dataclass(frozen=True)
class Asked:
    """What every protocol asks for, in other words."""

    model: str
    texts: list[str]
    task: str | None = None
    dimensions: int | None = None
    plain: bool = True

    @property
    def tokens(self) -> int:
        """A count that needs no tokenizer: a token for every four characters begun."""
        return sum(-(-len(text) // 4) for text in self.texts)


class Refused(Exception):
    """An answer with another status than 200."""

    def __init__(self, status: int, message: str, code: str | None = None) -> None:
        self.status, self.message, self.code = status, message, code
        super().__init__(message)


@dataclass(frozen=True)
class Dialect:
    """One provider on the wire."""

    path: str
    read: Callable[[str, Any], Asked]
    write: Callable[[Asked, Array], Any]
    error: Callable[[Refused], Any]
    limit: Callable[[Asked], None]
    auth: str | None = "authorization"
    chat: Callable[[Asked, str], Any] | None = None  # how an answer in words is written, where words are asked for


def find_dialect(method: str, path: str) -> str | None:
    """Whose request for vectors or for an answer this is; None for any other request."""
    if method != "POST":
        return None
    return next((name for name, dialect in DIALECTS.items() if re.fullmatch(dialect.path, path)), None)


def _limit(items: int, tokens: int | None = None) -> Callable[[Asked], None]:
    def check(asked: Asked) -> None:
        if not asked.texts:
            raise Refused(400, "no input")
        if len(asked.texts) > items:
            raise Refused(400, f"{len(asked.texts)} inputs, at most {items} are allowed")
        if tokens is not None and asked.tokens > tokens:
            raise Refused(400, f"{asked.tokens} tokens in a request, at most {tokens} are allowed")

    return check


def _limit_openai(asked: Asked) -> None:
    _limit(2048, 300_000)(asked)
    if any(not text for text in asked.texts):
        raise Refused(400, "'$.input' is invalid: an input is empty")
    if any(len(text) > 4 * 8192 for text in asked.texts):
        raise Refused(400, "this model's maximum context length is 8192 tokens")


def _limit_voyage(asked: Asked) -> None:
    _limit(1000, VOYAGE_TOKENS.get(asked.model.rpartition("-")[2], 320_000))(asked)
    if asked.dimensions not in (None, 256, 512, 1024, 2048):
        raise Refused(400, f"output_dimension {asked.dimensions} is not supported")


def _rows(asked: Asked, vectors: Array) -> list[dict[str, Any]]:
    return [
        {
            "object": "embedding",
            "index": index,
            "embedding": row.tolist() if asked.plain else base64.b64encode(row.tobytes()).decode(),
        }
        for index, row in enumerate(vectors)
    ]


def _read_openai(path: str, body: Any) -> Asked:
    texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
    return Asked(body["model"], texts, None, body.get("dimensions"), body.get("encoding_format") != "base64")


def _write_openai(asked: Asked, vectors: Array) -> Any:
    usage = {"prompt_tokens": asked.tokens, "total_tokens": asked.tokens}
    # Backwards: the protocol orders rows by their index, not by their place.
    return {"object": "list", "model": asked.model, "data": _rows(asked, vectors)[::-1], "usage": usage}


def _read_voyage(path: str, body: Any) -> Asked:
    plain = body.get("encoding_format") != "base64"
    return Asked(body["model"], body["input"], body.get("input_type"), body.get("output_dimension"), plain)


def _write_voyage(asked: Asked, vectors: Array) -> Any:
    return {
        "object": "list",
        "model": asked.model,
        "data": _rows(asked, vectors),
        "usage": {"total_tokens": asked.tokens},
    }


def _read_gemini(path: str, body: Any) -> Asked:
    requests = body.get("requests", [body])
    texts = ["".join(part["text"] for part in request["content"]["parts"]) for request in requests]
    first = requests[0] if requests else {}
    numbers: dict[Any, str | None] = {0: None, 1: "RETRIEVAL_QUERY", 2: "RETRIEVAL_DOCUMENT"}
    task = first.get("taskType")
    model = path.rpartition("/")[2].partition(":")[0]
    return Asked(model, texts, numbers.get(task, task), first.get("outputDimensionality"))


def _write_gemini(asked: Asked, vectors: Array) -> Any:
    return {
        "embeddings": [{"values": row.tolist()} for row in vectors],
        "usageMetadata": {"promptTokenCount": asked.tokens, "totalTokenCount": asked.tokens},
    }


def _error_gemini(refused: Refused) -> Any:
    status = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND"}
    status |= {429: "RESOURCE_EXHAUSTED", 500: "INTERNAL", 503: "UNAVAILABLE"}
    details: list[Any] = []
    if refused.code and re.fullmatch(r"\d+s", refused.code):
        details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": refused.code}]
    name = status.get(refused.status, "UNKNOWN")
    return {"error": {"code": refused.status, "message": refused.message, "status": name, "details": details}}


def _read_cohere(path: str, body: Any) -> Asked:
    return Asked(body["model"], body["texts"], body.get("input_type"), body.get("output_dimension"))


def _limit_cohere(asked: Asked) -> None:
    _limit(96)(asked)
    if asked.task is None:
        raise Refused(400, "input_type is required")


def _write_cohere(asked: Asked, vectors: Array) -> Any:
    return {
        "id": "00000000",
        "response_type": "embeddings_by_type",
        "embeddings": {"float": vectors.tolist()},
        "texts": asked.texts,
        "meta": {"api_version": {"version": "2"}, "billed_units": {"input_tokens": asked.tokens}},
    }


def _read_rerank(path: str, body: Any) -> Asked:
    return Asked(body["model"], body["documents"], body["query"])


def _relevance(vectors: Array) -> list[dict[str, Any]]:
    """Best first, each with its index: from the first number of a text's vector, which depends on the query too."""
    scores = [{"index": index, "relevance_score": float(row[0] + 1) / 2} for index, row in enumerate(vectors)]
    return sorted(scores, key=lambda result: -result["relevance_score"])


def _write_cohere_rerank(asked: Asked, vectors: Array) -> Any:
    meta = {"api_version": {"version": "2"}, "billed_units": {"search_units": 1}}
    return {"id": "00000000", "results": _relevance(vectors), "meta": meta}


def _write_voyage_rerank(asked: Asked, vectors: Array) -> Any:
    usage = {"total_tokens": asked.tokens}
    return {"object": "list", "data": _relevance(vectors), "model": asked.model, "usage": usage}


def _read_ollama(path: str, body: Any) -> Asked:
    texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
    return Asked(body["model"], texts, None, body.get("dimensions"))


def _write_ollama(asked: Asked, vectors: Array) -> Any:
    return {
        "model": asked.model,
        "embeddings": vectors.tolist(),
        "total_duration": 1000,
        "load_duration": 100,
        "prompt_eval_count": asked.tokens,
    }


def _no_vectors(asked: Asked, vectors: Array) -> Any:
    raise AssertionError("a chat has no vectors")


def _read_messages(path: str, body: Any) -> Asked:
    return Asked(body["model"], [message["content"] for message in body["messages"]])


def _read_gemini_chat(path: str, body: Any) -> Asked:
    texts = ["".join(part["text"] for part in content["parts"]) for content in body["contents"]]
    return Asked(path.rpartition("/")[2].partition(":")[0], texts)


def _tokens(text: str) -> int:
    return -(-len(text) // 4)


def _chat_openai(asked: Asked, answer: str) -> Any:
    message = {"role": "assistant", "content": answer}
    used = {"prompt_tokens": asked.tokens, "completion_tokens": _tokens(answer)}
    return {
        "id": "chat-0",
        "object": "chat.completion",
        "created": 0,
        "model": asked.model,
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {**used, "total_tokens": sum(used.values())},
    }


def _chat_gemini(asked: Asked, answer: str) -> Any:
    content = {"role": "model", "parts": [{"text": answer}]}
    used = {"promptTokenCount": asked.tokens, "candidatesTokenCount": _tokens(answer)}
    return {
        "candidates": [{"content": content, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {**used, "totalTokenCount": sum(used.values())},
        "modelVersion": asked.model,
    }


def _chat_ollama(asked: Asked, answer: str) -> Any:
    return {
        "model": asked.model,
        "created_at": "2026-01-01T00:00:00Z",
        "message": {"role": "assistant", "content": answer},
        "done": True,
        "done_reason": "stop",
        "prompt_eval_count": asked.tokens,
        "eval_count": _tokens(answer),
    }


DIALECTS = {
    "openai": Dialect(
        r"/openai/v1/embeddings",
        _read_openai,
        _write_openai,
        lambda it: {"error": {"message": it.message, "type": "error", "param": None, "code": it.code}},
        _limit_openai,
    ),
    "voyage": Dialect(
        r"/voyage/v1/embeddings",
        _read_voyage,
        _write_voyage,
        lambda refused: {"detail": refused.message},
        _limit_voyage,
    ),
    "gemini": Dialect(
        r"/v1(beta)?/models/[^/]+:(batchEmbedContents|embedContent)",
        _read_gemini,
        _write_gemini,
        _error_gemini,
        _limit(100),
        auth="x-goog-api-key",
    ),
    "cohere": Dialect(
        r"/v2/embed", _read_cohere, _write_cohere, lambda refused: {"message": refused.message}, _limit_cohere
    ),
    "cohere rerank": Dialect(
        r"/v2/rerank",
        _read_rerank,
        _write_cohere_rerank,
        lambda refused: {"message": refused.message},
        _limit(1000),
    ),
    "voyage rerank": Dialect(
        r"/voyage/v1/rerank",
        _read_rerank,
        _write_voyage_rerank,
        lambda refused: {"detail": refused.message},
        _limit(1000),
    ),
    "ollama": Dialect(
        r"/api/embed",
        _read_ollama,
        _write_ollama,
        lambda refused: {"error": refused.message},
        lambda asked: None,
        auth=None,
    ),
}
DIALECTS |= {
    "openai chat": replace(
        DIALECTS["openai"],
        path=r"/openai/v1/chat/completions",
        read=_read_messages,
        write=_no_vectors,
        limit=lambda asked: None,
        chat=_chat_openai,
    ),
    "gemini chat": replace(
        DIALECTS["gemini"],
        path=r"/v1(beta)?/models/[^/]+:generateContent",
        read=_read_gemini_chat,
        write=_no_vectors,
        limit=lambda asked: None,
        chat=_chat_gemini,
    ),
    "ollama chat": replace(
        DIALECTS["ollama"], path=r"/api/chat", read=_read_messages, write=_no_vectors, chat=_chat_ollama
    ),
}
