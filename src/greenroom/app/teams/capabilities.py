"""The capabilities of a team run: each subtask has its own worktree and tools, from its first step to its end."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from greenroom.abilities.skills.conversation.builtin_calls import build_finish
from greenroom.abilities.skills.conversation_skills import build_conversation_skills
from greenroom.abilities.tools.run_checks import RunChecksTool
from greenroom.abilities.tools.tool import CardedTool, WrappedTool, make_card
from greenroom.app.context import AppContext
from greenroom.app.conversation.start import read_model_name
from greenroom.app.messages import LANGUAGES, translate
from greenroom.app.messages.findings import render_finding, render_for_people
from greenroom.app.runs.checks import plan_project_checks, read_worktree_setup
from greenroom.app.runs.workspaces import find_snapshot, open_thread
from greenroom.app.teams.profiles import load_profiles
from greenroom.app.teams.replan import SendBackTool, SplitTool
from greenroom.app.teams.start import LEAD, OPEN_WORKSPACE, build_team_toolbox, equip_specialists
from greenroom.app.text_reader import TextReader
from greenroom.app.toolset.custom import find_tool_source
from greenroom.app.toolset.toolset import Toolset
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.ids import SubtaskId
from greenroom.core.base.records import Data, evolve
from greenroom.core.ports.checks import CheckReport, CheckRun
from greenroom.core.ports.commands import CommandRunner
from greenroom.core.ports.executor import Capabilities, Executor, Outcome, StepContext
from greenroom.core.ports.tool import ToolExecutor
from greenroom.core.ports.workspace import MAIN_THREAD, TreeSnapshot, Workspace, scratch_thread
from greenroom.core.rules.intents import FinishSubtask
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.stage import Subtask
from greenroom.core.state.step import Step, StepTerms, StepType
from greenroom.core.state.team import Team
from greenroom.core.state.team_state import TeamState
from greenroom.runs import checkout
from greenroom.runs.checker import (
    BEFORE_PREFIX,
    BaselineTool,
    ConfirmUnverifiedTool,
    ProjectChecks,
    load_base,
    load_found_checks,
)
from greenroom.runs.checkout import OpenCheckout, PrepareTool, build_checkout_opener
from greenroom.runs.delivery import DeliverTool, wrap_recording
from greenroom.runs.verdict import (
    BASE_KEY,
    BASELINE,
    CONFIRM_UNVERIFIED,
    DELIVER,
    FINISH_MERGE,
    HAND_IN,
    MERGE,
    MERGE_QUEUE,
    SETTLE_MERGE,
    THREAD_KEY,
    find_base_report,
)
from greenroom.runs.workspace import RunWorkspace, StopBackground, WorktreeTools
from greenroom.teamwork.hand_in import UNDELIVERED_KEY, HandInTool, find_subtask, list_undelivered
from greenroom.teamwork.ladder import ProposeMergeTool, SettleConflictTool
from greenroom.teamwork.merge_queue import (
    UNCHECKED,
    FinishMergeTool,
    MergeQueue,
    MergeTool,
    SettleTool,
)
from greenroom.teamwork.plan_graph import BASELINE_SUBTASK, VERIFY_SUBTASK

OWN_STEPS = (checkout.NAME, BASELINE, CONFIRM_UNVERIFIED, DELIVER, HAND_IN, MERGE, FINISH_MERGE, SETTLE_MERGE)
"""Greenroom's own steps, which need no approval."""


@dataclass(frozen=True, slots=True)
class OpenSubtask:
    """A subtask with a worktree: its tools by name, and how to close them."""

    run_workspace: RunWorkspace
    toolset: Toolset
    executors: Mapping[str, Executor]


class SubtaskWorktrees:
    """The worktrees and tools of the open subtasks of a team run.

    Specialists start from the integration branch as it is when their subtask starts. Baseline results are shared, so
    that each specialist sees which tests failed before.
    """

    def __init__(
        self, app: AppContext, team: Team, workspace: Workspace, snapshot: TreeSnapshot, steps: Sequence[Step]
    ) -> None:
        self._app = app
        self._team = team
        self._workspace = workspace
        self._snapshot = snapshot
        self._root = Path(team.workspace)
        self._setup = read_worktree_setup(self._root, sandboxed=app.is_sandboxed)
        self._baseline = asyncio.Lock()
        self._open = dict[SubtaskId, OpenSubtask]()
        self._threads = dict[str, tuple[SubtaskId | None, int]]()
        self._base = dict[str, CheckRun]()
        self._tool_source = find_tool_source(self._root)
        found_checks = load_found_checks(steps)
        self._plan = plan_project_checks(
            self._root,
            sandboxed=app.may_run_checks,
            earlier_checks=found_checks,
            has_types=app.settings.team.validate_types,
        )
        self.toolbox = build_team_toolbox(app, self._root, self._plan.run, self._tool_source)
        self._queue = MergeQueue(
            run=team.team_id,
            workspace=workspace,
            settings=app.settings.team,
            checks=self._plan.run,
            base=self._base,
            describe=partial(render_finding, language=LANGUAGES[0]),
            list_steps=partial(app.steps, team.team_id),
            asks_person=app.settings.team.fallback_to_human and app.is_attended and not app.is_auto_approved,
        )

    @property
    def executors(self) -> Iterator[Executor]:
        """The tools, each of which runs in the worktree of its step's subtask."""
        described = {spec.name: spec.description for spec in self.toolbox.specs}
        for name in (*described, *OWN_STEPS):
            yield SubtaskTool(name, described.get(name, ""), self)

    async def load(self, state: TeamState, steps: Sequence[Step]) -> None:
        """Load the baseline and what is put off, and open the worktrees that a former process has left open."""
        self._queue.load(steps)
        base = find_base_report(steps)
        self._base.update(await load_base(base, self._app.blob) if base is not None else {})
        opened = [(step.subtask_id, step.result) for step in steps if step.work.executor == OPEN_WORKSPACE]
        self._threads |= {str(facts[THREAD_KEY]): (name, 0) for name, facts in opened if facts}
        undelivered = {step.subtask_id for step in steps if (step.result or {}).get(UNDELIVERED_KEY)}
        for subtask in _list_subtasks(state):
            facts = dict(opened).get(subtask.subtask_id)
            if facts and subtask.state == "running":
                spec = state.agents[subtask.agent].spec
                await self._open_worktree(subtask, spec, str(facts[THREAD_KEY]), str(facts[BASE_KEY]))
            elif facts and subtask.state == "finished" and subtask.subtask_id not in undelivered:
                await self._workspace.close(self._team.team_id, str(facts[THREAD_KEY]))

    async def open(self, state: TeamState, subtask: Subtask) -> Data:
        """Open the worktree of a subtask that starts. Return its name and its first commit."""
        run, start = self._team.team_id, self._snapshot.commit
        await self.close_finished(state)
        thread = MAIN_THREAD if subtask.name == VERIFY_SUBTASK else self._name_thread(subtask)
        if subtask.name not in (VERIFY_SUBTASK, BASELINE_SUBTASK):
            start = await self._workspace.tip(run, MAIN_THREAD)
        await self._close(subtask)
        for left_over in (thread, scratch_thread(thread)):  # by a process that was killed
            await self._workspace.close(run, left_over)
        await self._open_worktree(subtask, state.agents[subtask.agent].spec, thread, start)
        return {THREAD_KEY: thread, BASE_KEY: start}

    def _name_thread(self, subtask: Subtask) -> str:
        """Return a new name: the commits of earlier attempts stay, and those of a removed subtask of the same name."""
        owner, number = (subtask.subtask_id, subtask.attempt), subtask.attempt
        thread = subtask.name if number == 1 else f"{subtask.name}.{number}"
        while self._threads.setdefault(thread, owner) != owner:
            number += 1
            thread = f"{subtask.name}.{number}"
        return thread

    async def close_finished(self, state: TeamState) -> None:
        """Close the worktrees of finished subtasks. Their work is in the integration branch."""
        for subtask in _list_subtasks(state):
            if subtask.state == "finished":
                await self._close(subtask)

    async def _close(self, subtask: Subtask) -> None:
        """Close what is open of a subtask: it has finished, or an attempt failed. Its commits stay, and so does a
        worktree with files that no commit holds."""
        if former := self._open.pop(subtask.subtask_id, None):
            await former.toolset.close()
            worktree = former.run_workspace.worktree
            contents, tip = await worktree.inspect(), await self._workspace.tree(await worktree.tip())
            if contents.tree == tip and not list_undelivered(contents.left_out):
                await self._workspace.close(self._team.team_id, former.run_workspace.thread)

    def find(self, state: TeamState, step: Step, name: str) -> Executor:
        """Return the tool in the worktree of a step's subtask; a message is read in the agent's own worktree."""
        for subtask in _list_subtasks(state):
            is_own = step.subtask_id is None and subtask.agent == step.agent_id and subtask.state == "running"
            opened = self._open.get(subtask.subtask_id) if is_own or subtask.subtask_id == step.subtask_id else None
            if opened is not None and name in opened.executors:
                return opened.executors[name]
        raise WorldFault("teams.no_worktree", agent=step.agent_id, tool=name)

    async def close(self) -> None:
        """Stop everything that still runs. The worktrees stay, so that the run can be resumed."""
        async with AsyncExitStack() as cleanup:
            for callback in self._tool_source.close_callbacks:
                cleanup.push_async_callback(callback)
            for opened in self._open.values():
                cleanup.push_async_callback(opened.toolset.close)

    async def _open_worktree(self, subtask: Subtask, spec: AgentSpec, thread: str, start: str) -> None:
        snapshot = evolve(self._snapshot, commit=start, tree=await self._workspace.tree(start))
        run_workspace = await open_thread(self._team, self._workspace, snapshot, thread)
        toolset = self._build_toolset(run_workspace, spec)
        executors = {executor.name: executor for executor in toolset.executors}
        self._open[subtask.subtask_id] = OpenSubtask(run_workspace, toolset, executors)

    def _build_toolset(self, run_workspace: RunWorkspace, spec: AgentSpec) -> Toolset:
        edits = {tool.name for tool in self.toolbox if tool.card.group == "edit"}
        writes, lock = bool(edits & set(spec.tools)), asyncio.Lock()
        source = evolve(self._tool_source, close_callbacks=())  # all subtasks share it
        open_at = partial(
            build_checkout_opener,
            run_workspace,
            self._setup,
            lambda tools: self._app.toolset(tools.mount_point, tools, tool_source=source),
        )
        open_checkout = open_at()
        checker = self._make_checker(open_checkout)

        async def check_commit(commit: str, context: StepContext) -> CheckReport:
            open_base, opener = (open_at(tip=tip, thread=MERGE_QUEUE) for tip in (self._snapshot.commit, commit))
            await self._make_checker(open_base).ensure_baseline(context)
            return await self._make_checker(opener).run((), context)

        def make_tools(commands: CommandRunner, quiet: StopBackground) -> Iterable[ToolExecutor]:
            yield RunChecksTool(checker)
            unchanged = evolve(self._setup, left="Nothing to prepare: no files are changed here.")
            yield PrepareTool(self._setup if writes else unchanged, commands)
            yield FinishingTool(BaselineTool(checker, self._plan.project_checks))
            alone = not self._app.is_attended
            agreed = self._app.is_auto_approved and not alone
            yield FinishingTool(ConfirmUnverifiedTool(checker, allowed=agreed, alone=alone))
            yield HandInTool(run_workspace, writes=writes, stop_background=quiet)
            yield MergeTool(self._queue, check_commit)
            yield FinishMergeTool(self._queue)
            yield SettleTool()
            yield DeliverTool(
                run_workspace,
                checker,
                open_checkout,
                self._app.steps,
                stop_background=quiet,
                describe=partial(render_finding, language=LANGUAGES[0]),
                has_setup=self._setup.is_enabled,
            )

        tools = WorktreeTools(
            folder=run_workspace.folder,
            mount_point=self._root,
            mounts=run_workspace.mounts,
            wrap=lambda tool: wrap_recording(
                tool, run_workspace.worktree, lock, self_committing=(DELIVER, BASELINE, HAND_IN, MERGE, FINISH_MERGE)
            ),
            extra_tools=make_tools,
            trusted_tools=OWN_STEPS,
            read_only=not writes,
        )
        return self._app.toolset(self._root, tools, tool_source=source)

    def _make_checker(self, opener: OpenCheckout) -> ProjectChecks:
        """Return the project's checks in such worktrees. All share the baseline."""
        checker = ProjectChecks(self._plan.run, opener, left=self._plan.skip_reasons, lock=self._baseline)
        checker.base = self._base
        return checker


def _list_subtasks(state: TeamState) -> list[Subtask]:
    return [subtask for stage in state.stages.values() for subtask in stage.subtasks]


class SubtaskTool:
    """A tool that runs in the worktree of its step's subtask."""

    type: StepType = "tool"

    def __init__(self, name: str, description: str, worktrees: SubtaskWorktrees) -> None:
        self.name = name
        self.description = description
        self._worktrees = worktrees

    def terms(self, state: TeamState, step: Step) -> StepTerms:
        """Return the terms in that worktree. If they deny checks, `run` ends the subtask with the reason.

        A merge asks nothing: if its checks need an approval, they run once, when the whole is verified.
        """
        terms = self._worktrees.find(state, step, self.name).terms(state, step)
        if self.name == MERGE and terms.verdict in ("ask", "deny"):
            return evolve(terms, verdict="allow", rule=UNCHECKED, question="", grant="", release="")
        return evolve(terms, verdict="allow") if self._is_denied(terms) else terms

    async def run(self, context: StepContext) -> Outcome:
        """Run the tool in that worktree."""
        tool = self._worktrees.find(context.state, context.step, self.name)
        if self._is_denied(terms := tool.terms(context.state, context.step)):
            why = translate("teams.checks_denied", why=terms.rule.partition(". Do without")[0])
            end = build_finish(context.step, why, failed=True)
            return Outcome(state="failed", error=why, intents=(end,))
        return await tool.run(context)

    def _is_denied(self, terms: StepTerms) -> bool:
        return self.name in (BASELINE, DELIVER) and terms.verdict == "deny"


class OpenWorkspaceTool(CardedTool):
    """Opens the worktree of a subtask. Keyed: an interrupted one is opened again, from the newest commit."""

    card = make_card(
        OPEN_WORKSPACE, "Open the worktree of a subtask.", {"type": "object"}, group="read", effect="keyed"
    )

    def __init__(self, worktrees: SubtaskWorktrees) -> None:
        self._worktrees = worktrees

    async def run(self, context: StepContext) -> Outcome:
        """Open the worktree. Without one the subtask cannot begin, so it has failed."""
        try:
            facts = await self._worktrees.open(context.state, find_subtask(context.state, context.step))
        except WorldFault as fault:
            end = build_finish(context.step, str(fault), failed=True)
            return Outcome(state="failed", error=str(fault), intents=(end,))
        return Outcome(result={"output": f"Works in {facts[THREAD_KEY]}.", **facts})


class FinishingTool(WrappedTool):
    """A tool whose success ends its subtask, if it is its last step."""

    async def run(self, context: StepContext) -> Outcome:
        """Run the tool and end the subtask, unless the tool has done that itself."""
        outcome = await super().run(context)
        step, output = context.step, str((outcome.result or {}).get("output", ""))
        has_next = any(other.step_id != step.step_id for other in context.state.steps_of(step.agent_id))
        if has_next or any(isinstance(intent, FinishSubtask) for intent in outcome.intents):
            return outcome
        end = build_finish(step, render_for_people(output.removeprefix(BEFORE_PREFIX)))
        return evolve(outcome, intents=(end, *outcome.intents))


async def build_team_capabilities(app: AppContext, team: Team, registered: Iterable[AgentSpec] = ()) -> Capabilities:
    """Build the capabilities of a team run; a program can have `registered` profiles. Open worktrees left open."""
    state, steps = await app.runtime.state(team.team_id), await app.steps(team.team_id)
    workspace, snapshot = await find_snapshot(team, app.steps)
    worktrees = SubtaskWorktrees(app, team, workspace, snapshot, steps)
    await worktrees.load(state, steps)
    lead = state.agents[LEAD].spec
    skills = build_conversation_skills(
        app,
        worktrees.toolbox.specs,
        reader=TextReader(),
        project=app.notes(),
        filter_above=app.settings.agents.filter_tools_above,
        skills=app.skills,
    )
    model, language = read_model_name(lead), lead.language
    profiles = (*load_profiles(app.agents(), language).list(), *registered)
    specialists = equip_specialists(app, worktrees.toolbox, profiles, model=model, language=language)
    specialists |= {agent.spec.name: agent.spec for agent in state.agents.values() if agent.spec.proof == HAND_IN}
    planning = (SplitTool(app.settings.team.max_subtasks), SendBackTool(app.steps, app.settings.team.max_rounds))
    ladder = (ProposeMergeTool(app.settings.team), SettleConflictTool(app.settings.team))
    return Capabilities(
        (*skills, *worktrees.executors, OpenWorkspaceTool(worktrees), *planning, *ladder),
        agent_specs=tuple(specialists.values()),
        on_close=worktrees.close,
        approvals_expire=app.get_approval_timeout(),
    )
