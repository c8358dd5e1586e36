"""Options that several providers, rerankers and chat models have: one meaning for each name."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from bakeoff_providers.cards import Prompt
from bakeoff_providers.options import Transport

WIDTH = Meta(ge=1, le=65_536)
MANY = Meta(ge=1, le=1_000_000_000)
SEED = Meta(ge=0, le=2**32 - 1)  # what every library takes

Model = Annotated[str | None, "which model; written as `model`, not among the options"]
OneModel = Annotated[str | None, "the one model there is: nothing else may be named"]
Label = Annotated[str | None, "what the row is called where it has no label"]
Revision = Annotated[str | None, "the version under which vectors are cached; a change makes them anew"]
Dimensions = Annotated[int | None, "length of the vectors that are asked for; the model's own if left out", WIDTH]
Context = Annotated[
    int | None, "most tokens of a text that the model reads; longer texts get a warning", MANY, Transport
]
DocumentPrompt = Annotated[Prompt | None, "text around documents, or { name = … } of the model's; its own if left out"]
QueryPrompt = Annotated[Prompt | None, "text around queries, or { name = … } of the model's; its own if left out"]
BatchItems = Annotated[int | None, "most texts in one request; the model's own limit if left out", Transport]
BatchTokens = Annotated[int | None, "most tokens in one request; the model's own limit if left out", MANY, Transport]
RequestsPerMinute = Annotated[int | None, "most requests a minute; no limit if left out", MANY, Transport]
TokensPerMinute = Annotated[int | None, "most tokens a minute; no limit if left out", Meta(ge=1, le=10**12), Transport]
Price = Annotated[float | None, "US dollars a million tokens, in place of the list price", Transport]
BaseUrl = Annotated[str | None, "address of the server, in place of the provider's own or the environment's"]
Timeout = Annotated[float, "seconds that one whole call may take", Meta(gt=0, le=86_400), Transport]
KeyEnv = Annotated[str | None, "name of the environment variable that holds the key", Transport]
File = Annotated[str, "the Python file that holds the function, relative to the line-up"]
FunctionName = Annotated[str, "the function or class in that file"]
