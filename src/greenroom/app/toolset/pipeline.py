"""The only way to call a tool: validate, authorise, ask, run with a time limit, redact, and notify observers."""

from __future__ import annotations

import asyncio
import difflib
import hashlib
import itertools
import json
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final

from greenroom.abilities.protocols.calls import BadSchema, build_argument_checker
from greenroom.abilities.tools.commands import NAME as COMMAND
from greenroom.abilities.tools.files.tools import (
    FileEdits,
    PatchArguments,
    RewriteArguments,
    patch_bytes,
    rewrite_bytes,
)
from greenroom.abilities.tools.files.write import NewContent
from greenroom.abilities.tools.read_output import present_text
from greenroom.abilities.tools.tool import read_arguments
from greenroom.app.messages import translate
from greenroom.app.team_host import TeamHost
from greenroom.app.threads import was_abandoned
from greenroom.app.toolset.exposure import (
    Reach,
    describe_release,
    find_destinations,
    find_exposed_since,
    find_exposure,
    origins_of,
    reach_anywhere,
    tighten_ruling,
)
from greenroom.app.toolset.redaction import MASK, NO_REDACTION, SecretRedactor, contains_mask
from greenroom.app.toolset.toolbox import ToolObserver
from greenroom.core.base.errors import ModelFault, WorldFault
from greenroom.core.base.ids import AgentId
from greenroom.core.base.records import Data, encode, evolve, record
from greenroom.core.ports.executor import Outcome, StepContext
from greenroom.core.ports.files import FileFault
from greenroom.core.ports.tool import Policy, PolicyDecision, Target, ToolCard, ToolExecutor
from greenroom.core.rules.draft import SYSTEM
from greenroom.core.rules.intents import AnswerApproval
from greenroom.core.state.approval import Approval, covers
from greenroom.core.state.origin import merge_labels
from greenroom.core.state.step import Step, StepTerms, StepType
from greenroom.core.state.team_state import TeamState, sort_rows
from greenroom.policy.decision import escape_unprintable, render_full_command

MAX_ARGUMENT_CHARS: Final = 4_000
MAX_ARGUMENT_LINES: Final = 60
MAX_REASON_CHARS: Final = 300
MAX_PREVIEW_LINES: Final = 2_000
MAX_PREVIEW_BYTES: Final = 400_000


def describe_request(step: Step) -> str:
    """Return the first sentence of an approval question. The reason follows."""
    if step.work.executor != COMMAND:
        return translate("question.use_tool", agent=step.agent_id, tool=step.work.executor)
    network = (step.work.instruction_content or {}).get("hosts")
    return translate("question.use_network" if network else "question.run_command", agent=step.agent_id)


def describe_command(step: Step, targets: Sequence[Target], question: str) -> str:
    """Return what the question does not yet say about a command: the line, its hosts and the agent's reason, quoted."""
    if step.work.executor != COMMAND:
        return ""
    lines = [render_full_command(target.value, question) for target in targets if target.kind == "command"]
    text = "".join(line for line in lines if line not in question)
    hosts = [f"`{escape_unprintable(target.value)}`" for target in targets if target.kind == "host"]
    if unnamed_hosts := [host for host in hosts if host not in question]:
        text += "\n" + translate("question.would_reach", hosts=", ".join(unnamed_hosts))
    arguments = step.work.instruction_content or {}
    why = arguments.get("why")
    if isinstance(why, str) and why.strip():
        reason = escape_unprintable(" ".join(why.split()))
        cut = " […]" if len(reason) > MAX_REASON_CHARS else ""
        text += f"\n{translate('question.says_why')}\n  | {reason[:MAX_REASON_CHARS]}{cut}"
    elif arguments.get("hosts"):
        text += f"\n{translate('question.says_no_reason')}"
    return text


def render_arguments(targets: Sequence[Target], arguments: Data) -> str:
    """Render the arguments, one per line. Return "" if the question already names what is touched."""
    if not arguments or any(target.kind != "tool" for target in targets):
        return ""
    # A text as it is, everything else as JSON.
    texts = {
        name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        for name, value in arguments.items()
    }
    lines = [line for name, text in texts.items() for line in f"{name}: {text[: MAX_ARGUMENT_CHARS + 1]}".split("\n")]
    rendered = "\n".join(f"  | {escape_unprintable(line)}" for line in lines[:MAX_ARGUMENT_LINES])
    more = len(lines) > MAX_ARGUMENT_LINES or len(rendered) > MAX_ARGUMENT_CHARS
    return f"\n{rendered[:MAX_ARGUMENT_CHARS]}" + (translate("decision.cut") if more else "")


@record
class CallPreview:
    """What a call touches, and what an edit would change, as a patch."""

    files: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    diff: str = ""


async def preview_call(
    targets: Sequence[Target], step: Step, read: Callable[[str], Awaitable[bytes | None]]
) -> CallPreview:
    """Preview a call before a person decides about it. `read` returns a file as the agent has it, None without one."""
    by_kind = {kind: tuple(target.value for target in targets if target.kind == kind) for kind in ("path", "host")}
    patches = list[str]()
    try:
        for file, edit in _list_edits(step):
            patches.append(await asyncio.to_thread(_compare, file, await read(file), edit))
    except (FileFault, ModelFault) as fault:  # the call would fail for the same reason
        patches.append(f"{fault}\n")
    return CallPreview(files=by_kind["path"], hosts=by_kind["host"], diff="".join(patches))


def _compare(file: str, before: bytes | None, edit: Callable[[bytes | None], NewContent]) -> str:
    """Return the patch of an edit; of a large file a sentence."""
    after = edit(before).content
    old, new = ((content or b"").decode(errors="replace").splitlines() for content in (before, after))
    first = f"a/{file}" if before is not None else "/dev/null"
    is_large = len(before or b"") + len(after or b"") > MAX_PREVIEW_BYTES
    diff = () if is_large else difflib.unified_diff(old, new, first, f"b/{file}", lineterm="")
    lines = list(itertools.islice(diff, MAX_PREVIEW_LINES))
    cut = [translate("approvals.preview_cut", file=file)] if is_large or len(lines) == MAX_PREVIEW_LINES else []
    return "".join(f"{line}\n" for line in (*lines, *cut))


def _list_edits(step: Step) -> list[tuple[str, Callable[[bytes | None], NewContent]]]:
    """Return each file that a call would edit, and how."""
    match step.work.executor:
        case "rewrite":
            whole = read_arguments(RewriteArguments, step)
            return [(whole.file, partial(rewrite_bytes, whole.file, whole.content))]
        case "patch":
            asked = read_arguments(PatchArguments, step)
            changes = asked.files or (FileEdits(file=asked.file, edits=asked.edits),)
            return [(change.file, partial(patch_bytes, change.file, change.edits)) for change in changes]
        case _:
            return []


STRICTNESS: Final = ("allow", "notify", "ask", "deny")
MAX_ERROR_CHARS: Final = 4_000

MASK_IN_ARGUMENTS: Final = (
    f"Not called: {MASK} stands for a hidden key, and would be written in its place. Leave that part of "
    "the file as it is."
)
SECRET_IN_ARGUMENTS: Final = (
    "Not called: the arguments carry a key that Greenroom keeps secret, and no tool may get it. Do it without the "
    "key, or say in your answer what the person has to do."
)

OBSERVER_TIMEOUT_S: Final = 1.0
"""How long shutdown waits for observers of tool calls, in seconds."""


class ToolPipeline:
    """Validate, authorise, run and redact the calls of one tool, then notify the observers. `reach` returns the hosts
    that commands can reach. With `unattended`, no person can be asked."""

    type: StepType = "tool"

    def __init__(
        self,
        tool: ToolExecutor,
        policy: Policy,
        observers: Sequence[ToolObserver] = (),
        redaction: SecretRedactor = NO_REDACTION,
        reach: Reach = reach_anywhere,
        *,
        unattended: bool = False,
    ) -> None:
        self.name = tool.name
        self.description = tool.description
        self.card: ToolCard = tool.card
        self.targets = tool.targets
        self._tool = tool
        self._policy = policy
        self._observers = observers
        self._redaction = redaction
        self._reach = reach
        self._unattended = unattended
        self._check: Callable[[Data], list[str]] | None = None

    def terms(self, state: TeamState, step: Step) -> StepTerms:
        """Return the terms of a call, from the tool and from the policy."""
        own_terms = self._decide_terms(state, step)
        return decide_unattended(state, step, own_terms) if self._unattended else own_terms

    def _decide_terms(self, state: TeamState, step: Step) -> StepTerms:
        arguments = step.work.instruction_content or {}
        if self._find_argument_fault(arguments):
            return StepTerms(effect="pure")  # it is not called, so there is nothing to decide or to ask
        targets = self._tool.targets(arguments)
        own_terms = self._read_own_terms(state, step, targets)
        exposure = find_exposure(state, step, own_terms.outward, own_terms.origins)
        policy_ruling = self._find_ruling(state, step, targets)
        ruling = tighten_ruling(policy_ruling, exposure)
        digest = call_digest(step.work.executor, arguments)
        if own_terms.verdict != "allow" and _strictness(own_terms) >= _strictness(ruling):
            # The tool asks a person itself: ask only once about one call, and the answer is for exactly this call.
            runs_command = policy_ruling.verdict == "ask" and any(target.kind == "command" for target in targets)
            also_runs = translate("question.also_runs", why=policy_ruling.why) if runs_command else ""
            more_questions = (also_runs, exposure.why if exposure else "")
            return evolve(
                own_terms, digest=digest, question="\n".join(filter(None, (own_terms.question, *more_questions)))
            )
        question = ""
        if ruling.verdict == "ask":
            question = f"{describe_request(step)} {ruling.why}".strip() + render_arguments(targets, arguments)
            question += describe_command(step, targets, question)
        return evolve(
            own_terms,
            verdict=ruling.verdict,
            rule=ruling.why if ruling.verdict == "deny" else ruling.rule,
            grant=ruling.grant,
            question=question,
            digest=digest,
            release=describe_release(policy_ruling, exposure),
        )

    async def run(self, context: StepContext) -> Outcome:
        """Run the call if its arguments are valid. A question to a person gets a default answer if none is present."""
        terms = context.step.terms
        if self._unattended and terms is not None and terms.words and terms.rule == DECIDE_YOURSELF:
            return Outcome(result={"output": DECIDE_YOURSELF, "by": "default"})
        arguments = context.step.work.instruction_content or {}
        # A call with a digest was validated with its terms, and has not changed since.
        fault = "" if terms is not None and terms.digest else self._find_argument_fault(arguments)
        try:
            outcome = _make_failure(fault) if fault else await self._call_tool(self._redaction.wrap_context(context))
        except Exception as error:
            message = self._redaction.text(f"{type(error).__name__}: {error}")
            await self._notify_observers(context.step, _make_failure(message))  # observers count this call too
            if self._redaction.contains_secret(str(error)):
                raise WorldFault(message) from None
            raise
        outcome = self._redaction.outcome(_shorten_outcome(outcome, context.step, self.card.shown))
        await self._notify_observers(context.step, outcome)
        return outcome

    async def _notify_observers(self, step: Step, outcome: Outcome) -> None:
        """Notify the observers. A cancellation during this keeps the outcome of the call."""
        if not self._observers:
            return

        async def notify_all() -> None:
            for observer in self._observers:
                await observer(step, outcome)

        notifying, current_task = asyncio.ensure_future(notify_all()), asyncio.current_task()
        try:
            await asyncio.shield(notifying)
        except asyncio.CancelledError:
            if current_task is None or not current_task.cancelling():
                raise
            current_task.uncancel()
            await asyncio.wait({notifying}, timeout=OBSERVER_TIMEOUT_S)
            notifying.cancel()

    async def _call_tool(self, context: StepContext) -> Outcome:
        limit = self.card.seconds
        try:
            if not limit:
                return await self._tool.run(context)
            async with asyncio.timeout(limit):
                return await self._tool.run(context)
        except TimeoutError as late:
            if not limit:
                raise
            left_running = "and cannot be stopped: it may go on, and its result is lost."
            ending = left_running if was_abandoned(late) else "and was stopped."
            message = f"{self.name} did not come to an end within {limit} seconds {ending}"
            if self.card.effect == "effectful":
                return Outcome(state="uncertain", error=f"{message} It is not known what it has done.")
            return _make_failure(message)
        except ModelFault as fault:
            return _make_failure(str(fault))

    def _find_argument_fault(self, arguments: Data) -> str:
        if self._redaction.is_in_arguments(arguments):
            return SECRET_IN_ARGUMENTS  # first: what else is wrong may quote the arguments
        try:
            if self._check is None:
                self._check = build_argument_checker(self.card.spec.parameters)
            faults = self._check(arguments)
        except BadSchema as error:
            return f"{self.name} cannot be called: its own schema is none ({error}). Tell the person."
        if faults:
            return f"Not called: {'; '.join(faults)}. Look at the parameters of {self.name}."
        return MASK_IN_ARGUMENTS if self._redaction and self.card.group == "edit" and contains_mask(arguments) else ""

    def _read_own_terms(self, state: TeamState, step: Step, targets: Sequence[Target]) -> StepTerms:
        """Return the tool's own terms with the origins of what it reads and its destinations."""
        own_terms, destinations = self._tool.terms(state, step), find_destinations(self.card, targets, self._reach)
        origins = merge_labels(own_terms.origins, origins_of(self.card, targets))
        exposed_since = find_exposed_since(state, step, origins) if destinations else None
        return evolve(own_terms, origins=origins, outward=destinations, exposed_at=exposed_since)

    def _find_ruling(self, state: TeamState, step: Step, targets: tuple[Target, ...]) -> PolicyDecision:
        """Return the strictest decision for the agent and for all agents on whose behalf it works."""
        grants = state.grants
        rulings = [
            self._policy.decide(agent, self.card, targets, grants, state.agents[agent].spec.rules)
            for agent in bound_agents(state, step)
        ]
        return max(rulings, key=_strictness)


def _strictness(decision: PolicyDecision | StepTerms) -> int:
    return STRICTNESS.index(decision.verdict)


def bound_agents(state: TeamState, step: Step) -> list[AgentId]:
    """Return the agents whose rules apply to a step: its own, and those on whose behalf it runs."""
    thread = state.threads.get(step.thread_id)
    behalf = thread.on_behalf if thread is not None else ()
    return [agent for agent in (step.agent_id, *behalf) if agent in state.agents]


def call_digest(name: str, arguments: Data) -> str:
    """Return the digest of exactly this call. Another call needs another approval."""
    return hashlib.sha256(encode([name, dict(arguments)])).hexdigest()


def _make_failure(error: str) -> Outcome:
    return Outcome(state="failed", error=error)


def _shorten_outcome(outcome: Outcome, step: Step, shown: int) -> Outcome:
    """Shorten an outcome for the agent: both ends of a long text, the beginning of a long error."""
    error = outcome.error if len(outcome.error) <= MAX_ERROR_CHARS else f"{outcome.error[:MAX_ERROR_CHARS]} […]"
    result = outcome.result
    text = result.get("output") if result is not None else None
    if result is None or not isinstance(text, str) or result.get("need_return"):
        return evolve(outcome, error=error)  # a person reads the final answer, so it stays whole
    return evolve(outcome, error=error, result={**result, **present_text(text, step.step_id, shown)})


NOBODY_TO_APPROVE: Final = (
    "no person can approve it (non-interactive). Do without it, or say in your answer what is missing"
)
DECIDE_YOURSELF: Final = (
    "No person can answer (non-interactive). Decide yourself, and say in your answer what you assumed."
)


def decide_unattended(state: TeamState, step: Step, own_terms: StepTerms) -> StepTerms:
    """Return the terms without a person: approval questions are denied, text questions get a default answer."""
    if own_terms.verdict != "ask" or _is_approved(state, step, own_terms):
        return own_terms
    if own_terms.words:
        return evolve(own_terms, verdict="allow", rule=DECIDE_YOURSELF)
    # The agent knows the call itself, which is on the lines below the question.
    question = own_terms.question.partition("\n")[0].rstrip(". 。")
    return evolve(
        own_terms, verdict="deny", rule=f"{question}, and {NOBODY_TO_APPROVE}" if question else NOBODY_TO_APPROVE
    )


async def answer_pending(host: TeamHost) -> list[AnswerApproval]:
    """Answer all pending approvals by default, for an unattended run. Return the answers."""
    pending = [approval for approval in sort_rows(host.state.approvals) if approval.state == "pending"]
    answers = [default_answer(approval) for approval in pending]
    await host.submit(*answers, by=SYSTEM)
    return answers


def default_answer(approval: Approval) -> AnswerApproval:
    """Return the default answer to an approval without a person."""
    if approval.words:
        return AnswerApproval(approval_id=approval.approval_id, answer="approved", reason=DECIDE_YOURSELF)
    return AnswerApproval(
        approval_id=approval.approval_id,
        answer="denied",
        reason=f"{NOBODY_TO_APPROVE[0].upper()}{NOBODY_TO_APPROVE[1:]}.",
    )


def _is_approved(state: TeamState, step: Step, terms: StepTerms) -> bool:
    """Whether a person has already approved exactly this call."""
    approval = state.approvals.get(step.approval) if step.approval is not None else None
    if approval is None or approval.state != "approved":
        return False
    return covers(approval, terms.digest, terms.exposed_at)
