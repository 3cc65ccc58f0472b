"""Classify a request: which task types it asks for, and whether that is sure.

A request is cut into clauses. The features of a clause are its verb, its object and the words that tell wishes apart;
`words.toml` gives their classes. Each clause speaks for a type with the weights of its features, which
`tools/train_classifier.py` learns from labelled requests. A type is asked for if one clause asks for it.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from itertools import pairwise
from math import exp
from typing import Final, Literal, TypeAlias, get_args

from greenroom.core.base.records import record
from greenroom.teamwork.plan import TaskType

Language: TypeAlias = Literal["en", "zh"]
Words: TypeAlias = Mapping[str, Sequence[str]]
_CHINESE: Final = re.compile(r"[\u4e00-\u9fff]")
_WORD: Final = re.compile(r"`[^`\n]*`|\"[^\"\n]*\"|“[^”]*”|[\w'#/@+%-]+(?:[.:]\w+)*(?:\(\))?|[.!?;:,()\n→&–—]")
_NAME: Final = re.compile(r".*([a-z][A-Z]|_|\(\)|/|::|\.[a-z]{1,4}$).*|[#@].*|-{1,2}[a-z].*")
_NUMBER: Final = re.compile(r"[.,%#]*\d[\d.,%#]*\w{0,3}")
_DOC_FILE: Final = re.compile(r".*(readme|changelog|contributing|\.md|\.rst|\.adoc|docs?/).*", re.IGNORECASE)
_TEST_FILE: Final = re.compile(r".*(^|[/_.])(tests?|specs?|conftest|e2e)([/_.].*|$)|test[A-Z_].*", re.IGNORECASE)
_ENDS: Final = frozenset(".!?;:()\n→–—")
_QUOTED: Final = re.compile(r"《[^》]*》|“[^”]*”|「[^」]*」|`[^`]*`")
_CUT: Final = re.compile(
    r"[。；;！!\n，,：:（）()]|(?<!合)并(?!发|行|列|入|存)且?|然后|同时|以及|顺便|顺手|顺带|另外|此外|接着|随后|再(?!也|次|现|犯)"
    r"|\.\s|(?<=[？?])|后(?=[把将再])"
)
_LIST: Final = re.compile(r"[和与及、](?=.{0,8}(?:文档|测试|用例|单测|说明|手册|注释|指南|readme))")
_LATIN: Final = re.compile(r"[a-z0-9_./#-]{2,}")
_KINDS: Final = ("test", "text", "bug", "tidy", "fast", "paper")
"""The classes of nouns that tell most."""
_TAGS: Final = ("need", "lack", "symptom", "ugly", "unclear", "untested", "no", "keep")
_REQUEST_TAGS: Final = ("symptom", "keep", "ugly", "unclear", "untested", "need", "lack")
_MAX_CLAUSES: Final = 300
"""How many clauses of a long Chinese request are read."""
_MAX_WORDS: Final = 20
"""How far the reader of an English clause looks ahead."""
MAX_READ_CHARS: Final = 4_000
"""Characters of a request that are read. A longer one is never sure."""

SURE: Final = 0.78
"""How likely a set of types must be to be sure."""
SCALE: Final = 10
"""Weights are whole numbers, so that sums do not depend on their order."""


@record
class Classification:
    """The task types of a request in the order of `TaskType`. Without `is_sure` they are a guess."""

    types: tuple[TaskType, ...]
    is_sure: bool


@cache
def _read_weights() -> Mapping[str, Mapping[str, Sequence[int]]]:
    """Return the weights of each feature by language: one for each type in order, the last for no type at all."""
    found: Mapping[str, Mapping[str, Sequence[int]]] = json.loads(
        (files(__package__) / "weights.json").read_text("utf-8")
    )
    return found


def classify(text: str) -> Classification:
    """Return the task types that a request asks for. Of a very long one only the beginning is read."""
    start = text[:MAX_READ_CHARS]
    *chances, nothing = _find_chances(read_clauses(start), _read_weights()[find_language(start)])
    types = tuple(kind for kind, chance in zip(get_args(TaskType), chances, strict=True) if chance > 0.5)
    likely = 1.0
    for chance in (*chances, nothing):
        likely *= max(chance, 1 - chance)
    is_clear = bool(types) != (nothing > 0.5) and 3 < len(text.strip()) <= MAX_READ_CHARS
    if not types and nothing <= 0.5 and max(chances) > 0.2:
        types = (get_args(TaskType)[chances.index(max(chances))],)
    return Classification(types=types, is_sure=is_clear and likely >= SURE)


def _find_chances(clauses: Sequence[Sequence[str]], weights: Mapping[str, Sequence[int]]) -> list[float]:
    """Return for each type, and for none, how likely one of the clauses asks for it."""
    missed = [1.0] * len(weights["bias"])
    for features in dict.fromkeys(frozenset(features) for features in clauses):
        known = [weights[feature] for feature in {"bias", *features} if feature in weights]
        for at, column in enumerate(zip(*known, strict=True)):
            missed[at] /= 1 + exp(min(sum(column) / SCALE, 500))
    return [1 - chance for chance in missed]


@record
class Clause:
    """The features of a clause. `kind` is do, tail, say, bit, deny or label."""

    kind: str
    verbs: Sequence[str]
    tags: Sequence[str]
    features: list[str]


@record
class Lexicon:
    """The words of one language: classes of verbs and nouns, and small words by their use."""

    nouns: Words
    small: Words
    verb_classes: Words
    noun_classes: Words

    def has_any(self, use: str, text: str) -> bool:
        """Whether a text contains one of the small words with this use."""
        return any(word in text for word in self.small[use])


def _invert(table: Words) -> Words:
    found: dict[str, list[str]] = {}
    for name, words in table.items():
        for word in words:
            found.setdefault(word, []).append(name)
    return found


@cache
def _read_words(language: Language) -> Lexicon:
    tables = tomllib.loads((files(__package__) / "words.toml").read_text(encoding="utf-8"))[language]
    parts = {
        part: {name: tuple(word.strip() for word in words.split(",")) for name, words in table.items()}
        for part, table in tables.items()
    }
    verbs, nouns = parts["verbs"], parts["nouns"]
    return Lexicon(nouns=nouns, small=parts["small"], verb_classes=_invert(verbs), noun_classes=_invert(nouns))


def find_language(text: str) -> Language:
    """Return the language of a request: Chinese if it has more than one Chinese character."""
    return "zh" if len(_CHINESE.findall(text)) > 1 else "en"


def read_clauses(text: str) -> list[list[str]]:
    """Return the features of each clause of a request."""
    found, tags = _read_chinese(text) if find_language(text) == "zh" else _read_english(text)
    return [_add_context(clause, found, tags) for clause in found] or [["empty"]]


def _add_context(clause: Clause, clauses: Sequence[Clause], tags: Sequence[str]) -> list[str]:
    """Return the features of a clause together with what the others tell about it."""
    features = [*clause.features, *(f"{clause.kind}:{tag}" for tag in clause.tags), f"K={clause.kind}"]
    if clause.kind in ("do", "tail"):
        features += [f"{verb}|G={tag}" for verb in clause.verbs for tag in tags]
        features += [f"{verb}|{tag}" for verb in clause.verbs for tag in clause.tags]
        features += [] if any(other.kind == "say" for other in clauses) else ["only"]
    elif clause.kind in ("say", "bit"):
        others = {verb for other in clauses for verb in other.verbs}
        features += [f"say|G={tag}" for tag in tags] + [f"say|O={verb}" for verb in others]
        features += [f"say|{tag}|O={verb}" for tag in clause.tags for verb in others]
        features += [f"say|{tag}|do={bool(others)}" for tag in (*clause.tags, "")]
    return features


def _split_words(text: str) -> Iterator[str]:
    for word in _WORD.findall(text.replace("’", "'")):
        if _DOC_FILE.fullmatch(word):
            yield "readme"
        elif word[0] in '`"“' or _NAME.fullmatch(word):
            yield "<test>" if _TEST_FILE.fullmatch(word.strip("`")) else "<name>"
        elif _NUMBER.fullmatch(word):
            yield word if word in ("500", "404", "502", "503", "401", "403") else "<n>"
        else:
            yield word.lower()


def _read_english(text: str) -> tuple[list[Clause], list[str]]:
    lexicon, clauses, sentence, verb = _read_words("en"), list[Clause](), list[str](), "none"
    words = [*_split_words(text), "\n"]
    tags = _find_tags(words, _REQUEST_TAGS, lexicon)
    for word in words:
        if word not in _ENDS:
            sentence.append(word)
            continue
        is_label = word == ":" and 0 < len(sentence) < 6 and not _skip_polite(sentence, lexicon)
        is_label = is_label and set(sentence).isdisjoint(lexicon.small["finite"])
        if is_label:
            names = [f"L={sentence[0]}", f"L$={sentence[-1]}", *([f"L1={sentence[0]}"] if len(sentence) == 1 else [])]
            clauses.append(Clause(kind="label", verbs=(), tags=(), features=names))
        for part in () if is_label else _cut_sentence(sentence, lexicon):
            if clause := _read_part(part, verb, word, "keep" in tags, lexicon):
                clauses.append(clause)
                verb = clause.verbs[0] if clause.verbs else verb
        sentence = []
    return clauses, tags


def _find_tags(words: Sequence[str], uses: Sequence[str], lexicon: Lexicon) -> list[str]:
    text = f" {' '.join(words)} "
    return [use for use in uses if any(f" {word} " in text for word in lexicon.small[use])]


def _match(words: Sequence[str], table: Mapping[str, Sequence[str]] | Sequence[str]) -> int:
    """Return how many words the longest phrase of a table has with which these words begin."""
    return next((size for size in range(min(6, len(words)), 0, -1) if " ".join(words[:size]) in table), 0)


def _skip_polite(words: Sequence[str], lexicon: Lexicon) -> int:
    count = 0
    while size := _match(words[count : count + 6], lexicon.small["polite"]):
        count += size
    return count


def _cut_phrase(words: Sequence[str], lexicon: Lexicon) -> Sequence[str]:
    """Return the words up to a preposition, without adverbs at the end."""
    borders = {",", *lexicon.small["stop"], *lexicon.small["join"]}
    end = next((at for at, word in enumerate(words) if word in borders), len(words))
    while end and (words[end - 1].endswith("ly") or words[end - 1] in lexicon.small["late"]):
        end -= 1
    return words[:end]


def _find_noun(word: str, lexicon: Lexicon) -> Sequence[str]:
    return {"<test>": ["test"], "<name>": ["name"]}.get(word) or lexicon.noun_classes.get(word, ["any"])


def _cut_sentence(sentence: Sequence[str], lexicon: Lexicon) -> list[list[str]]:
    """Cut where a wish begins: at commas, and at words that join if a verb, tests or documents follow."""
    small, parts = lexicon.small, [list[str]()]
    for at, word in enumerate(sentence):
        if parts[-1] and (word == "," or word in small["join"]):
            rest = sentence[at + 1 : at + _MAX_WORDS]
            rest = rest[_skip_polite(rest, lexicon) :]
            phrase = _cut_phrase(rest, lexicon)
            is_thing = 0 < len(phrase) < 6 and not {"test", "text"}.isdisjoint(_find_noun(phrase[-1], lexicon))
            is_thing = is_thing and not (word in ("and", "or") and set(parts[-1][:2]) & set(small["deny"]))
            is_wish = word in small["and"] and _match(rest, lexicon.verb_classes)
            if word == "," or is_wish or is_thing or word in small["clause"]:
                parts.append([word])
                continue
        parts[-1].append(word)
    return [part for part in parts if part]


def _read_part(part: Sequence[str], last: str, end: str, is_kept: bool, lexicon: Lexicon) -> Clause | None:
    small = lexicon.small
    join = part[0] if part[0] == "," or part[0] in small["join"] else ""
    words = part[1:] if join else part
    polite = _skip_polite(words, lexicon)
    body = words[polite:]
    if not body:
        return None
    size = _match(body, lexicon.verb_classes)
    tags = _find_tags(part, _TAGS, lexicon)
    tags += [] if end != "?" else ["ask" if words[0] in small["ask"] else "mark"]
    is_finite = (
        not set(small["finite"]).isdisjoint(body[:7]) and body[size : size + 1] and body[size] not in small["det"]
    )
    if ("no" in tags and (not size or body[0] in small["leave"])) or set(part[:4]) & set(small["deny"]):
        return Clause(kind="deny", verbs=(), tags=tags, features=[f"d={word}" for word in body[:8]])
    if size and not (is_finite and not join and not polite):
        verbs = lexicon.verb_classes[" ".join(body[:size])]
        return Clause(kind="do", verbs=verbs, tags=tags, features=_read_wish(body, size, is_kept, lexicon))
    kind = "say" if len(body) > 5 or not set(small["finite"]).isdisjoint(body) else "bit"
    features = _read_statement(body, kind, tags, lexicon)
    phrase = _cut_phrase(body, lexicon)
    for noun in _find_noun(phrase[-1], lexicon) if phrase else ["none"]:
        features += [f"{kind}|{noun}", f"{last}>{join}|{noun}", f"J={join}|{noun}"]
        features += [f"{kind}|{noun}|{tag}" for tag in tags]
    return Clause(
        kind=kind, verbs=(), tags=tags, features=[*features, f"{kind}|after={last}", f"{kind}|kept={is_kept}"]
    )


def _read_wish(body: Sequence[str], size: int, is_kept: bool, lexicon: Lexicon) -> list[str]:
    """Return the features of a verb, its object and the places where the object is."""
    verbs = lexicon.verb_classes[" ".join(body[:size])]
    phrase = _cut_phrase(body[size:], lexicon)
    rest = body[size + len(phrase) :]
    heads = _find_noun(phrase[-1], lexicon) if phrase else ["none"]
    kinds = sorted({kind for word in phrase[:-1] for kind in _find_noun(word, lexicon)} - {"any", "odd", "feature"})
    places = [
        f"{word}|{kind}"
        for at, word in enumerate(rest)
        if word in lexicon.small["place"] and (found := _cut_phrase(rest[at + 1 : at + _MAX_WORDS], lexicon))
        for kind in _find_noun(found[-1], lexicon)
        if kind in _KINDS
    ]
    features = [
        f"v={' '.join(body[:size])}",
        *(f"v={body[0]}|{head}" for head in heads),
        *(f"M={kind}" for kind in kinds),
    ]
    for verb in verbs:
        ends = [*heads, *places[:3], *(f"M={kind}" for kind in kinds), *(["KEEP"] if is_kept else [])]
        features += [f"V={verb}", *(f"{verb}|{end}" for end in ends)]
    features += [f"n={word}" for word in phrase[-1:]] + [f"m={word}" for word in phrase[:-1]]
    return features + [f"r={word}" for word in rest]


def _read_statement(body: Sequence[str], kind: str, tags: Sequence[str], lexicon: Lexicon) -> list[str]:
    kinds = sorted({noun for word in body for noun in _find_noun(word, lexicon)} - {"any", "odd"})
    features = [f"{kind[0]}={word}" for word in body] + [f"s2={word} {after}" for word, after in pairwise(body)]
    features += [f"{kind}|A={noun}" for noun in kinds]
    return features + [f"{kind}|A={noun}|{tag}" for noun in kinds if noun in (*_KINDS, "unit") for tag in tags]


def _read_chinese(text: str) -> tuple[list[Clause], list[str]]:
    lexicon, clauses, verb = _read_words("zh"), list[Clause](), "none"
    old, new = lexicon.small["traditional"][0], lexicon.small["simplified"][0]
    text = _QUOTED.sub(" 某物 ", text.lower()).translate(str.maketrans(old, new))
    tags = [use for use in _REQUEST_TAGS if lexicon.has_any(use, text)]
    parts = [part for part in dict.fromkeys(_CUT.split(text)) if part][:_MAX_CLAUSES]
    parts = [piece for part in parts for piece in ([part] if lexicon.has_any("no", part) else _LIST.split(part))]
    for part in parts:
        if part.strip() and (clause := _read_chinese_part(part.strip(), verb, "keep" in tags, lexicon)):
            clauses.append(clause)
            verb = clause.verbs[0] if clause.verbs else verb
    return clauses, tags


def _strip(text: str, heads: Sequence[str], tails: Sequence[str]) -> str:
    """Remove words from both ends, the longest first."""
    while head := max((word for word in heads if text.startswith(word)), key=len, default=""):
        text = text[len(head) :].strip()
    while tail := next((word for word in tails if text.endswith(word) and text != word), ""):
        text = text[: -len(tail)].strip()
    return text


def _find_end(text: str, lexicon: Lexicon) -> list[str]:
    """Return the classes of the noun with which a Chinese phrase ends."""
    ends = [(len(word), name) for name, words in lexicon.nouns.items() for word in words if text.endswith(word)]
    return [name for size, name in ends if size == max(ends)[0]] or ["any"]


def _read_chinese_part(part: str, last: str, is_kept: bool, lexicon: Lexicon) -> Clause | None:
    small = lexicon.small
    body = _strip(part.rstrip("?？ "), small["polite"], ())
    if not body:
        return None
    tags = [use for use in (*_TAGS, "ask") if lexicon.has_any(use, part)] + (["mark"] if part[-1] in "?？" else [])
    found = [(body.find(word), -len(word), name) for word, names in lexicon.verb_classes.items() for name in names]
    found = sorted(verb for verb in found if verb[0] >= 0)
    is_led = body.startswith(tuple(small["preps"]))
    is_wish = bool(found) and (found[0][0] == 0 or is_led or (body != part and found[0][0] < 3))
    size = len(_strip(body, (), small["tail"]))
    ends = [verb for verb in found if verb[0] - verb[1] in (size, len(body))]
    is_denied = "no" in tags and (not is_wish or lexicon.has_any("deny", part)) and "别忘" not in part
    pieces = {body[at : at + length] for length in (1, 2, 3) for at in range(len(body) - length + 1)}
    kind = "deny" if is_denied else "do" if is_wish else "tail" if ends else "say"
    features = [f"{kind[0].replace('t', 'd') if not is_denied else 'n'}{piece}" for piece in pieces]
    if is_denied:
        return Clause(kind=kind, verbs=(), tags=tags, features=features)
    if kind == "say":
        features += _read_chinese_statement(body, last, tags, lexicon)
        return Clause(kind=kind, verbs=(), tags=tags, features=[*features, f"say|kept={is_kept}"])
    later = [verb for verb in found if verb[0] > 0 and verb[1] < -1] if is_led else []
    verb = min(ends, key=lambda end: end[1]) if kind == "tail" else (later or found)[0]
    features += [
        *_read_chinese_wish(body, verb, tags, lexicon),
        f"{last}>{verb[2]}",
        *(f"also={name}" for *_, name in found),
    ]
    return Clause(kind=kind, verbs=[verb[2]], tags=tags, features=features + ([f"{verb[2]}|KEEP"] if is_kept else []))


def _read_chinese_wish(body: str, verb: tuple[int, int, str], tags: Sequence[str], lexicon: Lexicon) -> list[str]:
    at, size, name = verb
    small, word, before = lexicon.small, body[at : at - size], body[:at]
    thing = _strip(body[at - size :], small["count"], small["tail"]) or _strip(
        before, small["preps"], ("的", "都", "也")
    )
    nouns = _find_end(thing, lexicon)
    owners = _find_end(_strip(before, small["preps"], ("的", "里", "中", "上")), lexicon) if before else ["none"]
    inside = [kind for kind in _KINDS if any(noun in thing for noun in lexicon.nouns[kind])]
    features = [f"v={word}", f"V={name}", f"e={thing[-2:]}", f"e={thing[-3:]}"]
    features += [feature for noun in nouns for feature in (f"{name}|{noun}", f"v={word}|{noun}")]
    features += [f"{name}|B={owner}" for owner in owners] + [f"{name}|I={kind}" for kind in inside]
    return features + [f"{name}|I={kind}|{noun}" for kind in inside for noun in nouns]


def _read_chinese_statement(body: str, last: str, tags: Sequence[str], lexicon: Lexicon) -> list[str]:
    nouns = _find_end(_strip(body, (), lexicon.small["tail"]), lexicon)
    kinds = (*_KINDS, "unit", "feature")
    inside = [f"I={kind}" for kind in kinds if any(noun in body for noun in lexicon.nouns[kind])]
    features = [f"say|{noun}" for noun in (*nouns, *inside)] + [f"{last}>{noun}" for noun in nouns]
    features += [f"say|{noun}|{tag}" for noun in (*nouns, *inside) for tag in tags]
    return [*features, f"say|after={last}", *(f"short|{noun}" for noun in nouns if len(body) < 8)]
