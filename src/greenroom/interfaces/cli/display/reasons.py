"""Why something stands still, and how something ended, in the language of an organisation."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from immutables import Map

from greenroom.app.organisation.names import CHINESE, in_language
from greenroom.app.organisation.notices import STATES
from greenroom.core.base.ids import TEAM_BUDGET
from greenroom.core.base.records import record

STOPPED: Final = "stopped by a person"
"""Why an organisation stands still that somebody stopped, as the log has it."""

REASONS: Final = {STOPPED: {"en": STOPPED, "zh": "已被人停止"}}
PROVIDER: Final = {"en": "provider", "zh": "模型服务"}
LIMIT: Final = re.compile(r"limit: (\S+) (\w+)")
"""A limit that was reached, as the log has it: whose, and of what."""

USED_UP: Final = {
    "money": {"en": "its money does not suffice for the next step", "zh": "剩余费用不足以进行下一步"},
    "tokens": {"en": "its tokens do not suffice for the next step", "zh": "剩余Token不足以进行下一步"},
    "millis": {"en": "it has used up its working time", "zh": "工作时间已用完"},
    "steps": {"en": "it has used up its steps", "zh": "步骤数已用完"},
    "hops": {
        "en": "its agents have written to each other too often since a person last did something",
        "zh": "自人上次操作以来，Agent之间互发的消息过多",
    },
}
LEFT: Final = {"en": "{why} ({left} left)", "zh": "{why}（剩余{left}）"}
FLAGS: Final = {"money": "--max-cost", "tokens": "--max-tokens", "millis": "--max-time"}
STILL: Final = {"en": "It stands still: {why}. `resume` lets it go on.", "zh": "已暂停：{why}。输入resume继续。"}
MORE: Final = {
    "en": "{name} does not work: {why}. Give it more: {command} {flag} …",
    "zh": "{name}没有工作：{why}。提高上限：{command} {flag} …",
}
HELD: Final = {
    "en": "{name} does not work: {why}. Its file allows no more: `{key}` below [limits] in {path}. "
    "Write more there, then: {command} {flag} …",
    "zh": "{name}没有工作：{why}。上限写在{path}中[limits]下的`{key}`。请先在那里提高，然后：{command} {flag} …",
}


@record
class Way:
    """What lets an organisation go on: the command that starts it; and where its charter, which lies in `path`, holds
    the limit of something, the `keys` that do, by what they limit. `left` is what it has left of each."""

    name: str
    start: str
    path: str = ""
    keys: Mapping[str, str]
    left: Mapping[str, str] = Map()


def reason(why: str, language: str) -> str:
    """Why something stands still, as far as the house itself says it; without a full stop."""
    limit = LIMIT.fullmatch(why)
    if limit is not None and limit[2] in USED_UP:
        return in_language(USED_UP[limit[2]], language)
    kind, colon, rest = why.partition(":")
    if colon and kind == PROVIDER["en"]:
        return f"{in_language(PROVIDER, language)}:{rest}".rstrip(".")
    return in_language(REASONS.get(why, {"en": why}), language).rstrip(".")


def still(why: str, language: str, way: Way) -> str:
    """That something stands still, and what lets it go on."""
    limit, told = LIMIT.fullmatch(why), reason(why, language)
    if limit is None or limit[2] not in FLAGS:
        return in_language(STILL, language).format(why=told)
    team = limit[1] == TEAM_BUDGET
    key = way.keys.get(limit[2]) if team else None
    if team and limit[2] in way.left:
        told = in_language(LEFT, language).format(why=told, left=way.left[limit[2]])
    words = in_language(HELD if key else MORE, language)
    return words.format(name=way.name, why=told, command=way.start, flag=FLAGS[limit[2]], key=key, path=way.path)


def end_word(state: str, language: str) -> str:
    """How something ended."""
    return in_language({"en": state, CHINESE: STATES.get(state, state)}, language)
