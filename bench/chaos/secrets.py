# ruff: noqa: E501 - line-ups in one line each
"""Secrets in addresses, DSNs, the environment and a server's echo: in no byte that is written or printed."""

from __future__ import annotations

import base64
import random
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from chaos.processes import KEY, bakeoff
from chaos.row import Figure, Plan, attempts
from tests.wire import Fault, WireServer

PASSWORD = "hunter2-Zq/9+!pw"
TOKEN = "tok_5f0c1b7e9a"
HEAD = 'task = "wikipedia"\nrounds = 1\n[[contender]]\nranker = "bm25"\n[[contender]]\n'
DEAD = "127.0.0.1:9"
WAYS: dict[str, tuple[str, dict[str, str]]] = {
    "userinfo of base_url": ('provider = "openai"\nstore = "faiss"\noptions = { base_url = "http://me:{quoted}@{host}/openai/v1" }\n', {}),
    "query of base_url": ('provider = "openai"\nstore = "faiss"\noptions = { base_url = "http://{host}/openai/v1?key={token}" }\n', {}),
    "the provider's echo of the key": ('provider = "openai"\nstore = "faiss"\noptions = { base_url = "http://{host}/openai/v1" }\n', {}),
    "DSN in a line-up": ('provider = "fake"\nstore = { name = "pgvector", options = { url = "postgresql://me:{quoted}@' + DEAD + '/x" } }\n', {}),
    "DSN in the environment": ('provider = "fake"\nstore = "pgvector"\n', {"PGVECTOR_URL": "postgresql://me:{quoted}@" + DEAD + "/x"}),
    "password parameter of a DSN": ('provider = "fake"\nstore = "pgvector"\n', {"PGVECTOR_URL": "host=127.0.0.1 port=9 user=me password={token}"}),
    "URL of qdrant": ('provider = "fake"\nstore = { name = "qdrant", options = { url = "http://me:{quoted}@' + DEAD + '" } }\n', {}),
    "URL of qdrant in the environment": ('provider = "fake"\nstore = "qdrant"\n', {"QDRANT_URL": "http://me:{quoted}@" + DEAD, "QDRANT_API_KEY": "{token}"}),
    "header of a retriever": ('retriever = { url = "http://{host}/none", headers = { Authorization = "Bearer ${{MY_TOKEN}}" } }\n', {"MY_TOKEN": "{token}"}),
    "address of ollama": ('provider = "ollama"\nstore = "faiss"\n', {"OLLAMA_HOST": "http://me:{quoted}@" + DEAD}),
}  # fmt: skip


@dataclass(frozen=True)
class Leak:
    """Where a secret was seen, if anywhere."""

    way: str
    places: tuple[str, ...]


def secrets(folder: Path, plan: Plan, count: int) -> list[Figure]:
    """Each way with `run` and `validate`; every byte that they print or write is searched."""
    cases = [(way, command) for way in WAYS for command in ("--verbose run", "validate")][:count]

    def attempt(number: int, rng: random.Random) -> Leak:
        way, command = cases[number]
        place = folder / str(number)
        place.mkdir(parents=True)
        text, variables = WAYS[way]
        with WireServer() as wire:
            words = {
                "{quoted}": quote(PASSWORD, safe=""),
                "{token}": TOKEN,
                "{host}": wire.url.removeprefix("http://"),
                "{{": "{",
                "}}": "}",
            }
            told = [KEY, base64.b64encode(f"Bearer {KEY}".encode()).decode(), quote(KEY)]
            echo = f"no access for {rng.choice(told)} with {base64.b64encode(KEY.encode()).decode()}"
            wire.faults += [Fault(status=rng.choice([400, 401, 403]), message=echo)] * 20
            lineup = place / "lineup.toml"
            lineup.write_text(HEAD + _filled(text, words))
            tail = ["--no-charts", "--out", str(place / "results")] if command != "validate" else []
            process = bakeoff(
                place, *command.split(), str(lineup), *tail,
                variables={name: _filled(value, words) for name, value in variables.items()},
            )  # fmt: skip
            printed = process.communicate(timeout=300)
        lineup.unlink()
        seen = {"stdout": printed[0].encode(), "stderr": printed[1].encode()}
        seen |= {str(path.relative_to(place)): path.read_bytes() for path in place.rglob("*") if path.is_file()}
        return Leak(f"{way} ({command})", tuple(name for name, content in seen.items() if _has_secret(content)))

    leaks, missing = attempts(plan, "secrets", len(cases), attempt)
    found = [leak for leak in leaks if leak.places]
    detail = "\n".join(f"{leak.way}: {', '.join(leak.places)}" for leak in found)
    return [
        Figure(f"secrets in bytes written or printed, {len(WAYS)} ways, {len(leaks)} runs", len(found), 0, detail),
        missing,
    ]


def _filled(text: str, words: dict[str, str]) -> str:
    for word, value in words.items():
        text = text.replace(word, value)
    return text


def _has_secret(content: bytes) -> bool:
    """As it is, quoted for a URL, or in base64 at any offset."""
    for secret in (PASSWORD, TOKEN, KEY):
        data = secret.encode()
        spellings = [data, quote(secret, safe="").encode(), quote(secret).encode()]
        for offset in range(3):
            encoded = base64.b64encode(b"\0" * offset + data)
            spellings.append(encoded[-(-offset * 8 // 6) : (offset + len(data)) * 8 // 6])
        if any(spelling in content for spelling in spellings):
            return True
    return False
