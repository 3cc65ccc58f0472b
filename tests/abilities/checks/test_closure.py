"""Which files judge the work: all that a check reaches, and not the work itself."""

import pytest

from greenroom.abilities.checks import closure as closing
from greenroom.abilities.checks.changed import Changed
from greenroom.abilities.checks.closure import Closure, closure
from greenroom.abilities.checks.meddling import run_by_checks
from greenroom.core.ports.checks import Check
from tests.abilities.checks.shelves import Table

ASSERTS = "import app\nassert app.add(2, 0) == 2\n"
WORK = {"app.py": "def add(a, b):\n    return a + b\n", "src/lib.py": "X = 1\n", "src/main.c": "int main() {}\n"}


def judged(files: dict[str, str], means: str, line: str = "make test", *, folder: str = ".") -> Closure:
    check = Check(name="make test", line=line, kind="test", why="Makefile has it.", means=means, folder=folder)
    return closure([check], Table({**WORK, **files}))


REACHED = {
    "a module": ("python3 -m verify.main", "verify/main.py", {"verify/main.py": ASSERTS}),
    "a package": ("python3 -m verify", "verify/__main__.py", {"verify/__main__.py": ASSERTS}),
    "a module with another name": ("python3 -m proof.all", "proof/all.py", {"proof/all.py": ASSERTS}),
    "a package above the module": ("python3 -m proof.all", "proof/__init__.py", {"proof/__init__.py": ""}),
    "another folder": ("cd ci && PYTHONPATH=.. python3 t.py", "ci/t.py", {"ci/t.py": ASSERTS}),
    "another folder that is called anything": ("@cd zz && sh t.sh", "zz/t.sh", {"zz/t.sh": "true"}),
    "a loop": ("for f in ci/*; do sh $$f || exit 1; done", "ci/10-add", {"ci/10-add": "true"}),
    "a loop over anything": ("for f in zz/*.x; do sh $$f || exit 1; done", "zz/10-add.x", {"zz/10-add.x": "true"}),
    "a file that is sourced": ("sh zz/t.sh", "zz/lib.sh", {"zz/t.sh": ". zz/lib.sh\n", "zz/lib.sh": "true"}),
    "a file that is sourced from beside it": (
        "sh zz/t.sh",
        "zz/lib.sh",
        {"zz/t.sh": 'cd "$(dirname $0)"\n. ./lib.sh\n', "zz/lib.sh": "true"},
    ),
    "a script of a script of a script": (
        "./a",
        "d",
        {"a": "exec ./b\n", "b": "if true; then ./c; fi\n", "c": "bash -c 'x=1 ./d && true'\n", "d": "true"},
    ),
    "a program in a variable": ("test:\n$(PY) zz/t.py\nPY = python3", "zz/t.py", {"zz/t.py": ASSERTS}),
    "a make in another folder": (
        "$(MAKE) -C zz test",
        "zz/t.sh",
        {"zz/Makefile": "test:\n\tsh t.sh\n", "zz/t.sh": "true"},
    ),
    "what it is compared with": ("python3 app.py | cmp - right.txt", "right.txt", {"right.txt": "2"}),
    "a setting": ("./run --cases=zz/cases.json", "zz/cases.json", {"zz/cases.json": "[]", "run": "true"}),
    "a module that asserts": (
        "python3 t.py",
        "proof.py",
        {"t.py": "from proof import same\nfrom app import add\nsame(add(1, 1), 2)\n", "proof.py": "assert 1\n"},
    ),
    "a module beside it": ("python3 zz/t.py", "zz/b.py", {"zz/t.py": "from .b import c\n", "zz/b.py": "assert 1\n"}),
    "a module of JavaScript": (
        "test: node zz/t.js",
        "zz/same.js",
        {"zz/t.js": "const same = require('./same')\n", "zz/same.js": "module.exports = (a) => assert(a)\n"},
    ),
    "a session of nox": ('    session.run("sh", "zz/t.sh")', "zz/t.sh", {"zz/t.sh": "true"}),
    "a line of tox": ("commands =\n    python zz/t.py", "zz/t.py", {"zz/t.py": ASSERTS}),
    "a setting of tox": ("commands = python zz/t.py {posargs}", "zz/t.py", {"zz/t.py": ASSERTS}),
    "a script that a program calls": (
        "python3 t.py",
        "zz/t.sh",
        {"t.py": 'import subprocess\nsubprocess.run(["sh", "zz/t.sh"])\n', "zz/t.sh": "true"},
    ),
    "an unclosed quote": ("sh -c 'cd . \n sh zz/t.sh", "zz/t.sh", {"zz/t.sh": "true"}),
}


@pytest.mark.parametrize("case", REACHED)
def test_what_a_check_reaches_judges(case: str) -> None:
    means, path, files = REACHED[case]
    found = judged(files, means)
    assert found.check_of(path) == "make test", found
    assert not found.check_of("app.py") or "python3 app.py" in means
    assert not found.cut


@pytest.mark.parametrize(
    "means",
    [
        "mypy src",
        "mypy src app.py",
        "gcc src/*.c -o t && ./t",
        "cd src && mypy lib.py",
        "python3 zz/t.py app.py src/lib.py",
        "python3 -m pytest src",
        "python3 -m pytest",
        'python3 -c "import app"',
        "cat ../../etc/passwd /etc/passwd; true # app.py",
        "x" * 20_000,
    ],
)
def test_the_work_itself_is_no_judge(means: str) -> None:
    found = judged({"zz/t.py": 'import app\nassert "app.py"\n'}, means)
    assert [path for path in WORK if found.check_of(path)] == []


def test_what_is_put_beside_judges_judges_too_and_is_said() -> None:
    found = judged({"ci/a": "true"}, "for f in ci/*; do sh $$f; done")
    (told,) = run_by_checks([Changed(path="ci/b", after=b"exit 0"), Changed(path="app.py", after=b"1")], found)
    assert told.said == "ci/b, which 'make test' runs or uses, was added."
    assert not told.doubtful


def test_a_program_that_may_be_the_work_is_doubtful_and_one_with_a_telling_name_is_not() -> None:
    found = judged({"check.sh": "true"}, "python3 app.py --all; ./check.sh")
    said = {one.path: one.doubtful for one in run_by_checks([Changed(path=p, before=b"1") for p in WORK], found)}
    assert said == {"app.py": True}
    assert not found.is_doubtful("check.sh")


def test_lines_put_into_a_script_of_tests_are_no_tests_that_were_added() -> None:
    found = judged({"tests/run.sh": "false\n"}, "sh tests/run.sh")
    change = Changed(path="tests/run.sh", before=b"false\n", after=b"exit 0\nfalse\n")
    assert [one.path for one in run_by_checks([change], found)] == ["tests/run.sh"]
    assert run_by_checks([Changed(path="tests/test_new.py", after=b"1")], found) == ()


def test_a_check_in_a_folder_is_followed_from_there() -> None:
    found = judged({"web/ci/t.sh": "true", "ci/t.sh": "true"}, "sh ci/t.sh", folder="web")
    assert found.check_of("web/ci/t.sh")
    assert not found.check_of("ci/t.sh")


def test_who_does_not_follow_all_of_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(closing, "MOST", 3)
    assert judged({f"ci/{name}": "true" for name in "abcd"}, "ls ci/*").cut
    assert not judged({f"ci/{name}": "true" for name in "abc"}, "ls ci/*").cut


def test_files_that_cannot_be_read_as_what_they_are_end_the_search_there() -> None:
    found = judged(
        {"check.py": "def (", "check": "\0\0sh app.py", "check.bin": "sh app.py"}, "./check check.py check.bin"
    )
    assert found.check_of("check.py")
    assert not found.check_of("app.py")


@pytest.mark.parametrize(
    ("line", "path"),
    [
        ("make test", "Makefile"),
        ("make test", "GNUmakefile"),
        ("just check", "justfile"),
        ("cd web && make test", "web/Makefile"),
        ("sh -c 'make test'", "Makefile"),
    ],
)
def test_the_file_of_a_recipe_judges_also_one_that_is_not_there_yet(line: str, path: str) -> None:
    found = judged({"web/x": ""}, "", line)
    assert found.check_of(path) == "make test"
    assert not found.is_doubtful(path)
    assert not found.check_of("app.py")


class Counting(Table):
    """A project that counts how often it is asked."""

    asked = 0

    def names(self, folder: str) -> frozenset[str]:
        self.asked += 1
        return super().names(folder)


def test_a_thousand_tests_are_all_followed_and_their_folder_is_asked_once() -> None:
    look = Counting({f"tests/test_{number}.py": ASSERTS for number in range(1000)})
    found = closure([Check(name="unit", line="python3 -m unittest -s tests", kind="test", why="")], look)
    assert (found.cut, found.check_of("tests/test_999.py")) == (False, "unit")
    assert look.asked < 1100, "each name once, and not for each name the whole folder"


def test_the_scripts_that_a_line_calls_are_followed_where_nobody_has_said_what_it_means() -> None:
    look = Table({"package.json": '{"scripts": {"unit": "node ci/run.js"}}', "ci/run.js": "", "app.js": ""})
    found = closure([Check(name="mine", line="npm run unit", kind="test", why="w.", own=True)], look)
    assert found.check_of("ci/run.js") == "mine"
    assert not found.check_of("app.js")
