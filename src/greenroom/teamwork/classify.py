"""Classify a request: which task types it asks for, and whether that is sure.

A request is cut into clauses. The features of a clause are its words, those beside each other, and where they stand.
Each clause speaks for a type with the weights of its features, which `tools/train_classifier.py` learns from labelled
requests. A type is asked for if one clause asks for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from itertools import pairwise
from math import exp
from typing import Final, Literal, TypeAlias, get_args

import msgspec

from greenroom.core.base.records import record
from greenroom.teamwork.plan import TaskType

Language: TypeAlias = Literal["en", "zh"]
_CHINESE: Final = re.compile(r"[\u4e00-\u9fff]")
_WORD: Final = re.compile(r"`[^`\n]*`|\"[^\"\n]*\"|“[^”]*”|[\w'#/@+%-]+(?:[.:]\w+)*(?:\(\))?|[.!?;:,()\n→&–—]")
_NAME: Final = re.compile(r".*([a-z][A-Z]|_|\(\)|/|::|\.[a-z]{1,4}$).*|[#@].*|-{1,2}[a-z].*")
_NUMBER: Final = re.compile(r"[.,%#]*\d[\d.,%#]*\w{0,3}")
_DOC_FILE: Final = re.compile(r".*(readme|changelog|contributing|\.md|\.rst|\.adoc|docs?/).*", re.IGNORECASE)
_TEST_FILE: Final = re.compile(r".*(^|[/_.])(tests?|specs?|conftest|e2e)([/_.].*|$)|test[A-Z_].*", re.IGNORECASE)
_ENDINGS: Final = ("ing", "ed", "es", "s", "ly")
_JOINS: Final = ("and", "then", "plus", "with", "but", "also", "while", "because", "since", "instead", "without", "so")
_CUTS: Final = frozenset((*".!?;:,()\n→–—", *_JOINS))
_PLACES: Final = ("for", "in", "of", "to", "from", "on", "at", "by", "into", "after", "before", "as", "about")
_PREPOSITIONS: Final = frozenset((*_PLACES, "when", "if", "that", "which", "where"))
_QUOTED: Final = re.compile(r"《[^》]*》|“[^”]*”|「[^」]*」|`[^`]*`")
_CHINESE_CUT: Final = re.compile(r"[。；;！!\n，,：:（）()、]|(?<=[？?])|并|然后|同时|以及|顺便|另外|再|和")
MAX_READ_CHARS: Final = 4_000
"""Characters of a request that are read. A longer one is never sure."""

SURE: Final[Mapping[Language, float]] = {"en": 0.82, "zh": 0.7}
"""How likely a set of types must be to be sure. Of 100 such answers to requests never learned, 95 are right."""
SCALE: Final = 10
"""Weights are whole numbers, so that sums do not depend on their order."""


@record
class Classification:
    """The task types of a request in the order of `TaskType`. Without `is_sure` they are a guess."""

    types: tuple[TaskType, ...]
    is_sure: bool


@record
class Clause:
    """The words of a part of a sentence, and the word or mark that joins it to the one before."""

    join: str
    words: list[str]


@record
class Features:
    """What is known of a request: the features of each clause, and those that all of them share."""

    clauses: Sequence[frozenset[str]]
    shared: frozenset[str]


@cache
def _read_weights() -> Mapping[str, Mapping[str, Sequence[int]]]:
    """Return the weights of each feature by language: one for each type in order, the last for no type at all."""
    found: Mapping[str, Mapping[str, Sequence[int]]] = msgspec.json.decode(
        (files(__package__) / "weights.json").read_bytes()
    )
    return found


def classify(text: str) -> Classification:
    """Return the task types that a request asks for. Of a very long one only the beginning is read."""
    start = text[:MAX_READ_CHARS]
    language = find_language(start)
    *chances, nothing = _find_chances(read_features(start), _read_weights()[language])
    types = tuple(kind for kind, chance in zip(get_args(TaskType), chances, strict=True) if chance > 0.5)
    likely = 1.0
    for chance in (*chances, nothing):
        likely *= max(chance, 1 - chance)
    is_clear = bool(types) != (nothing > 0.5) and 3 < len(text.strip()) <= MAX_READ_CHARS
    is_sure = is_clear and likely >= SURE[language]
    if not types and not is_sure and max(chances) > max(nothing, 0.1):
        types = (get_args(TaskType)[chances.index(max(chances))],)
    return Classification(types=types, is_sure=is_sure)


def _find_chances(features: Features, weights: Mapping[str, Sequence[int]]) -> list[float]:
    """Return for each type, and for none, how likely one of the clauses asks for it."""
    shared = _add_weights({"bias", *features.shared}, weights)
    missed = [1.0] * len(shared)
    for clause in dict.fromkeys(features.clauses):
        for at, own in enumerate(_add_weights(clause, weights)):
            missed[at] /= 1 + exp(min((own + shared[at]) / SCALE, 500))
    return [1 - chance for chance in missed]


def _add_weights(features: Iterable[str], weights: Mapping[str, Sequence[int]]) -> list[int]:
    known = [weights[feature] for feature in features if feature in weights]
    return [sum(column) for column in zip([0] * len(weights["bias"]), *known, strict=True)]


def find_language(text: str) -> Language:
    """Return the language of a request: Chinese if it has more than one Chinese character."""
    return "zh" if len(_CHINESE.findall(text)) > 1 else "en"


def read_features(text: str) -> Features:
    """Return the features of a request."""
    return _read_chinese(text) if find_language(text) == "zh" else _read_english(text)


def _list_runs(parts: Sequence[str], size: int) -> Iterator[str]:
    """Yield each run of so many neighbours."""
    return (" ".join(parts[at : at + size]) for at in range(len(parts) - size + 1))


def _split_words(text: str) -> Iterator[str]:
    """Yield the words without their endings, and marks. Names, files and numbers become what they are."""
    for word in _WORD.findall(text.replace("’", "'")):
        if _DOC_FILE.fullmatch(word):
            yield "readme"
        elif word[0] in '`"“' or _NAME.fullmatch(word):
            yield "<test>" if _TEST_FILE.fullmatch(word.strip("`")) else "<name>"
        elif _NUMBER.fullmatch(word):
            yield word if word in ("500", "404", "502", "503", "401", "403") else "<n>"
        else:
            yield word.lower()


def _stem(word: str) -> str:
    ending = next((ending for ending in _ENDINGS if len(word) > len(ending) + 3 and word.endswith(ending)), "")
    return word.removesuffix(ending)


def _read_english(text: str) -> Features:
    clauses = [Clause(join="^", words=[])]
    for word in _split_words(text):
        if word not in _CUTS:
            clauses[-1].words.append(_stem(word))
            continue
        if word == "?" and clauses[-1].words:
            clauses[-1].words.append(word)
        clauses.append(Clause(join=word, words=[]))
    clauses = [clause for clause in clauses if clause.words]
    pairs = enumerate(pairwise([Clause(join="^", words=["^"]), *clauses]))
    return Features(
        clauses=[frozenset((*_describe(*pair), f"at={min(at, 3)}")) for at, pair in pairs],
        shared=frozenset(f"g={word}" for clause in clauses for word in clause.words),
    )


def _describe(before: Clause, clause: Clause) -> Iterator[str]:
    """Yield the features of a clause: the word that begins it, the noun of its object, what stands beside it."""
    join, words = clause.join, clause.words
    first, last = words[0], words[-1]
    end = next((at for at, word in enumerate(words) if at and word in _PREPOSITIONS), len(words))
    noun = words[end - 1]
    yield from (
        f"first={first}",
        f"first={first} {' '.join(words[1:2])}",
        f"last={last}",
        f"noun={noun}",
        f"join={join}",
    )
    yield from (f"{first}…{last}", f"{first}…{noun}:", f"{join}…{last},", f"{join}…{first}", f"{join}…{noun}:")
    yield from (f"{before.words[0]}>{first}", f"{before.words[0]}>{last}", f"{before.join}>{join}…{noun}")
    yield from (f"size={min(len(words), 6)}", f"object={end}")
    yield from (run for size in (1, 2, 3) for run in _list_runs(words, size))
    yield from (f"{first}+{word}" for word in words[1:])
    yield from (f"of={word}" for word in words[1 : end - 1])
    yield from (f"rest={word}" for word in words[end:])
    yield from (f"~{piece}" for word in words for piece in _list_pieces(f"^{word}$"))


def _list_pieces(word: str) -> Iterator[str]:
    return (word[at : at + 4] for at in range(max(1, len(word) - 3)))


def _read_chinese(text: str) -> Features:
    text = _QUOTED.sub(" 某物 ", text.lower())
    parts = [part.strip() for part in _CHINESE_CUT.split(text) if part.strip()]
    starts = ["^", *(part[:2] for part in parts)]
    return Features(
        clauses=[frozenset(_describe_chinese(*pair)) for pair in zip(parts, starts, strict=False)],
        shared=frozenset(f"g={text[at : at + 2]}" for at in range(len(text) - 1)),
    )


def _describe_chinese(part: str, before: str) -> Iterator[str]:
    yield from (part[at : at + size] for size in (1, 2, 3, 4) for at in range(len(part) - size + 1))
    yield from (f"first={part[:1]}", f"first={part[:2]}", f"size={min(len(part) // 3, 5)}", f"{part[:2]}…{part[-2:]}")
    yield from (f"last={part[-size:]}" for size in (1, 2, 3))
    yield from (f"{before}>{part[:2]}", f"{before}>{part[-2:]}:")
