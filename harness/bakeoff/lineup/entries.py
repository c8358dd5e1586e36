"""The shape of the line-up file, before its content is checked."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from bakeoff.core.facts import PUBLIC, public_fields
from bakeoff.core.figures import STOP_WITHIN
from bakeoff.embedding.chunking import ContenderChunking
from bakeoff.search.fusion import MethodName
from bakeoff.search.stores.existing import Collection, Existing, Id, Metric, Split, VectorField
from bakeoff.search.variants import Precision

SearchKind = Literal["vectors", "hybrid"]
DEFAULT_MEASURES = ("p@5", "recall@10", "f1@5", "mrr", "ndcg@10")


class StoreEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A store with options of its own; a plain name is a store without options.

    `existing` is the path or address of an index that is there already; the settings after it say how to read it.
    """

    name: Annotated[str, "which store", PUBLIC]
    label: Annotated[str, "what it is called in the row's name", PUBLIC] = ""
    options: Annotated[dict[str, Any], "the store's options"] = {}
    existing: Existing = ""
    collection: Collection = ""
    id: Id = ""
    vector: VectorField = ""
    split: Split = ""
    metric: Metric = ""

    def reading(self) -> dict[str, str]:
        """How to read an existing index; empty where one is built."""
        settings = {key: getattr(self, key) for key in ("existing", "collection", "id", "vector", "split", "metric")}
        return {key: value for key, value in settings.items() if value}


class PromptName(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A prompt that comes with the model, by the name that it has there."""

    name: Annotated[str, "its name", PUBLIC]


class Prompt(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What goes around queries and documents, `{text}` being the text itself, or a prompt of the model by its name.

    `name` alone is for both.
    """

    query: Annotated[str | PromptName, "what goes around a query"] = ""
    document: Annotated[str | PromptName, "what goes around a document"] = ""
    name: Annotated[str, "a prompt of the model for both, by its name", PUBLIC] = ""
    label: Annotated[str, "what it is called in the row's name", PUBLIC] = ""


class RerankEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A second stage: the first `depth` candidates of the row `of` in a reranker's order.

    With `vectors = "tokens"` the provider is one of vectors, and the order is by MaxSim over those of its tokens.
    """

    provider: Annotated[str, "which reranker, or a function: file:mine.py:rerank", PUBLIC]
    of: Annotated[str, "the row whose candidates it takes; left out inside a contender", PUBLIC] = ""
    model: Annotated[str, "which model of the reranker", PUBLIC] = ""
    depth: Annotated[int, "candidates that are reordered"] = 50
    label: Annotated[str, "the row's name", PUBLIC] = ""
    vectors: Annotated[Literal["", "tokens"], "tokens: the provider's vectors of tokens decide, by MaxSim", PUBLIC] = ""
    options: Annotated[dict[str, Any], "the reranker's options"] = {}


class ContenderEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One [[contender]]: it names one source of rows, and the settings that this source takes."""

    provider: Annotated[str, "an embedding provider, or a function: file:mine.py:embed", PUBLIC] = ""
    ranker: Annotated[str, "a lexical ranker in place of a provider", PUBLIC] = ""
    answers: Annotated[str | dict[str, str], "a file of rankings in place of a provider; {seed} stands for a seed"] = ""
    retriever: Annotated[str | dict[str, Any], "a search function or URL in place of a provider"] = ""
    system: Annotated[str, "a row type of an installed package in place of a provider"] = ""
    model: Annotated[str, "which model of the provider", PUBLIC] = ""
    label: Annotated[
        str,
        "how the row's name begins, model, provider or ranker if left out: @prompt and @chunking follow where "
        "there are several, then @dimensions-precision and +store",
        PUBLIC,
    ] = ""
    field: Annotated[
        str,
        "what is searched of a document: title, text, or a facet's text of an ordered task; title and text if left out",
        PUBLIC,
    ] = ""
    store: Annotated[
        str | StoreEntry | list[str | StoreEntry], "where the vectors are searched; each of several is a row", PUBLIC
    ] = []
    dimensions: Annotated[int | list[int], "keep the first so many dimensions; each of several is a row"] = []
    precision: Annotated[Precision | list[Precision], "how vectors are stored; each of several is a row"] = "float32"
    search: Annotated[
        SearchKind | list[SearchKind], "hybrid: the store ranks by words too; each of several is a row", PUBLIC
    ] = "vectors"
    vectors: Annotated[
        Literal["", "tokens"], "tokens: a vector for each token, compared by MaxSim; no store", PUBLIC
    ] = ""
    options: Annotated[dict[str, Any], "options of the provider, ranker, retriever or system"] = {}
    chunking: Annotated[
        ContenderChunking | list[ContenderChunking], "how documents are cut; each of several is a row"
    ] = []
    prompt: Annotated[
        str | Prompt | list[str | Prompt],
        "what goes before texts: default, none, a family of models, or a table; each of several is a row",
    ] = []
    rerank: Annotated[RerankEntry | list[RerankEntry], "a second stage over this row; each of several is a row"] = []
    seeds: Annotated[list[int], "the seeds that {seed} in answers stands for"] = []


class FusionEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One [[fusion]]: contenders by their labels, and how much each of them counts."""

    of: Annotated[list[str], "labels of the rows that are fused", PUBLIC]
    label: Annotated[str, "the row's name", PUBLIC] = ""
    method: Annotated[MethodName, "by ranks (rrf), or by scores brought to one scale", PUBLIC] = "rrf"
    weights: Annotated[list[float], "how much each row counts; all alike if left out"] = []
    c: Annotated[float, "how steeply ranks fall: the constant of RRF"] = 60.0
    top_n: Annotated[int | None, "places of each ranking that are read; all if left out"] = None


class Category(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A category of queries to generate: what it is about, for a model, and texts with gaps, for templates.

    `of` names document categories: only documents of one of these get such queries.
    """

    about: Annotated[str, "what such queries are about, for a model that writes them"] = ""
    templates: Annotated[tuple[str, ...], "texts with gaps, for queries from templates"] = ()
    of: Annotated[tuple[str, ...], "categories of documents that get such queries; all if left out", PUBLIC] = ()


class EngineEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where the heavy steps are done: `local`, or `ray` with so many workers (0: one per processor or GPU).

    `address` is a cluster's (`auto`, `ray://head:10001`); without one, Ray is started on this machine.
    """

    name: Annotated[str, "local or ray"] = "local"
    workers: Annotated[int, "processes that embed; 0 takes one per processor or GPU"] = 0
    gpus_per_worker: Annotated[float, "GPUs that each of them gets"] = 0.0
    address: Annotated[str, "a cluster: auto or ray://head:10001; left out, Ray is started on this machine"] = ""
    shards: Annotated[str, "where all nodes see the vectors: a path or a URL; left out, in the vector cache"] = ""


class TaskEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One of several [[tasks]]; `role` says whether adapted contenders were made for it (domain) or not (general)."""

    task: Annotated[str | dict[str, Any], "a built-in name, a path, or the task described in place"]
    name: Annotated[str, "what it is called in the tables", PUBLIC] = ""
    role: Annotated[
        Literal["", "domain", "general"], "whether adapted contenders were made for it (domain) or not", PUBLIC
    ] = ""


class LineupFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole file. `overrides` replaces options of the task, as `--set` does.

    `bases` names, for a contender that was adapted, the one that it was made from.
    """

    contender: Annotated[list[ContenderEntry], "the rows: each [[contender]] is one source of them"]
    task: Annotated[str | dict[str, Any] | None, "a built-in name, a path, or the task described in place"] = None
    tasks: Annotated[list[TaskEntry], "several tasks in place of one"] = []
    role: Annotated[
        Literal["", "domain", "general"], "whether adapted contenders were made for this task (domain) or not", PUBLIC
    ] = ""
    bases: Annotated[dict[str, str], "adapted contender → the one that it was made from", PUBLIC] = {}
    fusion: Annotated[list[FusionEntry], "rows that fuse others"] = []
    rerank: Annotated[list[RerankEntry], "rows that rerank the candidates of others"] = []
    name: Annotated[str, "what results are called; the file's name if left out", PUBLIC] = ""
    measures: Annotated[list[str], "columns of the matrix", PUBLIC] = msgspec.field(
        default_factory=lambda: list(DEFAULT_MEASURES)
    )
    primary: Annotated[str, "the measure that decides; the first NDCG if left out", PUBLIC] = ""
    depth: Annotated[int | None, "documents asked per query; what the measures need if left out"] = None
    rounds: Annotated[int, "how often every query is asked, for the latency"] = 3
    seed: Annotated[int, "seed of everything that is drawn"] = 42
    baseline: Annotated[str, "the incumbent: the contender that every other one is compared with"] = ""
    stop_within: Annotated[float, "a difference that matters: no row is better by more, stop"] = STOP_WITHIN
    equivalent_within: Annotated[float | None, "say what is as good as the best within this margin"] = None
    categories: Annotated[dict[str, str | Category], "categories for `bakeoff queries generate`", PUBLIC] = {}
    overrides: Annotated[dict[str, Any], "options of the task in place of its own, as --set"] = {}
    engine: Annotated[EngineEntry, "where the heavy steps are done"] = EngineEntry()


TABLES = (StoreEntry, PromptName, Prompt, RerankEntry, ContenderEntry, FusionEntry, Category, TaskEntry, LineupFile)
NAMES = frozenset({"kind"}).union(*map(public_fields, TABLES))  # keys of a stored line-up whose values are names
