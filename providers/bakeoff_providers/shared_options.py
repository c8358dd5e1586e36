"""Options shared by providers, rerankers and chat models, with one meaning per name."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from bakeoff_providers.cards import Prompt
from bakeoff_providers.options import Transport

WIDTH = Meta(ge=1, le=65_536)
MANY = Meta(ge=1, le=1_000_000_000)
SEED = Meta(ge=0, le=2**32 - 1)  # accepted by every library

Model = Annotated[str | None, "model name; set as `model`, not under options"]
OneModel = Annotated[str | None, "the only model"]
Label = Annotated[str | None, "default name of the row"]
Revision = Annotated[str | None, "cache version of the vectors; change it to embed again"]
Dimensions = Annotated[int | None, "vector length to request; default: the model's own", WIDTH]
Context = Annotated[int | None, "the model's context in tokens; longer texts get a warning", MANY, Transport]
DocumentPrompt = Annotated[Prompt | None, "prompt for documents, or { name = … }; default: the model's own"]
QueryPrompt = Annotated[Prompt | None, "prompt for queries, or { name = … }; default: the model's own"]
BatchItems = Annotated[int | None, "maximum texts per request; default: the model's limit", Transport]
BatchTokens = Annotated[int | None, "maximum tokens per request; default: the model's limit", MANY, Transport]
RequestsPerMinute = Annotated[int | None, "maximum requests per minute; default: no limit", MANY, Transport]
TokensPerMinute = Annotated[
    int | None, "maximum tokens per minute; default: no limit", Meta(ge=1, le=10**12), Transport
]
Price = Annotated[float | None, "US dollars per million tokens, instead of the list price", Transport]
BaseUrl = Annotated[str | None, "server address, instead of the provider's own or the environment's"]
Timeout = Annotated[float, "time limit per call, in seconds", Meta(gt=0, le=86_400), Transport]
KeyEnv = Annotated[str | None, "environment variable that holds the key", Transport]
File = Annotated[str, "Python file with the function, relative to the line-up"]
FunctionName = Annotated[str, "the function or class in that file"]
