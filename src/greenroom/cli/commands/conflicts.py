"""`greenroom conflicts`: list the conflicts of a team run, and settle those that wait for a person."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from greenroom.app.lookup import resolve_id
from greenroom.app.messages import translate
from greenroom.app.teams.integration import find_open_conflicts, list_conflicts, read_conflict
from greenroom.app.teams.integration_report import name_progress, render_dropped
from greenroom.cli.context import Invocation, render_command
from greenroom.cli.exit_codes import Exit
from greenroom.cli.interactive.plan_review import open_editor
from greenroom.cli.options import Id
from greenroom.cli.render.output import Column, FittedTable, make_row, strip_control_characters
from greenroom.cli.render.questions import PersonLeft, ask_line
from greenroom.core.base.records import encode
from greenroom.core.rules.intents import AnswerApproval
from greenroom.teamwork.conflicts import (
    ConflictRecord,
    FileMerge,
    has_markers,
    list_panes,
)
from greenroom.teamwork.ladder import Settlement, load_merge

COLUMNS: Final = (
    Column(name="file", can_shrink=True),
    Column(name="subtasks", min_terminal_width=60),
    Column(name="state"),
    Column(name="rung"),
    Column(name="why", can_shrink=True, min_terminal_width=100),
)
MIN_PANES_WIDTH: Final = 90
"""Terminals that are narrower show the versions one below the other."""

WORDS: Final = {"a": "accept", "l": "left", "r": "right", "e": "edit", "b": "back", "d": "drop"}


async def conflicts(cli: Invocation, name: Id) -> Exit:
    """Show the conflicts of a team run, and settle those that wait.

    Each row says which rung of the ladder merged the file. At a terminal you see the versions of each conflict that
    waits, and choose: the proposal, a side, your own text in $EDITOR, back to the author, or drop the work.

    Examples:
      greenroom conflicts last
      greenroom conflicts last --output-format json

    Exit codes: 0; 2; 3; 6 a conflict waits for your answer.
    """
    team = (await resolve_id(cli.runtime, name)).team
    state = await cli.runtime.state(team)
    waiting = find_open_conflicts(state)
    known = await list_conflicts(cli.app, state, await cli.app.steps(team))
    cli.out.listing("conflict", [await read_conflict(cli.app.blob, found) for found in known])
    if not known:
        cli.progress.note(translate("conflicts.none", team=team))
    elif cli.out.is_text:
        cli.out.show(FittedTable(COLUMNS, [_make_row(found) for found in known]))
        lacks = (f"{found.path}: {render_dropped(found)}" for found in known if found.dropped_lines)
        cli.out.show(*(Text(strip_control_characters(line)) for line in lacks))
    left = len(waiting)
    for approval, records in waiting if cli.is_attended else ():
        answer = await _choose(cli, [await load_merge(cli.app.blob, found) for found in records])
        if not answer:
            break
        await cli.runtime.ask(team, AnswerApproval(approval_id=approval.approval_id, answer="approved", reason=answer))
        left -= 1
    if left:
        how = render_command(cli, "answer", team, "left")
        cli.progress.note(translate("conflicts.waiting", count=left, command=how), style="bold")
    if left < len(waiting) and await cli.runtime.log.holder(team) is None:
        cli.progress.note(translate("approvals.not_running", command=render_command(cli, "resume", team)))
    return cli.out.result("waiting" if left else "ok", Exit.WAITING if left else Exit.DONE, team=team, waiting=left)


def _make_row(found: ConflictRecord) -> list[Text]:
    why = strip_control_characters(found.why or found.description)
    return make_row(found.path, ", ".join(found.subtasks), *name_progress(found), why)


# -------------------------------------------------------------------------------------------------------- the terminal


async def _choose(cli: Invocation, merges: Sequence[FileMerge]) -> str:
    """Ask a person about each file. Return the answer for all of them; empty to answer later."""
    choices, texts = dict[str, str](), dict[str, str]()
    for merge in merges:
        cli.out.show(*render_panes(merge, shutil.get_terminal_size().columns))
        edited = None
        try:
            word, advice = _ask_choice(cli, merge)
            while word == "edit" and (edited := await _edit(cli, merge)) is None:
                word, advice = _ask_choice(cli, merge)
        except PersonLeft:
            return ""
        if word in ("back", "drop", ""):
            return f"{word} {advice}".strip()
        if edited is not None:
            texts[merge.file.path] = edited
        else:
            choices[merge.file.path] = word
    return encode(Settlement(choices=choices, texts=texts)).decode()


def _ask_choice(cli: Invocation, merge: FileMerge) -> tuple[str, str]:
    left, right = merge.record.subtasks
    offer = translate("conflicts.offer_accept") if merge.content is not None else ""
    edit = translate("conflicts.offer_edit") if merge.file.texts is not None else ""
    possible = {"", *WORDS.values()} - ({"accept"} if not offer else set()) - ({"edit"} if not edit else set())
    while True:
        line = ask_line(translate("conflicts.choose", accept=offer, edit=edit, left=left, right=right))
        word, _, advice = line.strip().partition(" ")
        word = WORDS.get(word.lower(), word.lower())
        if word in possible:
            return word, advice.strip()
        cli.progress.note(translate("approvals.unknown_answer"), style="yellow")


async def _edit(cli: Invocation, merge: FileMerge) -> str | None:
    """Let a person edit the merge, until no marker is left; None if it is unchanged or empty.

    Raise `PersonLeft` if they give up.
    """
    start = merge.content or merge.draft or b""
    with TemporaryDirectory(prefix="greenroom-conflict-") as folder:
        path = Path(folder) / Path(merge.file.path).name
        path.write_bytes(start)
        while True:
            await open_editor(cli, path)
            content = path.read_bytes()
            if content == start or not content.strip():
                key = "conflicts.unchanged" if content == start else "conflicts.empty"
                cli.progress.note(translate(key, path=merge.file.path), style="yellow")
                return None
            text = content.decode(errors="replace")  # with its line ends
            if not has_markers(text):
                return text
            cli.progress.note(translate("conflicts.markers_left", path=merge.file.path), style="yellow")
            ask_line(translate("conflicts.edit_again"))


def render_panes(merge: FileMerge, width: int) -> Iterator[RenderableType]:
    """Yield what a person sees of a file: each stretch in three panes, or one below the other in a narrow terminal."""
    found, (left, right) = merge.record, merge.record.subtasks
    yield Text(strip_control_characters(f"\n{found.description}. {found.why}"), style="bold")
    if found.dropped_lines:
        yield Text(strip_control_characters(translate("conflicts.drops", lines="\n  ".join(found.dropped_lines))))
    middle = translate("conflicts.pane_proposal" if found.state == "proposed" else "conflicts.pane_before")
    names = (translate("conflicts.pane_left", name=left), middle, translate("conflicts.pane_right", name=right))
    for panes in list_panes(merge):
        texts = [Text(strip_control_characters(pane)) for pane in panes]
        if width < MIN_PANES_WIDTH:
            for name, text in zip(names, texts, strict=True):
                yield Text(f"--- {name}", style="dim")
                yield text
            continue
        table = Table(expand=True, box=None, padding=(0, 1), show_edge=False)
        for name in names:
            table.add_column(name, ratio=1, overflow="fold", header_style="dim")
        table.add_row(*texts)
        yield table
