"""`greenroom answer` and `approvals`: list and answer the requests that wait for a person."""

from __future__ import annotations

from typing import Annotated, Final

import typer
from rich.text import Text

from greenroom.app.approvals import find_kind, keep_rule, make_answer, pending_approvals, quote_question, words_to_type
from greenroom.app.lookup import TaskReference, find_short_ids, resolve_id
from greenroom.app.messages import translate
from greenroom.app.teams.integration import check_conflict_answer
from greenroom.app.words import shorten
from greenroom.cli.commands.runs import format_ago, format_ahead, team_label
from greenroom.cli.context import Invocation, render_command
from greenroom.cli.exit_codes import Exit
from greenroom.cli.options import Id
from greenroom.cli.render.output import Column, FittedTable, make_row, strip_control_characters
from greenroom.core.base.errors import StoreFault, make_refusal
from greenroom.core.base.ids import TeamId
from greenroom.core.base.records import Data
from greenroom.core.state.approval import Approval, ApprovalScope
from greenroom.core.state.team_state import TeamState

APPROVAL_COLUMNS: Final = (
    Column(name="id"),
    Column(name="question", can_shrink=True),
    Column(name="since", min_terminal_width=50),
)
MAX_QUESTION_CHARS: Final = 300  # characters of a question


async def approvals_list(cli: Invocation) -> None:
    """List the requests that wait for your answer.

    Each has its question, its age, and the rule that a permanent yes would add.

    Examples:
      greenroom approvals list
      greenroom approvals list --output-format json

    Exit codes: 0; 2; 3.
    """
    infos = [info for info in await cli.runtime.log.streams() if info.head.version]
    asking = [TeamId(info.stream) for info in infos if info.questions != 0]  # teams without open requests are not read
    states = dict[TeamId, TeamState]()
    for team in asking:
        try:
            states[team] = await cli.runtime.state(team)
        except StoreFault as error:  # a damaged log must not hide the others
            cli.progress.note(str(error), style="red")
    pending = [(team, approval) for team, state in states.items() for approval in pending_approvals(state)]
    cli.out.listing("approval", (_approval_fields(team, approval) for team, approval in pending))
    if not pending:
        cli.progress.note(translate("approvals.none_wait"))
        return
    if cli.out.is_text:
        short = find_short_ids([TeamId(info.stream) for info in infos])
        rows = [_approval_row(team_label(team, short[team]), states[team], approval) for team, approval in pending]
        cli.out.show(FittedTable(APPROVAL_COLUMNS, rows))
    team, approval = pending[0]
    answer_words, other = words_to_type(states[team], approval)
    is_ambiguous = sum(other_team == team for other_team, _ in pending) > 1
    which = (f" --approval {approval.approval_id}" if is_ambiguous else "") + (f"   ({other})" if other else "")
    command = render_command(cli, "answer", team, answer_words) + which
    cli.progress.note(f"\n{translate('approvals.answer_one', command=command)}")


def _approval_row(label: Text, state: TeamState, approval: Approval) -> list[Text]:
    is_confirmation = find_kind(state, approval) == "confirmation"
    asked = Text(strip_control_characters(quote_question(approval, confirmation=is_confirmation)))
    for key, rule in (("approvals.always", approval.grant), ("approvals.for_run", approval.release)):
        if rule:
            asked.append(strip_control_characters(f"\n{translate(key, rule=rule)}"), style="dim")
    if approval.expires_at is not None:
        left = format_ahead(approval.expires_at)
        expiry = translate("approvals.expires", when=left) if left else translate("approvals.expired")
        asked.append(f"\n{expiry}", style="yellow")
    return make_row(label, asked, format_ago(approval.asked_at))


def _approval_fields(team: TeamId, approval: Approval) -> Data:
    return {
        "team": team,
        "approval": approval.approval_id,
        "agent": approval.agent_id,
        "task": approval.task_id,
        "question": approval.question,
        "wants": "words" if approval.words else "yes or no",
        "always": approval.grant,
        "release": approval.release,
        "asked_at": approval.asked_at,
        "expires_at": approval.expires_at,
    }


async def answer(
    cli: Invocation,
    name: Id,
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="yes|no|TEXT",
            help="Approve or deny the step, or answer a question.",
            autocompletion=lambda: ["yes", "no"],
        ),
    ],
    *,
    approval: Annotated[
        str | None, typer.Option("--approval", help="Which request, if several wait: the start of its id.")
    ] = None,
    reason: Annotated[str, typer.Option("--reason", help="Reason for the agent.")] = "",
    scope: Annotated[
        ApprovalScope, typer.Option("--for", metavar="once|run|always", help="Scope of a yes, by the rule shown.")
    ] = "once",
) -> Exit:
    """Answer an approval request or a question.

    Say yes or no to a step that waits for you, or answer an agent's question in words.

    Examples:
      greenroom answer last yes --for run
      greenroom answer last no --reason "Do not touch the network."
      greenroom answer last "Use SQLite."

    Exit codes: 0; 2; 3.
    """
    reference = await resolve_id(cli.runtime, name)
    state = await cli.runtime.state(reference.team)
    pending = _find_approval(state, reference, approval)
    text = " ".join(words).strip()
    if find_kind(state, pending) == "conflict":
        await check_conflict_answer(cli.app.blob, state, pending, text)
    decision = make_answer(state, pending, text, reason, scope)
    await cli.runtime.ask(reference.team, decision)
    cli.progress.note(keep_rule(state, pending, decision))
    done = "answered" if pending.words and decision.answer == "approved" else decision.answer
    question = shorten(strip_control_characters(pending.question), MAX_QUESTION_CHARS)
    cli.out.show(translate(f"approvals.{done}", question=question))
    if await cli.runtime.log.holder(reference.team) is None:
        cli.progress.note(translate("approvals.not_running", command=render_command(cli, "resume", reference.team)))
    return cli.out.result(decision.answer, Exit.DONE, team=reference.team, approval=pending.approval_id)


approvals_answer = answer


def _find_approval(state: TeamState, reference: TaskReference, wanted: str | None) -> Approval:
    pending = [approval for approval in pending_approvals(state) if reference.task in (None, approval.task_id)]
    matches = [approval for approval in pending if wanted is None or approval.approval_id.startswith(wanted)]
    if len(matches) == 1:
        return matches[0]
    listed = "; ".join(
        f"{candidate.approval_id}: {shorten(strip_control_characters(candidate.question), 80)}"
        for candidate in matches or pending
    )
    if not pending:
        raise make_refusal("nothing_asked", translate("control.nothing_waits", reference=reference))
    key = "approvals.several_wait" if matches else "control.no_matching_request"
    why = translate(key, count=len(matches), wanted=wanted)
    raise make_refusal("which_approval", why, translate("control.choose_approval", listed=listed))
