"""Tools of one's own: what a file may give, how it is called, and that one broken file hurts no other."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from greenroom.app.settings.home import config_folder
from tests.app.custom.bench import Place

WEATHER = '''
from greenroom import ModelFault, tool

@tool(effect="pure")
def forecast(city: str) -> str:
    """The weather of tomorrow."""
    if city == "nowhere":
        raise ModelFault("There is no such city.")
    return f"rain in {city}"

@tool(group="web", timeout=1, max_result_bytes=2_000)
def order(what: str) -> str:
    """Order something."""
    return f"ordered {what}"

@tool
def breaks() -> str:
    """It breaks."""
    raise ValueError("broken")
'''
JARVIS = """
import threading

class say_it:
    name = "say_it"
    description = "Say it."
    parameters = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}

    def execute(self, args):
        if args["text"] == "bad":
            return {"success": False, "stdout": "half", "stderr": "no such text"}
        if args["text"] == "mute":
            return {"success": False}
        if args["text"] == "thread":
            return threading.current_thread().name
        return {"success": True, "stdout": args["text"], "stderr": "careful" if args["text"] == "both" else ""}

class later(say_it):
    name = "later"
    effect = "pure"
    seconds = 5

    async def execute(self, args):
        return {"success": True, "stdout": "later"}

class not_here(say_it):
    name = "not_here"

    @staticmethod
    def check():
        return False
"""


def touching(file: Path) -> str:
    """A line that shows that it was run."""
    return f"with open({str(file)!r}, 'a') as file: file.write('x')\n"


@pytest.mark.req("AG-188")
async def test_a_file_in_the_persons_folder_is_all_it_takes(place: Place) -> None:
    place.yours("tools/weather.py", WEATHER)
    place.yours("tools/_shared.py", "1 / 0")
    assert place.tools() == dict.fromkeys(("forecast", "order", "breaks"), "yours:weather.py")
    silent = await place.call("forecast", {"city": "Paris"})
    assert (silent.state, silent.result) == ("finished", {"output": "rain in Paris"})
    asked = await place.call("order", {"what": "tea"})
    assert asked.state == "awaiting_approval"
    ordered = await place.call("order", {"what": "tea"}, "yes")
    assert (ordered.state, ordered.result) == ("finished", {"output": "ordered tea"})
    refused = await place.call("order", {"what": "tea"}, "no")
    assert refused.state != "finished"
    assert refused.result is None


async def test_what_a_tool_says_of_itself_is_on_its_card(place: Place) -> None:
    place.yours("tools/weather.py", WEATHER)
    cards = {tool.name: tool.card for tool in place.equipment().tools}
    assert (cards["forecast"].group, cards["forecast"].effect) == ("read", "pure")
    assert (cards["breaks"].group, cards["breaks"].effect) == ("command", "effectful")
    assert (cards["order"].group, cards["order"].seconds, cards["order"].shown) == ("web", 1, 2_000)
    assert cards["order"].spec.parameters["required"] == ["what"]


@pytest.mark.req("AG-188")
@pytest.mark.parametrize(
    ("text", "state", "output", "error"),
    [
        ("hello", "finished", "hello", ""),
        ("both", "finished", "both\ncareful", ""),
        ("bad", "failed", "half", "no such text"),
        ("mute", "failed", None, "It failed and did not say why."),
    ],
)
async def test_a_class_in_jarvis_form_is_a_tool(
    place: Place, text: str, state: str, output: str | None, error: str
) -> None:
    place.yours("tools/say_it.py", JARVIS)
    assert set(place.tools()) == {"say_it", "later"}, "the third says that it cannot be used"
    step = await place.call("say_it", {"text": text}, "yes")
    assert (step.state, (step.result or {}).get("output"), step.error) == (state, output, error)


async def test_a_function_runs_in_a_thread_and_a_coroutine_does_not(place: Place) -> None:
    place.yours("tools/say_it.py", JARVIS)
    threaded = await place.call("say_it", {"text": "thread"}, "yes")
    assert (threaded.result or {})["output"] == "greenroom aside"
    assert (await place.call("later", {"text": ""})).result == {"output": "later"}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("def (", "cannot be run: SyntaxError in line 1"),
        ("import nothing_of_the_kind", "cannot be run: ModuleNotFoundError"),
        ("raise SystemExit(3)", "cannot be run: SystemExit"),
        ("class a:\n name=description='a'\n parameters=[]\n def execute(self, x): ...", "must be a JSON schema"),
        ("class a:\n name='a'\n description=''\n parameters={}\n def execute(self, x): ...", "has no description"),
        ("class a:\n name='a b'\n description='x'\n parameters={}\n def execute(self, x): ...", "not a valid tool"),
        ("class a:\n name=description='finish'\n parameters={}\n def execute(self, x): ...", "is a reserved name"),
        ("class a:\n name=description='a'\n parameters={}\n def execute(self, x): ...", "not a schema of an object"),
        (
            "class a:\n name=description='a'\n parameters={'type': 'object', 'required': 5}\n def execute(s, x): ...",
            "are not a JSON schema",
        ),
        (
            "class a:\n name=description='a'\n parameters={'type':'object'}\n group='x'\n def execute(s, x): ...",
            "has an unknown group 'x'",
        ),
        (
            "class a:\n name=description='a'\n parameters={'type':'object'}\n effect='x'\n def execute(s, x): ...",
            "has a bad effect 'x'",
        ),
        (
            "class a:\n name=description='a'\n parameters={'type':'object'}\n seconds=-1\n def execute(s, x): ...",
            "must be a whole number",
        ),
        (
            "class a:\n name=description='a'\n parameters={'type':'object'}\n execute=1\n def __init__(s): 1/0",
            "gives no tool: ZeroDivisionError",
        ),
        (
            "from greenroom import Context, tool\n@tool\ndef a(shop: Context[int]) -> int:\n  'It.'\n  return shop",
            "needs a context",
        ),
    ],
)
def test_a_broken_file_is_a_note_and_hurts_no_other(place: Place, text: str, why: str) -> None:
    broken = place.yours("tools/a.py", text)
    place.yours("tools/weather.py", WEATHER)
    equipment = place.equipment()
    assert {tool.name for tool in equipment.tools} == {"forecast", "order", "breaks"}
    (note,) = equipment.notes
    assert note.startswith(f"{broken}: ")
    assert why in note
    assert note.endswith("It is not used; repair it or move it away.")


def test_a_name_that_is_taken_is_refused_with_a_sentence(place: Place) -> None:
    place.yours("tools/a.py", WEATHER.replace("forecast", "read_code").replace("breaks", "order2"))
    place.yours("tools/b.py", WEATHER)
    place.project("tools/c.py", WEATHER)
    place.agreed = {"c.py"}
    equipment = place.equipment()
    assert {tool.name: tool.card.source for tool in equipment.tools} == {
        "order": "yours:a.py",
        "order2": "yours:a.py",
        "forecast": "yours:b.py",
        "breaks": "yours:b.py",
    }
    assert equipment.notes[:2] == (
        "The tool 'read_code' of yours:a.py is left out: there is a built-in one. Give it another name.",
        "The tool 'order' of yours:b.py is left out: yours:a.py defines one. Give it another name.",
    )
    assert len(equipment.notes) == 5


def test_the_projects_files_are_not_even_run_before_somebody_agrees(place: Place) -> None:
    marker = place.root / "marker"
    place.project("tools/weather.py", f"{touching(marker)}{WEATHER}")
    place.project("tools/other.py", touching(marker))
    equipment = place.equipment()
    assert equipment.tools == ()
    assert equipment.untrusted == (
        "Tools of this project are not used until you trust them: other.py, weather.py. Run: greenroom trust",
    )
    assert not marker.exists()
    place.agreed = {"weather.py"}
    assert place.tools() == dict.fromkeys(("forecast", "order", "breaks"), "project:weather.py")
    assert place.equipment().untrusted == (
        "Tools of this project are not used until you trust them: other.py. Run: greenroom trust",
    )
    assert marker.exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_that_cannot_be_read_is_a_note(place: Place) -> None:
    place.yours("tools/weather.py", WEATHER).chmod(0)
    assert "cannot be read" in place.equipment().notes[0]


SEVERAL = f"{WEATHER}\n{JARVIS}\ndef every():\n    return [forecast, order, say_it()]\n"


@pytest.mark.parametrize(
    ("entry", "names"),
    [
        ("a = {name}:forecast", {"forecast"}),
        ("a = {name}:say_it", {"say_it"}),
        ("a = {name}:every", {"forecast", "order", "say_it"}),
        ("a = {name}:forecast\nb = {name}:order", {"forecast", "order"}),
    ],
)
def test_packages_give_tools_by_entry_points(
    place: Place, monkeypatch: pytest.MonkeyPatch, entry: str, names: set[str]
) -> None:
    name = f"gr_weather_{len(entry)}"
    place.package(name, SEVERAL, entry.format(name=name))
    monkeypatch.syspath_prepend(str(place.packages))
    assert place.tools() == dict.fromkeys(names, f"package:{name}")


@pytest.mark.parametrize(
    ("number", "text", "why"),
    [
        (1, "1 / 0", "ZeroDivisionError"),
        (2, "thing = 5", "int is neither a tool nor a function that returns tools"),
        (3, "def thing(): raise SystemExit", "SystemExit"),
        (4, "def thing(): return [5]", "int is not a tool. Use @tool"),
        (5, "other = 1", "AttributeError"),
    ],
)
def test_a_broken_package_is_a_note(
    place: Place, monkeypatch: pytest.MonkeyPatch, number: int, text: str, why: str
) -> None:
    name = f"gr_broken_{number}"
    place.package(name, text, f"a = {name}:thing")
    place.package("gr_fine", WEATHER, "a = gr_fine:forecast")
    monkeypatch.syspath_prepend(str(place.packages))
    monkeypatch.delitem(sys.modules, "gr_fine", raising=False)
    equipment = place.equipment()
    assert [tool.name for tool in equipment.tools] == ["forecast"]
    (note,) = equipment.notes
    assert note.startswith(f"The package {name!r} has tools under 'a' that cannot be used: ")
    assert why in note


def test_what_lies_beside_a_named_settings_file_is_not_run(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "repo" / "tools").mkdir(parents=True)
    (tmp_path / "repo" / "tools" / "build.py").write_text("raise SystemExit('run')")
    (tmp_path / "repo" / "greenroom.toml").write_text("")
    monkeypatch.setenv("GREENROOM_CONFIG", str(tmp_path / "repo" / "greenroom.toml"))
    assert place.equipment().notes == ()
    assert config_folder() == place.config
