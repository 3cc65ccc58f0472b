"""The capabilities of runs: tools that work in a worktree, record every step and verify the result."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import TypeAlias

from greenroom.abilities.skills.conversation_skills import build_conversation_skills
from greenroom.abilities.tools.human import ProposePlanTool
from greenroom.abilities.tools.run_checks import RunChecksTool
from greenroom.app.context import AppContext
from greenroom.app.conversation.capability_names import CHANGE_RUN
from greenroom.app.conversation.start import (
    FIRST_TASK_ID,
    Participants,
    label_attachments,
    make_question_task,
    make_turn,
    read_model_name,
)
from greenroom.app.cost import MILLIONTHS_PER_DOLLAR, format_dollars
from greenroom.app.messages import LANGUAGES
from greenroom.app.messages.findings import render_finding
from greenroom.app.runs.checks import plan_project_checks, read_worktree_setup
from greenroom.app.runs.workspaces import open_run_workspace
from greenroom.app.runtime import Runtime
from greenroom.app.text_reader import TextReader
from greenroom.app.toolset.toolset import Toolset
from greenroom.core.base.amounts import Limits
from greenroom.core.base.ids import AgentId, TeamId
from greenroom.core.base.records import evolve
from greenroom.core.ports.commands import CommandRunner
from greenroom.core.ports.executor import Capabilities
from greenroom.core.ports.tool import ToolExecutor
from greenroom.core.ports.workspace import SCRATCH_THREAD
from greenroom.core.rules.intents import QueueSteps
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.step import Step, StoredMedia, Work
from greenroom.core.state.team import Team
from greenroom.core.state.team_state import TeamState
from greenroom.runs import checkout
from greenroom.runs.checker import BaselineTool, ConfirmUnverifiedTool, ProjectChecks, load_base, load_found_checks
from greenroom.runs.checkout import PrepareTool, build_checkout_opener
from greenroom.runs.delivery import DeliverTool, wrap_recording
from greenroom.runs.verdict import BASELINE, CONFIRM_UNVERIFIED, DELIVER, find_base_report
from greenroom.runs.workspace import DEFAULT_RUN_FLAGS, RunFlags, RunWorkspace, StopBackground, WorktreeTools


def require_delivery(spec: AgentSpec) -> AgentSpec:
    """Return the agent with `deliver` as the last step of its work."""
    return evolve(spec, proof=DELIVER)


Members: TypeAlias = tuple[tuple[AgentId, AgentSpec], ...]


async def create_run(
    runtime: Runtime,
    participants: Participants,
    question: str,
    *,
    typed: str = "",
    media: tuple[StoredMedia, ...] = (),
    limits: Limits,
    setup: bool = False,
    wanted: RunFlags = DEFAULT_RUN_FLAGS,
) -> TeamId:
    """Create a team whose work is verified by checks; it does not start yet.

    With `setup` the worktree is prepared first. Then the checks run on the base commit. If no check can verify the
    change, a person is asked, unless only an answer is wanted.
    """
    first_steps = [make_turn(question, typed, wanted, media)]
    if not wanted.question:
        first_steps.insert(0, _make_step(CONFIRM_UNVERIFIED, "See whether anything can verify the change."))
        first_steps.insert(0, _make_step(BASELINE, "Run the checks before any change."))
    if participants.routing is not None:  # the agent that ends the work may be any of them
        delivering = tuple(map(require_delivery, participants.routing.members))
        participants = evolve(participants, routing=evolve(participants.routing, members=delivering))
    if setup:
        first_steps.insert(0, _make_step(checkout.NAME, "Prepare the worktree."))
    queued = QueueSteps(
        agent_id=participants.first,
        works=tuple(first_steps),
        task_id=FIRST_TASK_ID,
        origins=label_attachments(question, typed, media),
    )
    begin = (make_question_task(typed or question, participants), queued)
    return await runtime.create(
        CHANGE_RUN,
        require_first_delivery(participants),
        capabilities_name=CHANGE_RUN,
        workspace=participants.workspace,
        limits=limits,
        first_intents=begin,
    )


def _make_step(executor: str, intention: str) -> Work:
    return Work(type="tool", executor=executor, intention=intention, instruction_content={})


def require_first_delivery(participants: Participants) -> Members:
    """Return the members, with delivery required from the first agent. The agents that it calls only answer it, so
    their work is verified with its own."""
    (name, first), *others = participants.with_copies
    return ((name, require_delivery(first)), *others)


async def build_run_capabilities(app: AppContext, team: Team) -> Capabilities:
    """Build the capabilities of a run. Create its worktree, or open the existing one."""
    run_workspace = await open_run_workspace(team, app.steps)
    await run_workspace.workspace.close(team.team_id, SCRATCH_THREAD)  # left by a process that was killed
    toolset = await _build_toolset(app, team.team_id, run_workspace)
    skills = build_conversation_skills(
        app,
        toolset.specs,
        solo=True,
        reader=TextReader(),
        project=app.notes(),
        filter_above=app.settings.agents.filter_tools_above,
        skills=app.skills,
    )
    return Capabilities(
        (*skills, *toolset.executors), on_close=toolset.close, approvals_expire=app.get_approval_timeout()
    )


async def _build_toolset(app: AppContext, team: TeamId, run_workspace: RunWorkspace) -> Toolset:
    root, steps = run_workspace.mount_point, await app.steps(team)
    setup = read_worktree_setup(root, sandboxed=app.is_sandboxed)
    plan = plan_project_checks(root, sandboxed=app.may_run_checks, earlier_checks=load_found_checks(steps))
    base = find_base_report(steps)
    lock = asyncio.Lock()
    base_results = await load_base(base, app.blob) if base is not None else {}
    open_checkout = build_checkout_opener(
        run_workspace, setup, lambda worktree_tools: app.toolset(worktree_tools.mount_point, worktree_tools)
    )
    checker = ProjectChecks(plan.run, open_checkout, base=base_results, left=plan.skip_reasons)
    is_unattended = not app.is_attended
    estimate_plan = partial(describe_estimate, app)

    def make_run_tools(commands: CommandRunner, quiet: StopBackground) -> Sequence[ToolExecutor]:
        return (
            RunChecksTool(checker),
            BaselineTool(checker, plan.project_checks),
            ConfirmUnverifiedTool(checker, allowed=app.is_auto_approved and not is_unattended, alone=is_unattended),
            PrepareTool(setup, commands),
            ProposePlanTool(estimate_plan, alone=is_unattended or app.is_auto_approved),
            DeliverTool(
                run_workspace,
                checker,
                open_checkout,
                app.steps,
                stop_background=quiet,
                describe=partial(render_finding, language=LANGUAGES[0]),
                has_setup=setup.is_enabled,
            ),
        )

    return app.toolset(
        root,
        WorktreeTools(
            folder=run_workspace.folder,
            mount_point=root,
            mounts=run_workspace.mounts,
            wrap=lambda tool: wrap_recording(tool, run_workspace.worktree, lock, self_committing=(DELIVER, BASELINE)),
            extra_tools=make_run_tools,
            trusted_tools=(checkout.NAME, BASELINE, CONFIRM_UNVERIFIED, DELIVER),
        ),
    )


def describe_estimate(app: AppContext, state: TeamState, step: Step, files: int) -> str:
    """Describe the estimated cost of work on this many files, or return "" if no price is known."""
    costs = app.estimate_cost(read_model_name(state.agents[step.agent_id].spec), files)
    if costs is None:
        return ""
    low, high = (
        f"${money / MILLIONTHS_PER_DOLLAR:.2f}" if money >= MILLIONTHS_PER_DOLLAR // 100 else format_dollars(money)
        for money in costs
    )
    return f"{low}–{high} (a guess)"
