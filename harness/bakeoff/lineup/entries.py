"""The shape of the line-up file, before its content is checked."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from bakeoff.core.clock import TimeLimits
from bakeoff.core.facts import PUBLIC, public_fields
from bakeoff.core.figures import STOP_WITHIN
from bakeoff.embedding.chunking import ContenderChunking
from bakeoff.search.fusion import MethodName
from bakeoff.search.stores.existing import Collection, Existing, Id, Metric, Split, VectorField
from bakeoff.search.variants import Precision

SearchKind = Literal["vectors", "hybrid"]
Isolate = Annotated[bool | None, "run its code in its own process; default: only code that is not Bakeoff's"]
DEFAULT_MEASURES = ("p@5", "recall@10", "f1@5", "mrr", "ndcg@10")


class StoreEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A store and its options; a plain name is a store without options.

    `existing` is the path or address of an existing index. The settings after it tell how to read it.
    """

    name: Annotated[str, "which store", PUBLIC]
    label: Annotated[str, "its name in the row's label", PUBLIC] = ""
    options: Annotated[dict[str, Any], "the store's options"] = {}
    existing: Existing = ""
    collection: Collection = ""
    id: Id = ""
    vector: VectorField = ""
    split: Split = ""
    metric: Metric = ""

    def reading(self) -> dict[str, str]:
        """How to read an existing index; empty if the index is built here."""
        settings = {key: getattr(self, key) for key in ("existing", "collection", "id", "vector", "split", "metric")}
        return {key: value for key, value in settings.items() if value}


class PromptName(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One of the model's own prompts, by name."""

    name: Annotated[str, "its name", PUBLIC]


class Prompt(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Templates for queries and documents with `{text}` for the text, or one of the model's own prompts by name.

    `name` alone sets both.
    """

    query: Annotated[str | PromptName, "template for queries"] = ""
    document: Annotated[str | PromptName, "template for documents"] = ""
    name: Annotated[str, "one of the model's own prompts, for both", PUBLIC] = ""
    label: Annotated[str, "its name in the row's label", PUBLIC] = ""


class RerankEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A second stage: a reranker reorders the first `depth` candidates of the row `of`.

    With `vectors = "tokens"`, an embedding provider reranks by MaxSim over its token vectors.
    """

    provider: Annotated[str, "a reranker, or a function: file:mine.py:rerank", PUBLIC]
    of: Annotated[str, "the row to rerank; omit inside a contender", PUBLIC] = ""
    model: Annotated[str, "the reranker's model", PUBLIC] = ""
    depth: Annotated[int, "number of candidates to rerank"] = 50
    label: Annotated[str, "the row's label", PUBLIC] = ""
    vectors: Annotated[Literal["", "tokens"], "tokens: rerank by MaxSim over the provider's token vectors", PUBLIC] = ""
    options: Annotated[dict[str, Any], "the reranker's options"] = {}
    isolate: Isolate = None


class ContenderEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One [[contender]]: a source of rows and its settings."""

    provider: Annotated[str, "an embedding provider, or a function: file:mine.py:embed", PUBLIC] = ""
    ranker: Annotated[str, "a lexical ranker instead of a provider", PUBLIC] = ""
    answers: Annotated[str | dict[str, str], "a file of rankings instead of a provider; {seed} is replaced"] = ""
    retriever: Annotated[str | dict[str, Any], "a search function or URL instead of a provider"] = ""
    system: Annotated[str, "a row type from an installed package instead of a provider"] = ""
    model: Annotated[str, "the provider's model", PUBLIC] = ""
    label: Annotated[
        str,
        "start of the row's label; default: model, provider or ranker. @prompt and @chunking follow if there are "
        "several, then @dimensions-precision and +store",
        PUBLIC,
    ] = ""
    field: Annotated[
        str,
        "the part of a document to search: title, text, or a facet of an ordered task; default: title and text",
        PUBLIC,
    ] = ""
    store: Annotated[str | StoreEntry | list[str | StoreEntry], "vector store; a list makes one row each", PUBLIC] = []
    dimensions: Annotated[int | list[int], "truncate to N dimensions; a list makes one row each"] = []
    precision: Annotated[Precision | list[Precision], "precision of stored vectors; a list makes one row each"] = (
        "float32"
    )
    search: Annotated[
        SearchKind | list[SearchKind], "hybrid: the store's own hybrid search; a list makes one row each", PUBLIC
    ] = "vectors"
    vectors: Annotated[Literal["", "tokens"], "tokens: one vector per token, compared by MaxSim; no store", PUBLIC] = ""
    options: Annotated[dict[str, Any], "options of the provider, ranker, retriever or system"] = {}
    chunking: Annotated[
        ContenderChunking | list[ContenderChunking], "how documents are chunked; a list makes one row each"
    ] = []
    prompt: Annotated[
        str | Prompt | list[str | Prompt],
        "prompt: default, none, a model family, or a table; a list makes one row each",
    ] = []
    rerank: Annotated[RerankEntry | list[RerankEntry], "a second stage for this row; a list makes one row each"] = []
    isolate: Isolate = None
    seeds: Annotated[list[int], "values of {seed} in answers"] = []


class FusionEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One [[fusion]]: contenders by label, and their weights."""

    of: Annotated[list[str], "labels of the rows to fuse", PUBLIC]
    label: Annotated[str, "the row's label", PUBLIC] = ""
    method: Annotated[MethodName, "fuse ranks (rrf) or normalised scores", PUBLIC] = "rrf"
    weights: Annotated[list[float], "weight of each row; default: equal"] = []
    c: Annotated[float, "the constant k of RRF"] = 60.0
    top_n: Annotated[int | None, "places of each ranking to use; default: all"] = None


class Category(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A category of queries to generate: a description for a model, and templates with gaps.

    Only documents of the categories in `of` get such queries.
    """

    about: Annotated[str, "description for a model that writes such queries"] = ""
    templates: Annotated[tuple[str, ...], "templates with gaps"] = ()
    of: Annotated[tuple[str, ...], "document categories that get such queries; default: all", PUBLIC] = ()


class EngineEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where the heavy steps run: `local`, or `ray` with a number of workers (0: one per processor or GPU).

    `address` names a cluster (`auto`, `ray://head:10001`). Without one, Ray is started on this machine.
    """

    name: Annotated[str, "local or ray"] = "local"
    workers: Annotated[int, "embedding processes; 0 = one per processor or GPU"] = 0
    gpus_per_worker: Annotated[float, "GPUs per process"] = 0.0
    address: Annotated[str, "cluster: auto or ray://head:10001; default: start Ray on this machine"] = ""
    shards: Annotated[str, "path or URL that all nodes share, for vectors; default: the vector cache"] = ""


class TaskEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One of several [[tasks]]. `role`: whether adapted contenders were trained for it (domain) or not (general)."""

    task: Annotated[str | dict[str, Any], "a built-in name, a path, or an inline table"]
    name: Annotated[str, "its name in tables", PUBLIC] = ""
    role: Annotated[Literal["", "domain", "general"], "whether adapted contenders were trained for it", PUBLIC] = ""


class LineupFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole file. `overrides` replaces the task's options, like `--set`.

    `bases` maps an adapted contender to the contender it was trained from.
    """

    contender: Annotated[list[ContenderEntry], "sources of rows"]
    task: Annotated[str | dict[str, Any] | None, "a built-in name, a path, or an inline table"] = None
    tasks: Annotated[list[TaskEntry], "several tasks instead of one"] = []
    role: Annotated[
        Literal["", "domain", "general"], "whether adapted contenders were trained for this task", PUBLIC
    ] = ""
    bases: Annotated[dict[str, str], "adapted contender → the one it was trained from", PUBLIC] = {}
    fusion: Annotated[list[FusionEntry], "rows that fuse others"] = []
    rerank: Annotated[list[RerankEntry], "rows that rerank others"] = []
    name: Annotated[str, "name of the result; default: the file's name", PUBLIC] = ""
    measures: Annotated[list[str], "columns of the matrix", PUBLIC] = msgspec.field(
        default_factory=lambda: list(DEFAULT_MEASURES)
    )
    primary: Annotated[str, "the deciding measure; default: the first NDCG", PUBLIC] = ""
    depth: Annotated[int | None, "documents retrieved per query; default: what the measures need"] = None
    rounds: Annotated[int, "number of times each query is timed"] = 3
    query_timeout: Annotated[float, "seconds after which a query counts as unanswered"] = TimeLimits().query
    build_timeout: Annotated[float, "seconds for building an index, or for one call before the first query"] = (
        TimeLimits().build
    )
    seed: Annotated[int, "random seed"] = 42
    baseline: Annotated[str, "the incumbent: every other contender is compared with it"] = ""
    stop_within: Annotated[float, "the difference that matters: below it, stop"] = STOP_WITHIN
    equivalent_within: Annotated[float | None, "test for equivalence with the best within this margin"] = None
    categories: Annotated[dict[str, str | Category], "categories for `bakeoff queries generate`", PUBLIC] = {}
    overrides: Annotated[dict[str, Any], "overrides of the task's options, like --set"] = {}
    engine: Annotated[EngineEntry, "where the heavy steps run"] = EngineEntry()


TABLES = (StoreEntry, PromptName, Prompt, RerankEntry, ContenderEntry, FusionEntry, Category, TaskEntry, LineupFile)
NAMES = frozenset({"kind"}).union(*map(public_fields, TABLES))  # keys of a stored line-up whose values are names
