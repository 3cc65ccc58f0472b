"""Jarvis' entry: one reply, the handlers that can handle it, and (need_return, tool_prompt)."""

from collections.abc import Awaitable, Sequence
from pathlib import Path

import pytest

from greenroom import Agent, Done, Greenroom, WorldFault, tool
from greenroom.adapters.models.platforms import BasePlatform
from greenroom.app.designs.jarvis import build_handlers, execute_tool_call, make_jarvis_agent
from greenroom.core.ports.model import ModelCard
from tests.adapters.models.test_platforms import Talker, said, talking_to


class Says:
    """A handler of one's own, for replies with its word in them."""

    def __init__(self, word: str, made: object = "made") -> None:
        self.word = word
        self.made = made
        self.handled: list[str] = []

    def name(self) -> str:
        return f"{self.word} handler"

    def can_handle(self, response: str) -> bool:
        return self.word in response

    def handle(self, response: str) -> tuple[bool, object] | Awaitable[tuple[bool, object]]:
        self.handled.append(response)
        if isinstance(self.made, Exception):
            raise self.made
        return False, self.made


@pytest.mark.req("AG-62", "AG-132", "AG-134", "AG-137")
async def test_the_one_that_can_handle_a_reply_does_and_without_one_nothing_happens() -> None:
    tea, milk = Says("tea"), Says("milk", {"cups": 2})
    assert await execute_tool_call("milk please", [tea, milk]) == (False, '{"cups":2}')
    assert (tea.handled, milk.handled) == ([], ["milk please"])
    assert await execute_tool_call("nothing", [tea, milk]) == (False, "")


@pytest.mark.req("AG-133")
async def test_of_several_that_can_handle_a_reply_none_does() -> None:
    tea, milk = Says("tea"), Says("milk")
    need_return, prompt = await execute_tool_call("tea with milk", [tea, milk])
    assert (need_return, tea.handled, milk.handled) == (False, [], [])
    assert prompt.startswith("Only one operation at a time: your reply has 2 (tea handler, milk handler)")


@pytest.mark.req("AG-135")
@pytest.mark.parametrize("waits", [True, False])
async def test_with_confirmation_a_no_is_an_empty_result(waits: bool) -> None:
    heard: list[tuple[str, bool]] = []

    def at_once(tip: str, default: bool) -> bool:
        heard.append((tip, default))
        return len(heard) > 1

    async def later(tip: str, default: bool) -> bool:
        return at_once(tip, default)

    handler, confirm = Says("tea"), later if waits else at_once
    for expected in ((False, ""), (False, "made")):
        done = await execute_tool_call("tea", [handler], execute_tool_confirm=True, confirm_callback=confirm)
        assert done == expected
    assert (len(handler.handled), heard[0]) == (1, ("Run tea handler?", False))
    with pytest.raises(WorldFault, match="Pass `confirm_callback`"):
        await execute_tool_call("tea", [handler], execute_tool_confirm=True)


@pytest.mark.req("AG-136", "AG-138")
async def test_what_a_handler_raises_is_text_and_callbacks_hear_of_it_each_for_itself() -> None:
    heard: list[object] = []

    def breaks(_: object) -> None:
        raise RuntimeError("broken")

    handler = Says("tea", ValueError("no water"))
    done = await execute_tool_call("tea", [handler], after=[breaks, heard.append])
    assert done == (False, "tea handler failed: ValueError: no water")
    assert heard == [{"handler": "tea handler", "response": "tea", "need_return": False, "output": done[1]}]
    await execute_tool_call("milk", [handler], after=[heard.append])
    assert len(heard) == 1, "nothing was run"


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace with one file in it."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "a.txt").write_text("first\n")
    return folder


def block(name: str, arguments: str = "{}") -> str:
    return f'<TOOL_CALL>\n{{"name": "{name}", "arguments": {arguments}}}\n</TOOL_CALL>'


PATCH = '<PATCH file="a.txt">\n<SEARCH>first</SEARCH>\n<REPLACE>second</REPLACE>\n</PATCH>'


@pytest.mark.req("AG-53", "AG-60", "AG-137")
async def test_the_handlers_of_the_house_run_its_tools_and_the_log_knows(work: Path) -> None:
    agent = Agent("ann", toolsets=["read", "edit"])
    async with Greenroom(in_memory=True, workspace=work) as house:
        handlers = build_handlers(house, agent)
        assert [one.name() for one in handlers] == ["ToolRegistry", "EditFileHandler", "RewriteFileHandler"]
        need_return, prompt = await execute_tool_call(block("read_code", '{"file": "a.txt"}'), handlers)
        assert (need_return, "first" in prompt, "One action per reply" in prompt) == (False, True, False)
        (run,) = await house.runs()
        assert (await house.executed_tools(run.run_id)).last == "read_code"
        assert await execute_tool_call("Only words.", handlers) == (False, "")
        assert await execute_tool_call(f"```\n{PATCH}\n```", handlers) == (False, ""), "it is only shown"


async def test_a_tool_that_ends_the_work_says_so(work: Path) -> None:
    @tool
    def solve() -> Done:
        """Solve it."""
        return Done("It is 42.")

    async with Greenroom(in_memory=True) as house:
        handlers = build_handlers(house, Agent("ann", tools=[solve]))
        assert await execute_tool_call(block("solve"), handlers) == (True, "It is 42.")


async def test_what_is_wrong_with_a_block_is_what_the_agent_reads_next(work: Path) -> None:
    async with Greenroom(in_memory=True, workspace=work) as house:
        handlers = build_handlers(house, Agent("ann", toolsets=["read"]))
        _, unknown = await execute_tool_call(block("raed_code"), handlers)
        assert "there is no tool 'raed_code'" in unknown
        two = f"{block('list_files')}\n{block('list_files')}"
        _, several = await execute_tool_call(two, handlers)
        assert several.startswith("Nothing was run: only one operation at a time.")
        assert len(await house.runs()) == 2
        assert [(await house.executed_tools(one.run_id)).tools for one in await house.runs()] == [(), ()]


@pytest.mark.req("AG-70")
async def test_without_file_edits_neither_handler_is_there(work: Path) -> None:
    async with Greenroom(in_memory=True, workspace=work) as house:
        editing, reading = (
            build_handlers(house, make_jarvis_agent("You help.", disable_file_edit=bare)) for bare in (False, True)
        )
        assert await execute_tool_call(PATCH, reading) == (False, "")
        assert (work / "a.txt").read_text() == "first\n"
        _, prompt = await execute_tool_call(PATCH, editing)
    assert ((work / "a.txt").read_text(), "second" in prompt) == ("second\n", True)


@pytest.mark.parametrize("yes", [True, False])
async def test_permission_is_asked_for_as_in_a_run(work: Path, yes: bool) -> None:
    async with Greenroom(in_memory=True, workspace=work) as house:
        handlers = build_handlers(house, Agent("ann", toolsets=["command"]), approve=lambda _: yes)
        _, prompt = await execute_tool_call(block("execute_script", '{"script": "touch b"}'), handlers)
    assert ((work / "b").exists(), "Denied by the person." in prompt) == (yes, not yes)


@pytest.mark.req("AG-57", "AG-187")
@pytest.mark.parametrize("lines", [200, 9_000])
async def test_a_long_output_is_shown_as_a_file_where_the_platform_takes_files(lines: int) -> None:
    @tool(effect="pure", max_result_bytes=800)
    def count(to: int) -> str:
        """Count."""
        return "\n".join(f"line {number}" for number in range(to))

    model = Talker("openai:x", *(said(one) for one in ("Hello.", "We count.", "Counted.")), card=ModelCard(files=True))
    platform = talking_to(model)
    await platform.chat_until_success("Count.")
    async with Greenroom(in_memory=True) as house:
        handlers = build_handlers(house, Agent("ann", tools=[count]), platform=platform)
        _, prompt = await execute_tool_call(block("count", f'{{"to": {lines}}}'), handlers)
    assert prompt.startswith("What was said before, in short:\nWe count.\n\nThe whole output of count with ")
    assert (f'{{"to":{lines}}}' in prompt, "output.txt" in prompt) == (True, True)
    assert platform.context.get_history() == ()
    await platform.chat_until_success(prompt)
    (message,) = model.asked[-1].messages
    (media,) = message.media
    assert media.data.decode().splitlines()[-1] == f"line {lines - 1}"
    assert model.asked[1].messages[-1].media == (), "the summary is asked for without it"


@pytest.mark.req("AG-187")
@pytest.mark.parametrize("files", [True, False])
async def test_an_output_that_cannot_be_shown_as_a_file_is_shortened_and_nothing_is_forgotten(
    files: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    @tool(effect="pure", max_result_bytes=800)
    def count() -> str:
        """Count."""
        return "\n".join(f"line {number}" for number in range(500))

    async def refuses(_: BasePlatform, __: Sequence[str | Path]) -> bool:
        return False

    monkeypatch.setattr(BasePlatform, "upload_files", refuses)
    platform = talking_to(Talker("openai:x", said("Hello."), said("We count."), card=ModelCard(files=files)))
    await platform.chat_until_success("Count.")
    async with Greenroom(in_memory=True) as house:
        handlers = build_handlers(house, Agent("ann", tools=[count]), platform=platform)
        _, prompt = await execute_tool_call(block("count"), handlers)
    assert ("line 29\n" in prompt, "line 250" in prompt, "440 of 500 lines" in prompt) == (True, False, True)
    assert len(platform.context.get_history()) == 2
