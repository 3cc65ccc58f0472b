"""Research runs: their agents and capabilities, the first question, and feedback on a result."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from greenroom.abilities.skills.conversation_skills import build_conversation_skills
from greenroom.abilities.tools.artifacts import collect_origins
from greenroom.abilities.tools.web import FETCH_NAME, SEARCH_ALIASES, SEARCH_NAME
from greenroom.actors.payload import restore_result
from greenroom.app.clock import SystemClock
from greenroom.app.context import AppContext
from greenroom.app.conversation.capability_names import RESEARCH
from greenroom.app.conversation.chat import make_resume_intents
from greenroom.app.conversation.start import FIRST_TASK_ID, Participants, label_attachments, make_question_task
from greenroom.app.messages import translate
from greenroom.app.research.pages import PageArchive
from greenroom.app.runtime import Runtime
from greenroom.app.text_reader import TextReader
from greenroom.core.base.amounts import Limits
from greenroom.core.base.errors import make_refusal
from greenroom.core.base.ids import AgentId, TeamId, thread_id
from greenroom.core.base.records import evolve
from greenroom.core.ports.executor import Capabilities
from greenroom.core.ports.prompt_pack import PromptPack
from greenroom.core.ports.tool import BUILT_IN, Policy, PolicyDecision, Target, ToolCard
from greenroom.core.ports.web import PageFetcher
from greenroom.core.rules.intents import Interrupt, QueueSteps
from greenroom.core.state.knowledge import describe_artifact
from greenroom.core.state.step import Step, Work
from greenroom.core.state.team import Team
from greenroom.policy.decision import NETWORK_RULE

PACK: Final = PromptPack("greenroom.app.research.prompts")
WEB_TOOLS: Final = frozenset({FETCH_NAME, SEARCH_NAME, *SEARCH_ALIASES})


class ReadingPolicy:
    """A policy under which web_fetch and web_search need no approval: who starts research allows to read public pages.

    Rules that ask or deny still hold, and so does the rule of two.
    """

    def __init__(self, policy: Policy) -> None:
        self._policy = policy

    def decide(
        self,
        agent: AgentId,
        card: ToolCard,
        targets: tuple[Target, ...],
        grants: Collection[str] = (),
        limits: Collection[str] = (),
    ) -> PolicyDecision:
        """Return the policy's decision; allow what would be asked only because it is on the network."""
        ruling = self._policy.decide(agent, card, targets, grants, limits)
        is_reading = card.source == BUILT_IN and card.spec.name in WEB_TOOLS
        return evolve(ruling, verdict="allow") if is_reading and ruling.rule == NETWORK_RULE else ruling


async def make_research_capabilities(app: AppContext, team: Team) -> Capabilities:
    """Make the capabilities of a research run: those of a conversation, with pages that are fetched once.

    The notes of the project are left out: they are private, and research needs none.
    """

    async def load() -> Sequence[Step]:
        steps = (step for step in await app.steps(team.team_id) if step.work.executor == FETCH_NAME)
        return [await restore_result(step, app.runtime.log) for step in steps]

    def read_pages(fetcher: PageFetcher) -> PageArchive:
        return PageArchive(fetcher, load, SystemClock(), delay=app.settings.web.delay)

    tools = app.toolset(Path(team.workspace), read_pages=read_pages, wrap_policy=ReadingPolicy)
    above = app.settings.agents.filter_tools_above
    skills = build_conversation_skills(app, tools.specs, reader=TextReader(), filter_above=above)
    return Capabilities((*skills, *tools.executors), on_close=tools.close, approvals_expire=app.get_approval_timeout())


async def create_research(
    runtime: Runtime, participants: Participants, question: str, *, typed: str, limits: Limits
) -> TeamId:
    """Create the run of a question. It stays open for feedback. `typed` is what a person wrote of it."""
    language = participants.members[0][1].language
    work = _make_turn(_render_message(language, question), typed)
    first = QueueSteps(
        agent_id=participants.first, works=(work,), task_id=FIRST_TASK_ID, origins=label_attachments(question, typed)
    )
    return await runtime.create(
        RESEARCH,
        participants.members,
        capabilities_name=RESEARCH,
        workspace=participants.workspace,
        limits=limits,
        first_intents=(make_question_task(typed, participants), first),
    )


async def send_feedback(runtime: Runtime, team: TeamId, feedback: str) -> None:
    """Queue what the person says of a result, as the next turn of the same run. Unfinished work is interrupted."""
    state = await runtime.state(team)
    if state.team.kit != RESEARCH:
        raise make_refusal("no_research", translate("research.not_research", team=team))
    if FIRST_TASK_ID not in state.tasks:
        raise make_refusal("research_over", translate("research.is_over", team=team), translate("research.ask_anew"))
    lead = state.agents[state.tasks[FIRST_TASK_ID].manager]
    artifacts = state.list_artifacts(FIRST_TASK_ID)
    text = _render_message(
        lead.spec.language, "", inventory="\n".join(map(describe_artifact, artifacts)), feedback=feedback
    )
    queued = QueueSteps(
        agent_id=lead.agent_id,
        works=(_make_turn(text, feedback),),
        task_id=FIRST_TASK_ID,
        origins=collect_origins(*artifacts),
    )
    thread = state.threads.get(thread_id(lead.agent_id, FIRST_TASK_ID))
    left = [Interrupt(thread_id=thread.thread_id)] if thread is not None and thread.open_steps else []
    await runtime.ask(team, *left, *make_resume_intents(state), queued)


def _render_message(language: str, question: str, *, inventory: str = "", feedback: str = "") -> str:
    now = f"{datetime.fromtimestamp(SystemClock().now() / 1000, UTC):%Y-%m-%d %H:%M} UTC"
    return PACK.render(
        language, "context", {"question": question, "now": now, "inventory": inventory, "feedback": feedback}
    )


def _make_turn(text: str, typed: str) -> Work:
    return Work(type="skill", executor="converse", intention=typed, text_content=text)
