"""Work: plan it, start it, and control, instruct and answer what runs."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Final, Literal

from fastapi import APIRouter

from greenroom.app.approvals import (
    find_answer,
    find_kind,
    is_merge,
    keep_rule,
    make_answer,
    pending_approvals,
    quote_for_page,
)
from greenroom.app.conversation.capability_names import CHANGING_RUNS, RUN, TEAM_RUN
from greenroom.app.conversation.chat import list_team_models
from greenroom.app.conversation.chat_input import build_message
from greenroom.app.conversation.send import send_to_run
from greenroom.app.conversation.start import create_single_task_team
from greenroom.app.cost import MILLIONTHS_PER_DOLLAR
from greenroom.app.lookup import TaskReference
from greenroom.app.messages import translate
from greenroom.app.organisation.inbox import find_unanswered
from greenroom.app.organisation.input import find_mentions
from greenroom.app.organisation.people import HumanAgent, find_person
from greenroom.app.organisation.phrases import ORGANISATION_KIT
from greenroom.app.run_host import cancel_tasks, list_refusals
from greenroom.app.run_plan import (
    WRITING_GROUPS,
    describe_left_out,
    list_untrusted,
    make_parser,
    open_analyst,
    plan_run,
)
from greenroom.app.runs.capabilities import create_run
from greenroom.app.runs.checks import FolderReader, open_choices, plan_project_checks, read_worktree_setup
from greenroom.app.runs.workspaces import (
    find_change,
    find_rewind_point,
    find_subtask_change,
    has_repository,
    list_rewind_points,
    open_workspace,
    refuse_large_folder,
    rewind_run,
    tell_run,
)
from greenroom.app.settings.schema import LimitSettings
from greenroom.app.teams.analysis import TeamProposal
from greenroom.app.teams.integration import check_conflict_answer
from greenroom.app.teams.start import create_planned_run
from greenroom.app.toolset.pipeline import CallPreview, preview_call
from greenroom.app.toolset.policy import normalise_rule
from greenroom.app.toolset.toolbox import Toolbox
from greenroom.app.words import LIMIT_FLAGS, shorten
from greenroom.core.base.amounts import NOTHING, Limits
from greenroom.core.base.errors import GreenroomError, RefusedError, WorldFault, make_refusal
from greenroom.core.base.ids import TEAM_BUDGET, AgentId, ApprovalId, GroupId, MessageId, StepId, TeamId
from greenroom.core.base.records import evolve, to_full_dict
from greenroom.core.ports.checks import Check
from greenroom.core.rules.draft import CLIENT, SYSTEM
from greenroom.core.rules.intents import AnswerApproval, Intent, PauseTeam, ResumeTask, ResumeTeam, SetLimits
from greenroom.core.state.approval import Approval
from greenroom.core.state.step import Step
from greenroom.core.state.team_state import TeamState
from greenroom.http import inputs, schemas
from greenroom.http.context import Context, Cursor, Limit, RunPath, ServerContext, cut_page
from greenroom.http.routes.changes import change_run, name_command
from greenroom.http.routes.runs import LIMIT_FIELDS, find_info, list_letters, make_row
from greenroom.http.state_reader import keep
from greenroom.runs.verdict import SETTLE_CONFLICT
from greenroom.runs.workspace import RunFlags
from greenroom.teamwork.plan_text import render_plan_text

CONFLICT_CHOICES: Final = ("accept", "left", "right", "back", "drop")
MERGE_CHOICES: Final = ("merge", "drop")

router = APIRouter(tags=["work"])


@router.post("/plans")
async def propose_plan(context: Context, body: inputs.PlanInput) -> schemas.Proposal:
    """Plan a request, or check the edited text of a plan. Nothing starts; a model may be asked."""
    app, notes = context.app, list[str]()
    name = body.proposal if body.proposal in context.planned else secrets.token_urlsafe(16)
    caps = evolve(app.settings.limits, cost=body.cost_limit or app.settings.limits.cost)
    limits = caps.limits.minus(context.planned.get(name, NOTHING))
    if body.model.strip():
        app.get_model(body.model.strip())  # refuse before anything is planned
    analyst = await open_analyst(app, body.model.strip(), note=notes.append, warn=notes.append, limits=limits)
    if body.text:
        proposal = analyst.assess(make_parser(analyst)(body.text))
    else:
        try:
            proposal = await analyst.propose(body.request)
        finally:
            keep(context.planned, name, context.planned.get(name, NOTHING).plus(analyst.spent))
    left_out = describe_left_out(list_untrusted(app, app.root))
    left_out += [] if has_repository(app.root) else [translate("actions.no_git_note")]
    checks = plan_project_checks(app.root, sandboxed=app.may_run_checks).unapproved
    shown = [f"{check.name}: {check.line} ({check.why})" for check in checks]
    fields = {"id": name, "cost_limit": caps.cost, "checks": shown, "checks_digest": digest_checks(checks)}
    return _make_proposal(proposal, **fields, notes=[*proposal.notes, *left_out])


def digest_checks(checks: Sequence[Check]) -> str:
    """Return a hash of what checks would run; empty for none."""
    return sha256(" ".join(check.digest for check in checks).encode()).hexdigest() if checks else ""


def _make_proposal(proposal: TeamProposal, **fields: object) -> schemas.Proposal:
    plan, estimate, critical = proposal.plan, proposal.analysis.estimate, set(proposal.critical_path)
    phases = {name: phase.number for phase in proposal.phases for name in phase.subtasks}
    parts = [
        schemas.PlannedPart.make(
            part,
            duty=part.description,
            needs=part.dependencies,
            phase=phases.get(part.id, 1),
            is_critical=part.id in critical,
        )
        for part in plan.subtasks
    ]
    spans = {
        name: (span := getattr(estimate, name)) and schemas.Span.make(span) for name in ("seconds", "tokens", "cost")
    }
    return schemas.Proposal.make(
        proposal.decision,
        **spans,
        **fields,
        types=proposal.analysis.task_types,
        classified_by=proposal.analysis.source,
        parts=parts,
        critical_path=proposal.critical_path,
        gain=estimate.gain,
        model=proposal.model,
        text=render_plan_text(plan) if plan.subtasks else "",
    )


@router.post("/runs", status_code=201)
async def start_run(context: Context, body: inputs.RunInput) -> schemas.StartedRun:
    """Start a run in this process: a team by a confirmed plan, or one agent."""
    app, settings, notes = context.app, context.app.settings, list[str]()
    caps = evolve(
        settings.limits, cost=body.cost_limit or settings.limits.cost, time=body.time_limit_s or settings.limits.time
    )
    wanted = RunFlags(
        question=body.question, tests_may_change=body.tests_may_change, allow_unverified=body.allow_unverified
    )
    if body.confirm_checks:
        _save_checks(context, body.confirm_checks)
    limits = caps.limits.minus(context.planned.get(body.proposal, NOTHING))
    if body.plan:
        analyst = await open_analyst(app, body.model.strip(), note=notes.append, warn=notes.append, limits=caps.limits)
        proposal = analyst.assess(make_parser(analyst)(body.plan))
        cost = proposal.analysis.estimate.cost
        if caps.cost is not None and cost is not None and caps.cost < cost.low:
            notes.append(translate("actions.below_estimate", limit=caps.cost, low=cost.low, high=cost.high))
        await _prepare_folder(app.root)
        team = await create_planned_run(app, analyst, proposal.plan, limits, wanted)
    else:
        team = await _create_single(context, body, caps, limits, wanted, notes)
    context.planned.pop(body.proposal, None)
    await context.host.start(team)
    row = await make_row(context, await find_info(context, team))
    return schemas.StartedRun(**row.model_dump(), notes=[*notes, *describe_left_out(list_untrusted(app, app.root))])


def _save_checks(context: ServerContext, digest: str) -> None:
    """Approve the checks of the project that the person saw. Raise `RefusedError` if they are others now."""
    plan = plan_project_checks(context.app.root, sandboxed=context.app.may_run_checks)
    if plan.unapproved:
        if digest_checks(plan.unapproved) != digest:
            raise make_refusal("checks_changed", translate("actions.checks_changed"))
        approved = [check for check in plan.run if check.name in plan.confirmed]
        open_choices().save(context.app.root, [*approved, *plan.unapproved], plan.unapproved)


async def _prepare_folder(root: Path) -> None:
    await refuse_large_folder(root)
    await (await open_workspace(root)).recover()


async def _create_single(
    context: ServerContext,
    body: inputs.RunInput,
    caps: LimitSettings,
    limits: Limits,
    wanted: RunFlags,
    notes: list[str],
) -> TeamId:
    """Create the run of one agent. A question gets no worktree and no tool that writes. `notes` get what it reports."""
    app = context.app
    plan = await plan_run(
        app,
        agent=body.agent.strip(),
        model=body.model.strip(),
        in_worktree=not body.question,
        note=notes.append,
        caps=caps,
    )
    notes += plan.notes
    text, media = await plan.make_message(app, body.request, note=notes.append)
    if plan.writers and not body.question:
        await _prepare_folder(app.root)
        setup = bool(read_worktree_setup(app.root, sandboxed=app.is_sandboxed).line)
        return await create_run(
            app.runtime,
            plan.participants,
            text,
            typed=body.request,
            media=media,
            limits=limits,
            setup=setup,
            wanted=wanted,
        )
    writing = {tool.name for tool in app.toolbox() if tool.card.group in WRITING_GROUPS}
    members = tuple(
        (name, evolve(spec, tools=tuple(tool for tool in spec.tools if tool not in writing)))
        for name, spec in plan.participants.members
    )
    participants = evolve(plan.participants, members=members)
    return await create_single_task_team(
        app.runtime, RUN, participants, text, typed=body.request, media=media, limits=limits, wanted=wanted
    )


@router.post("/runs/{run}/messages")
async def send_message(context: Context, run: RunPath, body: inputs.MessageInput) -> schemas.VerbResult:
    """Send a message to an agent or a group of the run, or to all that work on it."""
    state = await context.runtime.state(run)
    if state.team.kit == ORGANISATION_KIT:
        return await _send_as_person(context, state, body)
    if body.to and body.to not in state.agents:
        raise make_refusal("unknown_agent", translate("server.unknown_agent", agent=body.to[:80]))
    address = f"@{body.to} " if body.to and state.team.kit == TEAM_RUN else ""
    delivery = await send_to_run(context.runtime, TaskReference(team=run), build_message(f"{address}{body.text}"))
    hint = await _wake(context, run)
    return schemas.VerbResult(message=translate("actions.sent", names=delivery.reader), hint=hint)


async def _wake(context: ServerContext, run: TeamId) -> str:
    """Start a run again that has work. Return why it cannot go on here; empty if it does or need not."""
    try:
        await context.host.wake(run)
    except GreenroomError as error:
        return str(error)
    return ""


async def _send_as_person(context: ServerContext, state: TeamState, body: inputs.MessageInput) -> schemas.VerbResult:
    person = HumanAgent(context.runtime, state.team.team_id, find_person(state, body.sender.strip()))
    if body.answers:
        return await _answer_letter(context, state, person, body.answers, body.text)
    managers = sorted(name for name, agent in state.agents.items() if agent.spec.manager and agent.spec.kind != "human")
    receiver = body.to or next(iter(managers), "")
    if receiver in state.groups:
        await person.send_to_group(GroupId(body.to), body.text, *map(AgentId, find_mentions(body.text, state.agents)))
    else:
        await person.ask(body.text, AgentId(receiver))
    return schemas.VerbResult(message=translate("actions.sent", names=receiver))


async def _answer_letter(
    context: ServerContext, state: TeamState, person: HumanAgent, name: str, text: str, *, failed: bool = False
) -> schemas.VerbResult:
    letter = next((item for item in find_unanswered(state, person.me) if item.message.message_id == name), None)
    if letter is None:
        raise await _explain_closed(context, state.team.team_id, name)
    await (person.answer(letter, text) if letter.kind == "question" else person.finish(letter, text, failed=failed))
    return schemas.VerbResult(message=translate("actions.answered"))


@router.get("/inbox")
async def read_inbox(context: Context, cursor: Cursor = "", limit: Limit = 100) -> schemas.Page[schemas.InboxItem]:
    """List what waits for a person in all runs, oldest first."""
    items, toolbox = list[schemas.InboxItem](), None
    for info in await context.runtime.log.streams():
        row = await make_row(context, info) if info.head.version else None
        if row is None or not row.waits_for_me:
            continue
        state = await context.reader.read(TeamId(row.id))  # what hosts it can be behind its log
        base = {"run": row.id, "run_title": row.title, "is_running": row.owner is not None, "folder": row.folder}
        for approval in pending_approvals(state):
            toolbox = toolbox or context.app.toolbox()
            preview = await _preview(context, state, approval, toolbox)
            items.append(_make_item(state, approval, preview, base))
        for letter in list_letters(state):
            fields = {"id": letter.message_id, "kind": "message", "agent": letter.sender_id, "question": letter.message}
            items.append(schemas.InboxItem.model_validate({**base, **fields, "asked_at": letter.sent_at}))
    return cut_page(sorted(items, key=lambda item: (item.asked_at, item.id)), limit, cursor)


def _make_item(
    state: TeamState, approval: Approval, preview: CallPreview, base: Mapping[str, object]
) -> schemas.InboxItem:
    step = state.steps[approval.step_id]
    kind, arguments = find_kind(state, approval), dict(step.work.instruction_content or {})
    subtask = state.find_subtask(step)
    is_call = kind == "permission"
    return schemas.InboxItem.make(
        approval,
        **base,
        id=approval.approval_id,
        kind=kind,
        agent=approval.agent_id,
        subtask=subtask.name if subtask is not None else "",
        question=quote_for_page(state, approval),
        why=str(arguments.get("why", "")) if is_call else "",
        call=str(arguments.get("script") or json.dumps(arguments, ensure_ascii=False, indent=2)) if is_call else "",
        tool=step.work.executor if is_call else "",
        **to_full_dict(preview),
        rule=approval.grant,
        choices=CONFLICT_CHOICES if kind == "conflict" else MERGE_CHOICES if is_merge(state, approval) else (),
    )


async def _preview(context: ServerContext, state: TeamState, approval: Approval, toolbox: Toolbox) -> CallPreview:
    """Preview the call that a request is about, with the files as its agent has them."""
    if find_kind(state, approval) != "permission":
        return CallPreview()
    step = state.steps[approval.step_id]
    # Nothing but the agent's own steps changes its worktree; a person's folder can change at any time.
    key = (state.team.team_id, approval.approval_id, *(step.step_id for step in state.steps_of(approval.agent_id)))
    if key in context.previews:
        return context.previews[key]
    tool = next((tool for tool in toolbox if tool.name == step.work.executor), None)
    targets = tool.targets(step.work.instruction_content or {}) if tool is not None else ()
    preview = await preview_call(targets, step, partial(_read_as_agent, context, state, step))
    if state.team.kit in CHANGING_RUNS:
        keep(context.previews, key, preview)
    return preview


async def _read_as_agent(context: ServerContext, state: TeamState, step: Step, path: str) -> bytes | None:
    if state.team.kit not in CHANGING_RUNS:
        return FolderReader(Path(state.team.workspace)).read(path)
    change = await find_change(state.team, context.app.steps)
    subtask = state.find_subtask(step)
    change = (await find_subtask_change(change, context.app.steps, subtask.name) if subtask else None) or change
    return await change.workspace.read(change.tip, path)


@router.post("/runs/{run}/inbox/{item}")
async def answer_item(context: Context, run: RunPath, item: str, body: inputs.AnswerInput) -> schemas.VerbResult:
    """Answer what waits for a person. Of two answers the first one counts, and the second is refused."""
    state = await context.reader.read(run)
    approval = state.approvals.get(ApprovalId(item))
    if approval is None and MessageId(item) in state.mail:
        letter = state.mail[MessageId(item)]
        person = HumanAgent(context.runtime, run, find_person(state, next(iter(letter.receiver), "")))
        return await _answer_letter(context, state, person, item, body.text, failed=body.decision == "denied")
    if approval is None or approval.state != "pending":
        raise await _explain_closed(context, run, item)
    answer = await _make_decision(context, state, approval, body)
    try:
        await context.runtime.ask(run, answer)
    except RefusedError as refusal:
        if refusal.rejection.code.startswith("unknown"):
            raise await _explain_closed(context, run, item) from None
        raise
    try:
        note, hint = keep_rule(state, approval, answer), ""
    except WorldFault as fault:  # the answer is there, and holds for this run
        note, hint = "", str(fault)
    hint = await _wake(context, run) or hint
    return schemas.VerbResult(message=note or translate("actions.answered"), hint=hint)


async def _make_decision(
    context: ServerContext, state: TeamState, approval: Approval, body: inputs.AnswerInput
) -> AnswerApproval:
    """Return the answer to a request. Raise `RefusedError` if it does not fit, or if its rule cannot be saved."""
    kind, text = find_kind(state, approval), body.text.strip()
    if kind == "permission":
        rule = body.rule.strip()
        if body.scope == "run" and rule not in ("", approval.grant):
            raise make_refusal("invalid_rule", translate("actions.rule_not_shown"))
        for line in rule.splitlines() if body.scope != "once" else ():
            try:
                normalise_rule(line)
            except WorldFault as fault:
                raise make_refusal("invalid_rule", translate("actions.bad_rule", why=fault)) from None
        grant = rule if body.scope != "once" and body.decision == "approved" else ""
        return AnswerApproval(
            approval_id=approval.approval_id, answer=body.decision, scope=body.scope, reason=text, grant=grant
        )
    if kind == "question" and body.decision == "denied":
        return AnswerApproval(approval_id=approval.approval_id, answer="denied", reason=text)
    if kind != "question" and body.decision == "denied":
        text = "drop" if kind == "conflict" else f"no: {text}" if text not in ("", "no") else "no"
    elif kind in ("plan", "confirmation"):
        text = text or "yes"
    try:
        if kind == "conflict":
            await check_conflict_answer(context.app.blob, state, approval, text)
        return make_answer(state, approval, text)
    except RefusedError as refusal:  # its hint says what to type in a terminal
        raise make_refusal(refusal.rejection.code, refusal.why) from None


async def _explain_closed(context: ServerContext, run: TeamId, item: str) -> RefusedError:
    """Return why a request cannot be answered: who answered it and how, or that it is not open."""
    found, state = await find_answer(context.runtime, run, item), await context.reader.read(run)
    step = await context.reader.find_step(run, StepId(item.partition("?")[0]), state.version)
    if found is None:
        is_known = step is not None or await context.runtime.log.find(run, "message", item)
        code, key = ("gone", "withdrawn") if is_known else ("unknown_item", "unknown_item")
        return make_refusal(code, translate(f"actions.{key}", item=item[:80]))
    who = {CLIENT: "who_page", SYSTEM: "who_none"}.get(found.by, "who_terminal" if found.by.startswith(CLIENT) else "")
    answer = found.reason if found.answer == "approved" and found.reason else translate(f"actions.{found.answer}")
    if answer.startswith("{") and step is not None and step.work.executor == SETTLE_CONFLICT:
        answer = translate("actions.each_file")  # not the JSON that says which version each file takes
    name = translate(f"actions.{who}") if who else found.by
    return make_refusal(
        "answered_elsewhere", translate("actions.answered_first", who=name, answer=shorten(answer).rstrip("."))
    )


RunVerb = Literal["pause", "resume", "cancel", "fork", "rewind", "apply", "branch", "discard", "undo"]


@router.post("/runs/{run}/{verb}")
async def use_verb(context: Context, run: RunPath, verb: RunVerb, body: inputs.VerbInput) -> schemas.VerbResult:
    """Control a run, or decide about its change. A verb that cannot be used now is refused with the reason."""
    if why := (await list_refusals(context.app, context.host, run)).get(verb):
        raise make_refusal("not_now", why)
    match verb:
        case "pause":
            await context.runtime.ask(run, PauseTeam(now=body.now))
            return schemas.VerbResult(message=translate("actions.pausing"))
        case "resume":
            return await _resume(context, run, body)
        case "cancel":
            tasks = tuple((await context.runtime.state(run)).tasks)
            is_ended = await cancel_tasks(context.runtime, run, tasks)
            message = translate(f"actions.{'cancelled' if is_ended else 'cancelling'}")
            return schemas.VerbResult(done=is_ended, message=message)
        case "fork":
            try:
                new = await context.runtime.fork(run, body.version)
            except RefusedError as refusal:
                if refusal.rejection.code != "no_team":
                    raise
                why = translate("actions.no_earlier_step", version=body.version)
                raise make_refusal("no_such_step", why) from None
            origin = (await context.runtime.state(new)).team.origin
            kept = origin.version if origin is not None else 0
            message = translate("actions.forked", run=new, version=kept)
            return schemas.VerbResult(message=message, run=new, version=kept)
        case "rewind":
            return await _rewind(context, run, body)
        case _:
            return await change_run(context, run, verb, body)


async def _resume(context: ServerContext, run: TeamId, body: inputs.VerbInput) -> schemas.VerbResult:
    state = await context.runtime.state(run)
    old = state.budgets[TEAM_BUDGET].limits
    asked = {name: (getattr(body, field), unit) for name, (field, unit) in LIMIT_FIELDS.items()}
    new = evolve(old, **{name: round(value * unit) for name, (value, unit) in asked.items() if value})
    for name in asked:
        before = int(getattr(old, name) or 0)
        if state.team.paused == f"limit: {TEAM_BUDGET} {name}" and (getattr(new, name) or 0) <= before:
            row = await make_row(context, await find_info(context, run))
            twice = {"money": f"{2 * before / MILLIONTHS_PER_DOLLAR:g}", "millis": f"{max(before // 30_000, 1)}m"}
            command = name_command("resume", run, LIMIT_FLAGS[name], twice.get(name, str(2 * before)))
            raise make_refusal("limit_reached", row.reason, command)
    intents = list[Intent]([ResumeTeam()] if state.team.paused is not None else [])
    intents += [ResumeTask(task_id=task.task_id) for task in state.tasks.values() if task.paused is not None]
    if new != old:
        intents.insert(0, SetLimits(budget_id=TEAM_BUDGET, limits=new))
    is_here = await context.runtime.log.holder(run) is None
    for model in list_team_models(state) if is_here else ():
        context.app.get_model(model)  # refuse before anything changes
    if intents:
        await context.runtime.ask(run, *intents)
    if is_here:
        await context.host.start(run)
    return schemas.VerbResult(message=translate("actions.resumed"))


async def _rewind(context: ServerContext, run: TeamId, body: inputs.VerbInput) -> schemas.VerbResult:
    """Continue from the last step that had ended at a version, as a new run."""
    if body.version is None:
        raise make_refusal("invalid_version", translate("actions.no_version"))
    points = [point for point in await list_rewind_points(context.runtime, run) if point.version <= body.version]
    if not points:
        raise make_refusal("no_such_step", translate("actions.no_earlier_step", version=body.version))
    state = await context.runtime.state(run)
    context.host.check_folder(state.team)
    point = await find_rewind_point(context.runtime, run, points[-1].step.step_id)
    new = await rewind_run(context.runtime, context.app.steps, run, point)
    await tell_run(context.runtime, new, build_message(body.message) if body.message else "")
    await context.host.start(new)
    return schemas.VerbResult(
        done=True, message=translate("actions.rewound", run=new, step=point.step.step_id), run=new
    )
