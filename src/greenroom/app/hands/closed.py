"""Which hosts are closed although something wider opens them: what a gate asks that lets a program through.

A browser and a command name no hosts while they run. Where they were let to `corp.example` with all below it, a rule
about `payroll.corp.example` holds all the same.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from greenroom.app.hands.guarded import principals
from greenroom.core.base.hosts import Closed, Host
from greenroom.core.base.ids import AgentId
from greenroom.core.ports.model import ToolSpec
from greenroom.core.ports.tool import Policy, Target, ToolCard
from greenroom.core.state.step import Step
from greenroom.core.state.world import World

NOBODY: Final = AgentId("")
GATE: Final = ToolCard(spec=ToolSpec(name="gate", description="A way out."), group="web")
"""Stands for whatever goes through: rules about hosts do not look at tools."""


def closed(
    policy: Policy,
    named: Collection[str] | None = None,
    grants: Collection[str] = (),
    limits: Collection[str] = (),
) -> Closed:
    """What is closed by a rule that forbids it; for who was let to some hosts by their names (`named`) also what a rule
    wants asked about and is none of them: nobody can be asked in the middle of it."""
    letters = None if named is None else {one.lower() for one in named}

    def why(asked: Host) -> str:
        ruling = policy.decide(NOBODY, GATE, (Target(kind="host", value=str(asked)),), grants, limits)
        if ruling.verdict == "deny":
            return ruling.why
        if letters is None or letters & {asked.name, str(asked)} or not ruling.rule.startswith("ask "):
            return ""
        return f"{ruling.why} Nobody can be asked now: name the host {asked.name!r} beforehand."

    return why


def closed_for(policy: Policy, world: World, step: Step, named: Sequence[str]) -> Closed:
    """The same for a step: what binds its agent, and those on whose behalf it works, closes too."""
    bound = [one for one in (step.agent_id, *principals(world, step)) if one in world.agents]
    limits = frozenset(rule for one in bound for rule in world.agents[one].spec.rules)
    return closed(policy, named, world.grants, limits)
