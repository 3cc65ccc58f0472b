"""The text index: what is found, in which order, and what may be asked."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.adapters.storage.text_index import SqliteTextIndex, split_query, split_words
from greenroom.core.base.errors import StoreFault
from greenroom.core.ports.text_index import Document


@pytest.fixture
def index(tmp_path: Path) -> SqliteTextIndex:
    return SqliteTextIndex(tmp_path / "data" / "index.db")


def add(index: SqliteTextIndex, collection: str = "notes", **texts: str) -> None:
    index.replace(collection, [Document(key=key, text=text) for key, text in texts.items()])


def find(index: SqliteTextIndex, query: str, *tags: str, collections: tuple[str, ...] = ("notes",)) -> list[str]:
    return [match.key for match in index.search(query, limit=10, collections=collections, tags=tags)]


def test_the_document_with_all_words_comes_before_those_with_some(index: SqliteTextIndex) -> None:
    add(index, a="deploy deploy deploy", b="how to deploy the server", c="the weather", d="a server, a server")
    assert find(index, "deploy server")[0] == "b"
    assert set(find(index, "deploy server")) == {"a", "b", "d"}


def test_a_match_in_a_tag_counts_more(index: SqliteTextIndex) -> None:
    index.replace("notes", [Document(key="text", text="parser"), Document(key="tag", text="x", tags=("parser",))])
    assert find(index, "parser") == ["tag", "text"]


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("the tests are running", "run"),
        ("authentication needs a token", "auth"),
        ("call parseLine first", "line"),
        ("call save_memory first", "memory"),
        ("Ｆｕｌｌ width", "full"),
        ("用户登录以后失败了", "登录"),
        ("用户登录以后失败了", "录"),
        ("用户登录以后失败了", "登录失败的原因"),
        ("用pytest测试登录", "pytest"),
        ("한국어 문서", "문서"),
    ],
)
def test_words_are_found(index: SqliteTextIndex, text: str, query: str) -> None:
    add(index, wanted=text, other="entirely different 别的内容")
    assert find(index, query) == ["wanted"]


def test_two_characters_are_found_as_neighbours_only(index: SqliteTextIndex) -> None:
    add(index, apart="记得不要忘忆")
    assert find(index, "记忆") == []


def test_a_replaced_or_removed_document_is_not_found(index: SqliteTextIndex) -> None:
    add(index, a="old words", b="old ways")
    index.replace("notes", [Document(key="a", text="new", tags=("t",), stamp="2")])
    index.remove("notes", ["b", "unknown"])
    assert find(index, "old") == []
    assert (find(index, "new"), index.get_stamps("notes"), index.count_tags(["notes"])) == (["a"], {"a": "2"}, {"t": 1})


def test_a_search_stays_in_its_collections(index: SqliteTextIndex) -> None:
    add(index, "one", a="word")
    add(index, "two", b="word")
    assert find(index, "word", collections=("one",)) == ["a"]
    assert set(find(index, "word", collections=("one", "two", "none"))) == {"a", "b"}


def test_tags_filter_and_are_counted_without_case(index: SqliteTextIndex) -> None:
    tagged = [("1", ("API", "网络")), ("2", ("api",)), ("3", ())]
    index.replace("notes", [Document(key=key, text="word", tags=tags) for key, tags in tagged])
    assert find(index, "word", "api") == find(index, "", "Api") == ["2", "1"]
    assert find(index, "", "网络", "none") == ["1"]
    assert find(index, "") == ["3", "2", "1"]
    assert list(index.count_tags(["notes"]).items()) == [("API", 2), ("网络", 1)]


def test_another_process_sees_what_was_added(index: SqliteTextIndex, tmp_path: Path) -> None:
    other = SqliteTextIndex(tmp_path / "data" / "index.db")
    add(index, a="word")
    assert find(other, "word") == ["a"]


def test_a_damaged_file_is_emptied(tmp_path: Path) -> None:
    (tmp_path / "index.db").write_bytes(b"no database at all" * 100)
    index = SqliteTextIndex(tmp_path / "index.db")
    add(index, a="word")
    assert find(index, "word") == ["a"]


def test_a_file_of_another_version_is_emptied(tmp_path: Path) -> None:
    index = SqliteTextIndex(tmp_path / "index.db")
    add(index, a="word")
    index._db.execute("PRAGMA user_version = 99")
    index.close()
    assert find(SqliteTextIndex(tmp_path / "index.db"), "word") == []


def test_a_path_that_cannot_be_a_file_is_a_clear_fault(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreFault, match="file"):
        SqliteTextIndex(tmp_path / "file" / "index.db")
    with pytest.raises(StoreFault, match="open"):
        SqliteTextIndex(tmp_path)


@pytest.mark.parametrize(
    "query",
    [
        '"',
        "a AND",
        "NEAR(a b)",
        "*",
        "-x",
        "{}",
        "^a",
        "text:word",
        "a\0b",
        "\ud800",
        'x"y*',
        "(",
        "' OR 1",
        "a " * 500,
    ],
)
def test_no_query_breaks_the_search(index: SqliteTextIndex, query: str) -> None:
    add(index, a="a word near x")
    assert find(index, query) in ([], ["a"])


@given(st.text())
def test_a_text_is_split_into_words_without_signs(text: str) -> None:
    assert '"' not in split_words(text)
    assert not split_words(text) or split_query(text)
