"""The file of a routing team: agents of which one works at a time and passes the task on with a message."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Final, Literal, cast

from greenroom.abilities.skills.conversation.builtin_calls import HANDOFF_SUMMARY_SKILL
from greenroom.abilities.tools.tool import DEFAULT_TOOLS
from greenroom.app.agents.specs import (
    BadKey,
    add_version,
    find_missing_tools,
    int_between,
    normalise_key,
    parse_name,
    parse_prose,
    parse_spec,
)
from greenroom.app.messages import translate
from greenroom.app.organisation.charter import CHARTER_SUFFIX, charter_path, is_routing_file, list_team_files
from greenroom.app.settings.schema import check_value, parse_toml, read_text, suggest_name
from greenroom.app.trust import TrustItem
from greenroom.core.base.errors import WorldFault, make_refusal
from greenroom.core.base.ids import AgentId, is_lookalike
from greenroom.core.base.records import Data, evolve, record
from greenroom.core.state.message import Message
from greenroom.core.state.spec import AgentSpec, Handoff
from greenroom.core.state.step import Step
from greenroom.core.state.task import MAX_HOPS, Routing, Task

KIND: Final = "routing"
BUILT_IN: Final = Path(__file__).parent / "routing"
"""The teams that come with Greenroom."""

HIGHEST_MAX_HOPS: Final = 200
MEMORY_TOOLS: Final = ("save_memory", "retrieve_memory", "clear_memory")
MAX_NAMES_SHOWN: Final = 12

TEAM_KEYS: Final[Mapping[str, object]] = {
    "kind": Literal["routing"],
    "name": Annotated[str, parse_name],
    "main_agent": Annotated[str, parse_name],
    "common_system_prompt": Annotated[str, parse_prose],
    "handoff_summary_prompt": Annotated[str, parse_prose],
    "arbiter": bool,
    "max_hops": Annotated[int, int_between(1, HIGHEST_MAX_HOPS)],
}


@record
class RoutingTeam:
    """A routing team and its file. `digest` is the hash of the file's content."""

    name: str
    path: Path
    routing: Routing
    digest: str

    def describe(self, root: Path) -> TrustItem:
        """Describe the team for a person who decides whether to trust it."""
        place = self.path.relative_to(root).as_posix() if self.path.is_relative_to(root) else str(self.path)
        names = ", ".join(member.name for member in self.routing.members[:MAX_NAMES_SHOWN])
        tools = ", ".join(sorted({tool for member in self.routing.members for tool in member.tools}))
        digest = hashlib.sha256(f"{place}\0{self.digest}".encode("utf-8", "surrogateescape")).hexdigest()
        return TrustItem(kind="team", name=self.name, shown=f"{place} · {names} · tools: {tools}", digest=digest)

    def refuse_missing_tools(self, tools: Collection[str]) -> None:
        """Raise `WorldFault` if an agent of the team names a tool that does not exist."""
        for member in self.routing.members:
            for missing in find_missing_tools(member.tools, tools):
                hint = suggest_name(missing, sorted(tools))
                raise WorldFault("routing.no_tool", path=self.path, agent=member.name, name=missing, hint=hint)


def find_team_file(root: Path, folder: Path, text: str) -> Path:
    """Return the file that a name or a path means. Raise `RefusedError` with the known names."""
    is_name = Path(text).name == text and not text.endswith(CHARTER_SUFFIX)
    places = (charter_path(root, text), BUILT_IN / f"{text}{CHARTER_SUFFIX}") if is_name else (folder / text,)
    found = next((path for path in places if path.is_file()), None)
    if found is not None:
        return found
    known = [name for name in list_team_files(root) if is_routing_file(charter_path(root, name))]
    known += sorted(path.stem for path in BUILT_IN.glob(f"*{CHARTER_SUFFIX}"))
    hint = translate("routing.there_are", names=", ".join(known), path=charter_path(root, "NAME"))
    raise make_refusal("unknown_team", translate("routing.unknown", name=text), hint)


def list_team_items(root: Path) -> tuple[TrustItem, ...]:
    """Return the routing teams of a workspace that need trust. Those with mistakes are left out."""
    items = list[TrustItem]()
    for name in list_team_files(root):
        path = charter_path(root, name)
        try:
            items += [read_team(path, is_own=False).describe(root)] if is_routing_file(path) else []
        except WorldFault:
            continue
    return tuple(items)


def read_team(path: Path, *, is_own: bool) -> RoutingTeam:
    """Read the file of a routing team. Raise `WorldFault` with the mistake. A file that is not the person's own cannot
    raise Greenroom's limits."""
    text = read_text(path) or ""
    raw = parse_toml(text, path)
    if raw.get("kind") != KIND:
        raise WorldFault("routing.another_kind", path=path, kind=KIND)
    values = {key: value for key, value in raw.items() if key != "agents"}
    for key in values:
        if key not in TEAM_KEYS:
            raise WorldFault("routing.no_key", path=path, key=key, hint=suggest_name(key, (*TEAM_KEYS, "agents")))
    team = {key: check_value(value, str(path), TEAM_KEYS[key], (key,)) for key, value in values.items()}
    items, main = raw.get("agents"), team.get("main_agent", "")
    if not isinstance(items, list) or not items or not all(isinstance(item, Mapping) for item in items):
        raise WorldFault("routing.no_agents", path=path)
    members = parse_members(
        cast("list[Data]", items),
        str(main or items[0].get("name", "")),
        str(team.get("common_system_prompt", "")),
        place=lambda number: translate("routing.agent_place", path=path, number=number + 1),
        prompt=str(team.get("handoff_summary_prompt", "")),
        arbiter=bool(team.get("arbiter")),
        is_own=is_own,
    )
    routing = Routing(
        main=AgentId(members[0].name), members=members, max_hops=cast("int", team.get("max_hops", MAX_HOPS))
    )
    digest = hashlib.sha256(text.encode()).hexdigest()
    return RoutingTeam(name=str(team.get("name", path.stem)), path=path, routing=routing, digest=digest)


def parse_members(
    items: Sequence[Data],
    main: str,
    common: str = "",
    *,
    place: Callable[[int], str],
    prompt: str = "",
    arbiter: bool = False,
    is_own: bool = True,
) -> tuple[AgentSpec, ...]:
    """Return the agents of a routing team, the main agent first. `common` stands before the prompt of each.

    Raise `WorldFault` for a mistake, with the `place` of the agent.
    """
    specs: dict[str, AgentSpec] = {}
    for number, item in enumerate(items):
        try:
            spec = _parse_member(item, common, prompt, arbiter=arbiter, is_own=is_own)
        except BadKey as fault:
            raise WorldFault(f"{place(number)}: {fault}") from None
        known = next((name for name in specs if is_lookalike(name, spec.name)), None)
        if known is not None:
            raise WorldFault("routing.same_name", place=place(number), name=spec.name, other=known)
        specs[spec.name] = spec
    first = specs.pop(main, None)
    if first is None:
        raise WorldFault("agents.no_main_agent", name=main, hint=suggest_name(main, specs))
    others = [evolve(other, turn=evolve(other.turn, auto_complete=False)) for other in specs.values()]
    return (first, *map(add_version, others))


def _parse_member(item: Data, common: str, prompt: str, *, arbiter: bool, is_own: bool) -> AgentSpec:
    """Return one agent in Jarvis' terms, which writes SEND_MESSAGE and whose text without a call is the answer."""
    keys = {normalise_key(key): key for key in item}
    if "name" not in keys:
        raise BadKey("name", translate("specs.name_missing"))
    for key in ("calls", "plan"):
        if key in keys:
            raise BadKey(key, translate("routing.no_calls"))
    given = {key: value for key, value in item.items() if (normalise_key(key), value) != ("in_multi_agent", True)}
    spec = parse_spec({**given, "design": "jarvis"}, trusted=is_own)
    tools = (*spec.tools, *MEMORY_TOOLS) if spec.tools == DEFAULT_TOOLS else spec.tools
    protocols = tuple(dict.fromkeys((*spec.turn.protocols, "send_message")))
    policy = spec.handoff or Handoff()
    return add_version(
        evolve(
            spec,
            prompt=f"{common.strip()}\n\n{spec.prompt}" if common.strip() else spec.prompt,
            tools=tools,
            turn=evolve(spec.turn, protocols=protocols, ends=spec.turn.ends or "text"),
            handoff=evolve(policy, arbiter=arbiter, summary_prompt=policy.summary_prompt or prompt),
        )
    )


@record
class RoutingFigures:
    """How often a routing team handed its task over, for how many requests, and how often which fault occurred."""

    messages: int
    requests: int
    failures: Mapping[str, int]

    @property
    def mean_hops(self) -> float:
        """The mean number of hand-overs per request."""
        return round(self.messages / max(self.requests, 1), 1)


def measure_routing(tasks: Sequence[Task], steps: Sequence[Step], messages: Sequence[Message]) -> RoutingFigures | None:
    """Measure the hand-overs of a run from its ended steps and its messages; None if no routing team worked."""
    if not any(task.routing is not None for task in tasks):
        return None
    requests = [step for step in steps if step.work.executor == "converse" and step.cause is None]
    answers = {step.cause: step.work.text_content for step in steps if step.cause is not None and not step.message_id}
    faults = Counter[str]()
    for step in steps:
        result = step.result or {}
        if step.work.executor == HANDOFF_SUMMARY_SKILL and result.get("why"):
            faults[translate("routing.no_summary", why=result["why"])] += 1
        elif "misread" in result:
            said = answers.get(step.step_id, step.error).strip().partition("\n")[0]
            faults.update([said] if "SEND_MESSAGE" in said else [])
    faults.update(task.summary.partition(". ")[0] for task in tasks if task.state == "failed")
    handed = [message for message in messages if message.kind == "handoff"]
    return RoutingFigures(messages=len(handed), requests=len(requests), failures=dict(faults))
