"""Agents of a run: their steps with prompt and reply, their messages, the board, and MAS's states."""

from __future__ import annotations

import getpass
from collections.abc import Sequence
from itertools import islice
from typing import Annotated, Final, Literal, TypeVar

from fastapi import APIRouter, Query, Response

from greenroom.app.conversation.send import ADDRESS
from greenroom.app.cost import MILLIONTHS_PER_DOLLAR, CostSum, is_priced
from greenroom.app.first_request import rebuild_request
from greenroom.app.messages import current_language, translate
from greenroom.app.words import step_words
from greenroom.core.base.amounts import NOTHING
from greenroom.core.base.errors import make_refusal
from greenroom.core.base.ids import AgentId, StepId, TeamId
from greenroom.core.base.records import encode
from greenroom.core.ports.codec import decode_archived, decode_event
from greenroom.core.state import message as messages
from greenroom.core.state import step as steps
from greenroom.core.state.knowledge import Note, NotePosted
from greenroom.core.state.mas_format import MasData, format_agent, format_stage, format_step, format_task, to_json_value
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.step import StepQueued
from greenroom.core.state.team_state import TeamState
from greenroom.http import schemas
from greenroom.http.context import At, Context, Cursor, Limit, RunPath, ServerContext, cut_page, read_cursor
from greenroom.http.routes.runs import read_ended, read_stages, read_tasks
from greenroom.http.state_reader import STEP_ENDS, STEP_STARTS

MAX_STATES: Final = 2_000
"""Ended steps that the states of a run hold. More are in the pages of an agent's steps."""

PERSON: Final = "person"
"""For whom an approval waits that names no member."""

T = TypeVar("T")

router = APIRouter(tags=["agents"])


@router.get("/runs/{run}/agents")
async def list_agents(
    context: Context, run: RunPath, at: At = None, cursor: Cursor = "", limit: Limit = 100
) -> schemas.Page[schemas.Agent]:
    """List the members of a run."""
    state = await context.reader.read(run, at)
    page = cut_page([*sorted(state.agents), *sorted(state.retired)], limit, cursor)
    index = await context.reader.index(run)
    return schemas.Page(
        items=[_show_agent(state, name, index.sum_costs("agent", name, state.version)) for name in page.items],
        next=page.next,
        total=page.total,
    )


def name_role(spec: AgentSpec) -> str:
    """Return what an agent is, in the words of its file, else its name."""
    return spec.role or spec.description or spec.name


def _show_agent(state: TeamState, name: AgentId, sums: tuple[int, CostSum]) -> schemas.Agent:
    agent, (ended, spent) = state.agents.get(name), sums
    if agent is None:
        cost, tokens = spent.dollars, spent.spent.tokens
        return schemas.Agent(id=name, role="", kind="", state="retired", steps=ended, cost=cost, tokens=tokens)
    running = state.steps[agent.running] if agent.running is not None else None
    waits = [state.waits[wait] for wait in agent.step_lock]
    asked = [] if running is not None else [step.approval for step in state.steps_of(name) if step.approval is not None]
    open_approvals = [state.approvals[name] for name in asked if state.approvals[name].state == "pending"]
    task = state.tasks.get(agent.duties[0].task_id) if agent.duties else None
    begun = (*(wait.since for wait in waits), *(approval.asked_at for approval in open_approvals))
    language = current_language().partition("-")[0]
    return schemas.Agent(
        id=name,
        role=name_role(agent.spec),
        kind=agent.spec.kind,
        model=str((agent.spec.llm_config or {}).get("model", "")),
        state="waiting" if open_approvals else agent.working_state,
        now=step_words(running, language) if running is not None else "",
        since=running.started_at if running is not None else min(begun, default=None),
        queue=len(agent.todo),
        waits_on=[*(wait.on for wait in waits), *(approval.asked_of or PERSON for approval in open_approvals)],
        manager=task.manager if task is not None and task.manager != name else "",
        steps=ended,
        cost=spent.dollars,
        tokens=spent.spent.tokens,
    )


@router.get("/runs/{run}/agents/{agent}")
async def read_agent(context: Context, run: RunPath, agent: str, at: At = None) -> schemas.AgentDetail:
    """Show a member with its queue, its rights and its memory."""
    state = await context.reader.read(run, at)
    name = AgentId(agent)
    if name not in state.agents and name not in state.retired:
        raise make_refusal("unknown_agent", translate("server.unknown_agent", agent=agent[:80]))
    sums = (await context.reader.index(run)).sum_costs("agent", name, state.version)
    row, known = _show_agent(state, name, sums), state.agents.get(name)
    if known is None:
        return schemas.AgentDetail(**row.model_dump())
    return schemas.AgentDetail(
        **row.model_dump(),
        queued=[show_step(step) for step in islice(state.steps_of(name), 500)],
        tools=list(known.spec.tools),
        skills=list(known.spec.skills),
        rules=sorted(state.grants),
        memory=known.memory,
        instructions=known.spec.profile,
        duties=[duty.stage_id or duty.task_id for duty in known.duties],
    )


@router.get("/runs/{run}/agents/{agent}/steps")
async def list_steps(
    context: Context, run: RunPath, agent: str, at: At = None, cursor: Cursor = "", limit: Limit = 100
) -> schemas.Page[schemas.Step]:
    """List the ended steps of an agent, newest first, after its open ones."""
    state, index = await context.reader.read(run, at), await context.reader.index(run)
    last = min(read_cursor(cursor) or state.version, state.version)
    ends = list(islice(index.rows_back(last=last, types=STEP_ENDS, agent=agent), limit + 1))
    ended = await context.reader.read_steps(run, ends[:limit])
    is_first = not cursor and AgentId(agent) in state.agents
    open_steps = list(islice(state.steps_of(AgentId(agent)), 500)) if is_first else []
    items = [show_step(step) for step in (*reversed(open_steps), *ended)]
    return schemas.Page(items=items, next=str(ends[limit].version) if len(ends) > limit else None)


def show_step(step: steps.Step) -> schemas.Step:
    """Return a step in one line."""
    spent, usage = step.spent, (step.result or {}).get("usage")
    is_known = spent != NOTHING and (not spent.tokens or is_priced(usage, priced=not step.terms or step.terms.priced))
    return schemas.Step.make(
        step,
        id=step.step_id,
        agent=step.agent_id,
        task=step.task_id,
        subtask=step.subtask_id or "",
        type=step.work.type,
        executor=step.work.executor,
        intention=step.work.intention,
        text=step_words(step, current_language().partition("-")[0]),
        cost=spent.money / MILLIONTHS_PER_DOLLAR if is_known else None,
        tokens=spent.tokens,
    )


@router.get("/runs/{run}/steps/{step:path}")
async def read_step(context: Context, run: RunPath, step: str, at: At = None) -> schemas.StepDetail:
    """Show a step with its exact call, its result, and the prompt and reply of a model call."""
    state = await context.reader.read(run, at)
    found = await context.reader.find_step(run, StepId(step), state.version)
    if found is None:
        raise make_refusal("unknown_step", translate("server.unknown_step", step=step[:80]))
    result, terms = found.result or {}, found.terms
    prompt, note = await _rebuild_prompt(context, run, found, state.version)
    return schemas.StepDetail(
        **show_step(found).model_dump(),
        instruction=to_json_value(found.work.instruction_content),
        result=to_json_value(found.result),
        reply=str(result.get("text", "")) or found.partial,
        reasoning=str(result.get("reasoning", "")),
        prompt=prompt,
        prompt_note=note,
        model=str(result.get("by") or (terms.model if terms is not None else "")),
        effect=terms.effect if terms is not None else "",
        policy=terms.verdict if terms is not None else "",
        rule=terms.rule if terms is not None else "",
        version=found.ended_in or found.version,
    )


async def _rebuild_prompt(
    context: ServerContext, run: TeamId, step: steps.Step, at: int
) -> tuple[list[schemas.PromptMessage], str]:
    """Return what the model of a converse step was sent, and a sentence about how exact that is."""
    if step.work.type != "skill":
        return [], ""
    index = await context.reader.index(run)
    starts = index.rows_back(last=step.ended_in or at, types=STEP_STARTS, agent=step.agent_id, step=step.ordinal)
    start = next(starts, None)
    if start is None or step.work.executor != "converse":
        return [], translate("server.no_prompt")
    state = await context.reader.read(run, start.version)
    request = await rebuild_request(state, state.steps[step.step_id], context.app)
    if request is None:
        return [], translate("server.no_prompt")
    redact = context.app.model_session.redaction.text
    shown = list[schemas.PromptMessage]()
    for message in request.messages:
        calls = (f"{call.name} {encode(call.arguments).decode()}" for call in message.calls)
        text = redact("\n".join((message.content, *calls)).strip())
        shown.append(schemas.PromptMessage(role=message.role, text=text))
    return shown, translate("server.prompt_note")


@router.get("/runs/{run}/messages")
async def list_messages(
    context: Context, run: RunPath, at: At = None, cursor: Cursor = "", limit: Limit = 100
) -> schemas.Page[schemas.Message]:
    """List the messages of a run, oldest first, with what a person wrote to its agents."""
    state, index = await context.reader.read(run, at), await context.reader.index(run)
    log, after = context.runtime.log, read_cursor(cursor)
    rows = [
        row for row in await log.read_archive(run, "message", after=after, limit=limit) if row.version <= state.version
    ]
    shown = await _list_letters_of_person(context, run, after, state.version, limit)
    for row in rows:
        message = decode_archived(row)
        if isinstance(message, messages.Message):
            times = (index.released.get(wait) for wait in message.waiting or ())
            answers = [at for at in times if at is not None and at <= state.at]
            shown.append(_show_message(row.version, message, max(answers, default=None)))
    shown.sort(key=lambda letter: letter.version)
    return schemas.Page(items=shown[:limit], next=str(shown[limit - 1].version) if len(shown) >= limit else None)


async def _list_letters_of_person(
    context: ServerContext, run: TeamId, after: int, last: int, limit: int
) -> list[schemas.Message]:
    """Return what a person wrote to agents that work, as turns, and to those that begin later, as notes."""
    index, letters = await context.reader.index(run), dict[tuple[int, str], schemas.Message]()
    versions = [version for version in index.by_person if after < version <= last][:limit]
    for stored in await context.runtime.log.pick(run, versions):
        event = decode_event(stored)
        if isinstance(event, NotePosted):
            address = ADDRESS.fullmatch(event.note.content)
            text, receivers = (address[2], [address[1]]) if address else (event.note.content, list[str]())
        elif isinstance(event, StepQueued):
            text, receivers = event.work.text_content, [str(event.agent_id)]
        else:
            continue
        same = letters.get((stored.at, text))  # one message to several agents
        letters[stored.at, text] = schemas.Message(
            id=same.id if same else f"{run}/{stored.version}",
            version=stored.version,
            sender=getpass.getuser(),
            receivers=[*(same.receivers if same else ()), *receivers],
            text=text,
            kind="notification",
            sent_at=stored.at,
        )
    return list(letters.values())


def _show_message(version: int, message: messages.Message, answered_at: int | None) -> schemas.Message:
    return schemas.Message.make(
        message,
        id=message.message_id,
        version=version,
        sender=message.sender_id,
        receivers=list(message.receiver),
        text=message.message,
        waits=bool(message.waiting),
        answers=(message.return_waiting_id or "").rpartition(":")[0],
        group=message.group or "",
        answered_at=answered_at,
    )


@router.get("/runs/{run}/board")
async def list_board(
    context: Context, run: RunPath, at: At = None, cursor: Cursor = "", limit: Limit = 100
) -> schemas.Page[schemas.SharedNote]:
    """List what the agents share: the values on the board, then the notes, newest first."""
    state = await context.reader.read(run, at)
    values = [
        schemas.SharedNote(key=value.key, agent=value.set_by, text=value.content)
        for _, value in sorted(state.values.items())
    ]
    notes = [
        schemas.SharedNote(key="", agent=note.agent_id, text=note.content, at=note.posted_at)
        for note in await read_notes(context, state)
    ]
    return cut_page([*values, *reversed(notes)], limit, cursor)


async def read_notes(context: ServerContext, state: TeamState) -> list[Note]:
    """Return the notes of a run at a version, oldest first."""
    return await read_ended(context, state, "note", Note)


@router.get("/states")
async def read_states(
    context: Context,
    response: Response,
    *,
    kind: Annotated[Literal["task", "stage", "agent", "step"], Query(alias="type")],
    run: str = "",
    at: At = None,
    cursor: Cursor = "",
    limit: Limit = 500,
) -> dict[str, MasData]:
    """Show the tasks, stages, agents or steps of a run, the newest one by default, in the shape of MAS. The header
    Next-Cursor has the cursor of the following page."""

    def cut(items: Sequence[T]) -> Sequence[T]:
        page = cut_page(items, limit, cursor)
        response.headers.update({"Next-Cursor": page.next} if page.next else {})
        return page.items

    if not run:
        run = next((info.stream for info in reversed(await context.runtime.log.streams()) if info.head.version), "")
    team = await context.reader.find_run(run)
    state = await context.reader.read(team, at)
    match kind:
        case "task":
            stages, notes = await read_stages(context, state), await read_notes(context, state)
            return {
                task.task_id: format_task(
                    task,
                    [stage for stage in stages if stage.task_id == task.task_id],
                    [note for note in notes if note.task_id == task.task_id],
                )
                for task in cut(await read_tasks(context, state))
            }
        case "stage":
            return {stage.stage_id: format_stage(stage) for stage in cut(await read_stages(context, state))}
        case "agent":
            ended = await _read_newest_steps(context, team, state)
            return {
                name: format_agent(state, name, ended=[step for step in ended if step.agent_id == name])
                for name in cut(sorted(state.agents))
            }
        case "step":
            known = (*await _read_newest_steps(context, team, state), *state.steps.values())
            return {step.step_id: format_step(step) for step in cut(known)}


async def _read_newest_steps(context: ServerContext, run: TeamId, state: TeamState) -> Sequence[steps.Step]:
    """Return the newest ended steps of a run at a version, oldest first."""
    ends = islice((await context.reader.index(run)).rows_back(last=state.version, types=STEP_ENDS), MAX_STATES)
    return list(reversed(await context.reader.read_steps(run, list(ends))))
