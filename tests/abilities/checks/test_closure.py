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


MAKE = "all: run\nrun:\n\tpython3 app.py\ncheck: built\n\tsh ci/verify.sh\nbuilt:\n\tcc src/main.c\n"
MAKES = {"Makefile": MAKE, "ci/verify.sh": "true", "rules/ci.mk": "check:\n\tsh ci/verify.sh\n"}
BY_NAME = {
    "make -s check": MAKES,
    "make -j4 check": MAKES,
    "make -j 4 check": MAKES,
    "make CI=1 check": MAKES,
    "make built check V=1": MAKES,
    "make --no-print-directory check 2>&1 | tee out.log": MAKES,
    "make -t check": MAKES,
    "timeout 600 make -k check": MAKES,
    "uv run make check": MAKES,
    "env CI=1 gmake check": MAKES,
    "make -f rules/ci.mk check": MAKES,
    "make -sf rules/ci.mk": MAKES,
    "make --file=rules/ci.mk check": MAKES,
    "sh ci/all.sh": {**MAKES, "ci/all.sh": "make -s check\n"},
    "make -C web check": {"web/Makefile": "check:\n\tsh ../ci/verify.sh\n", "ci/verify.sh": "true"},
    "make -sCweb check": {"web/Makefile": "check:\n\tsh ../ci/verify.sh\n", "ci/verify.sh": "true"},
    "make --directory=web": {"web/Makefile": "check:\n\tsh ../ci/verify.sh\n", "ci/verify.sh": "true"},
    "just -q check": {"justfile": "run:\n    python3 app.py\ncheck *args:\n    sh ci/verify.sh\n", "ci/verify.sh": ""},
    "just check one": {"justfile": "run:\n    python3 app.py\ncheck *args:\n    sh ci/verify.sh\n", "ci/verify.sh": ""},
    "cd src && just check": {"justfile": "check:\n    sh ci/verify.sh\n", "ci/verify.sh": "true"},
    "task -s check": {"Taskfile.yml": "tasks:\n  check:\n    cmds: [sh ci/verify.sh]\n", "ci/verify.sh": "true"},
    "task check": {"Taskfile.yml": "tasks:\n  check:\n    cmds:\n      - sh ci/verify.sh\n", "ci/verify.sh": "true"},
    "bundle exec rake -q": {"Rakefile": "task :check do\n  sh 'ci/verify.sh'\nend\n", "ci/verify.sh": "true"},
    "tox -q -e py": {"tox.ini": "[testenv]\ncommands = sh ci/verify.sh\n", "ci/verify.sh": "true"},
    "nox -s t": {"noxfile.py": "def t(s):\n    s.run('sh', 'ci/verify.sh')\n", "ci/verify.sh": "true"},
    "npm -s run check": {"package.json": '{"scripts": {"check": "sh ci/verify.sh"}}', "ci/verify.sh": "true"},
    "npm t": {"package.json": '{"scripts": {"test": "npm run x", "x": "sh ci/verify.sh"}}', "ci/verify.sh": "true"},
    "npm run $WHAT": {"package.json": '{"scripts": {"check": "sh ci/verify.sh"}}', "ci/verify.sh": "true"},
    "npm --prefix web test": {"web/package.json": '{"scripts": {"test": "sh ../ci/verify.sh"}}', "ci/verify.sh": ""},
    "yarn --cwd=web test": {"web/package.json": '{"scripts": {"test": "sh ../ci/verify.sh"}}', "ci/verify.sh": ""},
    "composer -q check": {"composer.json": '{"scripts": {"check": ["sh ci/verify.sh"]}}', "ci/verify.sh": "true"},
    "deno task -q check": {"deno.json": '{"tasks": {"check": "sh ci/verify.sh"}}', "ci/verify.sh": "true"},
    "pdm run -v check": {"pyproject.toml": '[tool.pdm.scripts]\ncheck = "sh ci/verify.sh"\n', "ci/verify.sh": "true"},
}

PACKAGE = {"parts/web/package.json": '{"scripts": {"test": "sh ../../ci/verify.sh"}}', "ci/verify.sh": ""}
BY_NAME |= {
    "npm test -w web": {**PACKAGE, "package.json": '{"workspaces": ["parts/*"]}'},
    "npm run test --workspace=web": {**PACKAGE, "package.json": '{"workspaces": ["parts/web"]}'},
    "yarn workspace web test": {**PACKAGE, "package.json": '{"workspaces": {"packages": ["parts/**"]}}'},
    "pnpm -r test": {**PACKAGE, "package.json": "{}", "pnpm-workspace.yaml": "packages:\n  - 'parts/*'\n"},
    "npx turbo run test": {**PACKAGE, "package.json": '{"workspaces": ["parts/*"]}'},
    "turbo run test": {**PACKAGE, "package.json": '{"workspaces": ["parts/*"]}'},
}


@pytest.mark.parametrize("line", BY_NAME)
def test_what_a_recipe_runs_is_followed_however_it_is_called(line: str) -> None:
    found = judged(BY_NAME[line], "", line)
    assert found.check_of("ci/verify.sh") == "make test"
    assert not found.check_of("src/main.c"), "a compiler only reads it"
    assert not found.check_of("app.py"), "that is what another target runs"


@pytest.mark.parametrize(
    "line",
    ["make $(WHAT)", "make -f none.mk check", "make -C none check", "make other", "make", "make -I rules check"],
)
def test_where_nobody_can_tell_which_recipe_is_run_all_of_them_are_followed(line: str) -> None:
    found = judged({**MAKES, "Makefile": f".DEFAULT_GOAL = check\n{MAKE}"}, "", line)
    assert found.check_of("ci/verify.sh") == found.check_of("app.py") == "make test"


def test_without_a_name_the_first_recipe_is_run() -> None:
    first = "check:\n\tsh ci/verify.sh\nrun:\n\tpython3 app.py\n"
    found = judged({**MAKES, "Makefile": f".PHONY: run\n.SUFFIXES:\n{first}"}, "", "make -s")
    assert found.check_of("ci/verify.sh")
    assert not found.check_of("app.py")


@pytest.mark.parametrize("path", ["rules/ci.mk", "web/GNUmakefile", "Makefile"])
def test_the_files_of_recipes_judge_those_that_are_included_too(path: str) -> None:
    files = {"Makefile": "include rules/*.mk\n", "rules/ci.mk": "check:\n\t$(MAKE) -C web\n", "web/Makefile": "a:\n"}
    assert judged(files, "", "make -s check").check_of(path) == "make test"


def test_recipes_that_call_each_other_come_to_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    files = {"Makefile": "a:\n\t$(MAKE) b\nb:\n\t${MAKE} a\n\techo make c\nc:\n\tpython3 app.py\n"}
    found = judged(files, "", "make a")
    assert not found.cut
    assert not found.check_of("app.py"), "who only says it runs nothing"
    monkeypatch.setattr(closing, "MOST", 1)
    assert judged(files, "", "make a").cut


def test_what_sets_up_checks_by_its_name_is_not_said_twice() -> None:
    found = judged(BY_NAME["tox -q -e py"], "", "tox -q -e py")
    assert (found.check_of("ci/verify.sh"), found.check_of("tox.ini")) == ("make test", "")
