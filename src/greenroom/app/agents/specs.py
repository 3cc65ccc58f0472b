"""All keys that an agent's file may hold, in one table, and the spec that they make: of a file or of a dictionary.

Beside our own names there are those of the designs that Greenroom unites, so that their agents can be read. A key may
be written `like_this`, `like-this` or `likeThis`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Final, Literal, TypeAlias, cast, get_args

from greenroom.abilities.protocols.calls import BadSchema, faults
from greenroom.abilities.protocols.outcome import ProtocolName
from greenroom.abilities.skills.talk.endings import CAP
from greenroom.abilities.tools.tool import DEFAULT
from greenroom.app.settings.schema import meant, short
from greenroom.app.settings.values import Reader, Unfit, count, delay, number, one_of, text
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import Data, encode, evolve, record
from greenroom.core.base.text import UNSEEN
from greenroom.core.state.spec import AgentSpec, Cooperation, Group, History, Turn
from greenroom.policy.rules import BadRule, parse

NAME_PATTERN: Final = re.compile(r"\w[\w.-]{0,63}")
RESERVED: Final = ("system", "door")
NAMED: Final = "a name of up to 64 letters, digits, - _ and ., like code-reviewer"
LISTED: Final = 'a list of names, like ["one", "two"]'
HOTTEST: Final = 2.0
SKILLS: Final = ("think", "quick_think", "ask_info", "task_manager", "agent_manager")
"""Skills that not every agent that plans has."""


def name(value: object) -> str:
    """What an agent is called, and called by."""
    if not isinstance(value, str) or not NAME_PATTERN.fullmatch(value) or value in RESERVED:
        raise Unfit(NAMED if value not in RESERVED else "another name: the house is called so itself")
    return value


def prose(value: object) -> str:
    """A text of any number of lines."""
    if not isinstance(value, str) or not value.strip():
        raise Unfit("a text that is not empty")
    if UNSEEN.search(value):
        raise Unfit("a text without characters that cannot be seen")
    return value.strip()


def names(value: object) -> tuple[str, ...]:
    """A list of names; `a, b` is one too. Each counts once."""
    listed = value.split(",") if isinstance(value, str) else value
    if not isinstance(listed, list | tuple):
        raise Unfit(LISTED)
    try:
        return tuple(dict.fromkeys(text(one) for one in listed))
    except Unfit:
        raise Unfit(LISTED) from None


def agents(value: object) -> tuple[str, ...]:
    return tuple(name(one) for one in names(value))


def limits(value: object) -> tuple[str, ...]:
    """Rules that tighten what an agent may do."""
    listed = [value] if isinstance(value, str) else value
    if not isinstance(listed, list | tuple):
        raise Unfit("a list of rules, like [deny command git push]")
    return tuple(dict.fromkeys(_limit(text(one)) for one in listed))


def _limit(said: str) -> str:
    try:
        rule = parse(said)
    except BadRule as bad:
        raise Unfit(f"a list of rules. {bad}") from None
    if rule.level not in ("ask", "deny"):
        raise Unfit("a list of rules that ask or deny: what an agent may do is not for its file to say")
    return str(rule)


def truth(value: object) -> bool:
    if not isinstance(value, bool):
        raise Unfit("true or false")
    return value


def whole(least: int, most: int) -> Reader:

    def read(value: object) -> int:
        if type(value) is not int or not least <= value <= most:
            raise Unfit(f"a whole number from {least} to {most}")
        return value

    return read


def temperature(value: object) -> float:
    """How freely a model speaks."""
    what = "a number from 0 to 2"
    if number(value, what) > HOTTEST:
        raise Unfit(what)
    return number(value, what)


def rate(value: object) -> int:
    """A part of one, as percent."""
    what = "a number from 0 to 1, like 0.92"
    if number(value, what) > 1:
        raise Unfit(what)
    return round(number(value, what) * 100)


def seconds(value: object) -> int:
    """A time in whole seconds."""
    return round(delay(value))


def model(value: object) -> str:
    """A role, a group or `provider:model`. What it means is found out when it is asked."""
    named = text(value)
    if "://" in named or " " in named:
        raise Unfit("a role, a group of yours or provider:model, like openai:gpt-5.5; an address is none")
    return named


def several_of(*words: str) -> Reader:
    """A list of some of a few words."""

    def read(value: object) -> tuple[str, ...]:
        found = names(value)
        for one in found:
            if one not in words:
                near = get_close_matches(one, words, n=1)
                hint = f" (did you mean `{near[0]}`?)" if near else ""
                raise Unfit(f"a list of some of {', '.join(words)}{hint}")
        return found

    return read


def skills(value: object) -> tuple[str, ...]:
    """Skills of an agent that plans."""
    try:
        return names(several_of(*SKILLS)(value))
    except Unfit as unfit:
        raise Unfit(f"{unfit}; what an agent is good at is said with `capabilities`") from None


def translated(words: Mapping[str, str]) -> Reader:
    """The same in the words of another design."""
    known = several_of(*words)

    def read(value: object) -> tuple[str, ...]:
        return tuple(words[one] for one in names(known(value)))

    return read


def schema(value: object) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise Unfit("a JSON Schema, like {type: object, properties: {…}}")
    try:
        faults(value, {})
    except BadSchema as bad:
        raise Unfit(f"a JSON Schema ({bad})") from None
    return value


To: TypeAlias = tuple[str, ...]
Design = Literal["jarvis", "artifactflow", "roo"]

DESIGN: Final = "design"
PROMPT: Final = ("prompt",)
NAME: Final = ("name",)
FILE_EDIT: Final = ("no file edit",)
"""No field of a spec: it is gone when the design has had its say."""

MANY: Final = 1_000_000
LONG: Final = 60
HANDLERS: Final = {
    "ToolRegistry": "tool_call",
    "EditFileHandler": "patch",
    "RewriteFileHandler": "rewrite",
    "MultiAgent": "send_message",
}
"""Jarvis' output handlers, and the forms of text that they read."""


class BadKey(WorldFault):
    """A key that cannot be used as it stands. `why` follows its name in a sentence."""

    def __init__(self, key: str, why: str) -> None:
        super().__init__(f"`{key if len(key) <= LONG else key[:LONG] + '…'}` {why}")
        self.key: Final = key


@record
class Goes:
    """Where a value goes, and how it is read."""

    to: To
    read: Reader


@record
class Not:
    """Why a key has no place here, and what to do."""

    why: str


def _later(what: str) -> Not:
    return Not(why=f"has no effect yet: it comes with {what}. Leave it out until then.")


_SECRET: Final = Not(why="is a secret and stands in no agent's file. Delete it; `greenroom init` stores keys.")
_ADDRESS: Final = Not(why="is an address, and no agent says where models are asked. It belongs into your settings.")
_LIMIT: Final = Not(why="is a limit of the run, not of an agent. It belongs into the settings, under [limits].")
_RETRY: Final = Not(why="is the same for all agents. Set `attempts` and `delay` under [retry] in the settings.")
_FUNCTION: Final = Not(why="is a function, which no file can hold. Leave it out.")
_RUN: Final = Not(why="is said by how and with whom the agent runs, not by the agent. Leave it out.")
_ROO: Final = Not(why="is known in Roo-Code's profiles only. If this is one, say `design: roo`; if not, leave it out.")

OURS: Final[Mapping[str, Goes]] = {
    "name": Goes(to=NAME, read=name),
    "role": Goes(to=("role",), read=text),
    "profile": Goes(to=("profile",), read=prose),
    "description": Goes(to=("description",), read=prose),
    "prompt": Goes(to=PROMPT, read=prose),
    "model": Goes(to=("llm_config", "model"), read=model),
    "temperature": Goes(to=("llm_config", "temperature"), read=temperature),
    "max_output": Goes(to=("llm_config", "max_output"), read=count),
    "effort": Goes(to=("llm_config", "effort"), read=one_of("low", "medium", "high")),
    "streaming": Goes(to=("llm_config", "streaming"), read=truth),
    "tools": Goes(to=("tools",), read=names),
    "calls": Goes(to=("calls",), read=agents),
    "groups": Goes(to=("groups",), read=several_of(*get_args(Group))),
    "permissions": Goes(to=("rules",), read=limits),
    "style": Goes(to=("style",), read=one_of("converse", "plan")),
    "manager": Goes(to=("manager",), read=truth),
    "skills": Goes(to=("skills",), read=skills),
    "capabilities": Goes(to=("capabilities",), read=names),
    "protocols": Goes(to=("turn", "protocols"), read=several_of(*get_args(ProtocolName))),
    "several": Goes(to=("turn", "several"), read=one_of("reject", "first")),
    "ends": Goes(to=("turn", "ends"), read=one_of("finish", "mark", "text")),
    "auto_complete": Goes(to=("turn", "auto_complete"), read=truth),
    "rounds": Goes(to=("turn", "rounds"), read=whole(0, MANY)),
    "repairs": Goes(to=("turn", "repairs"), read=whole(0, 10)),
    "summary_rounds": Goes(to=("history", "summary_rounds"), read=whole(0, MANY)),
    "summary_prompt": Goes(to=("history", "summary_prompt"), read=prose),
    "need_summary": Goes(to=("history", "need_summary"), read=truth),
    "language": Goes(to=("language",), read=one_of("en", "zh")),
    "answer": Goes(to=("answer",), read=schema),
    "cooperation.concurrency": Goes(to=("cooperation", "concurrency"), read=count),
    "cooperation.seconds": Goes(to=("cooperation", "seconds"), read=seconds),
    "cooperation.success": Goes(to=("cooperation", "success"), read=whole(0, 100)),
    "cooperation.cooperates": Goes(to=("cooperation", "cooperates"), read=truth),
    "cooperation.partners": Goes(to=("cooperation", "partners"), read=agents),
    "cooperation.protocol": Goes(to=("cooperation", "protocol"), read=text),
}

THEIRS: Final[Mapping[str, Goes]] = {
    # Jarvis, MultiAgent
    "system_prompt": OURS["prompt"],
    "model_group": OURS["model"],
    "use_tools": OURS["tools"],
    "auto_summary_rounds": OURS["summary_rounds"],
    "output_handler": Goes(to=("turn", "protocols"), read=translated(HANDLERS)),
    "multi_call_policy": OURS["several"],
    # ArtifactFlow
    "required_tools": OURS["tools"],
    "max_tool_rounds": OURS["rounds"],
    # Roo-Code
    "prompt_template": OURS["prompt"],
    "tool_groups": OURS["groups"],
    "max_concurrency": OURS["cooperation.concurrency"],
    "average_execution_time": OURS["cooperation.seconds"],
    "success_rate": Goes(to=("cooperation", "success"), read=rate),
    "can_cooperate": OURS["cooperation.cooperates"],
    "preferred_partners": OURS["cooperation.partners"],
    "communication_protocol": OURS["cooperation.protocol"],
}

REFUSED: Final[Mapping[str, Not]] = {
    **dict.fromkeys(("id", "type"), _ROO),
    **dict.fromkeys(("kind", "proof", "in_multi_agent", "non_interactive"), _RUN),
    **dict.fromkeys(("multiline_inputer", "confirm_callback"), _FUNCTION),
    **dict.fromkeys(("llm_max_retries", "llm_retry_delay"), _RETRY),
    **dict.fromkeys(("key", "api_key", "key_env", "token", "headers"), _SECRET),
    **dict.fromkeys(("base_url", "api_base", "url"), _ADDRESS),
    **dict.fromkeys(("limits", "max_cost", "max_time"), _LIMIT),
    **dict.fromkeys(("summary_on_send", "clear_after_send_message"), _later("handing work over")),
    **dict.fromkeys(("plan", "plan_depth", "plan_max_depth"), _later("planning")),
    "human_config": _later("people in a team"),
    "use_methodology": _later("methodologies"),
    "use_analysis": _later("looking back on tasks"),
    "force_save_memory": _later("memory"),
    "files": _later("files given to a task"),
    "agent_type": _later("agents that write code"),
    "version": Not(why="is worked out from what the file says. Leave it out."),
    "execute_tool_confirm": Not(why="is said by a person, not by an agent. It belongs into your settings."),
    "disable_file_edit": Not(
        why="is known to `design: jarvis` only. Elsewhere leave the tools that edit out of `tools`."
    ),
    "max_tokens": Not(why="may mean two things: an answer's length is `max_output`, a run's limit is [limits] tokens."),
}

OWN_WORDS: Final[Mapping[Design, Mapping[str, Goes]]] = {
    "jarvis": {"disable_file_edit": Goes(to=FILE_EDIT, read=truth)},
    "artifactflow": {},
    "roo": {
        "id": OURS["name"],
        "type": OURS["role"],
        "name": OURS["profile"],
        "skills": OURS["capabilities"],
    },
}
"""Words that mean something else, or something at all, in one design."""

TABLES: Final = ("cooperation",)
EVERY: Final[Mapping[str, Goes | Not]] = {**OURS, **THEIRS, **REFUSED}


def plain(key: str) -> str:
    """A key in our spelling."""
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", key).replace("-", "_").lower()


def flat(raw: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    """All keys with their values; those of a table inside with its name before theirs."""
    for key, value in raw.items():
        if plain(key) not in TABLES:
            yield key, value
        elif isinstance(value, Mapping):
            yield from ((f"{key}.{inner}", one) for inner, one in value.items())
        else:
            inside = ", ".join(f"`{one.partition('.')[2]}`" for one in OURS if one.startswith(f"{plain(key)}."))
            raise BadKey(key, f"is a table. Write {inside} below it, indented.")


def meaning(key: str, design: Design | None) -> Goes:
    """What a key means; `BadKey` when it has no place here."""
    own = OWN_WORDS[design] if design is not None else {}
    found = own.get(plain(key)) or EVERY.get(plain(key))
    match found:
        case Goes():
            return found
        case Not():
            raise BadKey(key, found.why)
        case None:
            raise BadKey(key, f"is no key of an agent. {_meant(key, {*EVERY, *own, DESIGN})}")


def _meant(key: str, known: set[str]) -> str:
    near = get_close_matches(plain(key), sorted(known), n=1)
    if near:
        return f"Did you mean `{near[0]}`?"
    ours = dict.fromkeys(one.partition(".")[0] for one in OURS)
    return f"There are: {', '.join(f'`{one}`' for one in ours)}."


def read(key: str, value: object, reader: Reader) -> object:
    """One value; `BadKey` says what it should be."""
    if value is None:
        raise BadKey(key, "is empty. Give it a value, or delete the line.")
    try:
        return reader(value)
    except Unfit as unfit:
        raise BadKey(key, f"must be {unfit}, not {short(value)}.") from None


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
    for key, value in flat(raw):
        if plain(key) == DESIGN:
            continue
        goes = meaning(key, design)
        if goes.to in found:
            raise _twice(key, found[goes.to][0])
        found[goes.to] = (key, read(key, value, goes.read))
    if not trusted:
        _refuse_raising(found)
    told = complete(design, {to: value for to, (_, value) in found.items()})
    if NAME not in told:  # it is called like its file
        try:
            told[NAME] = name(default_name)
        except Unfit as unfit:
            what = f", and {default_name!r} cannot be one" if default_name else ""
            raise BadKey("name", f"is missing{what}. It must be {unfit}.") from None
    return versioned(_built(told))


def versioned(spec: AgentSpec) -> AgentSpec:
    """The spec with its version: a short hash of what it says."""
    bare = evolve(spec, version="")
    return evolve(bare, version=hashlib.sha256(encode(bare)).hexdigest()[:12])


def _design(raw: Data) -> Design | None:
    said = next((key for key in raw if plain(key) == DESIGN), None)
    return None if said is None else cast("Design", read(said, raw[said], one_of(*get_args(Design))))


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
