"""A small team without I/O: intents go in, the team state after them comes out, and time stands still by default.

Every accepted intent is checked against `invariants.py`, so each example test also tests the invariants.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeVar

from greenroom.core.base.amounts import NOTHING, UNLIMITED, Amounts, Limits
from greenroom.core.base.errors import Rejection
from greenroom.core.base.ids import AgentId, StageId, StepId, TaskId, TeamId, ThreadId, WaitingId, timer_id
from greenroom.core.base.records import Data
from greenroom.core.rules import intents as i
from greenroom.core.rules.decide import Transition, decide
from greenroom.core.rules.queue import next_step
from greenroom.core.state.agent import AgentState
from greenroom.core.state.approval import Approval, ApprovalAnswer
from greenroom.core.state.archive import ArchivedRecord
from greenroom.core.state.events import Event
from greenroom.core.state.message import Message, MessageSent, WaitReleased
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.step import Effect, Step, StepEnded, StepTerms, Work
from greenroom.core.state.task import Task
from greenroom.core.state.team_state import EMPTY_STATE, TeamState
from greenroom.core.state.thread import Noticed
from tests.core.invariants import check

E = TypeVar("E")

BOSS, ANN, BOB, CY = AgentId("boss"), AgentId("ann"), AgentId("bob"), AgentId("cy")
PIA = AgentId("pia")
HUE = AgentId("hue")
"""The manager, three conversing agents, one planning agent, and a person."""

T1, T2 = TaskId("t1"), TaskId("t2")
S1, S2 = StageId("t1.s1"), StageId("t1.s2")
DOOR, SYSTEM = "door", "system"
MINUTE = 60_000

SPECS = {
    BOSS: AgentSpec(name="Boss", role="lead", profile="plans", manager=True),
    ANN: AgentSpec(name="Ann", role="writer", profile="writes", tools=("shell", "patch"), skills=("merge",)),
    BOB: AgentSpec(name="Bob", role="tester", profile="tests"),
    CY: AgentSpec(name="Cy", role="reader"),
    PIA: AgentSpec(name="Pia", role="planner", style="plan", tools=("crawl",)),
    HUE: AgentSpec(name="Hue", role="person", kind="human"),
}


def skill(executor: str = "converse", text: str = "", intention: str = "") -> Work:
    return Work(type="skill", executor=executor, text_content=text, intention=intention)


def tool(executor: str = "shell", instruction: Data | None = None, intention: str = "", text: str = "") -> Work:
    """Build the work of a tool. Without an instruction it is pending."""
    return Work(type="tool", executor=executor, instruction_content=instruction, intention=intention, text_content=text)


def plan(*duties: tuple[str, AgentId] | tuple[str, AgentId, tuple[str, ...]], goal: str = "a goal") -> i.StagePlan:
    """Build a stage from (name, agent) or (name, agent, needs)."""
    subtasks = tuple(
        i.SubtaskPlan(name=one[0], duty=f"do {one[0]}", agent=one[1], needs=one[2] if len(one) == 3 else ())
        for one in duties
    )
    return i.StagePlan(intention=goal, subtasks=subtasks)


def thread(agent: AgentId, place: str) -> ThreadId:
    """Return the agent's thread in this place."""
    return ThreadId(f"{agent}@{place}")


class House:
    """One team, its log so far, and the clock."""

    def __init__(self) -> None:
        self.state: TeamState = EMPTY_STATE
        self.replayed: TeamState = EMPTY_STATE
        self.now = 1_000_000
        self.log: list[Event] = []
        self.fresh: Sequence[Event] = ()
        self.archive: list[ArchivedRecord] = []
        self.over: set[str] = set()

    @classmethod
    def furnished(
        cls,
        *,
        stages: tuple[i.StagePlan, ...] = (),
        limits: Limits = UNLIMITED,
        team_limits: Limits = UNLIMITED,
        waiting_timeout: int | None = MINUTE,
    ) -> House:
        """Build a team of six with one running task in which all take part."""
        house = cls()
        house.do(i.CreateTeam(team_id=TeamId("team"), name="Team", limits=team_limits, waiting_timeout=waiting_timeout))
        house.do(*(i.AddAgent(agent_id=name, spec=spec) for name, spec in SPECS.items()))
        return house.do(
            i.AddTask(
                name="job", intention="do the job", manager=BOSS, group=tuple(SPECS), stages=stages, limits=limits
            )
        )

    # ------------------------------------------------------------------------------------------ asking

    def ask(self, intent: i.Intent, by: str = DOOR) -> Transition | Rejection:
        """Decide an intent, and apply it if it is accepted."""
        before = self.state
        decided = decide(before, intent, by=by, now=self.now)
        assert decide(before, intent, by=by, now=self.now) == decided, "the same question got another answer"
        assert self.state is before
        self.fresh = ()
        if isinstance(decided, Transition):
            self.replayed = check(before, self.replayed, decided)
            self.state = decided.state
            self.fresh = decided.events
            self.log += decided.events
            self.archive += [row.record for _, row in decided.archived]
            self.over |= {row.key for _, row in decided.archived if row.kind in ("task", "stage", "step")}
            assert not self.over & {*self.state.tasks, *self.state.stages, *self.state.steps}, "it was over"
        return decided

    def do(self, *intents: i.Intent, by: str = DOOR) -> House:
        """Apply intents that must be accepted. `fresh` are the events of the last one."""
        for intent in intents:
            decided = self.ask(intent, by)
            assert isinstance(decided, Transition), decided
        return self

    def refused(self, code: str, intent: i.Intent, by: str = DOOR) -> Rejection:
        """Decide an intent that must be rejected with this code and without effect."""
        before = self.state
        rejected = self.ask(intent, by)
        assert isinstance(rejected, Rejection), f"{intent} was accepted"
        assert rejected.code == code, rejected
        assert self.state is before
        return rejected

    def fire(self, waiting: WaitingId) -> House:
        """Fire the timeout of this wait."""
        return self.do(i.FireTimer(timer_id=timer_id(waiting, "wait")), by=SYSTEM)

    def later(self, millis: int) -> House:
        self.now += millis
        return self

    # ------------------------------------------------------------------------------------------ steps

    def queue(
        self,
        agent: AgentId,
        *works: Work,
        place: Literal["last", "next"] = "last",
        task: TaskId = T1,
        stage: StageId | None = None,
    ) -> House:
        return self.do(
            i.QueueSteps(agent_id=agent, works=works or (skill(),), task_id=task, place=place, stage_id=stage)
        )

    def start(self, agent: AgentId, effect: Effect = "pure", terms: StepTerms | None = None) -> Step:
        """Start the agent's next step and return it (running, or waiting for an approval)."""
        step = next_step(self.state, agent)
        assert step is not None, f"{agent} has nothing to start"
        self.do(i.StartStep(step_id=step.step_id, terms=terms or StepTerms(effect=effect), work=step.work), by=agent)
        return self.state.steps.get(step.step_id, step)

    def finish(
        self,
        agent: AgentId,
        *intents: i.Consequence,
        outcome: Literal["finished", "failed", "uncertain"] = "finished",
        spent: Amounts = NOTHING,
        result: Data | None = None,
        origins: tuple[str, ...] = (),
    ) -> House:
        """Finish the agent's running step with these consequences."""
        step = self.running(agent)
        return self.do(
            i.FinishStep(
                step_id=step.step_id,
                attempt=step.attempt,
                outcome=outcome,
                intents=intents,
                spent=spent,
                result=result,
                origins=origins,
            ),
            by=agent,
        )

    def run(self, agent: AgentId, *intents: i.Consequence, effect: Effect = "pure") -> House:
        """Start the agent's next step and finish it with these consequences."""
        self.start(agent, effect)
        return self.finish(agent, *intents)

    def write(self, agent: AgentId, intent: i.WriteArtifact) -> House:
        """Start the agent's next step and write an artifact in it."""
        step = self.start(agent)
        finish = i.FinishStep(step_id=step.step_id, attempt=step.attempt, intents=(intent,), blobs=(intent.blob,))
        return self.do(finish, by=agent)

    def release(self, agent: AgentId) -> House:
        """Release the agent's step, which is dead and left no result."""
        step = self.running(agent)
        return self.do(i.ReleaseStep(step_id=step.step_id, attempt=step.attempt), by=agent)

    def answer(self, agent: AgentId, answer: ApprovalAnswer = "approved", by: str = HUE) -> House:
        """Let a person answer the question about a step of this agent."""
        return self.do(i.AnswerApproval(approval_id=self.question(agent).approval_id, answer=answer), by=by)

    def assign(self, stage: StageId = S1) -> House:
        """Start the stage if necessary, and every subtask that is ready."""
        if self.state.stages[stage].state == "init":
            self.do(i.StartStage(stage_id=stage), by=SYSTEM)
        done = {one.subtask_id for one in self.state.stages[stage].subtasks if one.state == "finished"}
        for subtask in self.state.stages[stage].subtasks:
            if subtask.state == "init" and set(subtask.needs) <= done:
                self.do(i.AssignSubtask(subtask_id=subtask.subtask_id, stage_id=stage), by=SYSTEM)
        return self

    def ask_agent(self, sender: AgentId, *receivers: AgentId, timeout: int | None = None) -> tuple[WaitingId, ...]:
        """Let a step of `sender` ask these agents and wait. Return the waiting ids."""
        self.queue(sender).run(sender, question(*receivers, timeout=timeout))
        return self.said().waiting or ()

    # ------------------------------------------------------------------------------------------ looking

    def agent(self, name: AgentId) -> AgentState:
        return self.state.agents[name]

    def task(self, name: TaskId = T1) -> Task:
        return self.state.tasks[name]

    def running(self, agent: AgentId) -> Step:
        """Return the agent's running step."""
        name = self.agent(agent).running
        assert name is not None, f"{agent} runs nothing"
        return self.state.steps[name]

    def next(self, agent: AgentId) -> StepId | None:
        """Return the step that the agent may start now."""
        step = next_step(self.state, agent)
        return step.step_id if step else None

    def todo(self, agent: AgentId) -> list[str]:
        """Return the executors in the agent's queue, in order."""
        return [self.state.steps[one].work.executor for one in self.agent(agent).todo]

    def texts(self, agent: AgentId) -> list[str]:
        """Return the texts of the agent's queued steps, in order."""
        return [self.state.steps[one].work.text_content for one in self.agent(agent).todo]

    def senders(self, agent: AgentId) -> list[str]:
        """Return the first lines of the agent's queued steps, which name the senders of messages."""
        return [text.partition("\n")[0] for text in self.texts(agent)]

    def last(self, agent: AgentId) -> Step:
        """Return the last step in the agent's queue."""
        return self.state.steps[self.agent(agent).todo[-1]]

    def happened(self, kind: type[E]) -> list[E]:
        """Return the events of this kind that the last accepted intent caused."""
        return [one for one in self.fresh if isinstance(one, kind)]

    def codes(self) -> list[str]:
        """Return why consequences of the last finished step were rejected."""
        return [one.code for one in self.happened(Noticed)]

    def said(self) -> Message:
        return next(one.message for one in reversed(self.log) if isinstance(one, MessageSent))

    def question(self, agent: AgentId) -> Approval:
        """Return the pending approval about a step of this agent."""
        return next(one for one in self.state.approvals.values() if one.agent_id == agent)

    def ended(self, step: str) -> StepEnded:
        return next(one for one in self.log if isinstance(one, StepEnded) and one.step_id == step)

    def released(self, waiting: str) -> str | None:
        """Return why this waiting id was released."""
        return next((e.why for e in self.log if isinstance(e, WaitReleased) and e.waiting_id == waiting), None)

    def archived(self, kind: type[E]) -> list[E]:
        """Return the archived records of this kind, oldest first."""
        return [one for one in self.archive if isinstance(one, kind)]


def question(
    *receivers: AgentId, timeout: int | None = None, stage: StageId | None = None, task: TaskId = T1
) -> i.SendMessage:
    """Build a message whose sender waits until all receivers have answered."""
    return i.SendMessage(
        task_id=task,
        receiver=receivers,
        message="how?",
        need_reply=True,
        waiting=True,
        timeout=timeout,
        stage_relative=stage or "no_relative",
    )


def reply(waiting: WaitingId, receiver: AgentId, task: TaskId = T1) -> i.SendMessage:
    return i.SendMessage(task_id=task, receiver=(receiver,), message="so", return_waiting_id=waiting, kind="response")
