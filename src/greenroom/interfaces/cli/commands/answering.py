"""`greenroom answer`, `approvals list`: what agents want to know before they do something, in whichever team."""

from __future__ import annotations

from typing import Final

from rich.text import Text

from greenroom.app.lookup import Found, find, shortest
from greenroom.core.base.errors import Refused, Rejected, StoreFault
from greenroom.core.base.ids import TeamId
from greenroom.core.rules.intents import AnswerApproval
from greenroom.core.state.approval import Approval
from greenroom.core.state.world import World
from greenroom.interfaces.cli.asked.orders import Answer, ApprovalsList
from greenroom.interfaces.cli.commands.tasks import ago, ahead
from greenroom.interfaces.cli.display.output import harmless
from greenroom.interfaces.cli.display.tables import Column, Fitted, row
from greenroom.interfaces.cli.display.words import shorten
from greenroom.interfaces.cli.exits import Exit
from greenroom.interfaces.cli.runs.deciding import asked_by, is_plan, kept, to_type, waiting
from greenroom.interfaces.cli.runs.running import command
from greenroom.interfaces.cli.runs.session import Door

COLUMNS: Final = (
    Column(name="id"),
    Column(name="what is asked", gives=True),
    Column(name="since", needs=50),
)
SHOWN: Final = 300


async def approvals_list(door: Door, _: ApprovalsList) -> Exit:
    """A row per question, the oldest first."""
    infos = [info for info in await door.runtime.log.streams() if info.head.version]
    teams = [TeamId(info.stream) for info in infos]
    asking = [TeamId(info.stream) for info in infos if info.questions != 0]  # a team in which nothing waits is not read
    worlds = {team: world for team in asking if (world := await _read(door, team)) is not None}
    found = [(team, one) for team, world in worlds.items() for one in waiting(world)]
    door.out.begin(command="approvals list", home=str(door.home))
    door.out.expect("approvals")
    for team, one in found:
        door.out.item("approval", _told(team, one))
    if not found:
        door.progress.note("Nothing waits for you.")
        return door.out.result("ok", Exit.DONE)
    if door.out.text:
        short = shortest(teams)
        door.out.show(Fitted(COLUMNS, [_row(short[team], team, one) for team, one in found]))
    team, one = found[0]
    said, other = to_type(worlds[team], one)
    which = _which(found, team, one) + (f"   ({other})" if other else "")
    door.progress.note(f"\nAnswer one: {command(door, 'answer', team, said)}{which}")
    return door.out.result("ok", Exit.DONE)


async def answer(door: Door, order: Answer) -> Exit:
    """Answer the one question that is meant."""
    found = await find(door.runtime, order.name)
    world = await door.runtime.world(found.team)
    one = _pending(world, found, order.approval)
    word = _word(one, order, plan=is_plan(world, one))
    await door.runtime.ask(found.team, word)
    door.progress.note(kept(world, one, word))
    door.out.show(f"{word.answer.capitalize()}: {shorten(harmless(one.question), SHOWN)}")
    if await door.runtime.log.holder(found.team) is None:
        door.progress.note(f"Nobody runs the team. Go on with: {command(door, 'resume', found.team)}")
    return door.out.result(word.answer, Exit.DONE, team=found.team, approval=one.approval_id)


approvals_answer = answer


async def _read(door: Door, team: TeamId) -> World | None:
    try:
        return await door.runtime.world(team)
    except StoreFault as error:
        # One log that cannot be read does not hide the others.
        door.progress.note(str(error), style="red")
        return None


def _row(head: str, team: TeamId, one: Approval) -> list[Text]:
    label = Text(head, style="bold cyan").append(team[len(head) :], style="not bold dim")
    asked = Text(harmless(asked_by(one)))
    if one.grant:
        asked.append(harmless(f"\nalways: {one.grant}"), style="dim")
    if one.release:
        asked.append(harmless(f"\nfor this run: {one.release}"), style="dim")
    if one.expires_at is not None:
        left = ahead(one.expires_at)
        told = f"expires {left}" if left != "now" else "has expired: it is denied when the team goes on"
        asked.append(f"\n{told}", style="yellow")
    return row(label, asked, ago(one.asked_at))


def _told(team: TeamId, one: Approval) -> dict[str, object]:
    return {
        "team": team,
        "approval": one.approval_id,
        "agent": one.agent_id,
        "task": one.task_id,
        "question": one.question,
        "wants": "words" if one.words else "yes or no",
        "always": one.grant,
        "release": one.release,
        "asked_at": one.asked_at,
        "expires_at": one.expires_at,
    }


def _which(found: list[tuple[TeamId, Approval]], team: TeamId, one: Approval) -> str:
    """How to say which is meant, when several wait in one team."""
    alone = sum(other == team for other, _ in found) == 1
    return "" if alone else f" --approval {one.approval_id}"


def _word(one: Approval, order: Answer, *, plan: bool) -> AnswerApproval:
    """What was said; `Refused` when it answers nothing. To a plan, yes and no are words as good as any."""
    name, said = one.approval_id, order.said.strip()
    if plan and said:
        return AnswerApproval(approval_id=name, answer="approved", reason=f"{said} {order.reason}".strip())
    if said.lower() == "no":
        return AnswerApproval(approval_id=name, answer="denied", reason=order.reason)
    if one.words:
        words = order.reason or ("" if said.lower() == "yes" else said)
        if not words:
            why = f"{one.agent_id} wants an answer in words: {shorten(harmless(one.question), SHOWN)}"
            raise Refused(Rejected(code="no_words", why=why, hint='Say it: greenroom answer ID "what you say".'))
        return AnswerApproval(approval_id=name, answer="approved", reason=words)
    if said.lower() != "yes":
        why = f"{said!r} is neither yes nor no."
        raise Refused(Rejected(code="bad_answer", why=why, hint="A reason goes behind --reason."))
    return AnswerApproval(approval_id=name, answer="approved", reason=order.reason, scope=order.scope)


def _pending(world: World, found: Found, wanted: str | None) -> Approval:
    asked = [one for one in waiting(world) if found.task in (None, one.task_id)]
    fits = [one for one in asked if wanted is None or one.approval_id.startswith(wanted)]
    if len(fits) == 1:
        return fits[0]
    listed = "; ".join(f"{one.approval_id}: {shorten(harmless(one.question), 80)}" for one in fits or asked)
    if not asked:
        raise Refused(Rejected(code="nothing_asked", why=f"Nothing in {found} waits for an answer."))
    why = f"{len(fits)} questions wait." if fits else f"No question begins with {wanted!r}."
    raise Refused(Rejected(code="which_approval", why=why, hint=f"Say which with --approval. {listed}"))
