"""A function or an object of your own as a provider: no card and no batch type needed, plain arrays will do."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Annotated, Any, ClassVar

import numpy as np

from bakeoff_providers.base import EmbeddingBatch, ModelCard, Provider, Role, Vectors
from bakeoff_providers.cards import FREE, overridden
from bakeoff_providers.code import code_identity, load_from_file
from bakeoff_providers.errors import EmbeddingFailed, InputError, lack
from bakeoff_providers.keys import (
    filled,
    is_secret_name,
    missing_variables,
    names_variable,
    variables_in,
    written_secret,
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
    """`embed(texts)` or `embed(texts, role)` from a file, or any object that other libraries call embeddings.

    A class is made with the options that are left over. `revision` names the version under which vectors are kept;
    without it a hash of the source file does, and an object from Python is asked anew in every run.
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
        **options: Annotated[
            Any, "any other option is handed to the class when it is made; ${NAME} is taken from the environment"
        ],
    ) -> None:
        if target is None and not (file and function):
            raise InputError("names no function", remedy='write it as provider = "file:mine.py:embed"')
        self._from_file, self._revision = target is None, revision
        self._code = load_from_file(file, function) if target is None else target
        made = _made(self._code, options, function) if self._from_file else target
        given = {Role.DOCUMENT: document_prompt, Role.QUERY: query_prompt}
        self._embed = as_embed(made, {role for role, prompt in given.items() if prompt is not None})
        self._options = {name: _as_identity(name, value) for name, value in sorted(options.items())}
        card = ModelCard(
            name=model or function or _name(target), price=FREE if self.local else None, prompts=_own_prompts(made)
        )
        self.card = overridden(
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
        """Only a line-up can say which function is meant."""
        return Needs(
            note=None
            if options.get("file")
            else lack("undeclared", what="the function", example='provider = "file:mine.py:embed"')
        )

    @classmethod
    def missing(cls, **options: Any) -> str | None:
        """Also a variable that an option names and that is not set."""
        return super().missing(**options) or missing_variables(options)

    def code(self) -> dict[str, str] | None:
        """A declared revision, or a hash of the file; an object from Python may hold anything, so it has neither."""
        if self._revision:
            return {"revision": self._revision}
        if self._from_file:
            return code_identity(self._code)
        declared = getattr(self._code, "revision", None)
        return {"revision": str(declared)} if isinstance(declared, (str, int)) else None

    def identity(self, role: Role) -> dict[str, str | int | float | bool | None]:
        """The options that its class was made with shape the vectors too."""
        return {**super().identity(role), **{f"option {name}": value for name, value in self._options.items()}}

    def embed(self, texts: Sequence[str], role: Role) -> EmbeddingBatch:
        """One call, its answer turned into one float32 matrix."""
        answer = self._embed([self.card.prompted(text, role) for text in texts], role)
        return answer if isinstance(answer, EmbeddingBatch) else EmbeddingBatch(_matrix(answer, self.card.name))


class OwnHosted(Own):
    """The same for code that asks a server: calls may cost, so queries are asked once and kept."""

    name: ClassVar[str] = "own_hosted"
    local: ClassVar[bool] = False


def embeds(value: object) -> bool:
    """Whether an object has the methods of somebody's embeddings."""
    return isinstance(value, Provider) or _methods(value) is not None


def as_embed(value: Any, prompted: Collection[Role] = ()) -> Embed:
    """One way to ask for vectors, whatever the object calls it; `prompted` roles get no prompt of the object's own."""
    if isinstance(value, Provider):
        return value.embed
    if methods := _methods(value, prompted):
        return methods
    if not callable(value):
        raise InputError(f"{type(value).__name__} has no method that embeds", remedy="give a function embed(texts)")
    if takes_role(value):
        return lambda texts, role: value(texts, role)
    return lambda texts, _role: value(texts)


def takes_role(function: Callable[..., Any]) -> bool:
    """Whether a function wants to know if it embeds queries or documents."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return False
    return len(parameters) > 1 and parameters[1].name in ("role", "input_type", "kind")


def _methods(value: Any, prompted: Collection[Role] = ()) -> Embed | None:
    """By their methods, so that none of these libraries is imported."""
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
    if _has(value, "encode"):  # sentence-transformers before that, and many that follow it
        return lambda texts, _role: value.encode(list(texts))
    if _has(value, "embed"):
        return as_embed(value.embed)
    return None


def _has(value: object, *methods: str) -> bool:
    return all(callable(getattr(value, method, None)) for method in methods)


def _made(code: Any, options: dict[str, Any], function: str) -> Any:
    """A class becomes an object; a function takes no options."""
    if isinstance(code, type):
        try:
            return code(**filled(options))
        except TypeError as error:
            raise InputError(f"{function}: {error}", place="options") from error
    if options:
        raise InputError(f"the function {function!r} takes no option {next(iter(options))!r}", place="options")
    return code


def _as_identity(name: str, value: Any) -> str:
    """An option in the cache key, which is stored: of what is secret, the hash alone.

    A key that is named as `${NAME}` is the same by its name: another one gives the same vectors.
    """
    named = variables_in(value)
    if isinstance(value, str) and is_secret_name(name) and names_variable(value):
        return value
    if not named and not is_secret_name(name) and not (isinstance(value, Mapping) and written_secret(value)):
        return str(value)
    return f"sha256 {hashlib.sha256(repr(filled(value)).encode(errors='replace')).hexdigest()[:16]}"


def _matrix(answer: Any, name: str) -> Vectors:
    """Arrays, lists of lists, lists of arrays and tensors."""
    if hasattr(answer, "detach"):
        answer = answer.detach().cpu().numpy()
    try:
        return np.asarray(answer, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise EmbeddingFailed(f"{name} answered no rows of numbers ({error})") from None


def _own_prompts(made: object) -> dict[str, str]:
    """The named prompts that an object carries, as sentence-transformers' models do."""
    prompts = getattr(made, "prompts", None)
    return {str(name): str(text) for name, text in prompts.items()} if isinstance(prompts, dict) else {}


def _name(target: object) -> str:
    return str(getattr(target, "__name__", type(target).__name__)).strip("<>")
