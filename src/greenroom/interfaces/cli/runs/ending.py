"""How a run is closed: one line about it, the answer on stdout, and as the last line the command to type next."""

from __future__ import annotations

from greenroom.core.base.ids import TeamId
from greenroom.interfaces.cli.display.rows import seconds
from greenroom.interfaces.cli.display.words import shorten
from greenroom.interfaces.cli.exits import Exit
from greenroom.interfaces.cli.runs.running import Ending, command
from greenroom.interfaces.cli.runs.session import Door
from greenroom.testing.demo import ANSWER, ASKING_KIT, KIT, folder

STYLES = {Exit.DONE: ("✓", "bold green"), Exit.FAILED: ("✗", "bold red")}


def close(door: Door, team: TeamId, ending: Ending, *, name: str | None = None) -> Exit:
    """Say how it ended; `name` is how the team is called in the next command."""
    sign, style = STYLES.get(ending.code, ("!", "bold yellow"))
    door.progress.note("")
    door.progress.note(f"{sign} {ending.status}: {summary(ending)}", style=style)
    if ending.fault:
        door.progress.note(f"  {ending.fault}")
    if ending.code != Exit.DONE:
        for task, standing in ending.standings:
            door.progress.note(f"  {task} {standing.word}: {shorten(standing.why, 400)}")
    text = answer(door, team, ending)
    if text:
        door.progress.note("")
        door.out.show(text.rstrip())
        door.progress.note("")
    door.progress.note(hint(door, name or team, ending))
    return door.out.result(
        ending.status,
        ending.code,
        team=team,
        version=ending.teller.version,
        answer=text,
        tasks=[{"task": task, "state": standing.word, "why": standing.why} for task, standing in ending.standings],
        steps=ending.teller.steps,
        tokens=ending.teller.total().tokens,
        messages=ending.teller.messages,
    )


def summary(ending: Ending) -> str:
    """The whole run in a few figures."""
    total = ending.teller.total()
    work = seconds(total.millis)
    return f"{ending.teller.steps} steps, {ending.teller.messages} messages, {total.tokens:,} tokens, {work} of work"


def answer(door: Door, team: TeamId, ending: Ending) -> str:
    """What was asked for: the demo's guide, else what the tasks say of themselves."""
    if ending.fault:
        return ""
    guide = folder(door.home, team) / ANSWER
    if ending.code == Exit.DONE and ending.teller.world.team.kit in (KIT, ASKING_KIT) and guide.exists():
        return guide.read_text("utf-8")
    return "\n".join(standing.why for _, standing in ending.standings if standing.word == "finished")


def hint(door: Door, team: str, ending: Ending) -> str:
    """What to type next."""
    match ending.code:
        case Exit.DONE:
            return f"Try next: {command(door, 'show', team)}"
        case Exit.WAITING if ending.status == "waiting":
            return f"Your turn: {command(door, 'answer', team, 'yes')}   (or no)"
        case Exit.WAITING | Exit.LIMIT:
            return f"Go on with: {command(door, 'resume', team)}"
        case _:
            return f"See why: {command(door, 'show', team)}"
