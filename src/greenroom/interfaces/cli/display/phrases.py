"""The message catalogue of an organisation at the command line, and why it stands still in its language."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from typing import Final

from immutables import Map

from greenroom.app.messages import CHINESE, Catalogue, in_language
from greenroom.app.organisation.words import STATES
from greenroom.core.base.ids import TEAM_BUDGET
from greenroom.core.base.records import record

CATALOGUE: Final = Catalogue("greenroom.interfaces.cli.display", "organisation")
word: Final = partial(CATALOGUE.phrase, "room")
team_word: Final = partial(CATALOGUE.phrase, "team")
STOPPED: Final = "stopped by a person"
"""Why an organisation stands still that a person stopped, as the log has it."""

LIMIT: Final = re.compile(r"limit: (\S+) (\w+)")
"""A limit that was reached, as the log has it: whose, and of what."""

USED_UP: Final = ("money", "tokens", "millis", "steps", "hops")
FLAGS: Final = {"money": "--max-cost", "tokens": "--max-tokens", "millis": "--max-time"}


@record
class Way:
    """What lets an organisation go on: the command that starts it; and where its charter, which lies in `path`, holds
    the limit of something, the `keys` that do, by what they limit. `left` is what it has left of each."""

    name: str
    start: str
    path: str = ""
    keys: Mapping[str, str]
    left: Mapping[str, str] = Map()


def stands_word(stands: str, language: str) -> str:
    """How an organisation stands."""
    return CATALOGUE.table("standing", language).get(stands, stands)


def end_word(state: str, language: str) -> str:
    """How work ended."""
    return in_language({"en": state, CHINESE: STATES.get(state, state)}, language)


def reason(why: str, language: str) -> str:
    """Why something stands still, as far as the reason is one of ours; without a full stop."""
    words, limit = CATALOGUE.table("reasons", language), LIMIT.fullmatch(why)
    if limit is not None and limit[2] in USED_UP:
        return words[limit[2]]
    kind, colon, rest = why.partition(":")
    if colon and kind == "provider":
        return f"{words['provider']}:{rest}".rstrip(".")
    return words["stopped"] if why == STOPPED else why.rstrip(".")


def still(why: str, language: str, way: Way) -> str:
    """That something stands still, and what lets it go on."""
    limit, told = LIMIT.fullmatch(why), reason(why, language)
    if limit is None or limit[2] not in FLAGS:
        return CATALOGUE.phrase("reasons", "still", language, why=told)
    team = limit[1] == TEAM_BUDGET
    key = way.keys.get(limit[2]) if team else None
    if team and limit[2] in way.left:
        told = CATALOGUE.phrase("reasons", "left", language, why=told, left=way.left[limit[2]])
    known = {"name": way.name, "why": told, "command": way.start, "flag": FLAGS[limit[2]], "key": key}
    return CATALOGUE.phrase("reasons", "held" if key else "more", language, path=way.path, **known)
