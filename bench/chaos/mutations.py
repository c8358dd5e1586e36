# ruff: noqa: E501 - lists of odd values
"""Wrong files made from right ones: values of other types, torn bytes, and what people paste by accident."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

WEIRD: list[Any] = [
    None, True, False, 0, -1, -5, 1, 2**31, 2**63, 2**64, 10**30, -(10**30), 0.5, -0.0, 1e308, float("inf"), float("nan"),
    "", " ", "\x00", "a\x0cb", "\u2028", "\ud7ff\U0001f600", "../../x", "x" * 5000, "true", "1e999", "[", "{}", "\x1b[31m",
    [], {}, [[]], [None], {"": None}, [1, "a", None], [[[[[[[[1]]]]]]]], "http://me:pw@host/", ["a", "a"], {"$toml": "x"},
]  # fmt: skip
TOKENS = [b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b"\r", b"\n\n", b"\t", b",", b'"', b"'", b"[" * 2000, b"{" * 300, b"]", b"}",
          b"null", b"NaN", b"-1", b"1e999", b"9" * 400, b"\x0c", "\u2028".encode(), b"<td>" * 50, b"\\", b"=", b"#", b" " * 500,
          b"\xed\xa0\x80", b"inf", b"true", b"0x10", b"1_000", b"\x1f\x8b\x08", b"PK\x03\x04"]  # fmt: skip


def mutated_bytes(data: bytes, rng: random.Random) -> bytes:
    """A few cuts, flips, repeats and insertions."""
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(data) + 1)
        end = min(len(data), at + rng.choice([1, 2, 8, 64, 1024]))
        match rng.randrange(7):
            case 0:
                data = data[:at]
            case 1:
                data = data[:at] + data[end:]
            case 2:
                data = data[:at] + rng.choice(TOKENS) + data[at:]
            case 3:
                data = data[:at] + rng.choice(TOKENS) + data[end:]
            case 4:
                data = data[:end] + data[at:end] * rng.randint(1, 3) + data[end:]
            case 5 if data:
                place = rng.randrange(len(data))
                data = data[:place] + bytes([data[place] ^ (1 << rng.randrange(8))]) + data[place + 1 :]
            case _:
                lines = data.split(b"\n")
                rng.shuffle(lines)
                data = b"\n".join(lines[: rng.randint(0, len(lines))]) if rng.random() < 0.3 else b"\n".join(lines)
    return data


def mutated_value(value: Any, rng: random.Random) -> Any:
    """The same tree with one to three of its nodes replaced, dropped, renamed or repeated."""
    value = copy.deepcopy(value)
    for _ in range(rng.randint(1, 3)):
        value = _change(value, rng)
    return value


def _change(value: Any, rng: random.Random) -> Any:
    if isinstance(value, dict) and value and rng.random() < 0.9:
        key = rng.choice(list(value))
        match rng.randrange(10):
            case 0:
                del value[key]
            case 1:
                value[rng.choice([str(weird) for weird in WEIRD])] = value.pop(key)
            case 2:
                value[key] = copy.deepcopy(rng.choice(WEIRD))
            case _:
                value[key] = _change(value[key], rng)
        return value
    if isinstance(value, list) and value and rng.random() < 0.85:
        place = rng.randrange(len(value))
        match rng.randrange(8):
            case 0:
                del value[place]
            case 1:
                value.insert(place, copy.deepcopy(value[place]))
            case 2:
                value[place] = copy.deepcopy(rng.choice(WEIRD))
            case _:
                value[place] = _change(value[place], rng)
        return value
    return copy.deepcopy(rng.choice(WEIRD))


def mutated_json(data: bytes, rng: random.Random) -> bytes:
    """By its values four times in five, by its bytes otherwise."""
    if rng.random() < 0.2:
        return mutated_bytes(data, rng)
    return json.dumps(mutated_value(json.loads(data), rng), ensure_ascii=rng.random() < 0.5).encode(errors="replace")


def mutated_json_lines(data: bytes, rng: random.Random) -> bytes:
    """One line of JSON Lines."""
    lines = data.splitlines()
    if not lines or rng.random() < 0.2:
        return mutated_bytes(data, rng)
    place = rng.randrange(len(lines))
    lines[place] = mutated_json(lines[place], rng)
    return b"\n".join(lines)


def mutated_toml(data: bytes, rng: random.Random) -> bytes:
    """By its values, written again; by its bytes otherwise."""
    import tomllib

    from bakeoff.core.toml_values import toml_value

    if rng.random() < 0.3:
        return mutated_bytes(data, rng)
    changed = mutated_value(tomllib.loads(data.decode()), rng)
    if not isinstance(changed, dict):
        return mutated_bytes(data, rng)
    lines = []
    for key, value in changed.items():
        try:
            lines.append(f"{json.dumps(key)} = {toml_value(value)}")
        except Exception:  # null has no spelling in TOML
            lines.append(f"{json.dumps(key)} = {json.dumps(value)}")
    return "\n".join(lines).encode(errors="replace")


def mutated(name: str, data: bytes, rng: random.Random) -> bytes:
    """By what the name says that the file is."""
    if name.endswith(".json"):
        return mutated_json(data, rng)
    if name.endswith(".jsonl"):
        return mutated_json_lines(data, rng)
    if name.endswith(".toml"):
        return mutated_toml(data, rng)
    return mutated_bytes(data, rng)
