"""Import a raw search log: normalise queries, drop personal data on request, use our own column names."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec

from bakeoff.core.facts import Fact, fact
from bakeoff.core.files import write_atomic
from bakeoff.core.task import normalise
from bakeoff.extensions.production.search_log import Impression, LogColumns, read_log, timestamp
from bakeoff.results.check import Check, Gauge

PERSONAL = {
    "e-mail address": re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}\.[\w-]"),
    "long number": re.compile(r"\+?\d(?:[ ./()-]{0,2}\d){6,}"),  # telephone, account, card, order
}


def personal(query: str) -> str | None:
    """The kind of personal data in a query, if any."""
    return next((kind for kind, pattern in PERSONAL.items() if pattern.search(query)), None)


def mask(query: str) -> str:
    """Replace letters by x and digits by 9, so that an example can be printed."""
    return re.sub(r"\d", "9", re.sub(r"[^\W\d_]", "x", query))


def import_log(path: Path, columns: LogColumns, out: Path, *, drop_personal: bool, salt: str) -> Check:
    """Write the rows as JSONL. `drop_personal` hashes users and sessions with a salt that is not kept."""
    impressions = read_log(path, columns, ("query", "shown", "clicked"))
    kept, dropped, examples = [], Counter[str](), dict[str, str]()
    for impression in impressions:
        query = normalise(impression.query)
        kind = personal(query) if drop_personal else None
        if not query:
            kind = "empty query"
        if kind is not None:
            dropped[kind] += 1
            examples.setdefault(kind, mask(query))
            continue
        if drop_personal:
            impression = _pseudonymise(impression, salt)
        kept.append(msgspec.structs.replace(impression, query=query))
    encoder = msgspec.json.Encoder()
    write_atomic(out, b"".join(encoder.encode(_row(impression)) + b"\n" for impression in kept))
    counts = Counter(impression.query for impression in kept)
    return Check(
        command="log import",
        worse=False,
        facts=_facts(kept, counts, dropped, examples, out, path),
        figures={
            "rows": len(kept), "queries": len(counts), "dropped": dict(dropped), "most_asked": counts.most_common(10),
            "clicked": sum(bool(impression.clicked) for impression in kept),
        },
        gauges=[
            Gauge("log_rows", "Rows of the log that were kept", float(len(kept))),
            Gauge("log_queries", "Distinct queries of the log", float(len(counts))),
        ],
    )  # fmt: skip


def _pseudonymise(impression: Impression, salt: str) -> Impression:
    def hash_name(name: str) -> str:
        return hashlib.blake2b(f"{salt}:{name}".encode(), digest_size=8).hexdigest() if name else ""

    return msgspec.structs.replace(impression, user=hash_name(impression.user), session=hash_name(impression.session))


def _row(impression: Impression) -> dict[str, object]:
    """Omit the columns that the log did not have."""
    return {
        key: value for key, value in msgspec.to_builtins(impression).items() if value or key in ("shown", "clicked")
    }


def _facts(
    kept: Sequence[Impression],
    counts: Counter[str],
    dropped: Counter[str],
    examples: dict[str, str],
    out: Path,
    path: Path,
) -> list[Fact]:
    users = len({impression.user for impression in kept if impression.user})
    once = sum(count == 1 for count in counts.values())
    facts = [fact("production.log_rows", rows=len(kept), users=users, queries=len(counts), once=once)]
    if times := [timestamp(impression.time, path) for impression in kept if impression.time]:
        facts.append(fact("production.log_days", first=f"{min(times):%Y-%m-%d}", last=f"{max(times):%Y-%m-%d}"))
    facts += [
        fact("production.log_dropped", rows=count, kind=kind, example=examples[kind]) for kind, count in dropped.items()
    ]
    return [*facts, fact("written", file=str(out))]
