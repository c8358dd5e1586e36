"""Your own function or object as a provider. It needs no card and no batch type; plain arrays will do."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Annotated, Any, ClassVar

import numpy as np

from bakeoff_providers.base import EmbeddingBatch, ModelCard, Provider, Role, Vectors
from bakeoff_providers.cards import FREE, override_card
from bakeoff_providers.code import code_identity, load_from_file
from bakeoff_providers.errors import EmbeddingFailed, InputError, lack
from bakeoff_providers.keys import (
    fill_in,
    find_secret,
    is_secret_name,
    missing_variables,
    names_variable,
    variables_in,
)
from bakeoff_providers.needs import Needs
from bakeoff_providers.shared_options import (
    BatchItems,
    Context,
    Dimensions,
    DocumentPrompt,
    File,
    FunctionName,
    Label,
    Price,
    QueryPrompt,
    Revision,
)

Embed = Callable[[Sequence[str], Role], Any]


class Own(Provider):
    """`embed(texts)` or `embed(texts, role)` from a file, or any embeddings object of another library.

    A class is created with the remaining options. `revision` is the version under which vectors are cached. The default
    is a hash of the source file; vectors of an object from Python are then not cached.
    """

    name: ClassVar[str] = "own"
    default_model: ClassVar[str] = ""
    local: ClassVar[bool] = True
    paths: ClassVar[tuple[str, ...]] = ("file",)

    def __init__(
        self,
        *,
        file: File = "",
        function: FunctionName = "",
        target: Any = None,
        model: Label = None,
        revision: Revision = None,
        dimensions: Dimensions = None,
        context: Context = None,
        document_prompt: DocumentPrompt = None,
        query_prompt: QueryPrompt = None,
        batch_items: BatchItems = None,
        price: Price = None,
        **options: Annotated[Any, "any other option is passed to the class; ${NAME} is read from the environment"],
    ) -> None:
        if target is None and not (file and function):
            raise InputError("names no function", remedy='write it as provider = "file:mine.py:embed"')
        self._from_file, self._revision = target is None, revision
        self._code = load_from_file(file, function) if target is None else target
        made = _make(self._code, options, function) if self._from_file else target
        given = {Role.DOCUMENT: document_prompt, Role.QUERY: query_prompt}
        self._embed = as_embed(made, {role for role, prompt in given.items() if prompt is not None})
        self._options = {name: _as_identity(name, value) for name, value in sorted(options.items())}
        card = ModelCard(
            name=model or function or _name(target), price=FREE if self.local else None, prompts=_own_prompts(made)
        )
        self.card = override_card(
            card,
            dimensions=dimensions,
            context=context,
            document_prompt=document_prompt,
            query_prompt=query_prompt,
            batch_items=batch_items,
            price=price,
        )

    @classmethod
    def needs(cls, **options: Any) -> Needs:
        """None here, since only a line-up names the function."""
        return Needs(
            note=None
            if options.get("file")
            else lack("undeclared", what="the function", example='provider = "file:mine.py:embed"')
        )

    @classmethod
    def missing(cls, **options: Any) -> str | None:
        """Also reports unset variables that options name."""
        return super().missing(**options) or missing_variables(options)

    def code(self) -> dict[str, str] | None:
        """A declared revision, or the file's hash. A Python object has neither, since it may hold anything."""
        if self._revision:
            return {"revision": self._revision}
        if self._from_file:
            return code_identity(self._code)
        declared = getattr(self._code, "revision", None)
        return {"revision": str(declared)} if isinstance(declared, (str, int)) else None

    def identity(self, role: Role) -> dict[str, str | int | float | bool | None]:
        """The class's options shape the vectors too."""
        return {**super().identity(role), **{f"option {name}": value for name, value in self._options.items()}}

    def embed(self, texts: Sequence[str], role: Role) -> EmbeddingBatch:
        """One call, its answer as a float32 matrix."""
        answer = self._embed([self.card.apply_prompt(text, role) for text in texts], role)
        return answer if isinstance(answer, EmbeddingBatch) else EmbeddingBatch(_matrix(answer, self.card.name))


class OwnHosted(Own):
    """Like `own`, for code that calls a server: calls may cost money, so queries are embedded once and cached."""

    name: ClassVar[str] = "own_hosted"
    local: ClassVar[bool] = False


def embeds(value: object) -> bool:
    """Whether an object has the methods of a known embeddings interface."""
    return isinstance(value, Provider) or _methods(value) is not None


def as_embed(value: Any, prompted: Collection[Role] = ()) -> Embed:
    """One function for vectors, whatever the object's method. `prompted` roles get no prompt from the object."""
    if isinstance(value, Provider):
        return value.embed
    if methods := _methods(value, prompted):
        return methods
    if not callable(value):
        raise InputError(f"{type(value).__name__} has no embedding method", remedy="give a function embed(texts)")
    if takes_role(value):
        return lambda texts, role: value(texts, role)
    return lambda texts, _role: value(texts)


def takes_role(function: Callable[..., Any]) -> bool:
    """Whether a function takes the role: query or document."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return False
    return len(parameters) > 1 and parameters[1].name in ("role", "input_type", "kind")


def _methods(value: Any, prompted: Collection[Role] = ()) -> Embed | None:
    """Recognised by their methods, so that no library is imported."""
    if isinstance(value, type):
        return None
    if _has(value, "embed_documents", "embed_query"):  # LangChain
        return lambda texts, role: (
            value.embed_documents(list(texts)) if role is Role.DOCUMENT else [value.embed_query(text) for text in texts]
        )
    if _has(value, "get_text_embedding_batch", "get_query_embedding"):  # LlamaIndex
        return lambda texts, role: (
            value.get_text_embedding_batch(list(texts))
            if role is Role.DOCUMENT
            else [value.get_query_embedding(text) for text in texts]
        )
    if _has(value, "encode_document", "encode_query"):  # sentence-transformers 5
        bare = {role: {"prompt": ""} if role in prompted and _own_prompts(value) else {} for role in Role}
        return lambda texts, role: (value.encode_document if role is Role.DOCUMENT else value.encode_query)(
            list(texts), **bare[role]
        )
    if _has(value, "encode"):  # earlier sentence-transformers, and compatible libraries
        return lambda texts, _role: value.encode(list(texts))
    if _has(value, "embed"):
        return as_embed(value.embed)
    return None


def _has(value: object, *methods: str) -> bool:
    return all(callable(getattr(value, method, None)) for method in methods)


def _make(code: Any, options: dict[str, Any], function: str) -> Any:
    """Instantiates a class. A function takes no options."""
    if isinstance(code, type):
        try:
            return code(**fill_in(options))
        except TypeError as error:
            raise InputError(f"{function}: {error}", place="options") from error
    if options:
        raise InputError(f"the function {function!r} takes no option {next(iter(options))!r}", place="options")
    return code


def _as_identity(name: str, value: Any) -> str:
    """An option in the cache key, which is stored: secrets are hashed.

    A key given as `${NAME}` is identified by its name, since another key gives the same vectors.
    """
    named = variables_in(value)
    if isinstance(value, str) and is_secret_name(name) and names_variable(value):
        return value
    if not named and not is_secret_name(name) and not (isinstance(value, Mapping) and find_secret(value)):
        return str(value)
    return f"sha256 {hashlib.sha256(repr(fill_in(value)).encode(errors='replace')).hexdigest()[:16]}"


def _matrix(answer: Any, name: str) -> Vectors:
    """From arrays, lists of lists, lists of arrays, or tensors."""
    if hasattr(answer, "detach"):
        answer = answer.detach().cpu().numpy()
    try:
        return np.asarray(answer, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise EmbeddingFailed(f"{name} answered no rows of numbers ({error})") from None


def _own_prompts(made: object) -> dict[str, str]:
    """An object's named prompts, as in sentence-transformers' models."""
    prompts = getattr(made, "prompts", None)
    return {str(name): str(text) for name, text in prompts.items()} if isinstance(prompts, dict) else {}


def _name(target: object) -> str:
    return str(getattr(target, "__name__", type(target).__name__)).strip("<>")
