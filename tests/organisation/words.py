"""What is said in the story of the organisation, in both languages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

EN: Final = {
    "request": "A short guide to green tea, please.",
    "task": "Tea guide",
    "goal": "A guide to green tea, with a title",
    "find": "Find out how it is made",
    "wu_finds": "Taste it twice",
    "write": "Write the guide",
    "wu_writes": "Write the text",
    "xi_titles": "Find a title",
    "check": "Check the guide",
    "xi_checks": "Read it once more",
    "first_cup": "the first cup",
    "second_cup": "the second cup",
    "which": "Green or black?",
    "green": "Green.",
    "taste": "May I say that it is bitter?",
    "bitter": "Yes, if it is.",
    "title": "How long may the title be?",
    "short": "Three words.",
    "how_long": "How long is the title?",
    "two_words": "Two words: Green Tea.",
    "print": "Shall I print it?",
    "yes": "Yes.",
    "ready": "Is the text ready?",
    "is_ready": "The text is ready.",
    "checked": "I have checked it.",
    "memory": "Ann likes green tea.",
    "thought": "80 degrees, two minutes.",
    "seen": "I see.",
    "found": "It is made with 80 degrees.",
    "written": "The text is written.",
    "titled": "The title is Green Tea.",
    "fine": "It is fine.",
    "result": "Green Tea: 80 degrees, two minutes.",
    "bitter_end": "It has no more taste.",
}
"""The words of the story by what they are for."""

ZH: Final = {
    "request": "请写一份简短的绿茶指南。",
    "task": "茶指南",
    "goal": "一份带标题的绿茶指南",
    "find": "弄清楚怎么泡",
    "wu_finds": "品尝两次",
    "write": "撰写指南",
    "wu_writes": "写正文",
    "xi_titles": "想标题",
    "check": "检查指南",
    "xi_checks": "再读一遍",
    "first_cup": "第一杯",
    "second_cup": "第二杯",
    "which": "绿茶还是红茶？",
    "green": "绿茶。",
    "taste": "可以写它很苦吗？",
    "bitter": "可以，如果是真的。",
    "title": "标题可以多长？",
    "short": "四个字。",
    "how_long": "标题有多长？",
    "two_words": "两个字：绿茶。",
    "print": "要打印吗？",
    "yes": "要。",
    "ready": "正文写好了吗？",
    "is_ready": "正文写好了。",
    "checked": "我检查过了。",
    "memory": "安喜欢绿茶。",
    "thought": "八十度，两分钟。",
    "seen": "知道了。",
    "found": "用八十度的水泡。",
    "written": "正文写好了。",
    "titled": "标题是绿茶。",
    "fine": "没有问题。",
    "result": "绿茶：八十度，两分钟。",
    "bitter_end": "已经没有味道了。",
}
"""The same in Chinese."""

WORDS: Final[Mapping[str, Mapping[str, str]]] = {"en": EN, "zh": ZH}
