"""The plan of a running team: read it from its stage, and change it. The rules check the change in one commit."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import Final

from msgspec import convert

from greenroom.abilities.skills.conversation.builtin_calls import build_finish
from greenroom.abilities.tools.tool import CardedTool, make_card
from greenroom.app.messages import translate
from greenroom.app.teams.report import FileChanges, find_changes
from greenroom.app.teams.start import ARCHITECT, CODE_WRITER, SPLIT, name_members, plan_subtask
from greenroom.core.base.errors import Rejection, make_refusal
from greenroom.core.base.ids import AgentId, SubtaskId
from greenroom.core.base.records import evolve
from greenroom.core.base.text import add_fence
from greenroom.core.ports.executor import Outcome, StepContext
from greenroom.core.rules.decide import decide
from greenroom.core.rules.intents import AddAgent, FinishSubtask, QueueSteps, Replan
from greenroom.core.rules.stages import OPEN_STATES
from greenroom.core.state.stage import Stage, Subtask, SubtaskPlan
from greenroom.core.state.step import Step
from greenroom.core.state.team_state import TeamState
from greenroom.runs.workspace import History
from greenroom.teamwork.hand_in import END_KEY, SEND_BACK, find_subtask
from greenroom.teamwork.handoffs import ReviewIssue, read_review
from greenroom.teamwork.plan import Plan, PlannedSubtask
from greenroom.teamwork.plan_graph import OWN_SUBTASKS, VERIFY_SUBTASK, is_inside, may_overlap
from greenroom.teamwork.planner import split_by_design

NO_AGENTS: Final[Mapping[str, AgentId]] = {}
MAX_NAME_CHARS: Final = 36
MAX_FINDINGS: Final = 50
MAX_NAMED: Final = 3  # findings in the reason of a failed review
MAX_NAMED_CHARS: Final = 300


def read_plan(state: TeamState, stage: Stage) -> Plan:
    """Return the plan of a stage, without Greenroom's own subtasks."""
    names = {subtask.subtask_id: subtask.name for subtask in stage.subtasks if subtask.name not in OWN_SUBTASKS}
    subtasks = [
        PlannedSubtask(
            id=subtask.name,
            name=subtask.title or subtask.name,
            agent=state.agents[subtask.agent].spec.name,
            description=subtask.duty,
            dependencies=tuple(names[need] for need in subtask.needs if need in names),
            priority=subtask.priority,
            seconds=subtask.seconds,
            writes=subtask.writes,
            required=subtask.required,
            tries=subtask.tries,
        )
        for subtask in stage.subtasks
        if subtask.subtask_id in names
    ]
    return Plan(
        request=stage.intention,
        subtasks=tuple(subtasks),
        source="file",
        on_failure=stage.on_failure,
        max_concurrent=stage.concurrency,
    )


def build_replan(
    state: TeamState, stage: Stage, plan: Plan, agents_of_new: Mapping[str, AgentId] = NO_AGENTS
) -> Replan:
    """Return the change of a stage to a plan. New subtasks and changed profiles get new agents, but for the named ones.

    Raise `RefusedError` if the whole is being verified: what comes later would not be.
    """
    if any(subtask.name == VERIFY_SUBTASK and subtask.state != "init" for subtask in stage.subtasks):
        raise make_refusal("verifying", translate("teams.verifying"), translate("teams.replan_too_late"))
    kept = {**_choose_agents(state, stage, plan), **agents_of_new}
    new = [subtask for subtask in plan.subtasks if subtask.id not in kept]
    agents = {**kept, **name_members(new, (*state.agents, *state.retired))}
    first_steps = next(subtask.work for subtask in stage.subtasks if subtask.name not in OWN_SUBTASKS)
    *own, verify = [_read_plan_of(subtask, stage) for subtask in stage.subtasks if subtask.name in OWN_SUBTASKS]
    work = [
        plan_subtask(subtask, agents[subtask.id], subtask.dependencies, first_steps, own) for subtask in plan.subtasks
    ]
    verify = evolve(verify, needs=tuple(subtask.name for subtask in (*own, *work)))
    added = tuple(AddAgent(agent_id=agents[subtask.id], blueprint=subtask.agent) for subtask in new)
    return Replan(stage_id=stage.stage_id, subtasks=(*own, *work, verify), agents=added)


def _choose_agents(state: TeamState, stage: Stage, plan: Plan) -> dict[str, AgentId]:
    """Return the agents that are there: of the same profile, and of the same subtask or of one that goes unstarted."""
    names = {*OWN_SUBTASKS, *(subtask.id for subtask in plan.subtasks)}
    own = {subtask.name: subtask.agent for subtask in stage.subtasks}
    free = [subtask.agent for subtask in stage.subtasks if subtask.state == "init" and subtask.name not in names]
    chosen = dict[str, AgentId]()
    for subtask in plan.subtasks:
        candidates = [own[subtask.id], *free] if subtask.id in own else free
        for agent in [agent for agent in candidates if state.agents[agent].spec.name == subtask.agent][:1]:
            chosen[subtask.id] = agent
            free = [other for other in free if other != agent]
    return chosen


def _read_plan_of(subtask: Subtask, stage: Stage) -> SubtaskPlan:
    """Return the plan of a subtask that stays as it is."""
    names = tuple(other.name for other in stage.subtasks if other.subtask_id in subtask.needs)
    return convert(evolve(subtask, needs=names), SubtaskPlan, from_attributes=True)


class SplitTool(CardedTool):
    """Splits the code by the architect's design, so that parallel writers rarely meet. It decides by rules alone."""

    card = make_card(SPLIT, "Split the code by the design.", {"type": "object"}, group="read")

    def __init__(self, max_subtasks: int) -> None:
        self._max_subtasks = max_subtasks

    async def run(self, context: StepContext) -> Outcome:
        """Replace the code subtask by one per disjoint write set, or leave it as it is."""
        state, step = context.state, context.step
        stage = next(stage for stage in state.stages.values() if stage.stage_id == step.stage_id)
        designs = (part.output for part in stage.subtasks if state.agents[part.agent].spec.name == ARCHITECT)
        plan = read_plan(state, stage)
        parts = split_by_design(plan.subtasks, next(filter(None, designs), {}), self._max_subtasks)
        if parts is None:
            return _finish_split(step, translate("teams.one_part"))
        change = build_replan(state, stage, evolve(plan, subtasks=parts))
        refused = decide(state, change, by=step.agent_id, now=0)
        if isinstance(refused, Rejection):
            return _finish_split(step, translate("teams.one_part_refused", why=refused))
        names = ", ".join(part.id for part in parts if part.agent == CODE_WRITER)
        return _finish_split(step, translate("teams.parts", names=names), change)


def _finish_split(step: Step, text: str, *changes: Replan) -> Outcome:
    return Outcome(result={"output": text}, intents=(*changes, build_finish(step, text)))


# ----------------------------------------------------------------------------------------------------- the review loop


class SendBackTool(CardedTool):
    """Ends a review that requires changes: the findings go back to the writers, and the reviewer looks again.

    The new plan and the end of the review are two steps, so that no finding is lost if the rules refuse the plan
    because another one came first. After `max_rounds` rounds the review has failed.
    """

    card = make_card(SEND_BACK, "Send the findings of a review back.", {"type": "object"}, group="read")

    def __init__(self, history: History, max_rounds: int) -> None:
        self._history = history
        self._max_rounds = max_rounds

    async def run(self, context: StepContext) -> Outcome:
        """Add the fixes and the next review to the plan, or end the review."""
        step, changes = context.step, find_changes(await self._history(context.state.team.team_id))
        state, review = context.state, find_subtask(context.state, context.step)
        stage = next(stage for stage in state.stages.values() if stage.stage_id == step.stage_id)
        end = convert((step.work.instruction_content or {})[END_KEY], FinishSubtask)
        rounds = [part for part in stage.subtasks if part.agent == review.agent and part is not review]
        done = [part for part in stage.subtasks if part.state == "finished" and part.name not in OWN_SUBTASKS]
        writers = [part for part in done if changes.get(part.subtask_id, FileChanges()).file_count]
        if review.state != "running":
            return Outcome(result={"output": end.summary})
        if not writers or any(part.state in OPEN_STATES for part in rounds):
            return Outcome(result={"output": end.summary}, intents=(end,))
        found = read_review(end.output)
        faults = found.faults[:MAX_FINDINGS] if found is not None else ()
        if len(rounds) >= self._max_rounds:
            return _fail_review(end, translate("teams.still_open", count=len(rounds)), faults)
        shares = share_findings(faults, writers, changes, review)
        change = _plan_round(state, stage, review, shares)
        refused = decide(state, change, by=step.agent_id, now=0)
        if isinstance(refused, Rejection):
            return _fail_review(end, translate("teams.not_sent_back", why=refused), faults)
        names = ", ".join(writer.agent for writer, _ in shares)
        again = QueueSteps(agent_id=step.agent_id, works=(step.work,))
        return Outcome(result={"output": translate("teams.sent_back", names=names)}, intents=(change, again))


def _fail_review(end: FinishSubtask, why: str, faults: Sequence[ReviewIssue]) -> Outcome:
    """Return the end of a review whose findings stay open: it names the first ones."""
    named = [str(fault)[:MAX_NAMED_CHARS] for fault in faults[:MAX_NAMED]]
    text = "\n".join((why, *(named or [end.summary])))
    return Outcome(result={"output": text}, intents=(evolve(end, state="failed", summary=text, final=True),))


def share_findings(
    faults: Iterable[ReviewIssue],
    writers: Sequence[Subtask],
    changes: Mapping[SubtaskId, FileChanges],
    review: Subtask,
) -> Sequence[tuple[Subtask, Sequence[ReviewIssue]]]:
    """Return which writer gets which findings: the last one that changed the file, or may write it.

    Other findings go to the last writer that the review needs. Without findings, it gets the review as a whole.
    """
    needed = [part for part in writers if part.subtask_id in review.needs]
    shares = dict[AgentId, tuple[Subtask, list[ReviewIssue]]]()
    for fault in faults:
        path = fault.location.path.removeprefix("./")
        wrote = [part for part in writers if path in changes[part.subtask_id].files]
        may_write = [part for part in writers if any(may_overlap(path, pattern) for pattern in part.writes)]
        writer = next(group[-1] for group in (wrote, may_write, needed, writers) if group)
        shares.setdefault(writer.agent, (writer, []))[1].append(fault)
    return list(shares.values()) or [((needed or writers)[-1], ())]


def _plan_round(
    state: TeamState,
    stage: Stage,
    review: Subtask,
    shares: Sequence[tuple[Subtask, Sequence[ReviewIssue]]],
) -> Replan:
    """Return the plan with a fix per writer and the next review. What needed the review needs that one.

    Both are required, also if the review was not: what it found must change.
    """
    plan, parts = read_plan(state, stage), {part.name: part for part in stage.subtasks}
    first = next(part for part in stage.subtasks if part.agent == review.agent)
    known = {  # a failed one is not tried again only because others are added
        part.id: evolve(part, tries=parts[part.id].attempt) if parts[part.id].state == "failed" else part
        for part in plan.subtasks
    }
    fixes = list[PlannedSubtask]()
    for (writer, share), name in zip(shares, _list_free_names("fix", 1, parts), strict=False):
        is_open = [part.name for part in stage.subtasks if part.agent == writer.agent and part.state in OPEN_STATES]
        paths = [fault.location.path for fault in share if writer.writes and is_inside(fault.location.path)]
        fix = evolve(
            known[writer.name],
            id=name,
            name=translate("teams.fix_title", review=review.name),
            description=_describe_fix(review, share),
            dependencies=(review.name, *is_open),
            writes=tuple(dict.fromkeys((*writer.writes, *paths))),
            required=True,
        )
        fixes.append(fix)
    again = evolve(
        known[review.name],
        id=next(_list_free_names(first.name[:MAX_NAME_CHARS], 2, parts)),
        description=f"{first.duty}\n{translate('teams.review_again', review=review.name)}",
        dependencies=(review.name, *(fix.id for fix in fixes)),
        required=True,
    )
    subtasks = [
        evolve(part, dependencies=tuple(again.id if need == review.name else need for need in part.dependencies))
        if parts[part.id].state == "init"
        else part
        for part in known.values()
    ]
    agents = {fix.id: writer.agent for fix, (writer, _) in zip(fixes, shares, strict=True)}
    new_plan = evolve(plan, subtasks=(*subtasks, *fixes, again))
    return build_replan(state, stage, new_plan, {**agents, again.id: review.agent})


def _list_free_names(name: str, number: int, taken: Container[str]) -> Iterator[str]:
    return (found for other in count(number) if (found := f"{name}-{other}") not in taken)


def _describe_fix(review: Subtask, share: Sequence[ReviewIssue]) -> str:
    """Return the goal of a fix. The findings are the text of a model, so they are fenced."""
    goal = translate("teams.fix_goal", review=review.name)
    return f"{goal}\n{add_fence(chr(10).join(f'- {fault}' for fault in share))}" if share else goal
