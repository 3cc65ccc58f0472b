"""Each file of `examples/` runs as a user runs it, against a provider that plays its part."""

import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.docs.provider import provider, script
from tests.e2e.organised import SKILL, TEA, Company
from tests.e2e.terminal import PATIENCE, environment, greenroom
from tests.fake_openai.answers import Answer, Call

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
KEY = "sk-of-the-examples"
LARGEST = 10
"""More examples are not read."""

CALLS: Mapping[str, tuple[dict[str, object], ...]] = {
    "find_order": ({"number": 42},),
    "pay": ({"amount": 5, "receiver": "Ann"},),
    "measure": ({"station": "north"}, {"station": "east"}, {"station": "south"}),
    "call_agent": (
        {"agent_name": "botanist", "instruction": "One line, please."},
        {"agent_name": "historian", "instruction": "One line, please."},
    ),
}
"""The calls that the model makes with a tool, one after the other; agents are called together."""

ORGANISATION = Company(TEA)
"""What agents that plan are answered; each line serves once, so the pages have another one."""

REFUND = {"order": 42, "amount": 19.9, "reason": "One teapot arrived broken."}


def play(body: Mapping[str, Any], number: int) -> Answer:
    """Use the tools of an example in order, then answer with what they said."""
    if SKILL.search(str(body["messages"][-1]["content"])):
        return ORGANISATION(dict(body), number)
    tools = {each["function"]["name"] for each in body.get("tools", ())}
    results = [str(each["content"]) for each in body["messages"] if each["role"] == "tool"]
    name = next((each for each in tools if each in CALLS), None)
    if name == "call_agent" and not results:
        return Answer(calls=tuple(Call(name=name, arguments=each) for each in CALLS[name]))
    if name is not None and len(results) < len(CALLS[name]):
        return Answer(calls=(Call(name=name, arguments=CALLS[name][len(results)]),))
    if "answer" in tools and "reason" in str(body["tools"]):
        return Answer(calls=(Call(name="answer", arguments=REFUND),))
    if results and name is not None:
        return Answer(text=" ".join(results))
    question = str(body["messages"][-1]["content"])
    told = str(body["messages"][0]["content"])
    replies = {"bonjour": "Good day.", "bonsoir": "Good evening.", "poem": "Leaves in water."}
    found = next((reply for word, reply in replies.items() if word in question), None)
    if found is None and re.search(r"botanist|historian", told):
        found = "A leaf." if "botanist" in told else "A long story."
    return Answer(text=found) if found is not None else script(body, number)


@pytest.fixture(scope="module", name="address")
def _provider() -> Iterator[str]:
    with provider(play) as address:
        yield address


class Desk:
    """A person's terminal in a folder of their own."""

    def __init__(self, folder: Path, address: str) -> None:
        self.folder = folder
        self._own = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": address}

    def program(self, name: str, *words: str, stdin: str = "") -> list[str]:
        """The lines that an example prints."""
        ended = subprocess.run(
            [sys.executable, EXAMPLES / name, *words],
            env=environment(self.folder, **self._own),
            cwd=self.folder,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert ended.returncode == 0, ended.stderr
        return ended.stdout.splitlines()

    def command(self, *words: str) -> str:
        """What a command prints on stdout and stderr."""
        ended = greenroom(self.folder, *words, cwd=str(self.folder), **self._own)
        assert ended.code == 0, f"{words}: {ended.err}"
        return ended.out + ended.err

    def bring(self, name: str, folder: str) -> None:
        """Copy an example to its place in a project, and approve it."""
        place = self.folder / ".greenroom" / folder
        place.mkdir(parents=True)
        shutil.copy(EXAMPLES / name, place)
        self.command("trust", "--yes")


def _typed_output(desk: Desk) -> None:
    output, run = desk.program("typed_output.py")
    assert output == "Refund(order=42, amount=19.9, reason='One teapot arrived broken.')"
    assert re.fullmatch(r"run \w+, \$0\.\d{4}", run)


def _streaming(desk: Desk) -> None:
    called, returned, *rest = desk.program("streaming.py")
    assert called == "→ population {'city': 'Paris'}"
    assert returned == "← 2100000"
    assert "2100000 people live in Paris." in "".join(rest)


def _conversation(desk: Desk) -> None:
    lines = desk.program("conversation.py")
    assert lines[:4] == [
        "you: What does 'bonjour' mean?",
        "tutor: Good day.",
        "you: And 'bonsoir'?",
        "tutor: Good evening.",
    ]
    again = desk.program("conversation.py", lines[-1].split()[-1])
    assert again[:4] == lines[:4]
    assert len(again) == 9


def _approvals(desk: Desk) -> None:
    (line,) = desk.program("approvals.py", stdin="y\n")
    assert line.endswith("]: paid $5 to Ann")
    assert "not today" in " ".join(desk.program("approvals.py", stdin="not today\n"))


def _limits(desk: Desk) -> None:
    stopped, poem, cost = desk.program("limits.py")
    assert stopped.startswith("stopped (limit)")
    assert poem == "Leaves in water."
    assert cost.endswith(" of $0.50")


def _parallel(desk: Desk) -> None:
    lines = desk.program("parallel.py")
    assert [line.partition(":")[0] for line in lines] == ["green tea", "black tea", "white tea"]
    assert all("A leaf." in line and "A long story." in line for line in lines)


def _resume(desk: Desk) -> None:
    with subprocess.Popen(
        [sys.executable, EXAMPLES / "resume.py"],
        env=environment(desk.folder, **desk._own),
        cwd=desk.folder,
        stdout=subprocess.PIPE,
        text=True,
    ) as life:
        assert life.stdout is not None
        assert "north" in life.stdout.readline()
        assert "east" in life.stdout.readline()
        life.kill()
    lines = desk.program("resume.py")
    assert lines[0].startswith("continuing run ")
    assert [line.split()[1] for line in lines if line.startswith("measuring")] == ["east", "south"]
    assert lines[-1] == "310 275 402"


def _reviewer(desk: Desk) -> None:
    desk.bring("reviewer.md", "agents")
    assert "Never praise." in desk.command("prompt", "show", "reviewer")
    assert "Hello!" in desk.command("run", "Hello?", "--agent", "reviewer", "--question")


def _units(desk: Desk) -> None:
    desk.bring("units.py", "tools")
    assert "21 km are 13.05 miles" in desk.command("tools", "run", "convert", "--json", '{"value": 21, "unit": "km"}')


def _tea(desk: Desk) -> None:
    desk.bring("tea.toml", "teams")
    assert "tea" in desk.command("org", "list")
    said = desk.command("inbox", "tea", "--as", "ann", "--say", "A guide to green tea, please.", "--wait")
    assert "Green tea: 80 degrees, two minutes." in said


TRIALS: Mapping[str, Callable[[Desk], None]] = {
    "approvals.py": _approvals,
    "conversation.py": _conversation,
    "limits.py": _limits,
    "parallel.py": _parallel,
    "resume.py": _resume,
    "reviewer.md": _reviewer,
    "streaming.py": _streaming,
    "tea.toml": _tea,
    "typed_output.py": _typed_output,
    "units.py": _units,
}


@pytest.mark.no_cover
@pytest.mark.parametrize("name", sorted(TRIALS))
def test_an_example_runs_as_its_first_line_says(name: str, tmp_path: Path, address: str) -> None:
    TRIALS[name](Desk(tmp_path, address))


def test_every_example_is_tried_and_listed() -> None:
    names = {path.name for path in EXAMPLES.iterdir()} - {"README.md"}
    assert names == TRIALS.keys()
    assert len(names) <= LARGEST
    listed = (EXAMPLES / "README.md").read_text("utf-8")
    assert [name for name in names if f"({name})" not in listed] == []
