"""The load test of an endpoint as tables."""

from __future__ import annotations

from bakeoff.extensions.storelab.provider_load import ProviderLevel, ProviderLoad
from bakeoff.extensions.storelab.tables import Sheet, SheetTable, machine_line, number, timing_doubts
from bakeoff.extensions.storelab.words import setting_words
from bakeoff.report.words import words


def provider_sheet(load: ProviderLoad) -> Sheet:
    """One row per setting, then projections to a whole corpus."""
    heads = ["words", "batch", "at a time", "requests", "texts/s", "tokens/s", "p50 ms", "p95 ms", "429", "errors", ""]
    rows = [
        [
            str(level.setting.words),
            str(level.setting.batch),
            str(level.setting.clients),
            str(level.requests),
            f"{level.texts_per_second:.1f}",
            f"{level.tokens_per_second:.0f}",
            number(level.latency.p50, 1),
            number(level.latency.p95, 1),
            str(level.too_many),
            str(sum(level.errors.values())),
            _remark(level, load),
        ]
        for level in load.levels
    ]
    corpus_heads = ["words", "documents", "at", "hours", "M tokens", "dollars"]
    corpus = [
        [
            str(projection.words),
            f"{projection.documents:,}",
            setting_words(projection.setting.batch, projection.setting.clients),
            f"{projection.hours:.2f}",
            f"{projection.tokens / 1e6:,.1f}",
            "not known" if projection.usd is None else f"{projection.usd:,.2f}",
        ]
        for projection in load.projections
    ]
    spent = "not known" if load.spent_usd is None else f"${load.spent_usd:.4f}"
    return Sheet(
        title=f"Load test of {load.provider} {load.model}",
        sentences=[*map(words, load.facts), *timing_doubts(load.machine)],
        tables=[SheetTable(heads, rows, range(10), keys=3), SheetTable(corpus_heads, corpus, range(1, 6))],
        remarks=[
            "Latency covers answered requests only; throughput includes waits and retries.",
            "The second table scales the fastest setting up in proportion; it was not measured.",
            f"Cost of this test: {spent}.",
            *(["The model runs on this machine, so concurrent requests share its cores."] if load.local else []),
            machine_line(load.machine),
        ],
    )


def _remark(level: ProviderLevel, load: ProviderLoad) -> str:
    if level.stopped:
        return "stopped"
    return "knee" if level.setting in load.knees else ""
