"""Ranking by words in PostgreSQL: its own full text, or BM25 by the extension pg_textsearch; fused in SQL."""

from __future__ import annotations

from dataclasses import dataclass

from bakeoff_providers.errors import InputError
from bakeoff_providers.registry import nearest

from bakeoff.search.stores.hybrid import C

KINDS = ("ts_rank", "bm25")
NORMALISED = 1  # ts_rank divides by 1 + the logarithm of the length


@dataclass(frozen=True, slots=True)
class Words:
    """A column of texts and how it is ranked."""

    table: str
    kind: str

    @classmethod
    def of(cls, table: str, kind: str) -> Words:
        """The ranking that an option names."""
        if kind not in KINDS:
            raise InputError(f"pgvector has no ranking by words {kind!r}", remedy=nearest(kind, list(KINDS)))
        return cls(table, kind)

    @property
    def columns(self) -> str:
        """What `create table` has more."""
        if self.kind == "bm25":
            return ", body text not null"
        return ", body text not null, words tsvector generated always as (to_tsvector('english', body)) stored"

    @property
    def index(self) -> str:
        """As SQL."""
        column = "bm25 (body) with (text_config = 'english')" if self.kind == "bm25" else "gin (words)"
        return f"create index if not exists {self.table}_words on {self.table} using {column}"

    def ranking(self, pool: int, passing: str) -> str:
        """The best by words, with one gap for the text, and those of the filter after it."""
        limit = int(pool)
        if self.kind == "bm25":
            return f"select id, min(score) as score from ({self._bm25(limit, passing)}) ranked group by id"
        # A document need not have all words of a query: the parts of the query are joined by "or".
        asked = "(select replace(plainto_tsquery('english', %s)::text, '&', '|')::tsquery as query) as asked"
        also = f" and {passing}" if passing else ""
        return (
            f"select id, -ts_rank(words, query, {NORMALISED}) as score from {self.table}, {asked}"
            f" where words @@ query{also} order by score limit {limit}"
        )

    def _bm25(self, limit: int, passing: str) -> str:
        """May hold a row twice. The index answers what shares a word, and in order; to read a score takes a parse.

        Under a filter the index may be left out: then scores are read, which are negative, and 0 for no shared word.
        """
        distance = f"body <@> to_bm25query(%s, '{self.table}_words')"
        if passing:
            scored = f"select id, {distance} as score from {self.table} where {passing} order by score limit {limit}"
            return f"select id, score from ({scored}) scored where score < 0"
        ordered = f"select id from {self.table} order by {distance} limit {limit}"
        return f"select id, row_number() over () as score from ({ordered}) ordered"

    def fused(self, distance: str, k: int, pool: int, passing: str) -> str:
        """One statement: both rankings, each place as 1 / (60 + place), summed."""
        where = f" where {passing}" if passing else ""
        return (
            f"with near as (select id, {distance} as distance from {self.table}{where} order by {distance}"
            f" limit {int(pool)}), said as ({self.ranking(pool, passing)}),"
            " near_places as (select id, row_number() over (order by distance, id) as place from near),"
            " said_places as (select id, row_number() over (order by score, id) as place from said)"
            f" select id, coalesce(1.0 / ({C} + near_places.place), 0) + coalesce(1.0 / ({C} + said_places.place), 0)"
            f" as score from near_places full join said_places using (id) order by score desc, id limit {int(k)}"
        )
