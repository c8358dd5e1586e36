# ruff: noqa: E501 - line-ups and commands in one line each
"""Secrets in addresses, DSNs, the environment and a server's echo: in no byte that is written or printed."""

from __future__ import annotations

import base64
import random
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from chaos.processes import KEY, bakeoff
from chaos.row import Figure, Plan, attempts
from chaos.target import native_files, write
from tests.wire import Fault, WireServer

PERCENT = re.compile(rb"%[0-9A-F]{2}")
PASSWORD = "hunter2-Zq/9+!pw"
TOKEN = "tok_5f0c1b7e9a"
HEAD = 'task = "task"\nrounds = 1\n[[contender]]\nranker = "bm25"\n[[contender]]\n'
TASK = 'format = "native"\narticles = "articles.json"\nqueries = "queries.json"\nground_truth = "truth.json"\n'
OWN = """class Emb:
    def __init__(self, **options): self.options = options
    def embed(self, texts):
        if any("q" in text for text in texts): raise ValueError(f"refused: {self.options}")
        return [[float(len(text)), 1.0] for text in texts]
"""
DEAD = "127.0.0.1:9"
LINEUP_COMMANDS = ("--verbose run {lineup} --no-charts --out {place}/results", "validate {lineup}")
EMBED = "embed {lineup} --out {place}/shards"
OPENAI = 'provider = "openai"\nstore = "faiss"\n'
RERANKED = 'provider = "fake"\nstore = "faiss"\nrerank = { provider = "NAME"OPTIONS }\n'


def _openai(address: str) -> str:
    return OPENAI + f'options = {{ base_url = "{address}" }}\n'


def _store(name: str, address: str = "") -> str:
    options = f', options = {{ url = "{address}" }}' if address else ""
    return f'provider = "fake"\nstore = {{ name = "{name}"{options} }}\n'


def _existing(name: str, address: str) -> str:
    return f'provider = "fake"\nstore = {{ name = "{name}", existing = "{address}" }}\n'


def _reranked(name: str, address: str = "") -> str:
    options = f', options = {{ base_url = "{address}" }}' if address else ""
    return RERANKED.replace("NAME", name).replace("OPTIONS", options)


def _own(options: str) -> str:
    return f'provider = "file:emb.py:Emb"\nstore = "faiss"\noptions = {{ {options} }}\n'


LINEUPS: dict[str, tuple[str, Mapping[str, str]]] = {
    "userinfo of base_url": (_openai("http://me:{quoted}@{host}/openai/v1"), {}),
    "query of base_url": (_openai("http://{host}/openai/v1?key={token}"), {}),
    "base_url with one slash": (_openai("http:/me:{quoted}@{host}/openai/v1"), {}),
    "the provider's echo of the key": (_openai("http://{host}/openai/v1"), {}),
    "base_url in the environment": (OPENAI, {"OPENAI_BASE_URL": "http://me:{quoted}@{host}/openai/v1"}),
    "DSN in a line-up": (_store("pgvector", f"postgresql://me:{{quoted}}@{DEAD}/x"), {}),
    "DSN in the environment": (_store("pgvector"), {"PGVECTOR_URL": f"postgresql://me:{{quoted}}@{DEAD}/x"}),
    "DSN without a scheme": (_store("pgvector"), {"PGVECTOR_URL": "me:{password}@db/x"}),
    "DSN with a password that is not quoted": (_store("pgvector"), {"PGVECTOR_URL": f"postgresql://me:{{password}}@{DEAD}/x"}),
    "password parameter of a DSN": (_store("pgvector"), {"PGVECTOR_URL": "host=127.0.0.1 port=9 user=me password={token}"}),
    "a DSN's parameter with blanks, misspelt": (_store("pgvector"), {"PGVECTOR_URL": "host=127.0.0.1 prt=9 password = {token}"}),
    "password of PostgreSQL's client": (_store("pgvector"), {"PGVECTOR_URL": f"postgresql://me@{DEAD}/x", "PGPASSWORD": "{password}"}),
    "URL of qdrant": (_store("qdrant", f"http://me:{{quoted}}@{DEAD}"), {}),
    "URL of qdrant in the environment": (_store("qdrant"), {"QDRANT_URL": f"http://me:{{quoted}}@{DEAD}", "QDRANT_API_KEY": "{token}"}),
    "URL of chroma": (_store("chroma", "http://{token}@{host}"), {}),
    "URL of chroma in the environment": (_store("chroma"), {"CHROMA_URL": "http://me:{password}@{host}", "CHROMA_API_KEY": "{token}"}),
    "URL of milvus": (_store("milvus", f"http://me:{{quoted}}@{DEAD}"), {}),
    "URL of milvus in the environment": (_store("milvus"), {"MILVUS_URL": f"http://me:{{quoted}}@{DEAD}", "MILVUS_TOKEN": "{token}"}),
    "URL of redis": (_store("redis", f"redis://me:{{quoted}}@{DEAD}/0"), {}),
    "URL of redis in the environment": (_store("redis"), {"REDIS_URL": f"redis://me:{{quoted}}@{DEAD}/0"}),
    "URL of redis without a scheme": (_store("redis"), {"REDIS_URL": f"me:{{password}}@{DEAD}"}),
    "URL of typesense": (_store("typesense", "http://{host}?x-typesense-api-key={token}"), {}),
    "URL of typesense in the environment": (_store("typesense"), {"TYPESENSE_URL": "http://me:{quoted}@{host}", "TYPESENSE_API_KEY": "{token}"}),
    "query of an index that exists": (_existing("qdrant", f"http://{DEAD}?api-key={{token}}"), {}),
    "password of an index that exists": (_existing("pgvector", "host=127.0.0.1 port=9 password = {token}"), {}),
    "header of a retriever": ('retriever = { url = "http://{host}/none", headers = { Authorization = "Bearer ${MY_TOKEN}" } }\n', {"MY_TOKEN": "{token}"}),
    "query of a retriever": ('retriever = { url = "http://{host}/search?api_key={token}" }\n', {}),
    "token before a retriever's host": ('retriever = "http://{token}@{host}/search"\n', {}),
    "header's key that ends with a line break": ('retriever = { url = "http://{host}/none", headers = { X-Api-Key = "${ACME}" } }\n', {"ACME": "{token}\n"}),
    "header's key of two lines": ('retriever = { url = "http://{host}/none", headers = { X-Api-Key = "${ACME}" } }\n', {"ACME": "{token}\r\n{password}"}),
    "key of two lines": (_openai("http://{host}/openai/v1"), {"OPENAI_API_KEY": "{token}\r\n{password}"}),
    "key with a tab and quotes": (_openai("http://{host}/openai/v1"), {"OPENAI_API_KEY": "{token}\t'\"{password}"}),
    "key of gemini of two lines": ('provider = "gemini"\nstore = "faiss"\n', {"GEMINI_API_KEY": "{token}\r\n{password}"}),
    "key of a reranker of two lines": (_reranked("cohere", "http://{host}"), {"CO_API_KEY": "{token}\n{password}"}),
    "token of chroma of two lines": (_store("chroma"), {"CHROMA_URL": "http://{host}", "CHROMA_API_KEY": "{token}\n{password}"}),
    "key of typesense of two lines": (_store("typesense"), {"TYPESENSE_URL": "http://{host}", "TYPESENSE_API_KEY": "{token}\n{password}"}),
    "key as an option of an own provider": (_own('api_key = "{token}"'), {}),
    "password as an option of an own provider": (_own('login = { user = "me", password = "{password}" }'), {}),
    "variable as an option of an own provider": (_own('api_key = "${ACME}"'), {"ACME": "{token}"}),
    "key as a header of a retriever": ('retriever = { url = "http://{host}/none", headers = { Ocp-Apim-Subscription-Key = "{token}" } }\n', {}),
    "key before a variable in a header": ('retriever = { url = "http://{host}/none", headers = { Authorization = "Bearer {token} ${HOME}" } }\n', {}),
    "key in the body of a retriever": ('retriever = { url = "http://{host}/none", body = { q = "{text}", api_key = "{token}" } }\n', {}),
    "variable in the body of a retriever": ('retriever = { url = "http://{host}/none", body = { q = "{text}", api_key = "${ACME}" } }\n', {"ACME": "{token}"}),
    "address of ollama": ('provider = "ollama"\nstore = "faiss"\n', {"OLLAMA_HOST": f"http://me:{{quoted}}@{DEAD}"}),
    "address of ollama without a scheme": ('provider = "ollama"\nstore = "faiss"\n', {"OLLAMA_HOST": f"me:{{password}}@{DEAD}"}),
    "a reranker's echo of the key": (_reranked("cohere", "http://{host}"), {}),
    "userinfo of a reranker's base_url": (_reranked("voyage", "http://me:{quoted}@{host}/voyage/v1"), {}),
    "a reranker's address in the environment": (_reranked("cohere"), {"CO_API_URL": "http://me:{quoted}@{host}"}),
}  # fmt: skip
CANARY = "canary record openai --calls 2 --out {place}/openai.canary"
GRADE = "grade pairs {place}/task --judge llm --model NAME:some"
QUERIES = "queries generate {place}/task/articles.json --maker llm --n 1 --model openai:some --out {place}/new"
LOAD = "loadtest --provider openai --requests 1 --batch 1 --clients 1 --words 8 --out {place}/results"
SETTINGS = {
    "userinfo": "--set base_url=http://me:{quoted}@{host}/openai/v1",
    "query": "--set base_url=http://{host}/openai/v1?key={token}",
    "echo": "--set base_url=http://{host}/openai/v1",
}
COMMANDS: dict[str, tuple[str, Mapping[str, str]]] = {
    f"{what}: {way}": (f"{line} {given}", {})
    for what, line in (
        ("canary", CANARY),
        ("grade", GRADE.replace("NAME", "openai")),
        ("queries", QUERIES),
        ("load test", LOAD),
    )
    for way, given in SETTINGS.items()
}
COMMANDS |= {
    "canary: address in the environment": (CANARY, {"OPENAI_BASE_URL": "http://me:{quoted}@{host}/openai/v1"}),
    "grade: ollama's address in the environment": (GRADE.replace("NAME", "ollama"), {"OLLAMA_HOST": f"http://me:{{quoted}}@{DEAD}"}),
    "grade: gemini's echo": (f"{GRADE.replace('NAME', 'gemini')} --set base_url=http://{{host}}", {}),
    "probe: userinfo": (f"probe qdrant http://me:{{quoted}}@{DEAD}", {}),
    "probe: query": (f"probe qdrant http://{DEAD}?api-key={{token}}", {}),
    "probe: key in the environment": (f"probe qdrant http://{DEAD}", {"QDRANT_API_KEY": "{token}"}),
    "probe: chroma's token": ("probe chroma http://{host}", {"CHROMA_API_KEY": "{token}"}),
    "probe: DSN without a scheme": ("probe pgvector env", {"PGVECTOR_URL": "me:{password}@db/x"}),
    "probe: DSN without a scheme on the command line": ("probe pgvector me:{quoted}@db/x", {}),
}  # fmt: skip


@dataclass(frozen=True)
class Leak:
    """Where a secret was seen, if anywhere."""

    way: str
    places: tuple[str, ...]


@dataclass(frozen=True)
class Case:
    """One command, and what its environment and its line-up hold."""

    way: str
    command: str
    variables: Mapping[str, str]
    contender: str = ""


def _cases() -> list[Case]:
    """Each line-up with `run` and `validate`, those that embed elsewhere also with `embed`; then single commands."""
    cases = []
    for way, (contender, variables) in LINEUPS.items():
        embeds = contender.startswith((OPENAI, 'provider = "ollama"'))
        for command in (*LINEUP_COMMANDS, *([EMBED] if embeds else [])):
            cases.append(Case(f"{way} ({command.partition(' {')[0]})", command, variables, contender))
    return [*cases, *(Case(way, command, variables) for way, (command, variables) in COMMANDS.items())]


def secrets(folder: Path, plan: Plan, count: int) -> list[Figure]:
    """Every byte that these commands print or write is searched."""
    cases = _cases()[:count]

    def attempt(number: int, rng: random.Random) -> Leak:
        case, place = cases[number], folder / str(number)
        write(place / "task", {**native_files(), "task.toml": TASK})
        lineup = place / "lineup.toml"
        with WireServer() as wire:
            words = {
                "{quoted}": quote(PASSWORD, safe=""),
                "{password}": PASSWORD,
                "{token}": TOKEN,
                "{host}": wire.url.removeprefix("http://"),
                "{lineup}": str(lineup),
                "{place}": str(place),
            }
            told = [KEY, base64.b64encode(f"Bearer {KEY}".encode()).decode(), quote(KEY)]
            echo = f"no access for {rng.choice(told)} with {base64.b64encode(KEY.encode()).decode()}"
            wire.faults += [Fault(status=rng.choice([400, 401, 403]), message=echo)] * 100
            if case.contender:
                (place / "emb.py").write_text(OWN)
                lineup.write_text(HEAD + _filled(case.contender, words))
            process = bakeoff(
                place,
                *(_filled(word, words) for word in case.command.split()),
                variables={name: _filled(value, words) for name, value in case.variables.items()},
            )
            printed = process.communicate(timeout=300)
        lineup.unlink(missing_ok=True)
        seen = {"stdout": printed[0].encode(), "stderr": printed[1].encode()}
        seen |= {str(path.relative_to(place)): path.read_bytes() for path in place.rglob("*") if path.is_file()}
        return Leak(case.way, tuple(name for name, content in seen.items() if _has_secret(content)))

    leaks, missing = attempts(plan, "secrets", len(cases), attempt)
    found = [leak for leak in leaks if leak.places]
    detail = "\n".join(f"{leak.way}: {', '.join(leak.places)}" for leak in found)
    ways = len(LINEUPS) + len(COMMANDS)
    return [
        Figure(f"secrets in bytes written or printed, {ways} ways, {len(leaks)} runs", len(found), 0, detail),
        missing,
    ]


def _filled(text: str, words: Mapping[str, str]) -> str:
    for word, value in words.items():
        text = text.replace(word, value)
    return text


def _has_secret(content: bytes) -> bool:
    """As it is, quoted for a URL in any way, or in base64 at any offset."""
    for secret in (PASSWORD, TOKEN, KEY):
        data = secret.encode()
        spellings = [data, quote(secret, safe="").encode(), quote(secret).encode()]
        spellings += [PERCENT.sub(lambda found: found[0].lower(), spelling) for spelling in spellings[1:]]
        for offset in range(3):
            encoded = base64.b64encode(b"\0" * offset + data)
            spellings.append(encoded[-(-offset * 8 // 6) : (offset + len(data)) * 8 // 6])
        if any(spelling in content for spelling in spellings):
            return True
    return False
