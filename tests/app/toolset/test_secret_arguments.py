"""A call whose arguments carry a known key is refused: no rule and no approval lets it through, and no log holds it."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from urllib.parse import quote

import pytest

from greenroom import Agent, ApprovalRequest, Greenroom, tool
from greenroom.app.toolset.pipeline import SECRET_IN_ARGUMENTS
from greenroom.app.toolset.redaction import WITHHELD, SecretRedactor
from greenroom.core.base.ids import AgentId, StepId, ThreadId
from greenroom.core.base.records import Data
from greenroom.core.ports.model import (
    Finished,
    ModelEvent,
    ModelReasoningDelta,
    ModelRequest,
    ModelTextDelta,
    Opaque,
    Purpose,
    ToolCall,
)
from greenroom.core.state.spec import AgentSpec, TurnPolicy
from tests.abilities.skills.talks import Answer, Played, calls, in_order, says
from tests.app.toolset.test_redaction import KEY, called, told

PATIENCE_S = 20.0
YAML_CALL = "<TOOL_CALL>\nwant: send it\nname: send\narguments:\n  to: {}\n</TOOL_CALL>"
TEXT_CALL = '<TOOL_CALL>\n{{"name": "send", "arguments": {{"to": "{}"}}}}\n</TOOL_CALL>'
CARRIED: Sequence[object] = (
    f"https://example.com/?key={KEY}",
    {"deep": ["a", {"b": f"x{KEY}"}]},
    {KEY: 1},
)


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    (tmp_path / "work").mkdir()


@pytest.mark.parametrize(
    "call",
    [
        ("tells", {"how": KEY}),
        ("execute_script", {"script": f"echo {KEY}"}),
        ("web_fetch", {"url": f"https://example.com/?key={KEY}"}),
        ("rewrite", {"file": "a.txt", "content": f"key = '{KEY}'"}),
    ],
)
async def test_every_kind_of_tool_is_refused_although_a_rule_allows_it(tmp_path: Path, call: tuple[str, Data]) -> None:
    seen = await called(tmp_path, call)
    step = seen.steps[0]
    assert (step.state, step.error, step.approval, seen.live) == ("failed", SECRET_IN_ARGUMENTS, None, [])


@pytest.mark.parametrize("carried", CARRIED)
async def test_a_key_in_a_call_reaches_no_function_no_question_and_no_log(tmp_path: Path, carried: object) -> None:
    await _refuse(tmp_path, calls("send", to=carried))


def encode_in_all_ways(secret: str) -> Iterator[str]:
    """Return the encodings of a text with the key at each place of base64."""
    for before in ("", "a", "ab", "abc"):
        data = f"{before}{secret}>?x".encode()
        yield from (base64.b64encode(data).decode(), base64.urlsafe_b64encode(data).decode())
    yield from (secret.encode().hex(), secret.encode().hex().upper())
    yield "".join(f"%{byte:02X}" for byte in secret.encode())
    yield quote(quote(secret.replace("-", "\u2010"), safe="").replace("%E2%80%90", "%2d"), safe="")
    yield quote(base64.b64encode(f"?>{secret}".encode()).decode(), safe="")


@pytest.mark.parametrize("secret", [KEY, "sk?>~ÿ/0123456789+abc=="])
def test_an_encoded_key_is_found_in_arguments(secret: str) -> None:
    redaction = SecretRedactor(["sk-other-9876543210", secret])
    for encoded in encode_in_all_ways(secret):
        for arguments in ({"to": f"x{encoded}y"}, {"a": [{f"h-{encoded}": 1}]}):
            assert redaction.is_in_arguments(arguments)
            kept = redaction.withhold(arguments)
            assert encoded not in str(kept)
            assert redaction.is_in_arguments(kept), "a call without its key is refused too"
        assert not redaction.is_in_arguments({"to": encoded[: len(encoded) // 2]})


@pytest.mark.parametrize("encoded", [KEY.encode().hex(), base64.b64encode(f"u:{KEY}".encode()).decode()])
async def test_a_call_with_an_encoded_key_is_refused_and_not_logged(tmp_path: Path, encoded: str) -> None:
    await _refuse(tmp_path, calls("send", to=f"https://example.com/?q={encoded}"))
    assert encoded.encode() not in told(tmp_path / "home")


async def test_a_key_that_a_person_gives_is_neither_stored_nor_sent(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text(f"token: {KEY}\n")
    long = f"{'x' * 45} {KEY}, what is it?"
    model = Played(lambda _: says("Seen."))
    async with Greenroom(tmp_path / "home") as greenroom, asyncio.timeout(PATIENCE_S):
        agent = Agent("ann", f"Use {KEY}.", model=model)
        await greenroom.run(agent, f"My key is {KEY}.", attachments=[notes])
        await greenroom.run(agent, long)
        async with greenroom.chat(agent) as conversation:
            await conversation.send(f"Here: {KEY}")
            await conversation.send("And this.", attachments=[notes])
    sent = str([request.messages for request in model.asked])
    assert (KEY in sent, sent.count("token: [secret]"), "My key is [secret]." in sent) == (False, 2, True)
    stored = told(tmp_path / "home")
    assert KEY[:12].encode() not in stored, "not even its beginning, in the name of a task"
    warnings = [record.getMessage() for record in caplog.records if "[secret]" in record.getMessage()]
    assert len(warnings) == 1


@pytest.mark.parametrize("form", [TEXT_CALL, YAML_CALL])
async def test_a_key_in_a_text_call_is_refused_too(tmp_path: Path, form: str) -> None:
    spec = AgentSpec(name="ann", turn=TurnPolicy(protocols=("tool_call",), ends="text"))
    split = form.format(KEY).partition(KEY[:5])
    pieces = [split[0] + split[1], split[2]]
    reply: Answer = (*(ModelTextDelta(text=piece) for piece in pieces), Finished())
    await _refuse(tmp_path, reply, spec)


async def _refuse(tmp_path: Path, reply: Answer, spec: AgentSpec | None = None) -> None:
    sent: list[object] = []
    asked: list[ApprovalRequest] = []

    @tool(needs_approval=True)
    def send(to: str) -> str:
        """Send something to an address."""
        sent.append(to)
        return "sent"

    def approve(request: ApprovalRequest) -> bool:
        asked.append(request)
        return True

    model = Played(in_order(reply, says("I cannot.")))
    async with Greenroom(tmp_path / "home", approve=approve) as greenroom, asyncio.timeout(PATIENCE_S):
        result = await greenroom.run(Agent("ann", tools=[send], model=model, spec=spec), "Send it.")
    assert (result.output, sent, asked) == ("I cannot.", [], [])
    assert any(SECRET_IN_ARGUMENTS in message.content for message in model.asked[-1].messages)
    assert KEY not in str(model.asked[-1].messages)
    assert KEY.encode() not in told(tmp_path / "home")


@pytest.mark.parametrize("value", ["not-needed", "ollama", "local-1", "sk-no-key-required"])
async def test_an_ordinary_word_as_key_refuses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", value)

    def send(to: str) -> str:
        """Send something to an address."""
        return to.upper()

    model = Played(in_order(calls("send", to=value), says("Done.")))
    async with Greenroom(in_memory=True) as greenroom, asyncio.timeout(PATIENCE_S):
        await greenroom.run(Agent("ann", tools=[send], model=model), "Send it.")
    assert value.upper() in str(model.asked[-1].messages)


async def _stream(events: Sequence[ModelEvent]) -> list[ModelEvent]:
    model = SecretRedactor([KEY, "sk-other-9876543210"]).wrap_model(Played(lambda _: events))
    purpose = Purpose(agent=AgentId("ann"), skill="converse", step=StepId("ann#1"), thread=ThreadId("t"), turn=1)
    return [event async for event in model.stream(ModelRequest(purpose=purpose, messages=()))]


@pytest.mark.parametrize("kind", [ModelTextDelta, ModelReasoningDelta])
async def test_a_key_in_pieces_is_withheld_and_nothing_else_is_lost(
    kind: Callable[..., ModelTextDelta | ModelReasoningDelta],
) -> None:
    text = f"sk-so s {KEY} sk-planted-0123 s{KEY}{KEY}sk"
    for size in range(1, len(text)):
        pieces = [kind(text=text[start : start + size]) for start in range(0, len(text), size)]
        events = await _stream((*pieces, Finished()))
        texts = [event.text for event in events if isinstance(event, ModelTextDelta | ModelReasoningDelta)]
        assert "".join(texts) == text.replace(KEY, WITHHELD)
        assert isinstance(events[-1], Finished)


async def test_reasoning_calls_and_opaque_parts_are_redacted_in_order() -> None:
    call = ToolCall(call_id="c", name="send", arguments={}, unread=f'{{"a": "{KEY}')
    opaque = Opaque(provider="p", data={"signature": "x"})
    leaking = Opaque(provider="p", data={"thinking": [KEY]})
    events = await _stream(
        (ModelReasoningDelta(text="s"), ModelTextDelta(text="as"), leaking, opaque, call, Finished())
    )
    assert [type(event).__name__ for event in events] == [
        *("ModelReasoningDelta", "ModelTextDelta", "ModelTextDelta", "Opaque", "ToolCall", "Finished")
    ]
    assert KEY not in str(events)


def test_a_key_of_digits_is_found_in_a_number() -> None:
    redaction = SecretRedactor(["123456789012"])
    assert redaction.is_in_arguments({"to": 123456789012})
    assert redaction.data({"to": 123456789012, "n": 7}) == {"to": "[secret]", "n": 7}
