"""The text index: find documents by their words, best match first.

It is a copy of what stands elsewhere, such as files or a log. It can be deleted and filled again at any time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from greenroom.core.base.records import record


@record
class Document:
    """A document of a collection. A match in its tags counts more than one in its text.

    `stamp` is kept unchanged: for instance the size and time of a file, to see which documents are out of date.
    """

    key: str
    text: str
    tags: tuple[str, ...] = ()
    stamp: str = ""


@record
class Match:
    """A found document. A higher score is a better match; without words all scores are 0."""

    collection: str
    key: str
    score: float = 0.0


class TextIndex(Protocol):
    """Documents by collection and key, found by words in English and Chinese. Raises `StoreFault`.

    Calls block for a few milliseconds. They may come from any thread.
    """

    def replace(self, collection: str, documents: Iterable[Document]) -> None:
        """Add documents. One with a key that exists replaces the old document."""
        ...

    def remove(self, collection: str, keys: Iterable[str]) -> None:
        """Remove documents. Unknown keys are ignored."""
        ...

    def get_stamps(self, collection: str) -> Mapping[str, str]:
        """Return the stamp of each document by its key."""
        ...

    def search(
        self, query: str, *, limit: int, collections: Sequence[str], tags: Sequence[str] = ()
    ) -> Sequence[Match]:
        """Return documents with all words of the query, then those with some, best first.

        With `tags`, return only documents that have one of them, ignoring case. A query without words returns all
        documents, last keys first.
        """
        ...

    def count_tags(self, collections: Sequence[str]) -> Mapping[str, int]:
        """Return how many documents have each tag, most frequent first."""
        ...
