"""The upper rungs of the ladder, as steps: a model proposes a merge, and a person settles a conflict.

The merge step climbs first. Each step passes on the instruction of that merge, so that it can be done in the end.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import Final

import msgspec

from greenroom.abilities.tools.human import YES_WORDS
from greenroom.abilities.tools.tool import CardedTool, make_card
from greenroom.core.base.errors import ModelFault, WorldFault, translate
from greenroom.core.base.ids import SubtaskId
from greenroom.core.base.records import Data, evolve, to_full_dict
from greenroom.core.base.text import add_fence
from greenroom.core.ports.executor import Outcome, StepContext
from greenroom.core.ports.workspace import MAIN_THREAD, Conflicts, Workspace
from greenroom.core.rules.intents import QueueSteps
from greenroom.core.state.step import Step, StepTerms, Work
from greenroom.core.state.team_state import TeamState
from greenroom.runs.checker import read_answer
from greenroom.runs.verdict import HAND_IN, MERGE, MERGE_QUEUE, SETTLE_CONFLICT, THREAD_KEY
from greenroom.teamwork.conflicts import (
    CONFLICTS_KEY,
    ConflictedFile,
    ConflictRecord,
    ConflictSide,
    FileMerge,
    apply_settled,
    can_ask_model,
    choose_next,
    cut_known,
    propose_by_model,
    read_conflicts,
    resolve_file,
    settle_by_person,
)
from greenroom.teamwork.hand_in import read_end
from greenroom.teamwork.merging.merge import Merge
from greenroom.teamwork.plan import TeamSettings

PROPOSE: Final = "propose_merge"
RESOLVED_KEY: Final = "resolved"
"""The key of resolutions by a model or a person in the instruction of a merge."""

BACK_KEY: Final = "back"
"""The key of a person's advice to the author of the work, in the instruction of a merge."""

ASKED_KEY: Final = "asked"
NOTE_KEY: Final = "note"
OWN_KEYS: Final = (CONFLICTS_KEY, RESOLVED_KEY, BACK_KEY, ASKED_KEY, NOTE_KEY)
MAX_NAMED: Final = 5
MAX_ANSWER_CHARS: Final = 200
CONTEXT_LINES: Final = 8
"""How many lines around a stretch a model reads."""

_TEXT: Final = {"type": "string"}
_FILE: Final[Data] = {
    "type": "object",
    "properties": {
        "path": _TEXT,
        "stretches": {"type": "array", "items": _TEXT, "description": "The merged text of each stretch, in order."},
        "reason": {**_TEXT, "description": "How both intents are kept. Name each line that you dropped."},
    },
    "required": ["path", "stretches", "reason"],
}
ANSWER: Final[Data] = {
    "type": "object",
    "properties": {"files": {"type": "array", "items": _FILE}},
    "required": ["files"],
}
"""The schema of a merger's answer."""


class ProposedFile(msgspec.Struct, frozen=True):
    """The merge of a file that a model proposes."""

    path: str
    stretches: tuple[str, ...]
    reason: str = ""


class Proposal(msgspec.Struct, frozen=True):
    """A merger's answer."""

    files: tuple[ProposedFile, ...]


class Settlement(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A person's answer as JSON, by file: `accept`, `left` or `right`, or the whole text."""

    choices: dict[str, str] = {}
    texts: dict[str, str] = {}


async def store_merges(context: StepContext, merged: Iterable[FileMerge]) -> tuple[ConflictRecord, ...]:
    """Store the versions and the result of each file as blobs. Return the records that name them."""
    found = list[ConflictRecord]()
    for part in merged:
        contents = (part.file.base, part.file.left, part.file.right, part.content)
        base, left, right, result = ["" if content is None else await context.keep(content) for content in contents]
        found.append(evolve(part.record, original=base, versions=(left, right), result=result))
    return tuple(found)


async def load_merge(fetch: Callable[[str], Awaitable[bytes]], found: ConflictRecord) -> FileMerge:
    """Load the versions and the result that a record names."""
    digests = (found.original, *found.versions, found.result)
    base, left, right, content = [await fetch(digest) if digest else None for digest in digests]
    file = ConflictedFile(path=found.path, base=base, left=left, right=right)
    return FileMerge(file=file, record=found, content=content)


async def add_conflicts(context: StepContext, outcome: Outcome, merged: Iterable[FileMerge]) -> Outcome:
    """Return the outcome of a merge with its conflicts."""
    records, found = await store_merges(context, merged), outcome.result or {}
    others = read_conflicts(found.get(CONFLICTS_KEY))
    result = {**found, CONFLICTS_KEY: to_data((*records, *others))}
    return evolve(outcome, result=result, blobs=(*outcome.blobs, *list_blobs(records)))


def list_blobs(records: Iterable[ConflictRecord]) -> tuple[str, ...]:
    """Return the blobs that records name."""
    named = (digest for found in records for digest in (found.original, *found.versions, found.result))
    return tuple(dict.fromkeys(filter(None, named)))


def queue_step(step: Step, executor: str, **given: object) -> QueueSteps:
    """Return another step of the merge queue for the entry of this one, with the instruction of its merge."""
    kept = {key: value for key, value in (step.work.instruction_content or {}).items() if key not in OWN_KEYS}
    work = Work(type="tool", executor=executor, intention="Merge.", instruction_content={**kept, **given})
    return QueueSteps(agent_id=MERGE_QUEUE, works=(work,))


def to_data(records: Iterable[ConflictRecord]) -> list[Data]:
    """Return records as JSON data, for instructions and results."""
    return [to_full_dict(found) for found in records]


async def climb(
    context: StepContext, workspace: Workspace, settings: TeamSettings, steps: Sequence[Step], conflicts: Conflicts
) -> tuple[list[FileMerge], Outcome | None]:
    """Climb as far as code can: git's conflicts, the resolutions that are given, then structure and strategy.

    Return the files, and the outcome of the merge if a model, a person or the settings decide about some of them.
    """
    step, merged, sides = context.step, list[FileMerge](), dict[str, ConflictSide]()
    given = {found.path: found for found in read_conflicts((step.work.instruction_content or {}).get(RESOLVED_KEY))}
    right = _describe_side(context.state, step, steps, step.subtask_id, "")
    for clash in conflicts.clashes:
        commits = (conflicts.base, conflicts.left, conflicts.right)
        base, ours, theirs = [await workspace.read(commit, clash.path) for commit in commits]
        file = ConflictedFile(path=clash.path, base=base, left=ours, right=theirs)
        owner = next((old.subtask_id for old in steps if (old.result or {}).get(THREAD_KEY) == clash.thread), None)
        left = _describe_side(context.state, step, steps, owner, clash.thread)
        part = resolve_file(file, left, right, settings)
        if settled := given.get(clash.path):
            part = apply_settled(part, await load_merge(context.blob, settled))
        merged.append(part)
        sides |= {side.subtask: side for side in (left, right)}
    following = choose_next(merged, settings)
    if following == "done":
        return merged, None
    records = await store_merges(context, merged)
    asks = ask_model(context.state, step, merged, records, sides.values()) if following == "model" else None
    result = {"output": "\n".join(found.message for found in records)}
    intent = asks or queue_step(step, SETTLE_CONFLICT, conflicts=to_data(records))
    return merged, Outcome(result=result, intents=(intent,))


def _describe_side(
    state: TeamState, step: Step, steps: Iterable[Step], name: SubtaskId | None, thread: str
) -> ConflictSide:
    """Return a side of a conflict: what its subtask was to do, and when it handed in what."""
    stage = state.stages.get(step.stage_id) if step.stage_id is not None else None
    subtask = stage.find_subtask(name) if stage is not None and name is not None else None
    if subtask is None:
        return ConflictSide(subtask=thread or MAIN_THREAD, agent=thread)
    handed = [old for old in steps if old.subtask_id == name and old.work.executor == HAND_IN]
    said = str((handed[-1].result or {}).get("output", "")) if handed else ""
    return ConflictSide(
        subtask=subtask.name,
        agent=subtask.agent,
        intent="\n".join(filter(None, (subtask.title, subtask.duty, said))),
        priority=subtask.priority,
        handed_in=max((old.ended_at or 0 for old in handed), default=0),
    )


# ---------------------------------------------------------------------------------------------------------- the model


def ask_model(
    state: TeamState,
    step: Step,
    merged: Sequence[FileMerge],
    records: Sequence[ConflictRecord],
    sides: Iterable[ConflictSide],
) -> QueueSteps:
    """Return a turn of the merger with the shortest queue, and behind it the step that looks at the answer."""
    mergers = [agent for agent in state.agents.values() if agent.spec.proof == PROPOSE]
    merger = min(mergers, key=lambda agent: (len(agent.todo), agent.agent_id))
    text = render_task([part for part in merged if can_ask_model(part)], sides)
    turn = Work(type="skill", executor="converse", intention="Merge.", text_content=text)
    closing = queue_step(step, PROPOSE, conflicts=to_data(records))
    return evolve(closing, agent_id=merger.agent_id, works=(turn, *closing.works))


def render_task(merged: Iterable[FileMerge], sides: Iterable[ConflictSide]) -> str:
    """Render what a model needs to merge files: both intents, and each stretch with its versions. All of it is data."""
    texts = [translate("conflicts.task")]
    texts += [f"{translate('conflicts.intent', subtask=side.subtask)}\n{add_fence(side.intent)}" for side in sides]
    for part in merged:
        texts += _render_file(part)
    return "\n\n".join(texts)


def _render_file(part: FileMerge) -> Iterator[str]:
    left, right = part.record.subtasks
    merge = part.by_code or Merge("")
    known = [text.splitlines() for text in cut_known(merge)]
    yield translate("conflicts.file", path=part.file.path, count=len(merge.conflicts))
    for number, stretch in enumerate(merge.conflicts):
        yield translate("conflicts.stretch", number=number + 1)
        for name, text in (("base", stretch.base), (left, stretch.left), (right, stretch.right)):
            yield f"{name}:\n{add_fence(text)}"
        around = (*known[number][-CONTEXT_LINES:], "…", *known[number + 1][:CONTEXT_LINES])
        yield f"{translate('conflicts.around')}\n{add_fence(chr(10).join(around))}"


class ProposeMergeTool(CardedTool):
    """Looks at a model's merge. What the settings accept is merged; the rest goes to a person."""

    card = make_card(PROPOSE, "Look at a proposed merge.", {"type": "object"}, group="read")

    def __init__(self, settings: TeamSettings) -> None:
        self._settings = settings

    async def run(self, context: StepContext) -> Outcome:
        """Hand the answer to the step behind it; there, look at it. Without a usable answer, ask a person."""
        step, given = context.step, context.step.work.instruction_content or {}
        if CONFLICTS_KEY not in given:
            return Outcome(result={"output": str(given.get("said", ""))})
        merged = [await load_merge(context.blob, found) for found in read_conflicts(given[CONFLICTS_KEY])]
        try:
            merged = self._propose(merged, await _find_answer(context), is_last=bool(given.get(ASKED_KEY)))
        except ModelFault as fault:
            if not given.get(ASKED_KEY):
                return _ask_again(step, str(fault))
        records = await store_merges(context, merged)
        is_done = all(found.state == "resolved" for found in records)
        following = queue_step(step, MERGE, resolved=to_data(records)) if is_done else None
        following = following or queue_step(step, SETTLE_CONFLICT, conflicts=to_data(records))
        result = {"output": "\n".join(found.message for found in records), CONFLICTS_KEY: to_data(records)}
        return Outcome(result=result, intents=(following,), blobs=list_blobs(records))

    def _propose(
        self, merged: Sequence[FileMerge], answer: Sequence[ProposedFile], *, is_last: bool
    ) -> list[FileMerge]:
        """Return the files with the merges of an answer. One that does not fit or is missing stays open at last.

        Otherwise raise `ModelFault` for it.
        """
        proposed, done = {file.path: file for file in answer}, list[FileMerge]()
        for part in merged:
            done.append(part)
            if not can_ask_model(part):
                continue
            try:
                if (file := proposed.get(part.file.path)) is None:
                    raise ModelFault(f"The answer has no merge of {part.file.path}.")
                why = file.reason.rstrip(" \n.。")
                done[-1] = propose_by_model(part, file.stretches, why, self._settings)
            except ModelFault:
                if not is_last:
                    raise
        return done


def _ask_again(step: Step, fault: str) -> Outcome:
    turn = Work(type="skill", executor="converse", intention="Merge.", text_content=f"{fault} Answer again.")
    given = {**(step.work.instruction_content or {}), ASKED_KEY: True}
    again = QueueSteps(agent_id=step.agent_id, works=(turn, evolve(step.work, instruction_content=given)))
    return Outcome(result={"output": fault}, intents=(again,))


async def _find_answer(context: StepContext) -> tuple[ProposedFile, ...]:
    """Return the newest answer since the last look. Raise `ModelFault` if there is none."""
    for step in reversed(await context.history()):
        given = step.work.instruction_content or {}
        if step.work.executor == PROPOSE:
            if CONFLICTS_KEY in given:
                break
            return msgspec.json.decode(str(given.get("said", "")), type=Proposal).files
    raise ModelFault("There is no merge in the answer.")


# ---------------------------------------------------------------------------------------------------------- the person


class SettleConflictTool(CardedTool):
    """Asks a person about a conflict, unless the settings say that it fails."""

    card = make_card(SETTLE_CONFLICT, "Ask a person about a conflict.", {"type": "object"}, group="human")

    def __init__(self, settings: TeamSettings) -> None:
        self._settings = settings

    def terms(self, state: TeamState, step: Step) -> StepTerms:
        """Ask for a choice in words."""
        if not self._settings.fallback_to_human:
            return StepTerms(effect="pure")
        question = render_question(step, state.team.team_id)
        return StepTerms(effect="pure", verdict="ask", words=True, question=question, digest=step.step_id)

    async def run(self, context: StepContext) -> Outcome:
        """Do what the person answered. Ask again if that cannot be done."""
        step, given = context.step, context.step.work.instruction_content or {}
        records = read_conflicts(given[CONFLICTS_KEY])
        if not self._settings.fallback_to_human:
            return _fail(step, "conflicts.not_merged", records)
        answer = read_answer(context).strip()
        word, _, advice = answer.partition(" ")
        if (word := word.lower().rstrip(":,.!")) == "drop":
            return _fail(step, "conflicts.dropped", records)
        if word == "back":
            return Outcome(result={"output": answer}, intents=(queue_step(step, MERGE, back=advice),))
        try:
            merged = [await load_merge(context.blob, found) for found in records]
            settled = await store_merges(context, settle_files(merged, answer))
        except WorldFault as fault:
            again = queue_step(step, SETTLE_CONFLICT, conflicts=given[CONFLICTS_KEY], note=str(fault))
            return Outcome(result={"output": str(fault)}, intents=(again,))
        result = {"output": answer[:MAX_ANSWER_CHARS], CONFLICTS_KEY: to_data(settled)}
        following = queue_step(step, MERGE, resolved=to_data(settled))
        return Outcome(result=result, intents=(following,), blobs=list_blobs(settled))


def settle_files(merged: Sequence[FileMerge], answer: str) -> list[FileMerge]:
    """Return the files as a person wants them. Raise `WorldFault` for an answer that cannot be done."""
    try:
        given = msgspec.json.decode(answer, type=Settlement) if answer.startswith("{") else Settlement()
    except msgspec.MsgspecError as error:
        raise WorldFault("conflicts.no_settlement", error=error) from None
    rest, done = "" if answer.startswith("{") else answer, list[FileMerge]()
    for part in merged:
        path, is_open = part.file.path, part.record.state != "resolved"
        choice = _read_choice(part, given.choices.get(path, rest))
        done.append(settle_by_person(part, choice, given.texts.get(path)) if is_open else part)
    return done


def _read_choice(merged: FileMerge, answer: str) -> str:
    """Return what a person chose for a file. The name of a subtask is the side that it has in this file."""
    left, right = merged.record.subtasks
    words = {**dict.fromkeys(YES_WORDS - {""}, "accept"), left.lower(): "left", right.lower(): "right"}
    words |= {left: "left", right: "right"}
    return words.get(answer) or words.get(answer.lower(), answer.lower())


def render_question(step: Step, run: str) -> str:
    """Render the question to a person. What a model wrote is not in it: `greenroom conflicts` shows that."""
    given = step.work.instruction_content or {}
    open_files = [found for found in read_conflicts(given.get(CONFLICTS_KEY)) if found.state != "resolved"]
    lines = [str(given[NOTE_KEY])] if given.get(NOTE_KEY) else []
    for found in open_files:
        key = f"conflicts.{found.rung}_proposes" if found.state == "proposed" else "conflicts.nothing_proposed"
        lines.append(translate(key, description=found.description, why=found.why))
        if found.state == "proposed" and found.dropped_lines:
            lines.append(translate("conflicts.drops", lines="\n  ".join(found.dropped_lines[:MAX_NAMED])))
    left, right = open_files[0].subtasks
    key = "conflicts.choices" if all(found.result for found in open_files) else "conflicts.choices_without"
    return "\n".join((*lines, translate(key, left=left, right=right, run=run)))


def _fail(step: Step, key: str, records: Sequence[ConflictRecord]) -> Outcome:
    left = [found for found in records if found.state != "resolved"]
    why = translate(key, names="; ".join(f"{found.description} ({', '.join(found.involved_agents)})" for found in left))
    end = read_end(step)
    end = evolve(end, state="failed", summary=f"{why}\n{end.summary}".strip(), final=True)
    return Outcome(result={"output": why, CONFLICTS_KEY: to_data(records)}, intents=(end,))
