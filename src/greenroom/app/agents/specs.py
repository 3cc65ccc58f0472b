"""From keys and values to the one spec: of a file, of a dictionary, in our words or in another design's."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Final, cast, get_args

from greenroom.abilities.skills.talk.endings import CAP
from greenroom.app.agents import keys, values
from greenroom.app.agents.designs import complete
from greenroom.app.agents.keys import DESIGN, NAME, PROMPT, BadKey, Design, To
from greenroom.app.settings.values import Unfit, one_of
from greenroom.core.base.records import Data, encode, evolve
from greenroom.core.state.spec import AgentSpec, Cooperation, History, Turn

BELOW: Final = "the text below the front matter"


def spec_of(raw: Data, *, prompt: str = "", default_name: str = "", trusted: bool = True) -> AgentSpec:
    """The spec that these keys describe; `BadKey` for the first one that cannot be used.

    `prompt` is what stands below them in a file. What is not `trusted` may not raise the house's limits.
    """
    design = _design(raw)
    found: dict[To, tuple[str, object]] = {PROMPT: (BELOW, prompt)} if prompt else {}
    for key, value in keys.flat(raw):
        if keys.plain(key) == DESIGN:
            continue
        goes = keys.meaning(key, design)
        if goes.to in found:
            raise _twice(key, found[goes.to][0])
        found[goes.to] = (key, keys.read(key, value, goes.read))
    if not trusted:
        _refuse_raising(found)
    told = complete(design, {to: value for to, (_, value) in found.items()})
    if NAME not in told:
        told[NAME] = _called_like(default_name)
    return versioned(_built(told))


def versioned(spec: AgentSpec) -> AgentSpec:
    """The spec with its version: a short hash of what it says."""
    bare = evolve(spec, version="")
    return evolve(bare, version=hashlib.sha256(encode(bare)).hexdigest()[:12])


def _design(raw: Data) -> Design | None:
    said = next((key for key in raw if keys.plain(key) == DESIGN), None)
    return None if said is None else cast("Design", keys.read(said, raw[said], one_of(*get_args(Design))))


def _called_like(file: str) -> str:
    """What an agent is called that does not say it: like its file."""
    try:
        return values.name(file)
    except Unfit as unfit:
        what = f", and {file!r} cannot be one" if file else ""
        raise BadKey("name", f"is missing{what}. It must be {unfit}.") from None


def _twice(key: str, other: str) -> BadKey:
    if other == BELOW:
        return BadKey(key, f"and {BELOW} are the same thing, the prompt. Keep one of them.")
    if key == other:
        return BadKey(key, "is there twice. Keep one of them.")
    return BadKey(key, f"and `{other}` are two names for the same thing. Keep one of them.")


def _refuse_raising(found: Mapping[To, tuple[str, object]]) -> None:
    key, rounds = found.get(("turn", "rounds"), ("", 0))
    if cast("int", rounds) > CAP:
        raise BadKey(
            key,
            f"is more than the house's own limit of {CAP}, which a project may not raise. "
            "If you want it, put the agent into your own folder: `greenroom agents new NAME --user`.",
        )


def _built(told: Mapping[To, object]) -> AgentSpec:
    """The record; what nobody said has its default."""
    parts: dict[str, dict[str, object]] = {}
    for to in sorted(told):
        parts.setdefault(to[0] if len(to) > 1 else "", {})[to[-1]] = told[to]
    own = parts.pop("", {})
    made = AgentSpec(name=str(own["name"]))
    inner: dict[str, object] = {}
    for name, fields in parts.items():
        match name:
            case "turn":
                inner[name] = evolve(Turn(), **fields)
            case "history":
                inner[name] = evolve(History(), **fields)
            case "cooperation":
                inner[name] = evolve(Cooperation(), **fields)
            case _:
                inner[name] = fields
    return evolve(made, **own, **inner)
