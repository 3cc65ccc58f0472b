"""From keys and values to the one spec: of a file, of a dictionary, in our words or in another design's."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Final, cast, get_args

from greenroom.abilities.skills.talk.endings import CAP
from greenroom.app.agents import keys
from greenroom.app.agents import keys as values
from greenroom.app.agents.keys import DESIGN, FILE_EDIT, HANDLERS, NAME, PROMPT, BadKey, Design, To, plain
from greenroom.app.settings.schema import meant
from greenroom.app.settings.values import Unfit, one_of
from greenroom.app.toolset.toolbox import DEFAULT
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import Data, encode, evolve
from greenroom.core.state.spec import AgentSpec, Cooperation, History, Turn

USUAL: Final[Mapping[Design, Mapping[To, object]]] = {
    "jarvis": {NAME: "Jarvis"},
    "artifactflow": {
        ("llm_config", "model"): "dashscope:qwen-plus",
        ("llm_config", "temperature"): 0.7,
        ("llm_config", "streaming"): False,
        ("turn", "rounds"): 3,
        ("turn", "protocols"): ("xml_tool",),
        ("turn", "several"): "first",
        ("turn", "ends"): "text",
    },
    "roo": {},
}
NEEDED: Final[Mapping[Design, Mapping[To, str]]] = {
    "jarvis": {PROMPT: "system_prompt"},
    "artifactflow": {NAME: "name", ("description",): "description"},
    "roo": {NAME: "id"},
}
EDITS: Final = frozenset({"patch", "rewrite"})
"""What edits files: two forms of text, and the tools of the same names."""

EDITING: Final = "edit"
"""Their group."""

FORMS: Final[To] = ("turn", "protocols")
TOOLS: Final[To] = ("tools",)
GROUPS: Final[To] = ("groups",)
JARVIS: Final = ("ToolRegistry", "EditFileHandler", "RewriteFileHandler")
"""The handlers that Jarvis has if nobody says otherwise."""


def complete(design: Design | None, said: Mapping[To, object]) -> dict[To, object]:
    """What was said, and what its design takes for granted; `BadKey` for what that design needs and nobody said."""
    if design is None:
        return dict(said)
    for to, key in NEEDED[design].items():
        if to not in said:
            raise BadKey(key, f"is missing, and `design: {design}` needs it. Add it.")
    told = {**USUAL[design], **said}
    return _forms(told) if design == "jarvis" else told


def _forms(told: dict[To, object]) -> dict[To, object]:
    """Jarvis acts in text, and has the usual tools where nobody lists any; without file edits all that edits goes."""
    forms = cast("tuple[str, ...]", told.get(FORMS, tuple(HANDLERS[one] for one in JARVIS)))
    bare = bool(told.pop(FILE_EDIT, False))
    if not told.get(TOOLS) and not told.get(GROUPS):
        told[TOOLS] = DEFAULT
    if not bare:
        return {**told, FORMS: forms}
    found = {FORMS: forms, TOOLS: told.get(TOOLS, ()), GROUPS: told.get(GROUPS, ())}
    return {**told, **{to: _bare(cast("tuple[str, ...]", some), to) for to, some in found.items()}}


def without_edits(spec: AgentSpec) -> AgentSpec:
    """The agent as `disable_file_edit` has it: no form, no tool and no group that edits files."""
    return evolve(
        spec,
        tools=_bare(spec.tools, TOOLS),
        groups=_bare(spec.groups, GROUPS),
        turn=evolve(spec.turn, protocols=_bare(spec.turn.protocols, FORMS)),
    )


def _bare(names: tuple[str, ...], to: To) -> tuple[str, ...]:
    return tuple(one for one in names if one not in ({EDITING} if to == GROUPS else EDITS))


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
    if NAME not in told:  # it is called like its file
        try:
            told[NAME] = values.name(default_name)
        except Unfit as unfit:
            what = f", and {default_name!r} cannot be one" if default_name else ""
            raise BadKey("name", f"is missing{what}. It must be {unfit}.") from None
    return versioned(_built(told))


def versioned(spec: AgentSpec) -> AgentSpec:
    """The spec with its version: a short hash of what it says."""
    bare = evolve(spec, version="")
    return evolve(bare, version=hashlib.sha256(encode(bare)).hexdigest()[:12])


def _design(raw: Data) -> Design | None:
    said = next((key for key in raw if keys.plain(key) == DESIGN), None)
    return None if said is None else cast("Design", keys.read(said, raw[said], one_of(*get_args(Design))))


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
    records = {"turn": Turn, "history": History, "cooperation": Cooperation}
    inner = {name: records[name](**fields) if name in records else fields for name, fields in parts.items()}
    return evolve(made, **own, **inner)


def agents_config(
    agents_config: Sequence[Data], main_agent_name: str, common_system_prompt: str = ""
) -> tuple[AgentSpec, ...]:
    """The agents of a MultiAgent, the main one first. The others do not end a task by themselves."""
    made: dict[str, AgentSpec] = {}
    for place, item in enumerate(agents_config):
        spec = _item(item, f"agents_config[{place}]", common_system_prompt)
        if spec.name in made:
            raise WorldFault(f"agents_config[{place}]: there is another agent called {spec.name!r}. Rename one.")
        made[spec.name] = spec
    main = made.pop(main_agent_name, None)
    if main is None:
        raise WorldFault(f"There is no agent {main_agent_name!r} to be the main one. {meant(main_agent_name, made)}")
    others = [evolve(one, turn=evolve(one.turn, auto_complete=False)) for one in made.values()]
    return (main, *map(versioned, others))


def _item(item: Data, where: str, common: str) -> AgentSpec:
    try:
        if not any(plain(key) == "name" for key in item):
            raise BadKey("name", "is missing. Each agent of a MultiAgent needs one.")
        spec = spec_of({**item, "design": "jarvis"})
    except BadKey as fault:
        raise WorldFault(f"{where}: {fault}") from None
    return versioned(evolve(spec, prompt=f"{common}\n\n{spec.prompt}")) if common.strip() else spec
