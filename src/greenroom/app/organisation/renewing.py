"""Keeping an organisation as its charter says: who came, who is another one, what it may spend.

What its agents are called is not only the charter's: managers make some, and a name is used once. Whoever cannot join
for that is named, and keeps nobody else out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from greenroom.app.organisation.founding import Founders
from greenroom.app.organisation.names import BASE, in_language
from greenroom.app.runtime import Runtime
from greenroom.core.base.errors import Refused
from greenroom.core.base.ids import TEAM_BUDGET, AgentId, TeamId, looks_like
from greenroom.core.rules.intents import AddAgent, AddParticipants, ChangeAgent, Intent, SetLimits
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.world import World

TAKEN: Final = {
    "en": "{who!r} cannot join: an agent of {team} is called {other!r}. Write another name for them into {path}.",
    "zh": "{who!r}无法加入：{team}中已有名为{other!r}的Agent。请在{path}中改用别的名字。",
}
LEFT: Final = {
    "en": "{who!r} cannot join: {other!r} was somebody who has left {team}, and a name is used once. "
    "Write another name for them into {path}.",
    "zh": "{who!r}无法加入：{other!r}属于已离开{team}的成员，名字不能重复使用。请在{path}中改用别的名字。",
}
FIRST: Final = {
    "en": "{path} names {new!r} first, but {team} was founded with {old!r}, who goes on hearing what people want; "
    "{new!r} is one more manager. For {new!r} to hear it, end this one for good with `greenroom cancel {id}`: the next "
    "start founds another.",
    "zh": "{path}首先列出的是{new!r}，但{team}成立时的管理者是{old!r}，人的需求仍由其听取；{new!r}只是另一名管理者。"
    "要由{new!r}听取需求，请用`greenroom cancel {id}`永久结束它，下次启动时会成立新的组织。",
}
STRANGE: Final = {
    "en": "Nobody whom {path} names belonged to {team} ({id}) so far, but {people}. They join it now. If this is to be "
    "another organisation, end that one with `greenroom cancel {id}`: the next start founds another.",
    "zh": "{path}中的人此前都不属于{team}（{id}），其成员是{people}。他们现在加入。如果这应是另一个组织，"
    "请用`greenroom cancel {id}`结束它，下次启动时会成立新的组织。",
}


async def renew(runtime: Runtime, team: TeamId, founders: Founders, path: str) -> tuple[str, ...]:
    """Make it what its charter, which lies in `path`, says by now; returns a sentence for each who cannot join, and for
    what is not as one may think.

    Several may do so at once: what is refused because another one was quicker is looked at again.
    """
    world = before = await runtime.world(team)
    while wanted := renewed(world, founders):
        try:
            await runtime.ask(team, *wanted)
            break
        except Refused:
            world = await runtime.world(team)
            if renewed(world, founders) == wanted:
                raise
    return (*barred(world, founders, path), *_kept(world, founders, path), *_strange(before, founders, path))


def renewed(world: World, founders: Founders) -> tuple[Intent, ...]:
    """What is to be changed. Nobody is sent away for not being in a file: they may have work."""
    members = [(name, spec) for name, spec in founders.members if _in_the_way(world, name, spec) is None]
    limits = world.budgets[TEAM_BUDGET].limits
    return (
        *(AddAgent(agent_id=name, spec=spec) for name, spec in members if name not in world.agents),
        *_joins(world, [name for name, _ in members]),
        *(
            ChangeAgent(agent_id=name, spec=spec)
            for name, spec in members
            if name in world.agents and spec != world.agents[name].spec
        ),
        *((SetLimits(budget_id=TEAM_BUDGET, limits=founders.limits),) if limits != founders.limits else ()),
    )


def barred(world: World, founders: Founders, path: str) -> list[str]:
    """Who of the charter cannot be in it, and what to do."""
    found = [(name, _in_the_way(world, name, spec)) for name, spec in founders.members]
    return [
        in_language(TAKEN if other in world.agents else LEFT, founders.language).format(
            who=name, other=other, team=founders.name, path=path
        )
        for name, other in found
        if other is not None
    ]


def _kept(world: World, founders: Founders, path: str) -> tuple[str, ...]:
    """Who manages the base task does so for good: what is open there is that one's, and so is what it knows."""
    old, new = world.tasks[BASE].manager, founders.managers[0].name
    if old == new:
        return ()
    known = {"old": old, "new": new, "team": founders.name, "id": world.team.team_id, "path": path}
    return (in_language(FIRST, founders.language).format(**known),)


def _strange(world: World, founders: Founders, path: str) -> tuple[str, ...]:
    """A folder that was made anew has what was founded in the old one: it shows where nobody is the same."""
    people = sorted(name for name, one in world.agents.items() if one.spec.kind == "human")
    if any(one.name in people for one in founders.people):
        return ()
    known = {"team": founders.name, "id": world.team.team_id, "people": ", ".join(people), "path": path}
    return (in_language(STRANGE, founders.language).format(**known),)


def _in_the_way(world: World, name: AgentId, spec: AgentSpec) -> AgentId | None:
    """Who has the name, or one that is taken for it, and is somebody else."""
    agent = world.agents.get(name)
    if agent is not None:
        return None if (agent.spec.kind, agent.spec.style) == (spec.kind, spec.style) else name
    return next((one for one in (*world.agents, *world.retired) if looks_like(one, name)), None)


def _joins(world: World, names: Sequence[AgentId]) -> tuple[AddParticipants, ...]:
    """Everybody is in the base task; also who came when somebody was cut off before that."""
    missing = tuple(one for one in names if one not in world.tasks[BASE].group)
    return (AddParticipants(task_id=BASE, agents=missing),) if missing else ()
