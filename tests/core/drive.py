"""A driver that runs a team until it is idle: it runs steps, answers questions, and fills in instructions."""

from __future__ import annotations

from random import Random

from greenroom.core.base.amounts import UNLIMITED
from greenroom.core.base.ids import AgentId, timer_id
from greenroom.core.base.records import evolve
from greenroom.core.rules import intents as i
from greenroom.core.state.step import Step, StepTerms
from tests.core.house import DOOR, SYSTEM, House
from tests.core.wishes import words

ROUNDS = 400


class Driver:
    """All agents work and answer. `questions` is how often an agent asks another before it answers."""

    def __init__(
        self, house: House, rng: Random, *, questions: int = 12, deaf: frozenset[AgentId] = frozenset()
    ) -> None:
        self.house = house
        self.rng = rng
        self.questions = questions
        self.deaf = deaf

    def rest(self) -> House:
        """Continue until the team is idle."""
        self.open_the_doors()
        for _ in range(ROUNDS):
            if not (self.work() or self.people() or self.instructions() or self.time()):
                return self.house
        raise AssertionError(f"the house does not come to rest: {sorted(self.house.state.steps)[:5]}")

    def open_the_doors(self) -> None:
        """Remove limits and pauses, and start all tasks."""
        state = self.house.state
        for budget in sorted(state.budgets):
            self.house.do(i.SetLimits(budget_id=budget, limits=UNLIMITED), by=DOOR)
        if state.team.paused is not None:
            self.house.do(i.ResumeTeam(), by=DOOR)
        for name, task in sorted(state.tasks.items()):
            if task.paused is not None and task.state != "cancelling":
                self.house.do(i.ResumeTask(task_id=name), by=DOOR)
            if task.state == "init":
                self.house.do(i.StartTask(task_id=name), by=DOOR)

    def work(self) -> bool:
        """Run one round: every ready agent starts a step, every running step ends."""
        hearing = [step for step in words.startable(self.house.state) if step.agent_id not in self.deaf]
        for step in hearing:
            self.house.ask(
                i.StartStep(step_id=step.step_id, terms=StepTerms(effect="pure"), work=step.work), step.agent_id
            )
        busy = words.busy(self.house.state)
        for step in busy:
            self.end(self.house.state.steps.get(step.step_id))
        return bool(hearing or busy)

    def end(self, step: Step | None) -> None:
        if step is None:
            return
        if step.state == "cancelling":
            self.house.do(i.ReleaseStep(step_id=step.step_id, attempt=step.attempt), by=step.agent_id)
        else:
            finish = i.FinishStep(step_id=step.step_id, attempt=step.attempt, intents=self.consequences(step))
            self.house.do(finish, by=step.agent_id)

    def consequences(self, step: Step) -> tuple[i.Consequence, ...]:
        """Return the consequences of a step: ask another agent first, answer, or forget to."""
        wait = self.house.state.waits.get(step.answers) if step.answers is not None else None
        if self.questions > 0 and self.rng.randrange(2):
            self.questions -= 1
            group = self.house.state.tasks[step.task_id].group
            others = words.some(self.rng, [name for name in group if name != step.agent_id], 2)
            return (
                i.SendMessage(task_id=step.task_id, receiver=others, message="and you?", need_reply=True, waiting=True),
            )
        if wait is None or self.rng.randrange(5) == 0:
            return ()
        return (
            i.SendMessage(
                task_id=wait.task_id, receiver=(wait.waiter,), message="so", return_waiting_id=wait.waiting_id
            ),
        )

    def people(self) -> bool:
        """Let people approve and answer their messages."""
        for name, approval in sorted(self.house.state.approvals.items()):
            if approval.state == "pending":
                late = approval.expires_at is not None and approval.expires_at <= self.house.now
                if late:
                    self.house.do(i.FireTimer(timer_id=timer_id(approval.step_id, "answer")), by=SYSTEM)
                else:
                    self.house.do(i.AnswerApproval(approval_id=name, answer="approved"), by=DOOR)
                return True
        for _, wait in sorted(self.house.state.waits.items()):
            if self.house.state.agents[wait.on].spec.kind == "human":
                answer = i.SendMessage(
                    task_id=wait.task_id,
                    receiver=(wait.waiter,),
                    message="yes",
                    return_waiting_id=wait.waiting_id,
                    sender=wait.on,
                )
                self.house.do(answer, by=DOOR)
                return True
        return False

    def instructions(self) -> bool:
        """Fill in a pending tool step."""
        for name, step in sorted(self.house.state.steps.items()):
            if step.state == "pending":
                self.house.do(i.ModifyStep(step_id=name, work=evolve(step.work, instruction_content={})), by=DOOR)
                return True
        return False

    def time(self) -> bool:
        """Advance to the next deadline."""
        timers = sorted(self.house.state.timers.values(), key=lambda timer: (timer.due, timer.timer_id))
        if not timers:
            return False
        self.house.now = max(self.house.now, timers[0].due)
        self.house.do(i.FireTimer(timer_id=timers[0].timer_id), by=SYSTEM)
        return True
