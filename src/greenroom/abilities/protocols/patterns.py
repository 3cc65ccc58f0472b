"""What the scanner looks for in a reply, as one pattern: the name of the group that matched says what was found."""

from __future__ import annotations

import re
from functools import lru_cache

from greenroom.abilities.protocols import hints, quoting
from greenroom.abilities.protocols.quoting import ATTRIBUTES, ITEM, NAME


@lru_cache(maxsize=64)
def events(tags: tuple[str, ...], start: str = "^") -> re.Pattern[str]:
    """All that means something: at the start of a line, or behind one of the signs of `quoting.SIGNS`.

    With an empty `start` the place where it is matched counts as the start of a line.
    """
    tag = "(?i:" + "|".join(map(re.escape, tags)) + ")"
    return re.compile(
        rf"{start}(?:"
        rf"(?P<fence>{ITEM}{quoting.TICKS_AND_TILDES})"
        rf"|(?P<open>(?P<indent>[ ]{{0,3}})<(?P<tag>{tag})(?P<attributes>[ \t][^<>\n]*+)?>)"
        rf"|(?P<quote>{ITEM}>)"
        rf"|(?P<odd>[ \t]*+(?:{hints.odd(tags)}))"
        rf"|(?P<first>[ \t]*+<(?!{tag}[ \t>]|{quoting.THINKS}[\s/>])(?P<first_name>{NAME}){ATTRIBUTES}>)"
        rf"|(?P<colons>[ \t]*+:{{3,}}+)"
        rf"|(?P<spilled>{quoting.SPILLED})"
        rf")|(?={quoting.SIGNS})(?:"
        rf"(?P<mention><(?P<named>{tag})(?:[ \t][^<>\n]*+)?>)"
        rf"|(?P<stray></(?P<ended>{tag})[ \t]*+>)"
        rf"|(?P<thought>{quoting.THOUGHT})"
        rf"|(?P<thought_out>{quoting.THOUGHT_OUT})"
        rf"|(?P<role>{quoting.ROLE})"
        rf"|(?P<element><(?!{tag}[ \t>])(?P<name>{NAME}){ATTRIBUTES}>)"
        rf"|(?P<element_out></(?P<closed>{NAME})\s*+>)"
        r"|(?P<bracket>\[(?P<bracketed>[A-Za-z_][\w-]*+)\])"
        rf"|(?P<pair>{quoting.PAIR})"
        r"|(?P<ticks>`++|~{3,}+))",
        re.MULTILINE,
    )


@lru_cache(maxsize=64)
def worth(tags: tuple[str, ...]) -> re.Pattern[str]:
    """Most replies have neither half a tag nor a thought in them, and are not looked at any closer."""
    words = {word[:5] for tag in tags for word in tag.split("_")}
    return re.compile("(?i:" + "|".join((*map(re.escape, sorted(words)), *quoting.WORDS, hints.FOREIGN)) + ")")


@lru_cache(maxsize=64)
def opening(tags: tuple[str, ...]) -> re.Pattern[str]:
    """An opening tag, and the blanks before it."""
    tag = "|".join(map(re.escape, tags))
    return re.compile(rf"(?P<indent>[ \t]*+)<(?P<tag>{tag})(?P<attributes>[ \t][^<>\n]*+)?>")


@lru_cache(maxsize=64)
def named(tags: tuple[str, ...]) -> re.Pattern[str]:
    """An opening tag, wherever it stands."""
    return re.compile("<(?P<tag>" + "|".join(map(re.escape, tags)) + r")(?:[ \t][^<>\n]*+)?>")
