"""Charters: what a file says of an organisation, and a sentence for every mistake in it."""

from pathlib import Path

import pytest

from greenroom.app.organisation.charter import (
    CharterPerson,
    NewCharter,
    charter_path,
    charters_folder,
    find_charter,
    list_charters,
    read_charter,
    write_charter,
)
from greenroom.app.settings.schema import LimitSettings
from greenroom.core.base.errors import RefusedError, WorldFault


def put(root: Path, text: str, name: str = "tea") -> Path:
    path = charter_path(root, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


WHOLE = """
language = "zh"
people = ["ann", "ben"]
managers = ["boss"]
blueprints = ["writer"]
model = "strong"
[limits]
cost = 2
tokens = "200k"
time = "10m"
[person.ann]
role = "head of tea"
profile = "Knows every leaf."
tools = ["read_code"]
"""


def test_all_that_a_charter_can_say(tmp_path: Path) -> None:
    charter = read_charter(tmp_path, put(tmp_path, WHOLE))
    assert (charter.name, charter.language, charter.model) == ("tea", "zh", "strong")
    assert (charter.managers, charter.blueprints) == (("boss",), ("writer",))
    assert charter.caps == LimitSettings(cost=2.0, tokens=200_000, time=600.0)
    assert charter.people == (
        CharterPerson(name="ann", role="head of tea", profile="Knows every leaf.", tools=("read_code",)),
        CharterPerson(name="ben"),
    )


def test_every_mistake_has_its_sentence(tmp_path: Path) -> None:
    wrong = 'language = "fr"\npeople = ["a b"]\nmanger = ["x"]\nmanagers = []\n[limits]\ncost = "much"\n'
    with pytest.raises(WorldFault) as fault:
        read_charter(tmp_path, put(tmp_path, wrong))
    lines = str(fault.value).splitlines()
    assert len(lines) == 5
    assert all("tea.toml: " in line for line in lines)
    said = " ".join(lines)
    for words in ("`language` must be", "`people` must be", "no `manger`. Did you mean `managers`?", "no manager"):
        assert words in said
    assert "`limits.cost` must be" in said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("people = [1]", '`people` must be a list of names, like ["one", "two"], not [1].'),
        ('people = ["To"]', "'To' is a command or a task. Give this person another name."),
        ('people = ["help"]', "a command or a task. Give this person another name."),
        ('people = ["t1"]', "a command or a task. Give this person another name."),
        ('people = ["T2.s1"]', "a command or a task. Give this person another name."),
        ("people = []", "it has no people"),
        ("", "it has no people"),
        ('people = ["manager"]', "'manager' is a person and a manager"),
        ('people = ["Manager"]', "'Manager' is a person and a manager"),
        ('people = ["writer"]', "'writer' is a reserved name"),
        ('people = ["DOOR"]', "'DOOR' is a reserved name"),
        ('people = ["ann", "ANN"]', "'ann' and 'ANN' look alike"),
        ('people = ["ann", "\N{CYRILLIC SMALL LETTER A}nn"]', "mixes letters of different scripts that look alike"),
        ('people = ["ann", "ａｎｎ"]', "look alike"),
        ('people = ["ann"]\n[person.ben]\nrole = "x"', "has no effect: 'ben' is not among"),
        ('people = ["ann"]\nperson = 3', "`person` is a table"),
        ("people = [", "is not TOML"),
    ],
)
def test_what_cannot_be_is_said(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(WorldFault, match=r"tea.toml") as fault:
        read_charter(tmp_path, put(tmp_path, text))
    assert said in str(fault.value)


def test_a_charter_is_found_by_name_or_what_there_is_is_said(tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match=r"no organisation 'tea' here. Create it with `greenroom org new tea`"):
        find_charter(tmp_path, "tea")
    put(tmp_path, 'people = ["ann"]')
    assert list_charters(tmp_path) == ("tea",)
    assert find_charter(tmp_path, "tea").name == "tea"
    with pytest.raises(RefusedError, match="Did you mean 'tea'"):
        find_charter(tmp_path, "te")
    with pytest.raises(RefusedError, match="There are: tea"):
        find_charter(tmp_path, "coffee")


def test_a_charter_that_leads_elsewhere_or_is_gone_is_not_read(tmp_path: Path) -> None:
    root, outside = tmp_path / "project", tmp_path / "outside.toml"
    outside.write_text('people = ["ann"]')
    charters_folder(root).mkdir(parents=True)
    charter_path(root, "tea").symlink_to(outside)
    with pytest.raises(WorldFault, match="leads out of the project"):
        find_charter(root, "tea")
    with pytest.raises(WorldFault, match="is gone"):
        read_charter(root, charter_path(root, "coffee"))


def test_what_is_written_can_be_read_and_is_shared(tmp_path: Path) -> None:
    path = write_charter(tmp_path, NewCharter(name="tea", people=("ann", "ben"), language="zh", model="fast"))
    charter = read_charter(tmp_path, path)
    assert ([one.name for one in charter.people], charter.language, charter.model) == (["ann", "ben"], "zh", "fast")
    assert "!teams/*.toml" in (tmp_path / ".greenroom" / ".gitignore").read_text()
    with pytest.raises(RefusedError, match="The organisation 'tea' already exists"):
        write_charter(tmp_path, NewCharter(name="tea", people=("ann",), language="en"))
    assert path.read_text(encoding="utf-8").startswith("# 一个组织")
    unsaid = write_charter(tmp_path, NewCharter(name="plain", people=("ann",), language="en"))
    assert read_charter(tmp_path, unsaid).model == ""


@pytest.mark.parametrize(
    "wish",
    [
        NewCharter(name="../tea", people=("ann",), language="en"),
        NewCharter(name="tea", people=("a b",), language="en"),
        NewCharter(name="tea", people=("ann",), language="en", model="http://here"),
        NewCharter(name="tea", people=("ann", "ann"), language="en"),
        NewCharter(name="tea", people=("Manager",), language="en"),
        NewCharter(name="tea", people=("ann", "ANN"), language="en"),
        NewCharter(name="tea", people=("ann",), language="en", others=("Ann",)),
    ],
)
def test_what_could_not_be_read_again_is_not_written(tmp_path: Path, wish: NewCharter) -> None:
    with pytest.raises(RefusedError, match=r"cannot be|twice|another name"):
        write_charter(tmp_path, wish)
    assert not charters_folder(tmp_path).exists()


def test_a_folder_that_is_no_project_gets_no_charter(tmp_path: Path) -> None:
    root, elsewhere = tmp_path / "project", tmp_path / "elsewhere"
    root.mkdir()
    elsewhere.mkdir()
    (root / ".greenroom").symlink_to(elsewhere)
    with pytest.raises(WorldFault, match="is not a folder of this project"):
        write_charter(root, NewCharter(name="tea", people=("ann",), language="en"))
    (tmp_path / "file").write_text("")
    with pytest.raises(WorldFault, match="cannot be written"):
        write_charter(tmp_path / "file", NewCharter(name="tea", people=("ann",), language="en"))
