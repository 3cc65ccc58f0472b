"""The one way in which a tool is called: validate, authorise, ask, run with a time limit, redact, tell observers."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable, Sequence
from typing import Final

from greenroom.abilities.protocols.calls import BadSchema, checker
from greenroom.abilities.tools.commands import NAME as COMMAND
from greenroom.abilities.tools.read_output import presented
from greenroom.app.host import Host
from greenroom.app.threads import was_left
from greenroom.app.toolset.exposure import Reach, anywhere, exposed, exposed_at, origins_of, outward, release, tightened
from greenroom.app.toolset.redaction import MASK, NOTHING_SECRET, Redaction, stands_in
from greenroom.app.toolset.toolbox import After
from greenroom.core.base.errors import ModelFault, WorldFault
from greenroom.core.base.ids import AgentId
from greenroom.core.base.records import Data, encode, evolve
from greenroom.core.ports.executor import Bench, Outcome
from greenroom.core.ports.tool import Policy, Ruling, Target, ToolCard, ToolExecutor
from greenroom.core.rules.draft import SYSTEM
from greenroom.core.rules.intents import AnswerApproval
from greenroom.core.state.approval import Approval, covers
from greenroom.core.state.origin import merged
from greenroom.core.state.step import Step, StepType, Terms
from greenroom.core.state.world import World, ordered
from greenroom.policy.judgement import in_full, plainly

MOST: Final = 4_000
LINES: Final = 60
REASON: Final = 300
"""Characters of what an agent says why it wants something."""


def wish(step: Step) -> str:
    """The first sentence of a question; why it is asked comes after it."""
    if step.work.executor != COMMAND:
        return f"{step.agent_id} wants to use {step.work.executor}."
    network = (step.work.instruction_content or {}).get("hosts")
    return f"{step.agent_id} wants {'the network for a command' if network else 'to run a command'}."


def of_command(step: Step, targets: Sequence[Target], question: str) -> str:
    """What the question does not say of a command yet: the line, its hosts, and what the agent says why, which is
    marked as its words."""
    if step.work.executor != COMMAND:
        return ""
    lines = [in_full(target.value, question) for target in targets if target.kind == "command"]
    said = "".join(line for line in lines if line not in question)
    hosts = [f"`{plainly(target.value)}`" for target in targets if target.kind == "host"]
    if named := [host for host in hosts if host not in question]:
        said += f"\nIt would reach {', '.join(named)}."
    given = step.work.instruction_content or {}
    why = given.get("why")
    if isinstance(why, str) and why.strip():
        told = plainly(" ".join(why.split()))
        said += f"\nIt says why:\n  | {told[:REASON]}{' […]' if len(told) > REASON else ''}"
    elif given.get("hosts"):
        said += "\nIt does not say why."
    return said


def with_what(targets: Sequence[Target], given: Data) -> str:
    """The arguments, one a line; nothing where the question says already what is touched."""
    if not given or any(one.kind != "tool" for one in targets):
        return ""
    # A text as it is, everything else as JSON.
    texts = {
        name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        for name, value in given.items()
    }
    lines = [line for name, text in texts.items() for line in f"{name}: {text[: MOST + 1]}".split("\n")]
    told = "\n".join(f"  | {plainly(line)}" for line in lines[:LINES])
    more = len(lines) > LINES or len(told) > MOST
    return f"\n{told[:MOST]}" + ("\n  [… There is more of it than can be shown here …]" if more else "")


STRICTNESS: Final = ("allow", "notify", "ask", "deny")
LONGEST: Final = 4_000
"""Characters of an error that an agent reads."""

STANDS_IN: Final = (
    f"Not called: {MASK} stands for a key that nobody is shown, and would be written in its place. Leave that part of "
    "the file as it is."
)

AFTERWARDS: Final = 1.0
"""Seconds that those have who are still hearing of a call when everything is to end."""


class ToolPipeline:
    """Validate, authorise, run and redact the calls of one tool; then tell those `after` it.

    `reach` says what commands get to over the network, `unattended` that nobody is there to be asked.
    """

    type: StepType = "tool"

    def __init__(
        self,
        tool: ToolExecutor,
        policy: Policy,
        after: Sequence[After] = (),
        redaction: Redaction = NOTHING_SECRET,
        reach: Reach = anywhere,
        *,
        unattended: bool = False,
    ) -> None:
        self.name = tool.name
        self.description = tool.description
        self.card: ToolCard = tool.card
        self.targets = tool.targets
        self._tool = tool
        self._policy = policy
        self._after = after
        self._redaction = redaction
        self._reach = reach
        self._unattended = unattended
        self._check: Callable[[Data], list[str]] | None = None

    def terms(self, world: World, step: Step) -> Terms:
        """What the tool says of itself, and what the policy says of this very call."""
        own = self._terms(world, step)
        return unattended(world, step, own) if self._unattended else own

    def _terms(self, world: World, step: Step) -> Terms:
        given = step.work.instruction_content or {}
        if self._misfit(given):
            return Terms(effect="pure")  # it is not called, so there is nothing to decide
        targets = self._tool.targets(given)
        own = self._own(world, step, targets)
        found, ruled = exposed(world, step, own.outward, own.origins), self._ruling(world, step, targets)
        ruling = tightened(ruled, found)
        digest = digest_of(step.work.executor, given)
        if own.verdict != "allow" and _strictness(own) >= _strictness(ruling):
            # The tool itself asks a person: nobody is asked twice about one call, and the answer is for this very one.
            runs = ruled.verdict == "ask" and any(one.kind == "command" for one in targets)
            also = f"A yes also lets it run on this machine: {ruled.why}" if runs else ""
            more = (also, found.why if found else "")
            return evolve(own, digest=digest, question="\n".join(filter(None, (own.question, *more))))
        question = ""
        if ruling.verdict == "ask":
            question = f"{wish(step)} {ruling.why}".strip() + with_what(targets, given)
            question += of_command(step, targets, question)
        return evolve(
            own,
            verdict=ruling.verdict,
            rule=ruling.why if ruling.verdict == "deny" else ruling.rule,
            grant=ruling.grant,
            question=question,
            digest=digest,
            release=release(ruled, found),
        )

    async def run(self, bench: Bench) -> Outcome:
        """Call it, if it can be called like this; a question to a person has one answer where nobody is there."""
        terms = bench.step.terms
        if self._unattended and terms is not None and terms.words and terms.rule == DECIDE:
            return Outcome(result={"output": DECIDE, "by": "default"})
        given = bench.step.work.instruction_content or {}
        # What has a digest was looked at when its terms were, and has not changed since.
        wrong = "" if terms is not None and terms.digest else self._misfit(given)
        try:
            outcome = _failed(wrong) if wrong else await self._called(self._redaction.bench(bench))
        except Exception as error:
            told = self._redaction.text(f"{type(error).__name__}: {error}")
            await self._tell(bench.step, _failed(told))  # whoever counts calls counts this one
            if self._redaction.finds(str(error)):
                raise WorldFault(told) from None
            raise
        outcome = self._redaction.outcome(_presentable(outcome, bench.step, self.card.shown))
        await self._tell(bench.step, outcome)
        return outcome

    async def _tell(self, step: Step, outcome: Outcome) -> None:
        """The call was made: whoever is cancelled while others hear of it loses nothing of what it came to."""
        if not self._after:
            return

        async def tell_all() -> None:
            for after in self._after:
                await after(step, outcome)

        telling, me = asyncio.ensure_future(tell_all()), asyncio.current_task()
        try:
            await asyncio.shield(telling)
        except asyncio.CancelledError:
            if me is None or not me.cancelling():
                raise
            me.uncancel()
            await asyncio.wait({telling}, timeout=AFTERWARDS)
            telling.cancel()

    async def _called(self, bench: Bench) -> Outcome:
        limit = self.card.seconds
        try:
            if not limit:
                return await self._tool.run(bench)
            async with asyncio.timeout(limit):
                return await self._tool.run(bench)
        except TimeoutError as late:
            if not limit:
                raise
            left = "and cannot be stopped: it may go on, and nobody waits for it any more."
            how = left if was_left(late) else "and was stopped."
            told = f"{self.name} did not come to an end within {limit} seconds {how}"
            if self.card.effect == "effectful":
                return Outcome(state="uncertain", error=f"{told} It is not known what it has done.")
            return _failed(told)
        except ModelFault as fault:
            return _failed(str(fault))

    def _misfit(self, given: Data) -> str:
        """Why it cannot be called with this; empty when it can."""
        try:
            if self._check is None:
                self._check = checker(self.card.spec.parameters)
            wrong = self._check(given)
        except BadSchema as error:
            return f"{self.name} cannot be called: its own schema is none ({error}). Tell the person."
        if wrong:
            return f"Not called: {'; '.join(wrong)}. Look at the parameters of {self.name}."
        return STANDS_IN if self._redaction and self.card.group == "edit" and stands_in(given) else ""

    def _own(self, world: World, step: Step, targets: Sequence[Target]) -> Terms:
        """What the tool says of itself, what it will have read, and where it would carry something."""
        own, places = self._tool.terms(world, step), outward(self.card, targets, self._reach)
        origins = merged(own.origins, origins_of(self.card, targets))
        since = exposed_at(world, step, origins) if places else None
        return evolve(own, origins=origins, outward=places, exposed_at=since)

    def _ruling(self, world: World, step: Step, targets: tuple[Target, ...]) -> Ruling:
        """The strictest of what is decided for the agent and for all on whose behalf it works."""
        grants = world.grants
        rulings = [
            self._policy.decide(agent, self.card, targets, grants, world.agents[agent].spec.rules)
            for agent in bound_agents(world, step)
        ]
        return max(rulings, key=_strictness)


def _strictness(said: Ruling | Terms) -> int:
    return STRICTNESS.index(said.verdict)


def bound_agents(world: World, step: Step) -> list[AgentId]:
    """Whose rules bind a step: its agent, and all on whose behalf it is done."""
    thread = world.threads.get(step.thread_id)
    behalf = thread.on_behalf if thread is not None else ()
    return [agent for agent in (step.agent_id, *behalf) if agent in world.agents]


def digest_of(name: str, given: Data) -> str:
    """The name of exactly this call: another one needs another answer."""
    return hashlib.sha256(encode([name, dict(given)])).hexdigest()


def _failed(error: str) -> Outcome:
    return Outcome(state="failed", error=error)


def _presentable(outcome: Outcome, step: Step, shown: int) -> Outcome:
    """What an agent reads of it: of a long text its ends, of a long error the beginning."""
    error = outcome.error if len(outcome.error) <= LONGEST else f"{outcome.error[:LONGEST]} […]"
    result = outcome.result
    text = result.get("output") if result is not None else None
    if result is None or not isinstance(text, str) or result.get("need_return"):
        return evolve(outcome, error=error)  # what is the answer is read by a person, and whole
    return evolve(outcome, error=error, result={**result, **presented(text, step.step_id, shown)})


NOBODY: Final = "nobody is there to agree to it (non-interactive). Do without it, or say in your answer what is missing"
DECIDE: Final = "Nobody is there to answer (non-interactive). Decide yourself, and say in your answer what you assumed."


def unattended(world: World, step: Step, own: Terms) -> Terms:
    """The terms where nobody is there: what would be asked is forbidden, what would be answered in words goes on."""
    if own.verdict != "ask" or _agreed(world, step, own):
        return own
    if own.words:
        return evolve(own, verdict="allow", rule=DECIDE)
    # The call itself, which stands on the lines below the question, is known to who made it.
    asked = own.question.partition("\n")[0].rstrip(". ")
    return evolve(own, verdict="deny", rule=f"{asked}, and {NOBODY}" if asked else NOBODY)


async def answer_pending(host: Host) -> list[AnswerApproval]:
    """Answer by default what a team was left waiting for; what was answered. For whoever goes on with it unattended."""
    waiting = [one for one in ordered(host.world.approvals) if one.state == "pending"]
    answers = [default_answer(one) for one in waiting]
    await host.submit(*answers, by=SYSTEM)
    return answers


def default_answer(approval: Approval) -> AnswerApproval:
    """What a question is answered with when nobody is there."""
    if approval.words:
        return AnswerApproval(approval_id=approval.approval_id, answer="approved", reason=DECIDE)
    return AnswerApproval(approval_id=approval.approval_id, answer="denied", reason=f"{NOBODY[0].upper()}{NOBODY[1:]}.")


def _agreed(world: World, step: Step, terms: Terms) -> bool:
    """Whether a person has said yes to exactly this before they left."""
    approval = world.approvals.get(step.approval) if step.approval is not None else None
    if approval is None or approval.state != "approved":
        return False
    return covers(approval, terms.digest, terms.exposed_at)
