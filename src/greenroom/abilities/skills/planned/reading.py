"""From a reply to an answer: without thoughts, out of its tags or its JSON, held against its schema."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final, Literal

from greenroom.abilities.skills.planned.schemas import check, without_nulls
from greenroom.abilities.skills.planned.skill import Answer, Moment, Skill
from greenroom.core.base.errors import ModelFault
from greenroom.core.base.records import Data
from greenroom.core.ports.reading import Datum, Misread

MEMORY: Final = "persistent_memory"


def read(moment: Moment, skill: Skill, text: str, schema: Data, *, tags: bool) -> Answer:
    """The answer in a reply; `ModelFault` says why there is none that can be used."""
    found = _tagged(moment, skill, text, schema) if tags else _structured(moment, text)
    found = replace(found, value=skill.tidied(found.value))
    check(moment, schema, found.value)
    if schema.get("type") == "string" and not str(found.value).strip():
        raise ModelFault("Your answer is empty.")
    return found


def _structured(moment: Moment, text: str) -> Answer:
    datum = _datum(moment, text, "Your reply")
    whole = without_nulls(datum.value)
    if not isinstance(whole, Mapping) or "answer" not in whole:
        raise ModelFault("Your reply is no JSON object with the field `answer`.")
    return Answer(value=whole["answer"], memory=str(whole.get(MEMORY, "")), repaired=datum.repaired)


def _tagged(moment: Moment, skill: Skill, text: str, schema: Data) -> Answer:
    kind: Literal["text", "data"] = "text" if schema.get("type") == "string" else "data"
    blocks = moment.reader.tagged(text, {skill.tag: kind, MEMORY: "text"})
    if isinstance(blocks, Misread):
        raise ModelFault(blocks.why)
    bodies = blocks[skill.tag]
    if len(bodies) != 1:
        many = f"{len(bodies)} blocks" if bodies else "no block"
        raise ModelFault(
            f"Your reply has {many} <{skill.tag}>. Put the answer into one, and end it with </{skill.tag}>."
        )
    memory = "\n\n".join(blocks[MEMORY])
    if kind == "text":
        return Answer(value=bodies[0], memory=memory)
    datum = _datum(moment, bodies[0], f"<{skill.tag}>")
    return Answer(value=datum.value, memory=memory, repaired=datum.repaired)


def _datum(moment: Moment, body: str, where: str) -> Datum:
    found = moment.reader.data(body)
    if isinstance(found, Misread):
        raise ModelFault(f"{where} cannot be used. {found.why}")
    return found
