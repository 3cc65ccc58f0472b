"""Knowledge and money: artifacts, memories, skills, agents, tools, models, costs, and how profiles performed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Annotated, Final

from fastapi import APIRouter, Body, Query

from greenroom.app import artifacts as store
from greenroom.app.clock import SystemClock
from greenroom.app.conversation.start import read_model_name
from greenroom.app.cost import MILLIONTHS_PER_DOLLAR, CallCost, CostGrouping, TeamCosts, group_calls
from greenroom.app.lookup import TaskReference
from greenroom.app.memories import is_foreign
from greenroom.app.messages import current_language, translate
from greenroom.app.model_catalog import find_sources, list_models
from greenroom.app.run_plan import add_built_in
from greenroom.app.settings.home import home_folder
from greenroom.app.skill_folders import FileSkill, find_skills
from greenroom.app.teams.metrics import read_metrics
from greenroom.app.trust import make_skill_check
from greenroom.core.base.errors import StoreFault, make_refusal
from greenroom.core.base.ids import TEAM_BUDGET, MemoryId, TaskId, TeamId
from greenroom.core.base.records import evolve
from greenroom.core.state import knowledge
from greenroom.http import schemas
from greenroom.http.context import MAX_COSTS, At, Context, Cursor, Limit, RunPath, ServerContext, cut_page
from greenroom.http.inputs import Words
from greenroom.http.routes.agents import name_role
from greenroom.http.state_reader import keep

MAX_POINTS: Final = 200
Number = Annotated[int | None, Query(ge=1, le=2**31)]

router = APIRouter(tags=["knowledge"])


@router.get("/runs/{run}/artifacts")
async def list_artifacts(
    context: Context, run: RunPath, at: At = None, cursor: Cursor = "", limit: Limit = 100
) -> schemas.Page[schemas.Artifact]:
    """List the artifacts of a run in their newest version."""
    await context.reader.read(run, at)  # refuse a version that is not there
    versions = await store.list_versions(context.runtime, TaskReference(team=run), at)
    return cut_page([_make_artifact(rows[-1]) for rows in versions.values()], limit, cursor)


def _make_artifact(entry: knowledge.Artifact) -> schemas.Artifact:
    return schemas.Artifact.make(entry, id=entry.artifact_id, task=entry.task_id, is_untrusted=bool(entry.origins))


async def _find_versions(
    context: ServerContext, run: TeamId, task: str, artifact: str, at: int | None = None
) -> Sequence[knowledge.Artifact]:
    await context.reader.read(run, at)  # refuse a version that is not there
    versions = await store.list_versions(context.runtime, TaskReference(team=run, task=TaskId(task)), at)
    return store.find_versions(versions, artifact)


@router.get("/runs/{run}/artifacts/{task}/{artifact}")
async def read_artifact(
    context: Context, run: RunPath, task: str, artifact: str, version: Number = None, at: At = None
) -> schemas.ArtifactDetail:
    """Return a version of an artifact with its sources, by default the newest, and all its versions."""
    versions = await _find_versions(context, run, task, artifact, at)
    found = store.find_version(versions, version)
    text = store.add_sources(found, await store.read_text(context.runtime, found))
    rows = [_make_artifact(entry) for entry in reversed(versions)]
    return schemas.ArtifactDetail(**_make_artifact(found).model_dump(), text=text, versions=rows)


@router.get("/runs/{run}/artifacts/{task}/{artifact}/diff")
async def compare_artifact(
    context: Context,
    run: RunPath,
    task: str,
    artifact: str,
    *,
    old: Annotated[int, Query(alias="from", ge=1, le=2**31)],
    new: Annotated[int, Query(alias="to", ge=1, le=2**31)],
    at: At = None,
) -> schemas.FileDiff:
    """Return the difference between two versions of an artifact."""
    versions = await _find_versions(context, run, task, artifact, at)
    pair = store.find_version(versions, old), store.find_version(versions, new)
    return schemas.FileDiff(path=artifact, text=await store.compare_versions(context.runtime, *pair))


@router.post("/runs/{run}/artifacts/{task}/{artifact}/restore")
async def restore_artifact(
    context: Context, run: RunPath, task: str, artifact: str, version: Annotated[int, Body(embed=True, ge=1, le=2**31)]
) -> schemas.VerbResult:
    """Write an old version of an artifact again, as the newest."""
    versions = await _find_versions(context, run, task, artifact)
    number = await store.restore_version(context.runtime, TaskReference(team=run), versions, version)
    return schemas.VerbResult(message=translate("artifacts.restored_as", name=artifact, old=version, new=number))


@router.get("/memories")
async def list_memories(
    context: Context,
    search: Annotated[str, Query(max_length=400)] = "",
    scope: Annotated[str, Query(max_length=40)] = "",
    cursor: Cursor = "",
    limit: Limit = 100,
) -> schemas.Page[schemas.Memory]:
    """List the memories of this folder and of all, the newest or the best match first."""
    files = context.app.memories()
    found = files.find([kind for kind in files.types if scope in ("", kind)], words=search)
    return cut_page([_make_memory(memory) for memory in found], limit, cursor)


def _make_memory(memory: knowledge.Memory) -> schemas.Memory:
    fields = {"id": memory.memory_id, "scope": memory.type, "text": memory.content}
    return schemas.Memory.make(memory, **fields, is_trusted=not is_foreign(memory))


def _find_memory(context: ServerContext, name: str) -> knowledge.Memory:
    files = context.app.memories()
    for memory in (memory for kind in files.types for memory in files.get(kind, (MemoryId(name),))):
        return memory
    raise make_refusal("unknown_memory", translate("memory.unknown", name=name[:80]))


@router.delete("/memories/{name}")
async def forget_memory(context: Context, name: str) -> schemas.VerbResult:
    """Delete a memory."""
    memory = _find_memory(context, name)
    context.app.memories().remove(memory.type, (memory.memory_id,))
    return schemas.VerbResult(message=translate("actions.forgotten"))


@router.put("/memories/{name}")
async def edit_memory(
    context: Context, name: str, text: Annotated[Words, Body(embed=True, max_length=20_000)]
) -> schemas.VerbResult:
    """Change the text of a memory."""
    memory = evolve(_find_memory(context, name), content=text, updated_at=SystemClock().now())
    context.app.memories().save(memory)
    return schemas.VerbResult(message=translate("actions.saved"))


@router.get("/skills")
async def list_skills(context: Context, cursor: Cursor = "", limit: Limit = 100) -> schemas.Page[schemas.Skill]:
    """List the skills that agents can get here, without their text."""
    return cut_page([_make_skill(context, skill) for skill in _find_skills(context).values()], limit, cursor)


@router.get("/skills/{name}")
async def read_skill(context: Context, name: str) -> schemas.Skill:
    """Return a skill with its text."""
    skill = _find_skills(context).get(name)
    if skill is None:
        raise make_refusal("unknown_skill", translate("skills.unknown", name=name[:80]))
    return _make_skill(context, skill).model_copy(update={"body": skill.body})


def _find_skills(context: ServerContext) -> dict[str, FileSkill]:
    return dict(find_skills(context.app.root, context.app.settings.skills.repositories).by_name)


def _make_skill(context: ServerContext, skill: FileSkill) -> schemas.Skill:
    is_trusted = make_skill_check(context.app.root)(skill)
    return schemas.Skill.make(skill, source=skill.source.label, is_trusted=is_trusted, body="")


@router.get("/agents")
async def list_agents(context: Context, cursor: Cursor = "", limit: Limit = 100) -> schemas.Page[schemas.Agent]:
    """List the agents that a run can be started with."""
    specs = add_built_in(context.app.agents(), current_language().partition("-")[0]).specs.values()
    rows = [
        schemas.Agent(
            id=spec.name,
            role=spec.description or name_role(spec),
            kind=spec.kind,
            model=read_model_name(spec),
            state="idle",
        )
        for spec in specs
    ]
    return cut_page(rows, limit, cursor)


@router.get("/tools")
async def list_tools(context: Context, cursor: Cursor = "", limit: Limit = 100) -> schemas.Page[schemas.Tool]:
    """List the tools that agents can have here."""
    cards = [tool.card for tool in context.app.toolbox()]
    rows = [schemas.Tool.make(card, name=card.spec.name, description=card.spec.description) for card in cards]
    return cut_page(rows, limit, cursor)


@router.get("/models")
async def list_model_names(context: Context, cursor: Cursor = "", limit: Limit = 100) -> schemas.Page[schemas.Text]:
    """List the names of the models that can be used."""
    session, names = context.app.model_session, list[str]()
    for source in await find_sources(session.loaded_settings.settings, os.environ, ""):
        names += [offer.name for offer in (await list_models(session.registry, source)).offers]
    return cut_page([schemas.Text(text=name) for name in dict.fromkeys(names)], limit, cursor)


@router.get("/runs/{run}/costs")
async def read_run_costs(context: Context, run: RunPath, by: CostGrouping = "agent", at: At = None) -> schemas.Costs:
    """Return what a run spent by agent or model, over time, and its cap."""
    money = (await context.reader.read(run, at)).budgets[TEAM_BUDGET].limits.money
    account = await _read_account(context, run)
    costs = _make_costs([call for call in account.calls if at is None or call.version <= at], by)
    return costs.model_copy(update={"cost_limit": None if money is None else money / MILLIONTHS_PER_DOLLAR})


@router.get("/costs")
async def read_costs(context: Context, by: CostGrouping = "run") -> schemas.Costs:
    """Return what all runs spent by run, agent or model, and over time."""
    calls = list[CallCost]()
    for info in await context.runtime.log.streams():
        try:
            calls += (await _read_account(context, TeamId(info.stream))).calls if info.head.version else ()
        except StoreFault:
            continue  # the list of runs says that it is damaged
    return _make_costs(sorted(calls, key=lambda call: call.at), by)


async def _read_account(context: ServerContext, run: TeamId) -> TeamCosts:
    """Return the costs of a run. Only its new events are read."""
    account = context.costs.get(run) or TeamCosts(run)
    keep(context.costs, run, account, MAX_COSTS)
    async for logged_event in context.runtime.events(run, after=account.version):
        if logged_event.version == account.version + 1:  # another request can read at the same time
            account.add_event(logged_event.event, logged_event.version)
    return account


def _make_costs(calls: Sequence[CallCost], by: CostGrouping) -> schemas.Costs:
    rows = [
        schemas.CostRow.make(cost, name=name, tokens=cost.spent.tokens, cost=cost.dollars)
        for name, cost in group_calls(calls, by).items()
    ]
    known = [row.cost for row in rows if row.cost is not None]
    cost, tokens = sum(known) if known or not rows else None, sum(row.tokens for row in rows)
    return schemas.Costs(rows=rows, points=list(_list_points(calls, by)), cost=cost, tokens=tokens)


def _list_points(calls: Sequence[CallCost], by: CostGrouping) -> Iterable[schemas.CostPoint]:
    """Yield what was spent until some times, at most `MAX_POINTS` of them, the last call's among them."""
    cost, tokens, every = dict[str, float](), dict[str, int](), max(1, -(-len(calls) // MAX_POINTS))
    for number, call in enumerate(calls, start=1):
        name = call.name(by)
        cost[name] = cost.get(name, 0) + call.sum.spent.money / MILLIONTHS_PER_DOLLAR
        tokens[name] = tokens.get(name, 0) + call.sum.spent.tokens
        if number % every == 0 or number == len(calls):
            yield schemas.CostPoint(at=call.at, cost=dict(cost), tokens=dict(tokens))


@router.get("/performance")
async def read_performance(
    context: Context, cursor: Cursor = "", limit: Limit = 100
) -> schemas.Page[schemas.Performance]:
    """Return what the subtasks of each profile took in past team runs."""
    metrics = await read_metrics(context.runtime.log, home_folder(context.app.home))
    rows = [
        schemas.Performance.make(
            entry.basis, profile=name, completed=entry.completed, failed=entry.failed, success_rate=entry.success_rate
        )
        for name, entry in sorted(metrics.items())
    ]
    return cut_page(rows, limit, cursor)
