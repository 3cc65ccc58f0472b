"""Agents by name: who can change files works in a copy of them and is judged; who cannot only answers."""

from pathlib import Path

import pytest

from tests.e2e.jobs import call, git
from tests.e2e.provider import provider, reached
from tests.e2e.workshop import SETTINGS, Workshop, turns
from tests.fake_openai import Answer, Call
from tests.fake_openai.scripts import Reply
from tests.tiers import has_bubblewrap

pytestmark = pytest.mark.skipif(not has_bubblewrap(), reason="bubblewrap is not installed")

AGENT = "---\ndescription: Works.\n{keys}\n---\nDo what you are asked.\n"
TOOL = '''
from greenroom import tool


@tool(effect="effectful")
def stamp(text: str) -> str:
    """Stamp it."""
    open({file!r}, "a").write(text)
    return "stamped"
'''


def agents(**keys: str) -> dict[str, str]:
    return {f".greenroom/agents/{name}.md": AGENT.format(keys=lines) for name, lines in keys.items()}


def staffed(folder: Path, own: str = SETTINGS, **keys: str) -> Workshop:
    """A workshop with agents that its person has agreed to."""
    shop = Workshop(folder, own, **agents(**keys))
    shop.trusts()
    return shop


def test_an_agent_that_writes_works_in_a_copy_is_judged_and_its_work_is_taken_over_and_back(tmp_path: Path) -> None:
    shop = staffed(tmp_path, painter="groups: [read, edit]")
    told = shop.runs([turns("good, red"), Answer(text="It is red.")], "Paint it.", "--agent", "painter")
    assert told.code == 0, told.err
    assert "painter" in told.err
    assert "your files stay untouched" in told.err
    assert "✓ quick" in told.err
    assert shop.reads() == "good\n"
    assert shop.types("apply", "last").code == 0
    assert shop.reads() == "good, red\n"
    blamed = shop.types("blame", "app.txt:1").out
    assert "of painter: patch app.txt" in blamed
    dropped = shop.types("discard", "last")
    assert (dropped.code, "Dropped." in dropped.out) == (0, True), "it is applied: nobody is asked whether it may go"
    assert shop.types("undo", "last").code == 0
    assert shop.reads() == "good\n"


def test_those_whom_it_calls_work_in_the_same_copy_also_at_once_and_are_judged_with_it(tmp_path: Path) -> None:
    shop = staffed(
        tmp_path, lead="calls: [ann, bob]", ann="groups: [edit]\nmodel: fast", bob="groups: [edit]\nmodel: fast"
    )
    both = Answer(
        calls=tuple(
            Call(name="call_agent", arguments={"agent_name": name, "instruction": f"You are {name}."}, id=name)
            for name in ("ann", "bob")
        )
    )

    def helper(body: dict[str, object], _: int) -> Reply:
        name = "ann" if "You are ann." in str(body["messages"]) else "bob"
        if "written" in str(body["messages"]):
            return Answer(text=f"{name} is done.")
        return call("rewrite", 1, file=f"{name}.txt", content=f"by {name}\n")

    with provider({"gpt-5.5": [both, Answer(text="Both are done.")], "gpt-5.4-mini": helper}) as fake:
        told = shop.types("run", "Write.", "--agent", "lead", **reached(fake))
    assert told.code == 0, told.err
    assert not (shop.repo / "ann.txt").exists()
    assert shop.types("apply", "last", "-m", "Both").code == 0
    assert (shop.reads("ann.txt"), shop.reads("bob.txt")) == ("by ann\n", "by bob\n")
    assert git(shop.repo, "log", "-1", "--format=%s").strip() == "Both"
    wrote = {name: shop.types("blame", f"{name}.txt:1").out for name in ("ann", "bob")}
    assert all(f"of {name}:" in told for name, told in wrote.items()), wrote


def test_tools_that_know_no_copy_act_where_they_always_do_and_that_is_said(tmp_path: Path) -> None:
    shop = staffed(tmp_path, own="", clerk="groups: [edit]\ntools: [stamp]")
    stamped = tmp_path / "stamped.txt"
    own = shop.home / "config" / "greenroom" / "tools" / "stamp.py"
    own.parent.mkdir(parents=True)
    own.write_text(TOOL.format(file=str(stamped)))
    assert shop.types("permissions", "add", "allow tool stamp").code == 0
    replies = [call("stamp", 1, text="x"), Answer(text="Done.")]
    told = shop.runs(replies, "Stamp it.", "--agent", "clerk", "--question")
    assert told.code == 0, told.err
    assert "Not in the copy, but where they always act: stamp." in told.err
    assert stamped.read_text() == "x"
