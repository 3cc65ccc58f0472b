"""What is said to be done where no file was changed: then an answer may tell how things are, and not what was made.

Careful rather than complete, as with other claims. How things came about (*was added in 2.0*), where they are (*is
implemented in export.py*) and what a program does (*is written to a file*) may be said.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from greenroom.abilities.checks.prose import LONGEST, QUOTED, is_open, sentences

DEED: Final = (
    r"(?:added|created|wrote|written|rewrote|rewritten|implemented|updated|changed|modified|edited|fixed|extended|"
    r"introduced|committed|deleted|removed|refactored|renamed|replaced|mended|repaired|corrected|improved|converted|"
    r"migrated)"
)
BETWEEN: Final = r"(?:(?:now|also|just|already|successfully|fully|then|all|both)\s+){0,3}"
FIRST: Final = re.compile(
    rf"(?:^|[:：])[\s*_#>+•\-]*(?:\d+[.)]\s+)?(?:\w{{2,12}}[:,!—–]\s+)?{BETWEEN}{DEED}\b(?!\s+(?:by|in|on|at)\b)",
    re.IGNORECASE,
)
"""*Added JSON*: nobody is named, so it is whoever speaks."""

BY_ME: Final = re.compile(
    r"\b(?:I|we)(?:['’]ve)?\b"
    r"(?:(?!\b(?:was|were|is|are|be|being|been|which|that|what|who|how|it|they|I|we)\b)[^.;:]){0,80}?"
    rf"\s{DEED}\b",
    re.IGNORECASE,
)
PASSIVE: Final = re.compile(
    rf"\b(?:was|were|has been|have been|['’]s been|['’]ve been)\s+{BETWEEN}{DEED}\b", re.IGNORECASE
)
READY: Final = re.compile(
    rf"\b(?:is|are|['’]s|['’]re)\s+{BETWEEN}(?:implemented|fixed|committed|added|updated|mended|repaired)"
    r"(?=\s*(?:$|[.,;!]|and\b|now\b))"
    r"|\bworks? now\b|\bnow (?:works?|supports?|handles?|writes?|passes|covers)\b",
    re.IGNORECASE,
)
ALONE: Final = re.compile(
    r"(?:(?:ok|okay|yes|all right)\W{1,3})?"
    r"(?:(?:it|this|that|all|everything|the (?:work|task|job|change))(?: of it| of that)?(?: is|['’]s)? )?"
    r"(?:now |all |successfully ){0,2}(?:done|finished|completed?)(?: now| as (?:asked|requested)| successfully)?"
    r"|(?:都|全部|任务|工作)?(?:已经?)?(?:全部|都)?(?:完成|搞定|做完|做好)了?",
    re.IGNORECASE,
)
"""*Done.*, and nothing else: it answers no question, so it says that something was done."""

IN_CHINESE: Final = re.compile(
    r"(?:已经?|成功)(?:成功|全部|都)?(?:为[^，。；]{1,20})?(?:新增|创建|添加|加入|编写|实现|修改|更新|修复|新建|删除|移除|提交|重构)"
    r"|(?:新增|创建|添加|加入|编写|实现|修改|更新|修复|新建|删除|移除|提交|重构|写|加)(?:完成|完毕|好了|了)"
)
NOTHING: Final = re.compile(r"\b(?:nothing|nobody)\b|无需|什么都", re.IGNORECASE)
HISTORY: Final = re.compile(
    r"\b(?:version|release|commit [0-9a-f]|by|since|ago|last|originally|previously|earlier|history)\b"
    r"|\bv?\d+\.\d+|\b\d{4}\b|\b[0-9a-f]{7,40}\b|版本|提交 ?[0-9a-f]{7}|由|当时|之前|以前|最初",
    re.IGNORECASE,
)
"""When or by whom: what has been so for long."""


def undone(text: str, *, elsewhere: bool = False) -> tuple[str, ...]:
    """What this text says was done, each in a sentence, though no file is different. Who has done something `elsewhere`
    may say that it is done."""
    alone = text[:LONGEST].strip(" \n\t.!。！*_✓✅")
    bare = [alone] if not elsewhere and ALONE.fullmatch(alone) else []
    words = [*bare, *(word for said in sentences(text) for word in _deeds(said))]
    return tuple(dict.fromkeys(f"It says {word!r}, and nothing was changed." for word in words))


def _deeds(said: str) -> Iterator[str]:
    """The first claim of a sentence: one is enough."""
    words = QUOTED.sub("it", said)
    told = HISTORY.search(words) is not None
    for form in (FIRST, BY_ME, READY) if told else (FIRST, BY_ME, READY, PASSIVE, IN_CHINESE):
        found = form.search(words)
        if found is not None and not is_open(words, found.end(), found.end()) and not NOTHING.search(words):
            yield " ".join(found[0].split()).lstrip(":：*_#>+•- ")
            return
