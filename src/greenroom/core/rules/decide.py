"""`decide(state, intent)` and the table of all rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from greenroom.core.base.errors import Rejection, reject
from greenroom.core.base.records import Record
from greenroom.core.rules import (
    agents,
    approvals,
    endings,
    intents,
    knowledge,
    messages,
    questions,
    recovery,
    stages,
    steps,
    tasks,
    team,
)
from greenroom.core.rules.draft import Draft, Rule
from greenroom.core.state.archive import ArchiveEntry
from greenroom.core.state.events import Event
from greenroom.core.state.team_state import TeamState

RULES: Final[dict[type, Rule]] = {
    intents.CreateTeam: team.create_team,
    intents.ForkTeam: team.fork_team,
    intents.Declare: team.declare,
    intents.PauseTeam: team.pause_team,
    intents.ResumeTeam: team.resume_team,
    intents.Recover: recovery.recover,
    intents.AddAgent: agents.add_agent,
    intents.ChangeAgent: agents.change_agent,
    intents.RemoveAgent: agents.remove_agent,
    intents.AddParticipants: agents.add_participants,
    intents.UpdateWorkingMemory: agents.update_working_memory,
    intents.AddTask: tasks.add_task,
    intents.StartTask: tasks.start_task,
    intents.FinishTask: tasks.finish_task,
    intents.PauseTask: tasks.pause_task,
    intents.ResumeTask: tasks.resume_task,
    intents.CancelTask: tasks.cancel_task,
    intents.AddStages: tasks.add_stages,
    intents.Replan: tasks.replan,
    intents.StartStage: stages.start_stage,
    intents.FinishStage: stages.finish_stage,
    intents.ReportStage: stages.report_stage,
    intents.AssignSubtask: stages.assign_subtask,
    intents.FinishSubtask: stages.finish_subtask,
    intents.UpdateStageAgentState: stages.update_state,
    intents.UpdateStageAgentCompletion: stages.update_completion,
    intents.QueueSteps: steps.queue_steps,
    intents.RecordStep: steps.record_step,
    intents.ModifyStep: steps.modify_step,
    intents.RemoveStep: steps.remove_step,
    intents.Interrupt: recovery.interrupt,
    intents.StartStep: steps.start_step,
    intents.PrepareEffect: steps.prepare_effect,
    intents.FinishStep: endings.finish_step,
    intents.ReleaseStep: recovery.release_step,
    intents.SendMessage: messages.send_message,
    intents.FormGroup: messages.form_group,
    intents.AskInfo: questions.ask_info,
    intents.NeedToolDecision: questions.need_tool_decision,
    intents.PostNote: knowledge.post_note,
    intents.SetValue: knowledge.set_value,
    intents.MoveWindow: knowledge.move_window,
    intents.SetWorkspace: knowledge.set_workspace,
    intents.Remember: agents.remember,
    intents.SaveMemory: knowledge.save_memory,
    intents.ClearMemory: knowledge.clear_memory,
    intents.WriteArtifact: knowledge.write_artifact,
    intents.SetLimits: approvals.set_limits,
    intents.AnswerApproval: approvals.answer_approval,
    intents.SetTimer: approvals.set_timer,
    intents.CancelTimer: approvals.cancel_timer,
    intents.FireTimer: approvals.fire_timer,
}


class Transition(Record, frozen=True):
    """The accepted change: the events, the rows they move to the archive (by event index), and the state after them."""

    events: Sequence[Event]
    archived: Sequence[tuple[int, ArchiveEntry]]
    state: TeamState


def decide(state: TeamState, intent: intents.Intent, *, by: str, now: int) -> Transition | Rejection:
    """Decide an intent. Pure: the same state, intent, sender and time always give the same answer."""
    if not state.team.team_id and not isinstance(intent, intents.CreateTeam):
        return reject("no_team", "This log holds no team yet.", "Create one first.")
    draft = Draft(state, now, RULES)
    refused = draft.apply(intent, by)
    if refused is not None:
        return refused
    return Transition(draft.events, draft.archived, draft.state)
