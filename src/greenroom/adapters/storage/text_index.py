"""A text index in one SQLite file, ranked by FTS5.

FTS5 sees words that are split here: letters and digits in lower case, each Chinese, Japanese or Korean character alone.
Two neighbouring characters are searched as a phrase, so a Chinese word of two characters is found inside a sentence.
"""

from __future__ import annotations

import re
import sqlite3
import threading
import unicodedata
import weakref
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final

from greenroom.adapters.storage.sqlite.faults import DAMAGE_CODES, read_code, translate_errors
from greenroom.core.ports.text_index import Document, Match

VERSION: Final = 1
"""Version of the tables and of the split into words. A file with another version is emptied."""

BUSY_TIMEOUT_S: Final = 10.0
MAX_QUERY_TERMS: Final = 48
"""Maximum number of words, or pairs of characters, of a query. Later ones are ignored."""

MIN_PREFIX_CHARS: Final = 3
"""Characters of a word from which longer words that begin with it match too."""

TABLES: Final = f"""
CREATE TABLE documents (
    id         INTEGER PRIMARY KEY,
    collection TEXT NOT NULL,
    key        TEXT NOT NULL,
    stamp      TEXT NOT NULL,
    UNIQUE (collection, key)
);
CREATE TABLE tags (
    folded   TEXT    NOT NULL,
    document INTEGER NOT NULL,
    tag      TEXT    NOT NULL,
    PRIMARY KEY (folded, document)
) WITHOUT ROWID;
CREATE INDEX tags_by_document ON tags (document);
CREATE VIRTUAL TABLE words USING fts5(text, tags, tokenize = 'porter unicode61');
INSERT INTO words (words, rank) VALUES ('rank', 'bm25(1.0, 3.0)');
PRAGMA user_version = {VERSION};
"""

_CJK: Final = r"\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003fffd"
_RUN: Final = re.compile(rf"[{_CJK}]+|[^\W_{_CJK}]+")
_IS_CJK: Final = re.compile(rf"[{_CJK}]")
_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def split_words(text: str) -> str:
    """Return the words of a text with spaces between: `parseLine 记忆` becomes `parse line 记 忆`."""
    return " ".join(" ".join(run) if _IS_CJK.match(run) else run for run in _find_runs(text))


def _find_runs(text: str) -> list[str]:
    return _RUN.findall(unicodedata.normalize("NFKC", _HUMP.sub(" ", text)).casefold())


def split_query(query: str) -> list[str]:
    """Return the terms of a query: words, and phrases of two neighbouring Chinese characters. Each occurs once."""
    terms: dict[str, None] = {}
    for run in _find_runs(query):
        if _IS_CJK.match(run) and len(run) > 1:
            terms.update(dict.fromkeys(f"{first} {second}" for first, second in pairwise(run)))
        else:
            terms[run] = None
    return list(terms)[:MAX_QUERY_TERMS]


class SqliteTextIndex:
    """The index in one file, which is made when missing and emptied when damaged. Several processes may use it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        with translate_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                self._db = self._open()
            except sqlite3.DatabaseError as error:
                if read_code(error) not in DAMAGE_CODES:
                    raise
                for name in (path.name, f"{path.name}-wal", f"{path.name}-shm"):
                    path.with_name(name).unlink(missing_ok=True)
                self._db = self._open()

        weakref.finalize(self, self._db.close)

    def _open(self) -> sqlite3.Connection:
        db = sqlite3.connect(self._path, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False)
        try:
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = OFF")  # a lost index is filled again
            db.execute("BEGIN IMMEDIATE")
            if db.execute("PRAGMA user_version").fetchone()[0] != VERSION:
                for table in ("documents", "tags", "words"):
                    db.execute(f"DROP TABLE IF EXISTS {table}")
                for statement in TABLES.split(";\n"):
                    db.execute(statement)
            db.execute("COMMIT")
        except sqlite3.Error:
            db.close()
            raise
        return db

    def close(self) -> None:
        self._db.close()

    def replace(self, collection: str, documents: Iterable[Document]) -> None:
        """Add documents. One with a key that exists replaces the old document."""
        new = list(documents)
        with translate_errors(self._path), self._lock, self._db:
            self._db.execute("BEGIN IMMEDIATE")
            self._delete(collection, [document.key for document in new])
            for document in new:
                self._insert(collection, document)

    def _insert(self, collection: str, document: Document) -> None:
        row = self._db.execute(
            "INSERT INTO documents (collection, key, stamp) VALUES (?, ?, ?)",
            (collection, document.key, document.stamp),
        ).lastrowid
        words = (row, split_words(document.text), split_words("\n".join(document.tags)))
        self._db.execute("INSERT INTO words (rowid, text, tags) VALUES (?, ?, ?)", words)
        tags = {tag.casefold(): tag for tag in document.tags}
        self._db.executemany("INSERT INTO tags VALUES (?, ?, ?)", [(folded, row, tag) for folded, tag in tags.items()])

    def remove(self, collection: str, keys: Iterable[str]) -> None:
        """Remove documents. Unknown keys are ignored."""
        with translate_errors(self._path), self._lock, self._db:
            self._db.execute("BEGIN IMMEDIATE")
            self._delete(collection, list(keys))

    def _delete(self, collection: str, keys: Sequence[str]) -> None:
        for key in keys:
            found = self._db.execute("SELECT id FROM documents WHERE collection = ? AND key = ?", (collection, key))
            for row in found.fetchall():
                self._db.execute("DELETE FROM words WHERE rowid = ?", row)
                self._db.execute("DELETE FROM tags WHERE document = ?", row)
                self._db.execute("DELETE FROM documents WHERE id = ?", row)

    def get_stamps(self, collection: str) -> Mapping[str, str]:
        """Return the stamp of each document by its key."""
        with translate_errors(self._path), self._lock:
            return dict(self._db.execute("SELECT key, stamp FROM documents WHERE collection = ?", (collection,)))

    def search(
        self, query: str, *, limit: int, collections: Sequence[str], tags: Sequence[str] = ()
    ) -> Sequence[Match]:
        """Return documents with all words of the query, then those with some, best first. See `TextIndex.search`."""
        where = f"d.collection IN ({_marks(collections)})"
        values: list[object] = [*collections]
        if tags:
            where += f" AND d.id IN (SELECT document FROM tags WHERE folded IN ({_marks(tags)}))"
            values += [tag.casefold() for tag in tags]
        terms = split_query(query)
        with translate_errors(self._path), self._lock:
            if not terms:
                newest = f"SELECT d.collection, d.key, 0.0 FROM documents d WHERE {where} ORDER BY d.key DESC LIMIT ?"
                return [_read_match(row) for row in self._db.execute(newest, (*values, limit))]
            ranked = (
                "SELECT d.collection, d.key, -w.rank FROM words w JOIN documents d ON d.id = w.rowid "
                f"WHERE w.words MATCH ? AND {where} ORDER BY w.rank LIMIT ?"
            )
            found: dict[tuple[str, str], Match] = {}
            for expression in _build_expressions(terms):
                for row in self._db.execute(ranked, (expression, *values, limit)):
                    found.setdefault(row[:2], _read_match(row))
                if len(found) >= limit:
                    break
        return list(found.values())[:limit]

    def count_tags(self, collections: Sequence[str]) -> Mapping[str, int]:
        """Return how many documents have each tag, most frequent first."""
        counted = (
            "SELECT min(t.tag), count(*) FROM tags t JOIN documents d ON d.id = t.document "
            f"WHERE d.collection IN ({_marks(collections)}) GROUP BY t.folded ORDER BY count(*) DESC, 1"
        )
        with translate_errors(self._path), self._lock:
            return dict(self._db.execute(counted, tuple(collections)))


def make_temporary_index() -> SqliteTextIndex:
    """Return an index in memory."""
    return SqliteTextIndex(Path(":memory:"))


def _build_expressions(terms: Sequence[str]) -> list[str]:
    """Return FTS5 expressions, the strictest first. Terms are letters and digits only, so quotes make them literal."""
    phrases = [f'"{term}"' for term in terms]
    loose = [
        f"{phrase}*" if len(term) >= MIN_PREFIX_CHARS and term.isascii() else phrase
        for term, phrase in zip(terms, phrases, strict=True)
    ]
    return [" AND ".join(phrases), " OR ".join(phrases), " OR ".join(loose)]


def _marks(values: Sequence[str]) -> str:
    return ", ".join("?" * len(values))


def _read_match(row: tuple[str, str, float]) -> Match:
    collection, key, score = row
    return Match(collection=collection, key=key, score=score)
