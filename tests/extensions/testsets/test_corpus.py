from __future__ import annotations

import contextlib
import gzip
import io
import json
import sqlite3
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import pyarrow
import pyarrow.parquet
import pypdf
import pytest
from bakeoff.calls.retry import RetryPolicy
from bakeoff.core.task import DocumentChunking
from bakeoff.extensions.testsets import mediawiki
from bakeoff.extensions.testsets.corpus import Options, import_corpus
from bakeoff.extensions.testsets.document_files import (
    READERS,
    Unreadable,
    read_html,
    read_markdown,
    read_pdf,
    read_text,
)
from bakeoff.extensions.testsets.select import select
from bakeoff.tasks.formats import native
from bakeoff.tasks.formats.native import Article
from bakeoff_providers.errors import CallFailed, InputError
from hypothesis import given
from hypothesis import strategies as st

from tests.errors import refuses, says
from tests.wiki import Page, Wiki

QUICK = RetryPolicy(attempts=3, sleep=lambda seconds: None)


def imported(source: Path, **options: Any) -> list[Article]:
    return import_corpus(source, Options(**options)).file.articles


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    (folder / "billing").mkdir(parents=True)
    (folder / ".git").mkdir()
    (folder / ".git" / "notes.md").write_text("# hidden\n\nno document")
    (folder / "billing" / "refunds.md").write_text("# Refunds\n\nMoney **comes** [back](http://x.y) in *five* days.\n")
    (folder / "billing" / "copy.txt").write_text("money comes back in five days")
    (folder / "about.html").write_text(
        "<html><head><title>About us</title><style>p{}</style></head><body><nav>Home</nav>"
        "<h1>About us</h1><p>We sell &amp; repair<br>bicycles.</p><script>x()</script></body></html>"
    )
    (folder / "empty.md").write_text("---\ntitle: Nothing\n---\n\n")
    (folder / "Old Town.txt").write_text("Where trams turn round.")
    (folder / "picture.png").write_bytes(b"\x89PNG")
    return folder


class TestAFolder:
    def test_documents_titles_and_categories(self, docs: Path) -> None:
        imported = import_corpus(docs, Options())
        by_title = {article.title: article for article in imported.file.articles}
        assert set(by_title) == {"About us", "Old Town", "billing/copy"}
        assert by_title["About us"].summary == "We sell & repair\nbicycles."
        assert by_title["Old Town"].summary == "Where trams turn round."

    def test_a_name_that_says_little_comes_with_its_folders(self, tmp_path: Path) -> None:
        names = [
            "Archive/Tar/File.txt",
            "Archive/Tar.txt",
            "Tar.txt",
            "a/open_hours.txt",
            "b/open_hours.txt",
            "b/to-do.txt",
        ]
        for name in names:
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(f"what {name} says")
        titles = {article.document_id: article.title for article in imported(tmp_path)}
        assert [titles[name] for name in names] == [
            "Archive/Tar/File", "Archive/Tar", "Tar", "a/open hours", "b/open hours", "to do",
        ]  # fmt: skip

    def test_what_is_empty_is_not_written(self, docs: Path) -> None:
        written = msgspec.json.decode(msgspec.json.encode(import_corpus(docs, Options()).file))["articles"]
        assert [*written[0]] == ["page_id", "title", "summary"]
        assert [*written[2]] == ["page_id", "title", "summary", "categories"]

    def test_duplicates_and_empty_ones_are_named(self, docs: Path) -> None:
        imported = import_corpus(docs, Options())
        assert imported.empty == ["empty.md"]
        assert imported.duplicates == [("billing/refunds.md", "billing/copy.txt")]  # the same words, other signs
        assert imported.file.metadata | {"imported": ""} == {
            "source": "docs", "imported": "", "documents": 3, "empty": 1, "duplicates": 1, "missing": 0,
            "skipped": 1,
            "left_out": {
                "empty": ["empty.md"],
                "duplicates": ["billing/refunds.md = billing/copy.txt"],
                "skipped": imported.skipped,
            },
        }  # fmt: skip
        (skipped,) = imported.skipped
        says(skipped, "picture.png", ".png")

    def test_a_document_is_called_by_its_path(self, docs: Path) -> None:
        assert {article.document_id for article in imported(docs)} == {"about.html", "Old Town.txt", "billing/copy.txt"}

    def test_folders_are_categories_and_select_draws_by_them(self, docs: Path) -> None:
        articles = imported(docs)
        assert {article.title: article.categories for article in articles}["billing/copy"] == ["billing"]
        assert len(select(articles, n=2).articles) == 2

    def test_a_folder_without_texts_and_a_text_that_is_none(self, docs: Path, tmp_path: Path) -> None:
        (tmp_path / "none").mkdir()
        with refuses(InputError, file="none"):
            imported(tmp_path / "none")
        (docs / "latin.txt").write_bytes("Straße".encode("latin-1"))
        (docs / "broken.pdf").write_bytes(b"%PDF-1.4 nothing more")
        (docs / "README").write_text("no ending")
        skipped = import_corpus(docs, Options()).skipped
        assert [line.partition(": ")[0] for line in skipped] == ["README", "broken.pdf", "latin.txt", "picture.png"]
        says(skipped[0], "README")
        says(skipped[1], "PDF")
        says(skipped[2], "UTF-8")
        says(skipped[3], "picture.png")

    def test_only_empty_documents_are_no_corpus(self, tmp_path: Path) -> None:
        (tmp_path / "a.txt").write_text(" \n")
        with refuses(InputError):
            imported(tmp_path)


def test_markdown_is_read_as_a_reader_sees_it() -> None:
    title, text, fields = read_markdown(
        "---\ntitle: \"Day trips\"\ntags: [lake, 'boats']\nstate: Utah\n---\n"
        'Some _quiet_ places with snake_case_names:\n\n- **Bear Lake** ([map](x.png "t"))\n1. a `code` word\n\n'
        "> quoted\n\n```python\nprint(1)\n```\n| a | b |\n|---|---|\n| 1 | 2 |\n***\n<!-- no -->\n"
        "![pic][1]\n\n[1]: x.png\n"
    )
    assert title == "Day trips"
    assert fields == {"tags": "lake; boats", "state": "Utah"}
    assert text == (
        "Some quiet places with snake_case_names:\n\nBear Lake (map)\n\na code word\n\nquoted\n\nprint(1)\n\n"
        "a | b\n1 | 2\n\npic"
    )


def test_markdown_of_every_kind() -> None:
    title, text, _ = read_markdown(
        "Top\n===\n\n## Part *two* ##\n\n* a\n* b\n  more\n\n~~old~~ \\*kept\\* <b>bold</b> &amp; [x](y) <http://h/>\n\n"
        "<div>shown <!-- not --> too</div>\n"
    )
    assert title == "Top"
    assert text == "Part two\n\na\nb\nmore\n\nold *kept* bold & x http://h/\n\nshown too"


@pytest.mark.parametrize(
    "hostile",
    ["# a" + " " * 2000 + "b", "[" * 20_000, "![" * 5000, "*a " * 5000, "<!--" * 5000, ">" * 5000, "`a`` " * 5000],
)
def test_hostile_markdown_keeps_its_words(hostile: str) -> None:
    """Growth is measured by `make chaos`; here, that nothing breaks."""
    title, text, _ = read_markdown(f"{hostile}\n\nlast words")
    assert "last words" in text or hostile.startswith("<!--")
    assert title == ("a b" if hostile.startswith("#") else "")


def test_front_matter_reaches_the_article(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text(
        "---\ncity: Loa\nstate: Utah\ncategories:\n  - town\n  - valley\n---\n# Loa\n\nSmall."
    )
    (article,) = imported(tmp_path)
    assert (article.title, article.city, article.state, article.categories) == (
        "Loa",
        "Loa",
        "Utah",
        ["town", "valley"],
    )


def test_whatever_else_is_known_of_a_document_is_its_metadata(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("---\nid: 17\nauthor: Ada\nsince: 2024\ntags: [x]\n---\n# Loa\n\nSmall.")
    (tmp_path / "b.html").write_text(
        '<html lang="de"><head><meta name="Author" content="Bo"><meta name="viewport" content="width=1">'
        "<title>B</title></head><body>Text</body></html>"
    )
    first, second = imported(tmp_path)
    assert first.metadata == {"id": "17", "author": "Ada", "since": "2024"}
    assert second.metadata == {"author": "Bo", "language": "de"}
    assert native.document(first).metadata["author"] == "Ada"  # filters can use it


def test_html_that_nobody_closed() -> None:
    title, text, _ = read_html(b"<head><title>T</title><body><p>one<p>two</div><li>three")
    assert (title, text) == ("T", "one\n\ntwo\n\nthree")


@pytest.mark.parametrize(
    ("page", "shown"),
    [
        ("<title>Ü</title><p>straße</p>".encode(), "straße"),
        ('<meta charset="latin-1"><p>straße</p>'.encode("latin-1"), "straße"),
        (b"<p>a<!-- no --> b<svg><title>drawn</title></svg><script>x</script>c</p>", "a bc"),
        (b"<p>one<br>two</p><ul><li>three<li>four</ul>", "one\ntwo\n\nthree\n\nfour"),
        (b"", ""),
    ],
)
def test_what_a_reader_of_a_page_sees(page: bytes, shown: str) -> None:
    assert read_html(page)[1] == shown


@pytest.mark.parametrize(
    "page", [b"<table><tr>" + b"<td>" * 20_000, b"<" * 20_000, b"<b><p>" * 5_000, b"<a " + b"b " * 20_000]
)
def test_pages_that_take_other_parsers_very_long(page: bytes) -> None:
    assert read_html(page)[0] == ""


def test_a_page_that_is_nested_too_deeply_is_no_document() -> None:
    with refuses(Unreadable):
        read_html(b"<div>" * 20_000 + b"text")


def test_pdf_files(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(pdf("Copper is a metal", Title="On metals", Author="Ada"))
    (tmp_path / "b.pdf").write_bytes(pdf("Sailing on lakes"))
    metals, lakes = imported(tmp_path)
    assert (metals.document_id, metals.title, metals.summary) == ("a.pdf", "On metals", "Copper is a metal")
    assert metals.metadata == {"author": "Ada"}
    assert (lakes.title, lakes.summary, lakes.metadata) == ("b", "Sailing on lakes", msgspec.UNSET)
    with refuses(Unreadable, "OCR"):
        read_pdf(pdf(""))
    with refuses(Unreadable):
        read_pdf(locked(pdf("secret")))


def pdf(text: str, **about: str) -> bytes:
    """One page with one line of text, written by hand after the PDF reference."""
    drawn = f"BT /F1 12 Tf 20 100 Td ({text}) Tj ET".encode() if text else b""
    facts = " ".join(f"/{name} ({value})" for name, value in about.items())
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 300 200] /Contents 4 0 R "
        b"/Resources << /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >> >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(drawn), drawn),
        f"<< {facts} >>".encode(),
    ]
    content, places = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, start=1):
        places.append(len(content))
        content += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    trailer = b"trailer\n<< /Size 6 /Root 1 0 R /Info 5 0 R >>\nstartxref\n%d\n%%%%EOF\n" % len(content)
    return content + b"xref\n0 6\n0000000000 65535 f \n" + table + trailer


def locked(content: bytes) -> bytes:
    writer = pypdf.PdfWriter(clone_from=io.BytesIO(content))
    writer.encrypt("key", algorithm="RC4-128")
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def test_a_plain_title_needs_a_blank_line() -> None:
    assert read_text("Heading\n\nBody.\nMore.")[:2] == ("Heading", "Body.\nMore.")
    assert read_text("One line\nand another\nand one more")[0] == ""


@given(st.text().map(str.encode) | st.binary(), st.sampled_from(sorted(READERS)))
def test_any_file_is_read_or_named(content: bytes, suffix: str) -> None:
    with contextlib.suppress(Unreadable):
        _, text, _ = READERS[suffix](content)
        assert text == text.strip()


ROWS: list[dict[str, Any]] = [
    {"sku": "a-1", "name": "Copper", "body": "mine", "tags": "metal; red", "price": 3},
    {"sku": "b-2", "name": "Boats", "body": "lake", "tags": "", "price": None},
]


class TestTables:
    @pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl", "json", "parquet", "db"])
    def test_the_same_rows_from_every_kind_of_file(self, suffix: str, tmp_path: Path) -> None:
        path = tmp_path / f"rows.{suffix}"
        if suffix in ("csv", "tsv"):
            mark = "," if suffix == "csv" else "\t"
            lines = [mark.join(ROWS[0])]
            lines += [mark.join(f'"{"" if value is None else value}"' for value in row.values()) for row in ROWS]
            path.write_text("\n".join(lines), encoding="utf-8-sig")
        elif suffix == "jsonl":
            path.write_text("\n".join(map(json.dumps, ROWS)) + "\n\n")
        elif suffix == "json":
            path.write_text(json.dumps(ROWS))
        elif suffix == "parquet":
            pyarrow.parquet.write_table(pyarrow.Table.from_pylist(ROWS), path)
        else:
            with sqlite3.connect(path) as connection:
                connection.execute("CREATE TABLE goods (sku TEXT, name TEXT, body TEXT, tags TEXT, price INT)")
                connection.executemany("INSERT INTO goods VALUES (:sku, :name, :body, :tags, :price)", ROWS)
        copper, boats = imported(path, columns={"id": "sku"})
        assert (copper.title, copper.summary, copper.categories) == ("Copper", "mine", ["metal", "red"])
        assert (boats.title, boats.summary, boats.categories) == ("Boats", "lake", [])
        assert (copper.document_id, boats.document_id) == ("a-1", "b-2")
        assert copper.metadata == {"price": 3}
        assert boats.metadata is msgspec.UNSET

    @pytest.mark.parametrize(
        ("cells", "kept"),
        [
            (["2024", "0", "-3"], [2024, 0, -3]),
            (["2024", "", " 7 "], [2024, None, 7]),
            (["84101", "02134", "1"], ["84101", "02134", "1"]),  # a zip code has lost something without its zero
            (["1", "2.5", "3"], ["1", "2.5", "3"]),  # no filter compares fractions
            (["1", "n/a", "3"], ["1", "n/a", "3"]),
            (["4006381333931", "9999999999999999", "1"], ["4006381333931", "9999999999999999", "1"]),
            (["1_000", "+5", "٣"], ["1_000", "+5", "٣"]),
        ],
    )
    def test_a_column_of_whole_numbers_is_numbers(self, cells: list[str], kept: list[Any], tmp_path: Path) -> None:
        rows = "".join(f"{number},text {number},{cell}\n" for number, cell in enumerate(cells))
        (tmp_path / "x.csv").write_text(f"id,text,of\n{rows}")
        corpus = import_corpus(tmp_path / "x.csv", Options())
        assert [(article.metadata or {}).get("of") for article in corpus.file.articles] == kept
        numbers = any(isinstance(value, int) for value in kept)
        says(corpus.taken, "id = id", "title =", "text = text", "(numbers)" if numbers else "of")

    def test_texts_of_a_file_that_has_types_stay_texts(self, tmp_path: Path) -> None:
        (tmp_path / "x.jsonl").write_text('{"text": "mine", "year": "2024"}\n')
        assert imported(tmp_path / "x.jsonl")[0].metadata == {"year": "2024"}

    def test_numbers_stay_and_lists_are_lists(self, tmp_path: Path) -> None:
        (tmp_path / "x.jsonl").write_text('{"id": 7, "text": "mine", "categories": ["metal", "red"]}\n')
        (article,) = imported(tmp_path / "x.jsonl")
        assert (article.document_id, article.categories) == (7, ["metal", "red"])

    def test_without_an_id_the_row_is_the_id(self, tmp_path: Path) -> None:
        (tmp_path / "x.csv").write_text("text,note\nmine,a\nlake,\n")
        assert [(article.document_id, article.metadata) for article in imported(tmp_path / "x.csv")] == [
            ("row 1", {"note": "a"}),
            ("row 2", msgspec.UNSET),
        ]

    def test_chunks_are_cut_as_asked(self, tmp_path: Path) -> None:
        (tmp_path / "x.jsonl").write_text('{"text": "mine"}\n')
        (article,) = imported(tmp_path / "x.jsonl", chunking=DocumentChunking("sentence", 50))
        assert article.embedding_metadata == DocumentChunking("sentence", 50)

    @pytest.mark.parametrize(
        ("content", "options", "said"),
        [
            ("a,b\n1,2\n", {}, "x.csv"),
            ("id,text\n1,x\n1,y\n", {}, "line 3"),
            ("id,text\n1,x,z\n", {}, "line 2"),
            ("id,text\n", {}, "x.csv"),
            ("id,text\n1,x\n", {"columns": {"text": "body"}}, "'body'"),
            ("id,text\n1,x\n", {"columns": {"words": "text"}}, "'words'"),
            ('id,text\n1,"x\n', {}, "CSV"),
        ],
    )
    def test_bad_tables_are_named_with_their_place(
        self, content: str, options: dict[str, Any], said: str, tmp_path: Path
    ) -> None:
        (tmp_path / "x.csv").write_text(content)
        with refuses(InputError, said):
            imported(tmp_path / "x.csv", **options)

    def test_what_is_no_table(self, tmp_path: Path) -> None:
        for name, content, place in (("x.jsonl", "{}\n[1]\n", "line 2"), ("x.parquet", "no", ""), ("x.docx", "no", "")):
            (tmp_path / name).write_text(content)
            with refuses(InputError, file=name, place=place):
                imported(tmp_path / name)
        with refuses(InputError, file="none.csv"):
            imported(tmp_path / "none.csv")


class TestADatabase:
    def _tables(self, path: Path) -> None:
        with sqlite3.connect(path) as connection:
            connection.execute("CREATE TABLE notes (id INTEGER, text TEXT)")
            connection.execute("INSERT INTO notes VALUES (1, 'a note')")
            connection.execute('CREATE TABLE "odd name" (id INTEGER, text TEXT)')
            connection.execute("INSERT INTO \"odd name\" VALUES (2, 'another')")

    def test_one_of_several_tables_must_be_named(self, tmp_path: Path) -> None:
        self._tables(tmp_path / "x.db")
        with refuses(InputError, file="x.db"):
            imported(tmp_path / "x.db")
        assert [article.document_id for article in imported(tmp_path / "x.db", table="odd name")] == [2]
        with refuses(InputError, "'note'", file="x.db"):
            imported(tmp_path / "x.db", table="note")

    def test_a_damaged_one_is_named_where_the_damage_shows(self, tmp_path: Path) -> None:
        file = tmp_path / "x.db"
        self._tables(file)
        content = file.read_bytes()
        file.write_bytes(content[:4096] + b"\xff" * (len(content) - 4096))  # the pages after the first
        with refuses(InputError, file="x.db"):
            imported(file, table="notes")

    def test_its_name_may_have_signs_of_an_address(self, tmp_path: Path) -> None:
        self._tables(tmp_path / "50% #1?.db")
        assert [article.document_id for article in imported(tmp_path / "50% #1?.db", table="notes")] == [1]

    def test_the_shape_of_wikipedia_db_is_joined(self, tmp_path: Path) -> None:
        with sqlite3.connect(tmp_path / "wikipedia.db") as connection:
            connection.execute(
                "CREATE TABLE page_summaries (page_id INTEGER, title TEXT, short_summary TEXT, long_summary TEXT, "
                "key_topics TEXT, best_city TEXT, best_county TEXT, best_state TEXT, overall_confidence REAL)"
            )
            connection.execute("CREATE TABLE articles (pageid INTEGER, html_file TEXT, categories TEXT)")
            rows: list[tuple[Any, ...]] = [
                (n, f"Town {n}, Utah", "s", f"Long text {n}", "", "", "Wayne", "Utah", 1.0) for n in range(464)
            ]
            rows[5] = (5, "Empty, Utah", "", None, "", None, None, "Utah", 0.1)
            connection.executemany("INSERT INTO page_summaries VALUES (?,?,?,?,?,?,?,?,?)", rows)
            connection.executemany(
                "INSERT INTO articles VALUES (?,?,?)", [(n, "", "Towns in Utah") for n in range(464)]
            )
        imported = import_corpus(tmp_path / "wikipedia.db", Options())
        assert len(imported.file.articles) == 463
        assert imported.empty == ["5 Empty, Utah"]
        assert imported.file.articles[0].categories == ["city", "Towns in Utah"]


class TestAWiki:
    PAGES: ClassVar = {
        "Loa, Utah": Page(11, "Loa is a town.", "It has a lake.", ["Towns in Utah", "B", "C", "D", "E"]),
        "Bear Lake": Page(12, "Bear Lake is a lake.", categories=["Lakes of Utah"]),
        "Stub": Page(13, ""),
    }

    def test_the_address_is_kept_without_its_query(self, tmp_path: Path) -> None:
        (tmp_path / "titles.txt").write_text("Bear Lake\n")
        with Wiki(self.PAGES) as wiki:
            imported = import_corpus(tmp_path / "titles.txt", Options(api=f"{wiki.api}?token=hunter2"))
            assert wiki.requests[0]["token"] == "hunter2"
        assert imported.file.metadata["api"] == wiki.api

    def test_introductions_redirects_categories_and_what_is_missing(self, tmp_path: Path) -> None:
        (tmp_path / "titles.txt").write_text("# towns\nLoa, Utah\nbear_Lake\nLoa\n\nNowhere\nStub\n")
        with Wiki(self.PAGES, {"Loa": "Loa, Utah"}) as wiki:
            imported = import_corpus(tmp_path / "titles.txt", Options(api=wiki.api))
        loa, bear = imported.file.articles
        assert (loa.document_id, loa.title, loa.summary) == (11, "Loa, Utah", "Loa is a town.")
        assert loa.categories == ["city", "Towns in Utah", "B", "C", "D", "E"]  # five, over two answers
        assert (bear.document_id, bear.categories) == (12, ["natural feature", "Lakes of Utah"])
        assert imported.missing == ["Nowhere"]
        assert imported.empty == ["Stub"]
        assert len(wiki.requests) == 2
        assert "bakeoff" in wiki.agents[0]

    def test_twenty_titles_a_request(self) -> None:
        pages = {f"Page {n}": Page(n, f"Text {n}.") for n in range(1, 46)}
        with Wiki(pages) as wiki:
            fetched = mediawiki.fetch(list(pages), wiki.api)
        assert [article.document_id for article in fetched.articles] == list(range(1, 46))
        assert all(article.summary for article in fetched.articles)
        assert [len(request["titles"].split("|")) for request in wiki.requests] == [20, 20, 5]

    def test_whole_articles_come_one_by_one(self) -> None:
        with Wiki(self.PAGES) as wiki:
            fetched = mediawiki.fetch(["Loa, Utah", "Bear Lake"], wiki.api, whole=True)
        assert fetched.articles[0].summary == "Loa is a town.\nIt has a lake."
        assert {request["titles"] for request in wiki.requests} == {"Loa, Utah", "Bear Lake"}

    def test_a_wiki_that_lags_or_stumbles_is_asked_again(self) -> None:
        with Wiki(self.PAGES) as wiki:
            wiki.faults += ["maxlag", 503]
            assert mediawiki.fetch(["Bear Lake"], wiki.api, policy=QUICK).articles
            assert len(wiki.requests) == 3
            wiki.faults.append("badvalue")
            with refuses(CallFailed, "badvalue"):
                mediawiki.fetch(["Bear Lake"], wiki.api, policy=QUICK)
            assert len(wiki.requests) == 4

    @pytest.mark.parametrize(
        "body",
        [
            {"error": "text"},
            {"error": {"code": 7}},
            {"query": {"pages": [{"pageid": 12}]}},
            {"query": {"pages": [{"pageid": "12", "title": "Bear Lake"}]}},
            {"query": {"pages": [{"pageid": True, "title": "Bear Lake"}]}},
            {"query": {"pages": {"12": {"title": "Bear Lake"}}}},
            {"query": {"pages": [{"title": "Bear Lake", "categories": [{}]}]}},
            {"query": {"normalized": [{"from": "x"}]}},
            {"query": {"pages": [{"title": "Bear Lake", "extract": 5}]}},
            {"continue": "x"},
            [],
        ],
    )
    def test_an_answer_of_another_shape_is_refused(self, body: Any) -> None:
        with Wiki(self.PAGES) as wiki:
            wiki.faults.append(body)
            with refuses(CallFailed):
                mediawiki.fetch(["Bear Lake"], wiki.api, policy=QUICK)
            assert len(wiki.requests) == 1

    def test_a_redirect_is_not_followed(self) -> None:
        with Wiki(self.PAGES) as wiki, Wiki(self.PAGES) as other:
            wiki.faults.append(other.api)
            with refuses(CallFailed, "redirect"):
                mediawiki.fetch(["Bear Lake"], wiki.api, policy=QUICK)
            assert other.requests == []

    def test_size_time_and_parts_are_bounded(self, monkeypatch: pytest.MonkeyPatch) -> None:
        with Wiki(self.PAGES) as wiki:
            wiki.faults.append(gzip.compress(bytes(64 << 20), 1))
            with refuses(CallFailed, "bytes"):
                mediawiki.fetch(["Bear Lake"], wiki.api, policy=QUICK)
            wiki.faults += [0.05] * 3
            with pytest.raises(CallFailed) as late:
                mediawiki.fetch(["Bear Lake"], wiki.api, policy=QUICK, timeout=0.3)
            assert late.value.retryable
            wiki.faults.clear()
            wiki.requests.clear()
            monkeypatch.setattr(mediawiki, "MOST_PARTS", 3)
            wiki.faults += [{"continue": {"clcontinue": "1"}}] * 9
            with refuses(CallFailed, "'Bear Lake'"):
                mediawiki.fetch(["Bear Lake"], wiki.api, policy=QUICK)
            assert len(wiki.requests) == 3

    def test_addresses_and_titles_that_are_none(self, tmp_path: Path) -> None:
        with Wiki(self.PAGES) as wiki, refuses(CallFailed, "--api"):
            mediawiki.fetch(["Loa"], wiki.api.replace("api.php", "other"), policy=QUICK)
        with refuses(InputError, "'en.example.org'", place="--api"):
            mediawiki.fetch(["Loa"], "en.example.org")
        with refuses(InputError, "'A|B'"):
            mediawiki.fetch(["A|B"], "http://127.0.0.1:1/")
        (tmp_path / "t.txt").write_text("# nothing\n")
        with refuses(InputError, file="t.txt"):
            imported(tmp_path / "t.txt", api="http://127.0.0.1:1/")
