"""`MultiAgent`: agents of a program of which one works at a time and passes the task on with SEND_MESSAGE."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Unpack

from greenroom.app.library.agent import open_greenroom, run_synchronously
from greenroom.app.library.agent_definition import AgentDefinition, check_arguments, require_list
from greenroom.app.library.greenroom import Greenroom
from greenroom.app.library.run import RunArguments
from greenroom.app.library.run_result import RunResult
from greenroom.app.teams.team_file import parse_members
from greenroom.core.base.ids import AgentId
from greenroom.core.base.records import Data, evolve
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.task import MAX_HOPS, Routing


class MultiAgent:
    """A team of agents that pass one task on among them. The text of the one that has it, without a message, is the
    answer.

    Args:

    - `agents_config`: A dictionary for each agent: `name`, `description`, `system_prompt`, `model`, `tools`,
      `summary_on_send`, `clear_after_send_message` and every other key of an agent file.
    - `main_agent_name`: The agent that gets the question.
    - `common_system_prompt`: A text that stands before the prompt of each agent.
    - `handoff_summary_prompt`: What asks for the summary of a hand-over. Default: Greenroom's own words.
    - `arbiter`: Whether a model chooses the receiver of a message that names none.
    - `max_hops`: How often the task may be passed on.
    """

    @check_arguments
    def __init__(
        self,
        agents_config: Sequence[Data],
        main_agent_name: str,
        common_system_prompt: str = "",
        *,
        handoff_summary_prompt: str = "",
        arbiter: bool = False,
        max_hops: int = MAX_HOPS,
    ) -> None:
        members = parse_members(
            require_list(agents_config, "agents_config"),
            main_agent_name,
            common_system_prompt,
            place=lambda number: f"agents_config[{number}]",
            prompt=handoff_summary_prompt,
            arbiter=arbiter,
        )
        self.agents_config_map: Final = {member.name: member for member in members}
        self._routing = Routing(main=AgentId(main_agent_name), members=members, max_hops=max_hops)

    async def run(
        self, question: str = "", *, greenroom: Greenroom | None = None, **arguments: Unpack[RunArguments]
    ) -> RunResult[str]:
        """Let the team work on a question and wait for the answer. `greenroom` is an open `Greenroom` to run in."""
        main, *others = map(_define_agent, self._routing.members)
        main.agents, main.routing = tuple(others), self._routing
        async with open_greenroom(greenroom, main) as opened:
            return await opened.run(main, question, **arguments)

    def run_sync(self, question: str = "", **arguments: Unpack[RunArguments]) -> RunResult[str]:
        """Let the team work without `await`, for scripts and notebooks. See `run`."""
        return run_synchronously(self.run(question, **arguments))


def _define_agent(spec: AgentSpec) -> AgentDefinition[str]:
    """Return the definition of a member, which names its tools itself."""
    bare = evolve(spec, tools=(), groups=())
    return AgentDefinition(spec.name, tools=spec.tools, toolsets=spec.groups, spec=bare)
