"""All keys of agent files in one table, and the spec that they produce from a file or a dictionary.

Besides Greenroom's own names, the names of the source designs are accepted. A key can be written `like_this`,
`like-this` or `likeThis`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Final, Literal, TypeAlias, cast, get_args

from greenroom.abilities.protocols.calls import BadSchema, find_faults
from greenroom.abilities.protocols.parse_result import ProtocolName
from greenroom.abilities.skills.conversation.completion import DEFAULT_MAX_TURNS
from greenroom.abilities.tools.tool import DEFAULT_TOOLS
from greenroom.app.agents.coder import build_coder
from greenroom.app.messages import translate
from greenroom.app.settings.schema import shorten
from greenroom.app.settings.values import BadValue, Reader, one_of, parse_count, parse_delay, parse_number, parse_text
from greenroom.app.text_reader import SUBAGENT_CALL
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import Data, encode, evolve, record
from greenroom.core.base.text import CONTROL_CHARACTERS
from greenroom.core.state.spec import AgentSpec, Cooperation, Handoff, History, PlanPolicy, ToolGroup, TurnPolicy
from greenroom.policy.rules import BadRule, parse
from greenroom.teamwork.handoffs import read_protocols

NAME_PATTERN: Final = re.compile(r"\w[\w.-]{0,63}")
RESERVED_NAMES: Final = ("system", "door")
LIST_RULE: Final = "values.names"
MAX_TEMPERATURE: Final = 2.0
OPTIONAL_SKILLS: Final = ("think", "quick_think", "ask_info", "task_manager", "agent_manager")
"""Planning skills that an agent has only if its file lists them."""


def parse_name(value: object) -> str:
    """Parse an agent's name."""
    if not isinstance(value, str) or not NAME_PATTERN.fullmatch(value) or value in RESERVED_NAMES:
        raise BadValue("values.agent_name" if value not in RESERVED_NAMES else "values.reserved_name")
    return value


def parse_prose(value: object) -> str:
    """Parse a text of any number of lines."""
    if not isinstance(value, str) or not value.strip():
        raise BadValue("values.prose")
    if CONTROL_CHARACTERS.search(value):
        raise BadValue("values.visible_text")
    return value.strip()


def parse_names(value: object) -> tuple[str, ...]:
    """Parse a list of names, or `a, b`. Duplicates are removed."""
    items = value.split(",") if isinstance(value, str) else value
    if not isinstance(items, list | tuple):
        raise BadValue(LIST_RULE)
    try:
        return tuple(dict.fromkeys(parse_text(item) for item in items))
    except BadValue:
        raise BadValue(LIST_RULE) from None


def parse_agent_names(value: object) -> tuple[str, ...]:
    return tuple(parse_name(agent_name) for agent_name in parse_names(value))


def parse_rules(value: object) -> tuple[str, ...]:
    """Parse rules that restrict an agent."""
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, list | tuple):
        raise BadValue("values.rules")
    return tuple(dict.fromkeys(_parse_rule(parse_text(item)) for item in items))


def _parse_rule(rule_text: str) -> str:
    try:
        rule = parse(rule_text)
    except BadRule as bad:
        raise BadValue("values.rules_with_fault", bad=bad) from None
    if rule.level not in ("ask", "deny"):
        raise BadValue("values.restricting_rules")
    return str(rule)


def parse_bool(value: object) -> bool:
    if not isinstance(value, bool):
        raise BadValue("values.switch")
    return value


def parse_confirm(value: object) -> bool:
    """Parse a switch that a file can only turn on: it tightens."""
    if value is not True:
        raise BadValue("values.only_true")
    return True


def int_between(minimum: int, maximum: int) -> Reader:
    def read(value: object) -> int:
        if type(value) is not int or not minimum <= value <= maximum:
            raise BadValue("values.number_between", minimum=minimum, maximum=maximum)
        return value

    return read


def parse_temperature(value: object) -> float:
    expected = "values.temperature"
    if parse_number(value, expected) > MAX_TEMPERATURE:
        raise BadValue(expected)
    return parse_number(value, expected)


def parse_rate(value: object) -> int:
    """Parse a fraction from 0 to 1 and return it as percent."""
    expected = "values.rate"
    if parse_number(value, expected) > 1:
        raise BadValue(expected)
    return round(parse_number(value, expected) * 100)


def parse_seconds(value: object) -> int:
    """Parse a time in whole seconds."""
    return round(parse_delay(value))


def parse_model(value: object) -> str:
    """Parse a role, a group or `provider:model`. The name is resolved when the model is used."""
    model_name = parse_text(value)
    if "://" in model_name or " " in model_name:
        raise BadValue("values.agent_model")
    return model_name


def several_of(*words: str) -> Reader:
    """Return a reader of lists of these words."""

    def read(value: object) -> tuple[str, ...]:
        chosen = parse_names(value)
        for word in chosen:
            if word not in words:
                near = get_close_matches(word, words, n=1)
                hint = translate("values.meant", near=near[0]) if near else ""
                raise BadValue("values.some_of", words=", ".join(words), hint=hint)
        return chosen

    return read


def parse_protocol(value: object) -> object:
    """Parse the protocol of a specialist's hand-off."""
    return one_of(*read_protocols())(value)


def parse_skills(value: object) -> tuple[str, ...]:
    """Parse the skills of a planning agent: optional ones, and folders with a `SKILL.md`."""
    names = parse_names(value)
    for name in names:
        if name not in OPTIONAL_SKILLS and not NAME_PATTERN.fullmatch(name):
            raise BadValue(LIST_RULE)
    return names


def list_own_skills(spec: AgentSpec) -> tuple[str, ...]:
    """Return the skills of a planning agent that come from folders with a `SKILL.md`."""
    return tuple(name for name in spec.skills if name not in OPTIONAL_SKILLS)


def translate_words(words: Mapping[str, str]) -> Reader:
    """Return a reader that translates the words of another design."""
    read_words = several_of(*words)

    def read(value: object) -> tuple[str, ...]:
        return tuple(words[word] for word in parse_names(read_words(value)))

    return read


def parse_schema(value: object) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise BadValue("values.schema")
    try:
        find_faults(value, {})
    except BadSchema as bad:
        raise BadValue("values.bad_schema", bad=bad) from None
    return value


FieldPath: TypeAlias = tuple[str, ...]
Design = Literal["jarvis", "artifactflow", "roo"]

DESIGN_KEY: Final = "design"
PROMPT_PATH: Final = ("prompt",)
NAME_PATH: Final = ("name",)
NO_FILE_EDIT_PATH: Final = ("no file edit",)
AGENT_TYPE_PATH: Final = ("agent type",)
CONFIRM_PATH: Final = ("confirm",)
"""Paths that are not fields of the spec. They become other fields, and are removed."""

CONFIRM_RULE: Final = "ask tool *"
"""The rule with which every tool call needs approval."""

MAX_ROUNDS: Final = 1_000_000
MAX_KEY_CHARS_SHOWN: Final = 60
JARVIS_HANDLERS: Final = {
    "ToolRegistry": "tool_call",
    "EditFileHandler": "patch",
    "RewriteFileHandler": "rewrite",
    "MultiAgent": "send_message",
}
"""Jarvis' output handlers, and the text protocols that they read."""


class BadKey(WorldFault):
    """A key that cannot be used. `why` follows the key's name in a sentence."""

    def __init__(self, key: str, why: str) -> None:
        super().__init__(f"`{key if len(key) <= MAX_KEY_CHARS_SHOWN else key[:MAX_KEY_CHARS_SHOWN] + '…'}` {why}")
        self.key: Final = key


@record
class KeyTarget:
    """The spec field of a key, and the reader of its value."""

    path: FieldPath
    read: Reader


OWN_KEYS: Final[Mapping[str, KeyTarget]] = {
    "name": KeyTarget(path=NAME_PATH, read=parse_name),
    "role": KeyTarget(path=("role",), read=parse_text),
    "profile": KeyTarget(path=("profile",), read=parse_prose),
    "description": KeyTarget(path=("description",), read=parse_prose),
    "prompt": KeyTarget(path=PROMPT_PATH, read=parse_prose),
    "model": KeyTarget(path=("llm_config", "model"), read=parse_model),
    "temperature": KeyTarget(path=("llm_config", "temperature"), read=parse_temperature),
    "max_output": KeyTarget(path=("llm_config", "max_output"), read=parse_count),
    "effort": KeyTarget(path=("llm_config", "effort"), read=one_of("low", "medium", "high")),
    "streaming": KeyTarget(path=("llm_config", "streaming"), read=parse_bool),
    "tools": KeyTarget(path=("tools",), read=parse_names),
    "calls": KeyTarget(path=("calls",), read=parse_agent_names),
    "groups": KeyTarget(path=("groups",), read=several_of(*get_args(ToolGroup))),
    "permissions": KeyTarget(path=("rules",), read=parse_rules),
    "style": KeyTarget(path=("style",), read=one_of("converse", "plan")),
    "manager": KeyTarget(path=("manager",), read=parse_bool),
    "skills": KeyTarget(path=("skills",), read=parse_skills),
    "capabilities": KeyTarget(path=("capabilities",), read=parse_names),
    "protocols": KeyTarget(path=("turn", "protocols"), read=several_of(*get_args(ProtocolName))),
    "several": KeyTarget(path=("turn", "several"), read=one_of("reject", "first")),
    "ends": KeyTarget(path=("turn", "ends"), read=one_of("finish", "mark", "text")),
    "auto_complete": KeyTarget(path=("turn", "auto_complete"), read=parse_bool),
    "rounds": KeyTarget(path=("turn", "rounds"), read=int_between(0, MAX_ROUNDS)),
    "repairs": KeyTarget(path=("turn", "repairs"), read=int_between(0, 10)),
    "summary_rounds": KeyTarget(path=("history", "summary_rounds"), read=int_between(0, MAX_ROUNDS)),
    "summary_prompt": KeyTarget(path=("history", "summary_prompt"), read=parse_prose),
    "need_summary": KeyTarget(path=("history", "need_summary"), read=parse_bool),
    "retrospective": KeyTarget(path=("history", "retrospective"), read=parse_bool),
    "force_save_memory": KeyTarget(path=("history", "force_save_memory"), read=parse_bool),
    "plan": KeyTarget(path=("planner", "enabled"), read=parse_bool),
    "plan_max_depth": KeyTarget(path=("planner", "max_depth"), read=int_between(0, 5)),
    "plan_max_steps": KeyTarget(path=("planner", "max_steps"), read=int_between(2, 50)),
    "files": KeyTarget(path=("files",), read=parse_names),
    "use_skills": KeyTarget(path=("use_skills",), read=parse_bool),
    "summary_on_send": KeyTarget(path=("handoff", "summary"), read=parse_bool),
    "handoff_summary_prompt": KeyTarget(path=("handoff", "summary_prompt"), read=parse_prose),
    "clear_after_send_message": KeyTarget(path=("handoff", "clear"), read=parse_bool),
    "clear_after_tokens": KeyTarget(path=("handoff", "clear_tokens"), read=parse_count),
    "clear_after_turns": KeyTarget(path=("handoff", "clear_turns"), read=parse_count),
    "language": KeyTarget(path=("language",), read=one_of("en", "zh")),
    "answer": KeyTarget(path=("answer",), read=parse_schema),
    "cooperation.concurrency": KeyTarget(path=("cooperation", "concurrency"), read=parse_count),
    "cooperation.seconds": KeyTarget(path=("cooperation", "seconds"), read=parse_seconds),
    "cooperation.success": KeyTarget(path=("cooperation", "success"), read=int_between(0, 100)),
    "cooperation.cooperates": KeyTarget(path=("cooperation", "cooperates"), read=parse_bool),
    "cooperation.partners": KeyTarget(path=("cooperation", "partners"), read=parse_agent_names),
    "cooperation.protocol": KeyTarget(path=("cooperation", "protocol"), read=parse_protocol),
}

FOREIGN_KEYS: Final[Mapping[str, KeyTarget]] = {
    # Jarvis, MultiAgent
    "system_prompt": OWN_KEYS["prompt"],
    "model_group": OWN_KEYS["model"],
    "use_tools": OWN_KEYS["tools"],
    "auto_summary_rounds": OWN_KEYS["summary_rounds"],
    "output_handler": KeyTarget(path=("turn", "protocols"), read=translate_words(JARVIS_HANDLERS)),
    "multi_call_policy": OWN_KEYS["several"],
    "use_analysis": OWN_KEYS["retrospective"],
    "use_methodology": OWN_KEYS["use_skills"],
    "agent_type": KeyTarget(path=AGENT_TYPE_PATH, read=one_of("normal", "code")),
    "execute_tool_confirm": KeyTarget(path=CONFIRM_PATH, read=parse_confirm),
    # ArtifactFlow
    "required_tools": OWN_KEYS["tools"],
    "max_tool_rounds": OWN_KEYS["rounds"],
    # Roo-Code
    "prompt_template": OWN_KEYS["prompt"],
    "tool_groups": OWN_KEYS["groups"],
    "max_concurrency": OWN_KEYS["cooperation.concurrency"],
    "average_execution_time": OWN_KEYS["cooperation.seconds"],
    "success_rate": KeyTarget(path=("cooperation", "success"), read=parse_rate),
    "can_cooperate": OWN_KEYS["cooperation.cooperates"],
    "preferred_partners": OWN_KEYS["cooperation.partners"],
    "communication_protocol": OWN_KEYS["cooperation.protocol"],
}

REFUSED_KEYS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("id", "type"), "specs.roo"),
    **dict.fromkeys(("kind", "proof", "in_multi_agent", "non_interactive"), "specs.run"),
    **dict.fromkeys(("multiline_inputer", "confirm_callback"), "specs.function"),
    **dict.fromkeys(("llm_max_retries", "llm_retry_delay"), "specs.retry"),
    **dict.fromkeys(("key", "api_key", "key_env", "token", "headers"), "specs.secret"),
    **dict.fromkeys(("base_url", "api_base", "url"), "specs.address"),
    **dict.fromkeys(("limits", "max_cost", "max_time"), "specs.limit"),
    "human_config": "specs.no_effect_yet",
    "plan_depth": "specs.plan_depth",
    "version": "specs.computed",
    "disable_file_edit": "specs.jarvis_only",
    "max_tokens": "specs.ambiguous_tokens",
}
"""Keys that are refused, and the message that says why and what to do."""

DESIGN_KEYS: Final[Mapping[Design, Mapping[str, KeyTarget]]] = {
    "jarvis": {"disable_file_edit": KeyTarget(path=NO_FILE_EDIT_PATH, read=parse_bool)},
    "artifactflow": {},
    "roo": {
        "id": OWN_KEYS["name"],
        "type": OWN_KEYS["role"],
        "name": OWN_KEYS["profile"],
        "skills": OWN_KEYS["capabilities"],
    },
}
"""Keys with a special meaning in one design."""

TABLE_KEYS: Final = ("cooperation",)
ALL_KEYS: Final[Mapping[str, KeyTarget | str]] = {**OWN_KEYS, **FOREIGN_KEYS, **REFUSED_KEYS}


def normalise_key(key: str) -> str:
    """Return a key in Greenroom's spelling."""
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", key).replace("-", "_").lower()


def flatten_keys(raw: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    """Flatten all keys. The key of a nested table is prefixed with the table's name."""
    for key, value in raw.items():
        if normalise_key(key) not in TABLE_KEYS:
            yield key, value
        elif isinstance(value, Mapping):
            yield from ((f"{key}.{inner}", inner_value) for inner, inner_value in value.items())
        else:
            inside = ", ".join(
                f"`{inner_value.partition('.')[2]}`"
                for inner_value in OWN_KEYS
                if inner_value.startswith(f"{normalise_key(key)}.")
            )
            raise BadKey(key, translate("specs.is_table", inside=inside))


def find_target(key: str, design: Design | None) -> KeyTarget:
    """Return the target of a key. Raise `BadKey` for an unknown or refused key."""
    design_keys = DESIGN_KEYS[design] if design is not None else {}
    target = design_keys.get(normalise_key(key)) or ALL_KEYS.get(normalise_key(key))
    match target:
        case KeyTarget():
            return target
        case str():
            raise BadKey(key, translate(target))
        case None:
            raise BadKey(
                key, translate("specs.unknown_key", hint=_suggest_key(key, {*ALL_KEYS, *design_keys, DESIGN_KEY}))
            )


def _suggest_key(key: str, known: set[str]) -> str:
    near = get_close_matches(normalise_key(key), sorted(known), n=1)
    if near:
        return translate("hints.meant_key", near=near[0])
    own_names = dict.fromkeys(key_name.partition(".")[0] for key_name in OWN_KEYS)
    return translate("hints.there", there=", ".join(f"`{key_name}`" for key_name in own_names))


def read_value(key: str, value: object, reader: Reader) -> object:
    """Read one value. Raise `BadKey` with the expected form."""
    if value is None:
        raise BadKey(key, translate("specs.empty"))
    try:
        return reader(value)
    except BadValue as unfit:
        raise BadKey(key, translate("specs.bad_value", unfit=unfit, value=shorten(value))) from None


DESIGN_DEFAULTS: Final[Mapping[Design, Mapping[FieldPath, object]]] = {
    "jarvis": {NAME_PATH: "Jarvis"},
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
DESIGN_REQUIRED: Final[Mapping[Design, Mapping[FieldPath, str]]] = {
    "jarvis": {PROMPT_PATH: "system_prompt"},
    "artifactflow": {NAME_PATH: "name", ("description",): "description"},
    "roo": {NAME_PATH: "id"},
}
EDIT_TOOLS: Final = frozenset({"patch", "rewrite"})
"""What edits files: two text protocols, and the tools of the same names."""

PROTOCOLS_PATH: Final[FieldPath] = ("turn", "protocols")
TOOLS_PATH: Final[FieldPath] = ("tools",)
GROUPS_PATH: Final[FieldPath] = ("groups",)
JARVIS_DEFAULT_HANDLERS: Final = ("ToolRegistry", "EditFileHandler", "RewriteFileHandler")


def apply_design(design: Design | None, fields: Mapping[FieldPath, object]) -> dict[FieldPath, object]:
    """Add the defaults of the design. Raise `BadKey` for a missing key that the design requires."""
    if design is None:
        return dict(fields)
    for path, key in DESIGN_REQUIRED[design].items():
        if path not in fields:
            raise BadKey(key, translate("specs.missing_for_design", design=design))
    completed = {**DESIGN_DEFAULTS[design], **fields}
    return _apply_jarvis_defaults(completed) if design == "jarvis" else completed


def _apply_jarvis_defaults(fields: dict[FieldPath, object]) -> dict[FieldPath, object]:
    """Apply Jarvis' defaults: text protocols, the default tools, and no edit tools if file edits are disabled."""
    protocols = cast(
        "tuple[str, ...]",
        fields.get(PROTOCOLS_PATH, tuple(JARVIS_HANDLERS[handler] for handler in JARVIS_DEFAULT_HANDLERS)),
    )
    no_edits = bool(fields.pop(NO_FILE_EDIT_PATH, False))
    if not fields.get(TOOLS_PATH) and not fields.get(GROUPS_PATH):
        fields[TOOLS_PATH] = DEFAULT_TOOLS
    if not no_edits:
        return {**fields, PROTOCOLS_PATH: protocols}
    lists = {
        PROTOCOLS_PATH: protocols,
        TOOLS_PATH: fields.get(TOOLS_PATH, ()),
        GROUPS_PATH: fields.get(GROUPS_PATH, ()),
    }
    return {**fields, **{path: _drop_edits(cast("tuple[str, ...]", names), path) for path, names in lists.items()}}


def _apply_coder(design: Design | None, fields: Mapping[FieldPath, object]) -> dict[FieldPath, object]:
    """Apply `agent_type` and `execute_tool_confirm`. A `code` agent has the instructions and tools of the coder, and
    its own instructions after them."""
    rest = {path: value for path, value in fields.items() if path not in (AGENT_TYPE_PATH, CONFIRM_PATH)}
    if fields.get(CONFIRM_PATH):
        rest[("rules",)] = (*cast("tuple[str, ...]", fields.get(("rules",), ())), CONFIRM_RULE)
    if fields.get(AGENT_TYPE_PATH) != "code":
        return rest
    coder = build_coder(str(fields.get(("language",), "")))
    has_tools = fields.get(TOOLS_PATH) or fields.get(GROUPS_PATH)
    rest[PROMPT_PATH] = "\n\n".join(filter(None, (coder.prompt, str(fields.get(PROMPT_PATH, "")))))
    if design is None and not fields.get(PROTOCOLS_PATH):
        rest.setdefault(("turn", "ends"), coder.turn.ends)
    return {TOOLS_PATH: () if has_tools else coder.tools, ("role",): coder.role, **rest}


def _drop_edits(names: tuple[str, ...], path: FieldPath) -> tuple[str, ...]:
    return tuple(name for name in names if name not in ({"edit"} if path == GROUPS_PATH else EDIT_TOOLS))


PROMPT_BELOW: Final = "---"


def parse_spec(raw: Data, *, prompt: str = "", default_name: str = "", trusted: bool = True) -> AgentSpec:
    """Build a spec from keys. Raise `BadKey` for the first key that cannot be used. `prompt` is the text below the keys
    in a file. Without `trusted`, the keys cannot raise Greenroom's limits."""
    design = _read_design(raw)
    by_path: dict[FieldPath, tuple[str, object]] = {PROMPT_PATH: (PROMPT_BELOW, prompt)} if prompt else {}
    for key, value in flatten_keys(raw):
        if normalise_key(key) == DESIGN_KEY:
            continue
        target = find_target(key, design)
        if target.path in by_path:
            raise _make_duplicate_error(key, by_path[target.path][0])
        by_path[target.path] = (key, read_value(key, value, target.read))
    if not trusted:
        _refuse_raised_limit(by_path)
    fields = apply_design(design, _apply_coder(design, {path: value for path, (_, value) in by_path.items()}))
    if NAME_PATH not in fields:  # the agent is named after its file
        try:
            fields[NAME_PATH] = parse_name(default_name)
        except BadValue as unfit:
            what = translate("specs.bad_default_name", default_name=default_name) if default_name else ""
            raise BadKey("name", translate("specs.missing_name", what=what, unfit=unfit)) from None
    return add_version(_build_spec(fields))


RUN_ONLY_TOOLS: Final = frozenset({"run_checks", "propose_plan", "cite", SUBAGENT_CALL})
"""Tools that only some runs offer, by their own rules."""


def find_missing_tools(names: Iterable[str], tools: Collection[str]) -> list[str]:
    """Return the names of tools that are not among these."""
    return [name for name in names if name not in tools and name not in RUN_ONLY_TOOLS]


def add_version(spec: AgentSpec) -> AgentSpec:
    """Return the spec with its version, a short hash of its content."""
    bare = evolve(spec, version="")
    return evolve(bare, version=hashlib.sha256(encode(bare)).hexdigest()[:12])


def _read_design(raw: Data) -> Design | None:
    design_key = next((key for key in raw if normalise_key(key) == DESIGN_KEY), None)
    if design_key is None:
        return None
    return cast("Design", read_value(design_key, raw[design_key], one_of(*get_args(Design))))


def _make_duplicate_error(key: str, other: str) -> BadKey:
    if other == PROMPT_BELOW:
        return BadKey(key, translate("specs.same_as_prompt"))
    if key == other:
        return BadKey(key, translate("specs.defined_twice"))
    return BadKey(key, translate("specs.two_names", other=other))


def _refuse_raised_limit(by_path: Mapping[FieldPath, tuple[str, object]]) -> None:
    key, rounds = by_path.get(("turn", "rounds"), ("", 0))
    if cast("int", rounds) > DEFAULT_MAX_TURNS:
        raise BadKey(key, translate("specs.above_limit", limit=DEFAULT_MAX_TURNS))


def _build_spec(fields_by_path: Mapping[FieldPath, object]) -> AgentSpec:
    """Build the record, with defaults for missing fields."""
    parts: dict[str, dict[str, object]] = {}
    for path in sorted(fields_by_path):
        parts.setdefault(path[0] if len(path) > 1 else "", {})[path[-1]] = fields_by_path[path]
    top_fields = parts.pop("", {})
    spec = AgentSpec(name=str(top_fields["name"]))
    records: dict[str, type] = {"turn": TurnPolicy, "history": History, "cooperation": Cooperation}
    records |= {"planner": PlanPolicy, "handoff": Handoff}
    inner = {name: records[name](**fields) if name in records else fields for name, fields in parts.items()}
    return evolve(spec, **top_fields, **inner)
