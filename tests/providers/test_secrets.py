"""One scrubber: whatever is printed or written passes it."""

from __future__ import annotations

import base64
import json
import re
from urllib.parse import quote, quote_plus

import pytest
from bakeoff.search.rankers import RANKERS
from bakeoff.search.rerankers import RERANKERS
from bakeoff.search.retrievers import RETRIEVERS
from bakeoff.search.stores import STORES
from bakeoff.tasks.formats import FORMATS
from bakeoff.tasks.kinds import TASK_KINDS
from bakeoff_providers import PROVIDERS
from bakeoff_providers.errors import Unavailable
from bakeoff_providers.keys import fill_in, find_secret, is_secret_name, missing_key
from bakeoff_providers.secrets import redact_url, secret_in_url, without_known, without_secrets
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.errors import refuses, says

SECRET = "hunter2-hunter2+/x"


@pytest.mark.parametrize(
    "text",
    [
        f"no route to postgresql://me:{SECRET}@db.example/x",
        f"GET https://api.example/v1/embed?api_key={SECRET}&model=m failed",
        f"connection to host=db user=me password={SECRET} failed",
        f"password: '{SECRET}'",
        f"Authorization: Bearer {SECRET}",
        f"Authorization: Basic {base64.b64encode(SECRET.encode()).decode()}",
        f'{{"api_key": "{SECRET}"}}',
    ],
)
def test_what_looks_like_a_secret_is_struck_out(text: str) -> None:
    scrubbed = without_secrets(text)
    assert "hunter2" not in scrubbed
    assert base64.b64encode(SECRET.encode()).decode() not in scrubbed


@pytest.mark.parametrize(
    "text", ["unknown key: dimension; write it as key=value", "the token limit is 8192", "see https://x.example/a#b"]
)
def test_plain_words_stay(text: str) -> None:
    assert without_secrets(text) == text


NAMES = st.sampled_from(["password", "passwd", "pwd", "api_key", "api-key", "client_secret", "Access-Token"])
OPENINGS = st.sampled_from(["no such", "is of no", "can't be", "has a", "must be", "does not", "line 3", "needs a"])


@given(NAMES, OPENINGS, st.lists(st.from_regex(r"[a-z]{2,8}", fullmatch=True), min_size=1, max_size=5))
def test_what_is_wrong_with_a_file_of_a_secrets_name_stays(name: str, opening: str, words: list[str]) -> None:
    text = f"error: {name}: {opening} {' '.join(words)}"
    assert without_secrets(text) == text


VALUE = st.text(st.characters(min_codepoint=33, max_codepoint=126, exclude_characters="\"'&,;})*"), min_size=6)


@given(NAMES, st.sampled_from([":", ": ", " : ", "=", " = ", '": ', ":\t"]), VALUE, st.sampled_from(
    ["", " for user me", ", refused", " is wrong", " no such host", "\nhost: db"]))  # fmt: skip
def test_a_value_after_a_secrets_name_is_struck_out_whatever_follows(
    name: str, sign: str, value: str, after: str
) -> None:
    assume(value not in f"{name}{sign}{after}")
    assert value not in without_secrets(f"{name}{sign}{value}{after}")


@pytest.mark.parametrize("text", ["password=no such", "password=is ok", '"password": no such', "password: No such"])
def test_words_that_are_no_sentence_of_an_error_are_struck_out(text: str) -> None:
    assert "***" in without_secrets(text)


@pytest.mark.parametrize("name", ["MY_API_KEY", "HF_TOKEN", "DB_PASSWORD", "SENTRY_DSN"])
def test_values_of_the_environment_are_struck_out(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, SECRET)
    assert SECRET not in without_known(f"it said {SECRET}")
    assert quote(SECRET, safe="") not in without_known(quote(SECRET, safe=""))


def test_a_password_in_an_address_of_the_environment_is_one_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGVECTOR_URL", "postgresql://me:swordfish99@db.example/x")
    assert "swordfish99" not in without_known("role me, password swordfish99, refused")


@given(st.binary(max_size=7), st.binary(max_size=7))
def test_base64_of_a_key_is_found_wherever_it_begins(before: bytes, after: bytes) -> None:
    key = "test-key-0123456789abcdef"
    encoded = base64.b64encode(before + key.encode() + after).decode()
    inner = base64.b64encode(key.encode()).decode()[4:-4]
    scrubbed = without_known(f"echo {encoded}", [key])
    assert "***" in scrubbed
    assert inner not in scrubbed


def test_addresses_with_secrets_are_told_apart() -> None:
    assert secret_in_url("https://me:pw@host/v1")
    assert secret_in_url("me@host:11434")
    assert secret_in_url("https://host/v1?key=x")
    assert secret_in_url("https://host/v1") is None
    assert secret_in_url("127.0.0.1:11434") is None
    assert redact_url("https://me:pw@host/v1?key=x#y") == "https://host/v1"


PAIR = "hunter2-Zq99"


@pytest.mark.parametrize(
    "text",
    [
        f'missing "=" after "me:{PAIR}@db/x" in connection info string',  # libpq of a URL without its scheme
        f"could not connect to me:{PAIR}@127.0.0.1:5432",
        f"me:{PAIR}@[::1]/x refused",
        f"postgresql://me:a@{PAIR}@db.example/x",
        f"connection failed: password = {PAIR}",
    ],
)
def test_addresses_that_are_written_wrongly_are_struck_out_too(text: str) -> None:
    assert PAIR not in without_secrets(text)


@pytest.mark.parametrize(
    "text",
    [
        "openai:text-embedding-3-small@256+faiss: not run",
        "primary:ndcg@10, p(rel=2)@5",
        "write to mailto:somebody@example.org or somebody@example.org",
        "file:mine.py:search at 12:30 @ home",
        "see http://host:8080/v1",
        "C:/users/me@home/x: no such file",
    ],
)
def test_what_merely_resembles_an_address_stays(text: str) -> None:
    assert without_secrets(text) == text


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PGVECTOR_URL", f"me:{PAIR}@db/x"),
        ("PGVECTOR_URL", f"postgresql:/me:{PAIR}@db/x"),
        ("PGVECTOR_URL", f"postgresql://me:{PAIR}/x@db/x"),
        ("PGVECTOR_URL", f"host=db user=me password = '{PAIR}'"),
        ("QDRANT_URL", f"http://{PAIR}@db:6333"),
        ("QDRANT_URL", f"http://db:6333?api-key={PAIR}"),
        ("DATABASEURL", f"postgresql://me:{quote(PAIR + '/')}@db/x"),
        ("MONGO_CONNECTION_STRING", f"mongodb://me:{PAIR}@db"),
        ("PGPASSWORD", PAIR),
        ("VOYAGEAPIKEY", PAIR),
        ("MYSQL_PWD", PAIR),
        ("GHTOKEN", PAIR),
    ],
)
def test_secrets_of_the_environment_however_they_are_written(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    assert PAIR not in without_known(f"it said {PAIR} and {PAIR}/x")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PWD", "/home/somebody"),
        ("OLDPWD", "/home/somebody"),
        ("MONKEY", "chimpanzee"),
        ("BYPASS_CACHE", "sometimes"),
        ("MAX_TOKENS", "thousands"),
        ("PGVECTOR_URL", "postgresql://somebody@db.example/x?sslkey=/home/somebody/client.key"),
        ("OPENAI_BASE_URL", "http://somebody.example:8080/v1/@cf"),
    ],
)
def test_other_values_of_the_environment_stay(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(name, value)
    for word in (value, "somebody", "/home/somebody", "8080/v1/"):
        assert without_known(word) == word


def test_addresses_that_can_not_be_taken_apart_are_refused_or_hidden() -> None:
    assert secret_in_url("http:/me:pw@host/v1")
    assert secret_in_url("http://me:pw@[host/v1")
    assert secret_in_url("host=db password = x")
    assert secret_in_url("https://host/v1/@cf/baai") is None
    assert redact_url("me:pw@host:11434") == "host:11434"
    assert redact_url("localhost:11434") == "localhost:11434"
    assert "pw" not in redact_url("http:/me:pw@host/v1")


TWO_LINES = "topsecret 'value'\"99\r\nmore+secret/88ü"


@pytest.mark.parametrize(
    "quoted",
    [
        f"Illegal header value {TWO_LINES.encode()!r}",
        f"Illegal header value {TWO_LINES!r}",
        json.dumps({"key": TWO_LINES}),
        json.dumps({"key": TWO_LINES}, ensure_ascii=False),
        quote_plus(TWO_LINES),
        re.sub("%..", lambda found: found[0].lower(), quote(TWO_LINES, safe="")),
        re.sub("%..", lambda found: found[0].lower(), quote_plus(TWO_LINES)),
        "the second line is more+secret/88ü",
    ],
)
def test_a_key_is_found_however_an_error_quotes_it(quoted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACME_API_KEY", TWO_LINES)
    for shown in (without_secrets(quoted), without_secrets(quoted, [TWO_LINES])):
        assert "topsecret" not in shown
        assert "secret/88" not in shown
        assert "more" not in shown


@pytest.mark.parametrize("value", ["abc\r\ndef", "abc\x1fdef"])
def test_a_key_that_no_header_can_carry_is_refused_unquoted(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", value)
    monkeypatch.delenv("GOOGLE_API_KEY", raising=False)
    reason = PROVIDERS.get("gemini").missing()
    says(reason or "", "GEMINI_API_KEY")
    assert "def" not in (reason or "")
    with refuses(Unavailable, "GEMINI_API_KEY"):
        fill_in("Bearer ${GEMINI_API_KEY}")


def test_blanks_around_a_key_are_no_part_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACME", " topsecretvalue99\n")
    assert fill_in("Bearer ${ACME}") == "Bearer topsecretvalue99"
    monkeypatch.setenv("ACME", " \n")
    says(missing_key("ACME") or "", "ACME")


@pytest.mark.parametrize(
    "name",
    ["api_key", "apiKey", "password", "token", "X-Auth-Key", "X-Pass", "db_pass", "Ocp-Apim-Subscription-Key",
     "Authorization", "Cookie", "client_secret", "dsn", "qdrant.api_key", "hf_token", "credentials", "api_keys"],
)  # fmt: skip
def test_names_of_secrets(name: str) -> None:
    assert find_secret({"a": [{name: "x"}]}) == f"a.{name}"
    assert find_secret({name: ["${ACME}", "Bearer ${ACME}"]}) is None
    assert find_secret({name: "Bearer x${ACME}"}) == name


@pytest.mark.parametrize(
    "name",
    ["max_tokens", "tokenizer", "keywords", "key_phrases", "id_key", "title_key", "key_env", "pad_token", "author",
     "monkey", "bypass", "vector_key", "doc_key", "pooling_token", "first_pass",
     "passages", "auth_type", "vectors", "password_file", "tokens_per_minute", "sort_key"],
)  # fmt: skip
def test_names_that_only_look_like_secrets(name: str) -> None:
    assert find_secret({name: "tokens"}) is None


def test_no_option_of_ours_is_taken_for_a_secret() -> None:
    named = [
        (name, option.name)
        for registry in (PROVIDERS, STORES, RANKERS, RETRIEVERS, RERANKERS, FORMATS, TASK_KINDS)
        for name in registry.builtin
        for option in registry.options(name)
    ]
    assert len(named) > 200
    assert [(name, option) for name, option in named if is_secret_name(option)] == []
