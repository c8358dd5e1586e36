"""A corpus without queries: articles, items with several texts, or ids alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bakeoff_providers.base import Role
from bakeoff_providers.errors import InputError
from bakeoff_providers.precomputed import Precomputed

from bakeoff.core.files import read_bytes, read_json, read_json_lines
from bakeoff.core.task import Document
from bakeoff.tasks.formats import native


def read_documents(
    path: Path, *, id_key: str = "id", title_key: str = "title", text_key: str = "text", fields: Sequence[str] = ()
) -> list[Document]:
    """Articles (.json with `articles`), items (.json list or .jsonl, one object each), or ids alone (.txt, .json list).

    Files of vectors (.npy, .npz, .parquet) give the ids that `precomputed` reads from them. `fields` are further texts
    of each item; all of them are required.
    """
    if path.suffix in (".npy", ".npz", ".parquet"):
        vectors = Precomputed(path=str(path))
        return _check_ids([Document(id=name, text="") for name in vectors.ids(Role.DOCUMENT)], path)
    if path.suffix == ".txt":
        lines = read_bytes(path).decode(errors="replace").splitlines()
        return _check_ids([Document(id=line.strip(), text="") for line in lines if line.strip()], path)
    content: Any = [item for _, item in read_json_lines(path, Any)] if path.suffix == ".jsonl" else read_json(path, Any)
    if isinstance(content, dict) and "articles" in content:
        return [native.document(article) for article in native.read_articles(path)[0].articles]
    if not isinstance(content, list):
        raise InputError("is neither a list of items nor a file of articles", file=path)
    documents = []
    for place, item in enumerate(content):
        if isinstance(item, str | int):
            documents.append(Document(id=str(item), text=""))
            continue
        if not isinstance(item, dict) or not str(item.get(id_key) or ""):
            raise InputError(f"an item without {id_key!r}", file=path, place=f"$[{place}]", remedy="give each an id")
        texts = {field: _text(item, field, path, f"$[{place}]") for field in fields}
        keys = {id_key, title_key, text_key, *fields}
        documents.append(
            Document(
                id=str(item[id_key]),
                title=str(item.get(title_key) or ""),
                text=str(item.get(text_key) or next(iter(texts.values()), "")),
                metadata={key: value for key, value in item.items() if key not in keys},
                fields=texts,
            )
        )
    return _check_ids(documents, path)


def _text(item: Mapping[str, Any], field: str, path: Path, place: str) -> str:
    text = item.get(field)
    if not isinstance(text, str) or not text.strip():
        raise InputError(f"field {field!r} is missing or empty", file=path, place=place, remedy="write it")
    return text


def _check_ids(documents: list[Document], path: Path) -> list[Document]:
    seen: set[str] = set()
    for place, document in enumerate(documents):
        if document.id in seen:
            raise InputError(f"duplicate id {document.id!r}", file=path, place=f"$[{place}]")
        seen.add(document.id)
    if not documents:
        raise InputError("the corpus is empty", file=path, remedy="give it at least one document")
    return documents
