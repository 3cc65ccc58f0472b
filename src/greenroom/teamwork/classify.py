"""Classify a request by rules: which task types it asks for, and whether the rules are sure.

A request is cut into clauses. The verb of a clause and the head noun of its object decide its type by `words.toml`.
A symptom is a bug, a question about facts asks for nothing. The rules are sure only if no telling clause is left over.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from itertools import pairwise
from typing import Final, Literal, TypeAlias, get_args

from greenroom.core.base.records import record
from greenroom.teamwork.plan import TaskType

Words: TypeAlias = Mapping[str, Sequence[str]]

NOTHING: Final = "nothing"
"""A clause that asks for none of the types, such as a question."""
UNCLEAR: Final = "unclear"
PROBE: Final = "probe"
"""A clause that looks for a cause: clear only beside a bug to fix."""
MOVE: Final = "move"
"""A clause that exchanges something: a refactoring if the request says that the behaviour stays."""
HINT: Final = "hint "
"""Marks a type that is talked about: clear only beside a clause that asks for it."""

_ENGLISH: Final = re.compile(r"`[^`]*`|\"[^\"]*\"|[\w'#/@+-]+(?:[.:]\w+)*(?:\(\))?|[.!?;:,()\n]")
_IDENTIFIER: Final = re.compile(r".*([a-z][A-Z]|_|\(\)|/|\.(py|js|ts|c|h|rs|go|rb|java|cpp)$).*")
_DOC_FILE: Final = re.compile(r"(readme|changelog|contributing)(\.\w+)?|.*\.(md|rst|adoc)", re.IGNORECASE)
_ENDS: Final = frozenset(".!?;:()\n")
_CHINESE: Final = re.compile(r"[\u4e00-\u9fff]")
_NAMES: Final = re.compile(r"《[^》]*》|“[^”]*”|「[^」]*」")
_CUT: Final = re.compile(r"[。；;！!\n，,：:（）()]|(?<!合)并(?!发|行|列)且?|然后|同时|以及|顺便|\.\s|(?<=[？?])")
_CANNOT: Final = re.compile(r"[看打连收登进搜点用存传找]不[到开上了去动出]")
_LATER: Final = re.compile(r".{0,8}?(之后|以后|后(?![端台面续缀门])|时(?![间区长效])|的时候)")
"""What makes the verb before it the circumstance of something else."""
_VERBAL: Final = re.compile(
    r"(测试|单测|用例|文档|注释|教程|手册)(?!报告|人员|同学|环境|平台|工具|页|结果|系统|管理|仪|账号|模式|版|站|生成|编辑|预览|搜索|列表"
    r"|中心|库|里|中|的|发现|\s*[的中里])"
)
"""A word for tests or documents that is not the modifier of another noun."""
_INSIDE: Final = ("in", "to", "of", "from", "on", "into")
_MENTIONS: Final = {"test": "testing", "text": "documentation"}


@record
class Classification:
    """The task types of a request in the order of `TaskType`. Without `is_sure` they are a guess."""

    types: tuple[TaskType, ...]
    is_sure: bool


@record
class Lexicon:
    """The words of one language: classes of verbs and nouns, and small words by their use."""

    verbs: Words
    nouns: Words
    small: Words

    def find_noun(self, word: str) -> str:
        """Return the class of an English noun."""
        bare = word.strip("`\"'")
        if _DOC_FILE.fullmatch(bare):
            return "text"
        found = next((name for name, words in self.nouns.items() if bare in words), "any")
        return "code" if found == "any" and word[0] == "`" else found

    def has_any(self, use: str, text: str) -> bool:
        """Whether a text contains one of the small words with this use."""
        return any(word in text for word in self.small[use])


@cache
def _read_tables() -> Mapping[str, Mapping[str, Mapping[str, str]]]:
    return tomllib.loads((files(__package__) / "words.toml").read_text(encoding="utf-8"))


@cache
def _read_words(language: Literal["en", "zh"]) -> Lexicon:
    parts = {
        part: {name: tuple(word.strip() for word in words.split(",")) for name, words in table.items()}
        for part, table in _read_tables()[language].items()
    }
    return Lexicon(verbs=parts["verbs"], nouns=parts["nouns"], small=parts["small"])


def classify(text: str) -> Classification:
    """Return the task types that a request asks for."""
    findings = set(_read_chinese(text) if len(_CHINESE.findall(text)) > 1 else _read_english(text))
    if MOVE in findings:
        findings.add("refactoring" if _read_words("en").has_any("keep", text.lower()) else UNCLEAR)
    types = _sort(findings)
    hints = {finding.removeprefix(HINT) for finding in findings if finding.startswith(HINT)}
    is_mixed = {"bug-fix", "feature-development"} <= findings  # what is added may be a part of the fix
    is_open = UNCLEAR in findings or not hints <= findings or (PROBE in findings and "bug-fix" not in findings)
    is_sure = not (is_mixed or is_open) and len(text.strip()) > 3 and bool(types or NOTHING in findings)
    guess = _sort(hints) or _sort({"bug-fix" if PROBE in findings else "feature-development"} if is_open else set())
    return Classification(types=types or guess, is_sure=is_sure)


def _sort(findings: Collection[str]) -> tuple[TaskType, ...]:
    return tuple(kind for kind in get_args(TaskType) if kind in findings)


def _decide(verb: str, noun: str) -> str:
    """Return what a verb with an object of this class asks for."""
    if verb == "explain" or (verb == "tell" and noun == "text"):
        return "documentation"
    if verb == PROBE:
        return PROBE
    found = _read_tables()["decide"].get(verb, {}).get(noun)
    if found is None:
        return MOVE if verb in ("move", "tidy", "swap") and noun != "paper" else UNCLEAR
    return found or NOTHING


def _read_english(text: str) -> Iterator[str]:
    """Yield the findings of all sentences. What follows a label or a colon is a detail unless it begins with a verb."""
    labels, is_detail, words = _read_tables()["decide"]["label"], False, list[str]()
    for word in [*_ENGLISH.findall(text.replace("’", "'")), "\n"]:
        is_name = word[0] in '`"' or (_IDENTIFIER.fullmatch(word) and not _DOC_FILE.fullmatch(word))
        words.append(f"`{word}`" if is_name else word.lower())
        if word not in _ENDS:
            continue
        if word == ":" and len(words) < 4 and words[0] in labels:
            yield labels[words[0]]
            is_detail = True
        else:
            found = list(_read_sentence(words, _read_words("en")))
            yield from () if is_detail and found in ([UNCLEAR], ["bug-fix"]) else found
            is_detail = is_detail or (word == ":" and bool(found) and found != [UNCLEAR])
        words = []


def _match(words: Sequence[str], phrases: Sequence[str]) -> int:
    """Return how many words the longest phrase has with which these words begin."""
    text = " ".join(words[:9]) + " "
    return max((len(phrase.split()) for phrase in phrases if text.startswith(phrase + " ")), default=0)


def _read_sentence(sentence: Sequence[str], lexicon: Lexicon) -> Iterator[str]:
    words = [word for word in sentence if word not in _ENDS]
    start = words
    while (count := _match(words, lexicon.small["polite"])) and _find_verb(words, lexicon)[1] <= count:
        words = words[count:]
    if not words or words[0] in ("don't", "never", "no", "without", "nothing") or words[:2] == ["do", "not"]:
        return
    if sentence[-1] == "?" and start is words and words[0] in lexicon.small["ask"]:
        unsure = {*lexicon.small["maybe"], *lexicon.small["symptom"]}
        yield UNCLEAR if unsure & set(words) else NOTHING
    elif _find_verb(words, lexicon)[1]:
        yield from _read_clauses(words, lexicon)
    else:
        yield from _read_statement(start, lexicon)


def _find_verb(words: Sequence[str], lexicon: Lexicon) -> tuple[str, int]:
    """Return the class of the verb with which a clause begins, and its number of words."""
    size, name = max((_match(words, phrases), name) for name, phrases in lexicon.verbs.items())
    if not size:
        return "", 0
    after = words[size] if len(words) > size else ""
    is_plain = not after or after in lexicon.small["det"] or after[0] == "`" or after in lexicon.small["stop"]
    is_noun_too = name in ("try", "explain", "blurry", "tell") or words[0] in lexicon.small["noun_too"]
    has_finite = not set(words).isdisjoint(lexicon.small["finite"])
    if is_noun_too and not is_plain and (has_finite or words[0] in ("test", "document", "cover")):
        return "", 0
    return name, size


def _read_clauses(words: Sequence[str], lexicon: Lexicon) -> Iterator[str]:
    """Yield a finding for each clause of an imperative sentence, and for each further wish in it."""
    small = lexicon.small
    joins = {*small["join"], *small["wish"], "without", ","}
    starts = [at for at, word in enumerate(words) if at == 0 or word in joins]
    verb, is_denied = "", False
    for at, end in zip(starts, [*starts[1:], len(words)], strict=True):
        skip = 0
        while count := _match(words[at + skip : end], (*small["polite"], *joins)):
            skip += count
        chunk = words[at + skip : end]
        found, size = _find_verb(chunk, lexicon)
        if at == 0:
            found, size, chunk = *_find_verb(words, lexicon), words[:end]
        if found and chunk[0] != "do":
            verb, is_denied = found, False
            yield _decide(verb, _find_object(words[end - len(chunk) + size :], lexicon, verb))
            continue
        is_denied = bool({words[at], *chunk} & set(small["no"])) or (is_denied and words[at] in ("and", ",", "or"))
        noun = _find_object(chunk, lexicon, verb) if chunk else ""
        if is_denied or not chunk:
            continue
        if noun == "paper":
            yield UNCLEAR
        elif noun in _MENTIONS and set(chunk).isdisjoint(small["finite"]):
            wish = verb if verb in ("write", "update", "fill", "fix") and words[at] in ("and", ",") else "add"
            yield _decide(wish, noun)
        else:
            yield from _find_hints(chunk, lexicon)


def _find_object(words: Sequence[str], lexicon: Lexicon, verb: str) -> str:
    """Return the class of the head noun of an object: its last noun before a preposition."""
    if not words or (words[0] in ("it", "this", "that", "them") and not _cut_phrase(words[1:2], lexicon)):
        return "it"
    phrase = _cut_phrase(words, lexicon)
    nouns, rest = [lexicon.find_noun(word) for word in phrase], words[len(phrase) :]
    end = next((at for at, word in enumerate(rest) if word in (",", *lexicon.small["join"])), len(rest))
    where = [_cut_phrase(rest[at + 1 :], lexicon) for at, word in enumerate(rest[:end]) if word in _INSIDE]
    places = [lexicon.find_noun(part[-1]) for part in where if part]
    if verb == "tell":
        return "text" if "text" in (*places, *nouns[-1:]) else "odd"
    is_verbal = rest[:1] in (["that"], ["which"]) and bool(rest[1:]) and lexicon.find_noun(rest[1]) == "test"
    if not phrase or is_verbal or {*phrase} & {*lexicon.small["past"]} or {*phrase[:-1]} & {*lexicon.small["plural"]}:
        return "odd"
    if phrase[-2:] == ["release", "notes"]:
        return "text"
    if phrase[-1] in lexicon.small["holder"] and nouns[-2:-1] in (["test"], ["text"]):
        nouns.pop()
    is_shaky = not set(phrase).isdisjoint(lexicon.small["shaky"])
    return "shaky" if nouns[-1] == "test" and is_shaky else _weigh_nouns(nouns, places, verb)


def _weigh_nouns(nouns: Sequence[str], places: Sequence[str], verb: str) -> str:
    """Return the class of an object from the classes of its nouns and of the places where it is."""
    noun = nouns[-1]
    if noun in ("part", "message", "tidy") and ("text" in places or ("text" in nouns and not places)):
        return "text"
    if noun in ("sheet", "paper") and "text" in places:
        return "text"
    if noun == "part" or (noun == "test" and verb == "fix"):
        return "odd"
    if noun in ("any", "bug", "soft", "unit") and not set(places).isdisjoint(_MENTIONS) and verb != "tidy":
        return "odd"
    if verb in ("remove", "better", "tidy") and {"tidy", "fast"} & set(nouns) and noun not in _MENTIONS:
        return "fast" if "fast" in nouns and verb == "better" else "tidy"
    return noun


def _cut_phrase(words: Sequence[str], lexicon: Lexicon) -> list[str]:
    """Return the words up to a preposition, without adverbs at the end."""
    phrase: list[str] = []
    for word in words:
        if word in lexicon.small["stop"] or word in (",", *lexicon.small["join"]):
            break
        phrase.append(word)
    while phrase and (phrase[-1].endswith("ly") or phrase[-1] in ("as", "well", "everywhere")):
        phrase.pop()
    return phrase


def _find_hints(words: Sequence[str], lexicon: Lexicon) -> Iterator[str]:
    """Yield what a phrase talks about: only heads of nouns count, so `test report` is not about tests."""
    small = lexicon.small
    borders = {",", *small["stop"], *small["join"], *small["finite"]}
    for word, after in zip(words, [*words[1:], ","], strict=True):
        noun = lexicon.find_noun(word)
        if after in borders and (noun in _MENTIONS or noun in ("bug", "chore")):
            yield HINT + _MENTIONS.get(noun, "bug-fix" if noun == "bug" else "refactoring")


def _read_statement(words: Sequence[str], lexicon: Lexicon) -> Iterator[str]:
    """Yield what a sentence without an imperative asks for: a symptom is a bug, `X needs Y` is a wish."""
    small, used = lexicon.small, set(words)
    if words[0] in small["wish"] and (noun := _find_object(words[1:], lexicon, "add")) in _MENTIONS:
        yield _decide("add", noun)
        return
    if words[0] in ("i", "we") or used & {"already", "myself", "later"}:
        used -= set(small["past"])
    hints = list(_find_hints(words, lexicon))
    need = next((at for at, word in enumerate(words) if word in ("needs", "need", "lacks", "deserves")), 0)
    if need and words[need + 1 : need + 2] and words[need + 1] in ("a", "an", "some", "more", "better", "proper"):
        yield _decide("add", _find_object(words[need + 1 :], lexicon, "add"))
        return
    is_late = bool(used & {"since", "after"}) and bool(used & set(small["ago"]))
    is_barred = bool(used & {"cannot", "can't"}) and bool(used & set(small["cannot"]))
    is_failed = any(word == "not" and after.endswith(("ed", "wn", "sent", "found")) for word, after in pairwise(words))
    has_symptom = bool(used & set(small["symptom"])) or ("instead" in used and bool(used & set(small["finite"])))
    if has_symptom or is_late or is_barred or is_failed:
        other = [hint for hint in hints if hint != f"{HINT}bug-fix"]
        yield UNCLEAR if other or used & {*small["lack"], *small["past"]} else "bug-fix"
    elif used & {"should", "must", "would", "could", "want", "wants", "wish"} and used.isdisjoint(small["no"]):
        yield UNCLEAR
    elif used.isdisjoint(small["no"]) or used & set(small["past"]):
        yield from [UNCLEAR] if used & set(small["past"]) else hints


def _read_chinese(text: str) -> Iterator[str]:
    lexicon, last = _read_words("zh"), ""
    clauses = [clause.strip() for clause in _CUT.split(_NAMES.sub("某物", text.lower())) if clause and clause.strip()]
    for clause in clauses:
        body = _strip(clause.rstrip("?？ "), lexicon.small["polite"], lexicon.small["tail"])
        verb, before, after = _cut_at_verb(body, lexicon)
        has_symptom = lexicon.has_any("symptom", body) or bool(_CANNOT.search(body))
        is_question = clause.endswith(("?", "？", "吗", "呢")) or len(clauses) == 1
        is_asked = lexicon.has_any("ask", clause) and clause.startswith(body[:1]) and bool(before or not verb)
        if is_question and (is_asked or clause.rstrip("?？").endswith(("了吗", "了没", "了没有"))):
            yield _answer_question(clause, lexicon, has_symptom)
        elif not body or lexicon.has_any("no", body):
            continue
        elif verb in ("add", "write", "update") and (has_symptom or re.search(r"无法|不能|仍然", after)):
            yield UNCLEAR
        elif verb:
            last = verb
            yield from _judge(verb, before, after, lexicon)
        elif has_symptom:
            yield UNCLEAR if lexicon.has_any("lack", body) else "bug-fix"
        else:
            yield from _continue_list(body, last, lexicon)


def _answer_question(clause: str, lexicon: Lexicon, has_symptom: bool) -> str:
    is_why = lexicon.has_any("why", clause)
    if has_symptom or is_why or lexicon.has_any("maybe", clause):
        return "bug-fix" if has_symptom and is_why else UNCLEAR
    return NOTHING


def _continue_list(body: str, verb: str, lexicon: Lexicon) -> Iterator[str]:
    """Yield the type of a noun that continues the list of the verb before, else what the clause talks about."""
    noun = _find_head(body, body, lexicon)
    if noun in _MENTIONS and verb in ("add", "write", "fill", "update") and len(body) < 12:
        yield _decide(verb, noun)
        return
    for name, kind in _MENTIONS.items():
        if any(word in body for word in lexicon.nouns[name]):
            yield HINT + kind


def _strip(text: str, heads: Sequence[str], tails: Sequence[str]) -> str:
    """Remove polite words from both ends."""
    while head := next((word for word in sorted(heads, key=len, reverse=True) if text.startswith(word)), ""):
        text = text[len(head) :].strip()
    while tail := next((word for word in tails if text.endswith(word)), ""):
        text = text[: -len(tail)].strip()
    return text


def _cut_at_verb(body: str, lexicon: Lexicon) -> tuple[str, str, str]:
    """Return the class of the first verb, and the text before and after it. A verb inside a statement is none."""
    places = [
        (body.find(word), -len(word), name, word)
        for name, words in lexicon.verbs.items()
        for word in words
        if word in body and not _LATER.match(body, body.find(word) + len(word))
    ]
    if not places:
        return "", body, ""
    at, _, name, word = min(places)
    before, after = body[:at].strip(), body[at + len(word) :].strip()
    is_led = not before or before.startswith(tuple(lexicon.small["preps"])) or before.endswith("并")
    is_told = name in ("add", "fix") and len(word) > 1 and (name == "add" or not after)
    is_split = word == "加" and after[:1] in tuple("载密速锁工班油强热")
    return (name, before, after) if (is_led or is_told) and not is_split else ("", body, "")


def _judge(verb: str, before: str, after: str, lexicon: Lexicon) -> Iterator[str]:
    """Yield the types of a Chinese clause. Its object follows the verb, or comes before it after 把 and 将."""
    tails = lexicon.small["tail"]
    if verb == "tell":
        has_text = any(word in before + after for word in lexicon.nouns["text"])
        yield _decide(verb, "text" if has_text else "odd")
        return
    if re.match("[成为到进]", after) and _find_head(after, after, lexicon) == "text":
        yield "documentation"
        return
    is_moved = before.startswith(("把", "将", "对")) or not after
    thing = _strip(before, ("把", "将", "对", "给", "为"), tails) if is_moved and before else after
    thing = re.sub(r"(到|至)\s*\d.*", "", _strip(thing, ("一下", "一个", "一些", "几个"), tails))
    for part in re.split(r"[和与及、]", thing):
        yield _decide(verb, _find_head(part.strip(), thing, lexicon))


def _find_head(part: str, whole: str, lexicon: Lexicon) -> str:
    """Return the class of a Chinese noun phrase by its end."""
    if not part or part in ("它", "这个", "掉"):
        return "it"
    has_text = any(re.search(rf"{re.escape(word)}\s*[的中里]", whole) for word in lexicon.nouns["text"])
    ends = [(len(word), name) for name, words in lexicon.nouns.items() for word in words if part.endswith(word)]
    noun = max(ends)[1] if ends else "any"
    if noun == "test" and re.search(r"不稳定|偶发|偶尔|flaky|随机", whole):
        return "shaky"
    if noun not in _MENTIONS and _VERBAL.search(part):
        return "odd"
    if noun == "part" or (has_text and noun != "text"):
        return "text" if has_text and noun in ("part", "bug", "message") else "odd"
    return noun
