"""Files that decide what a check's command does: each by the program that reads it, and only the part that decides."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.abilities.checks.build_files import DEPENDS, PARTS, part_for_checks
from greenroom.abilities.checks.changed import Changed
from greenroom.abilities.checks.closure import closure
from greenroom.abilities.checks.finding.found import found
from greenroom.abilities.checks.meddling import meddled, run_by_checks
from greenroom.core.ports.checks import Check
from tests.abilities.checks.shelves import Table

CMAKE = "project(a)\nenable_testing()\nadd_executable(t t.c)\nadd_test(NAME t COMMAND t)\n"
BUILT = f"{CMAKE}add_library(core STATIC\n  src/a.c\n)\nadd_executable(app main.c)\ntarget_sources(app PRIVATE x.c)\n"
NOTED = BUILT.replace("src/a.c", "src/a.c # first\n src/z.c")
CARGO = "[package]\nname = 'a'\nversion = '1.0.0'\n\n[dependencies]\n"
POM = "<project xmlns='urn:m'><version>1</version><dependencies/><build><x>1</x></build></project>"
GRADLE = "plugins { id 'java' }\ndependencies {\n    implementation 'a:b:1'\n}\ntest { useJUnitPlatform() }\n"
MIX = 'defmodule A do\n  [\n  version: "1.0",\n  deps: [\n      {:plug, "~> 1.0"},\n  ]]\nend\n'
GO = "module a\n\ngo 1.22\n\nrequire (\n\tb.com/c v1.0.0\n)\n"
SWIFT = 'let p = Package(dependencies: [\n    .package(url: "a", from: "1"),\n])\n'
DENO = '{"imports": {"a": "jsr:a"}, "tasks": {"test": "deno test"}}'
COMPOSER = '{"require": {"a": "1"}, "scripts": {"test": "phpunit"}}'

DECIDING = [
    ("CMakeLists.txt", CMAKE, CMAKE.replace("COMMAND t", "COMMAND true")),
    ("CMakeLists.txt", CMAKE, CMAKE.replace("enable_testing()\n", "")),
    ("lib/CMakeLists.txt", CMAKE, CMAKE + "set_tests_properties(t PROPERTIES WILL_FAIL TRUE)\n"),
    ("CMakeLists.txt", BUILT, BUILT.replace("(t t.c", "(t t.c more.c")),
    ("CMakeLists.txt", BUILT, BUILT.replace("COMMAND t", "COMMAND app").replace("main.c", "main.c more.c")),
    (
        "CMakeLists.txt",
        BUILT + "run_tests($<TARGET_FILE:app>)\n",
        (BUILT + "run_tests($<TARGET_FILE:app>)\n").replace("main.c", "main.c b.c"),
    ),
    ("CMakeLists.txt", NOTED, NOTED.replace("first\n", "first")),
    ("CMakeLists.txt", BUILT, BUILT.replace("main.c", "other.c")),
    ("CMakeLists.txt", BUILT, BUILT.replace("main.c", "main.c ../b.c")),
    ("CMakeLists.txt", BUILT, BUILT.replace("main.c", "main.c b.o")),
    ("CMakeLists.txt", BUILT, BUILT.replace("main.c", "main.c ${MORE}")),
    ("CMakeLists.txt", BUILT, BUILT.replace("main.c", "main.c tests/b.c")),
    ("CMakeLists.txt", BUILT, BUILT.replace("src/a.c", "src/b.c src/a.c EXCLUDE_FROM_ALL")),
    ("CMakeLists.txt", BUILT, BUILT.replace("(app main.c)", "(app main.c b.c)\nadd_executable(app b.c)")),
    (
        "CMakeLists.txt",
        f"{BUILT}add_executable(app b.c)\n",
        f"{BUILT}add_executable(app b.c)\n".replace("main.c", "b.c"),
    ),
    ("CMakeLists.txt", BUILT, f"{BUILT}add_executable(new new.c)\n"),
    (
        "CMakeLists.txt",
        "enable_testing()\nadd_library(core_test a.c)\n",
        "enable_testing()\nadd_library(core_test a.c b.c)\n",
    ),
    (
        "CMakeLists.txt",
        "enable_testing()\nadd_library(x test_a.c)\n",
        "enable_testing()\nadd_library(x test_a.c b.c)\n",
    ),
    ("Cargo.toml", CARGO, f"{CARGO}\n[lib]\ntest = false\n"),
    ("Cargo.toml", CARGO, CARGO.replace("[package]\n", "[package]\nautotests = false\n")),
    ("inner/Cargo.toml", CARGO, f"{CARGO}\n[profile.test]\ndebug-assertions = false\n"),
    ("Cargo.toml", CARGO, f"{CARGO}\n[patch.crates-io]\nassert_cmd = {{ path = 'fake' }}\n"),
    ("build.rs", "fn main() {}", "fn main() { panic!() }"),
    ("pom.xml", POM, POM.replace("<x>1</x>", "<skipTests>true</skipTests>")),
    ("build.gradle", GRADLE, GRADLE.replace("useJUnitPlatform()", "enabled = false")),
    ("build.gradle.kts", GRADLE, GRADLE.replace("useJUnitPlatform()", "enabled = false")),
    ("settings.gradle", "include 'a'", ""),
    ("mix.exs", MIX, MIX.replace("deps:", "test_paths: [], deps:")),
    ("go.mod", GO, f"{GO}\nreplace b.com/c => ./fake\n"),
    ("Package.swift", SWIFT, SWIFT.replace("Package(", "Package(targets: [], ")),
    ("deno.json", DENO, DENO.replace("deno test", "true")),
    ("deno.json", DENO, f"// a comment\n{DENO.replace('deno test', 'true')}"),
    ("composer.json", COMPOSER, COMPOSER.replace("phpunit", "true")),
    ("Cargo.toml", CARGO, f"{CARGO}\n[dev-dependencies]\npretty_assertions = {{ path = 'vendor/pa' }}\n"),
    ("Cargo.toml", CARGO, f"{CARGO}\n[target.'cfg(unix)'.dependencies]\nx = {{ version = '1', package = 'y' }}\n"),
    ("Cargo.toml", CARGO, f"{CARGO}\n[workspace.dependencies]\nx = {{ git = 'https://example.org/x' }}\n"),
    ("pom.xml", POM, POM.replace("<dependencies/>", "<dependencies><a><systemPath>x</systemPath></a></dependencies>")),
    (
        "build.gradle",
        GRADLE,
        GRADLE.replace("    imp", "    testImplementation 'a:b:1' }; test { enabled = false\n    imp"),
    ),
    ("build.gradle", GRADLE, GRADLE.replace("    imp", "    testImplementation files('fake.jar')\n    imp")),
    ("Package.swift", SWIFT, SWIFT.replace("])", '    .package(path: "fake"),\n])')),
    ("deno.json", DENO, DENO.replace('"jsr:a"', '"./fake.ts"')),
    ("composer.json", COMPOSER, COMPOSER.replace("{", '{"repositories": [{"type": "path"}], ', 1)),
    ("a.csproj", "<Project/>", "<Project><IsTestProject>false</IsTestProject></Project>"),
]
HARMLESS = [
    ("CMakeLists.txt", CMAKE, CMAKE.replace("enable_testing()\n", "enable_testing()\nfind_package(ZLIB REQUIRED)\n")),
    ("CMakeLists.txt", BUILT, BUILT.replace("src/a.c", "src/b.cpp\n  src/a.c")),
    ("CMakeLists.txt", BUILT, BUILT.replace("main.c", "main.c more.c more.h").replace("x.c", "x.c y.c")),
    ("Cargo.toml", CARGO, CARGO.replace("1.0.0", "1.1.0") + "serde = '1'\n"),
    ("pom.xml", POM, POM.replace("<dependencies/>", "<dependencies><a/></dependencies>")),
    ("build.gradle", GRADLE, GRADLE.replace("    imp", "    testImplementation 'c:d:2'\n    imp")),
    ("build.gradle.kts", GRADLE, GRADLE.replace("    imp", '    implementation("c:d:2")\n    imp')),
    (
        "build.gradle.kts",
        GRADLE,
        GRADLE.replace("    imp", "    testImplementation(platform(libs.junit.bom))\n    imp"),
    ),
    ("Cargo.toml", CARGO, CARGO + "serde = { version = '1', features = ['derive'], workspace = true }\n"),
    ("mix.exs", MIX, MIX.replace("      {:plug", '      {:jason, "~> 1.4"},\n      {:plug').replace('"1.0"', '"1.1"')),
    ("go.mod", GO, GO.replace(")\n", "\td.com/e v0.1.0 // indirect\n)\n")),
    ("Package.swift", SWIFT, SWIFT.replace("])", '    .package(url: "b", from: "1"),\n])')),
    ("deno.json", DENO, DENO.replace('"jsr:a"', '"jsr:a", "b": "jsr:b"')),
    ("composer.json", COMPOSER, COMPOSER.replace('"1"', '"1", "b": "2"')),
]
PROJECTS = {
    "CMakeLists.txt": CMAKE,
    "Cargo.toml": CARGO,
    "pom.xml": POM,
    "go.mod": GO,
    "mix.exs": MIX,
    "Package.swift": SWIFT,
    "deno.json": DENO,
    "composer.json": COMPOSER,
    "a.csproj": "<Project/>",
}


def judged(path: str, before: str, after: str, *projects: str) -> list[str]:
    look = Table({name: PROJECTS.get(name, GRADLE) for name in projects})
    change = Changed(path=path, before=before.encode(), after=after.encode())
    return [one.said for one in run_by_checks([change], closure(found(look), look)) if not one.doubtful]


def project_of(path: str) -> str:
    name = path.rpartition("/")[2]
    return {"build.rs": "Cargo.toml", "settings.gradle": "build.gradle"}.get(name, name)


@pytest.mark.parametrize(("path", "before", "after"), DECIDING)
def test_what_decides_what_a_command_does_is_a_judge_of_the_checks_that_run_it(
    path: str, before: str, after: str
) -> None:
    (said, *_) = judged(path, before, after, project_of(path))
    assert said.startswith(f"{path}, which '")
    assert said.endswith("runs or uses, was changed.")
    other = "go.mod" if project_of(path) != "go.mod" else "Cargo.toml"
    assert judged(path, before, after, other) == [], "nothing here reads it"


@pytest.mark.parametrize(("path", "before", "after"), HARMLESS)
def test_who_adds_a_dependency_has_changed_no_judge(path: str, before: str, after: str) -> None:
    assert before != after
    assert judged(path, before, after, project_of(path)) == []


def test_a_file_that_a_check_names_itself_counts_whole() -> None:
    look = Table({"Cargo.toml": CARGO})
    check = Check(name="quick", line="grep -q 1.0.0 Cargo.toml && cargo test", kind="test", why="w.")
    change = Changed(path="Cargo.toml", before=CARGO.encode(), after=CARGO.replace("1.0.0", "1.1.0").encode())
    assert run_by_checks([change], closure([check], look))


def test_a_new_file_that_a_program_reads_unasked_is_a_judge() -> None:
    look = Table({"Cargo.toml": CARGO})
    (one,) = run_by_checks([Changed(path="build.rs", after=b"fn main() {}")], closure(found(look), look))
    assert one.said == "build.rs, which 'cargo test' runs or uses, was added."


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("pyproject.toml", "[project.entry-points.pytest11]\nx = 'app.plugin'\n"),
        ("pyproject.toml", "[tool.poetry.plugins.pytest11]\nx = 'app.plugin'\n"),
        ("setup.cfg", "[options.entry_points]\npytest11 =\n    x = app.plugin\n"),
    ],
)
def test_a_plugin_that_a_project_brings_to_pytest_is_a_setting_of_checks(path: str, text: str) -> None:
    assert meddled([Changed(path=path, before=b"", after=text.encode())])
    assert not meddled([Changed(path=path, before=text.encode(), after=f"{text}\n[other]\na = 1\n".encode())])


NODE = """{"name": "a", "scripts": {"test": "npm run unit", "unit": "node t.js"}, "dependencies": {"a": "^1.0.0"}}"""
PROJECT = """[project]
name = "a"
readme = { file = "README.md" }
dependencies = ["b>=1"]
"""


@pytest.mark.parametrize(
    ("path", "before", "after", "counts"),
    [
        ("package.json", NODE, NODE.replace("node t.js", "true"), True),
        ("web/package.json", NODE, NODE.replace('"unit": ', '"preunit": "true", "unit": '), True),
        ("package.json", NODE, NODE.replace(', "unit": "node t.js"', ""), True),
        ("package.json", NODE, NODE.replace('"unit": ', '"start": "node .", "unit": '), False),
        ("package.json", NODE, NODE.replace('"^1.0.0"', '"^2.0.0", "b": "1.x || >=2"'), False),
        ("package.json", NODE, NODE.replace("^1.0.0", "file:./fake"), True),
        ("package.json", NODE, NODE.replace("^1.0.0", "somebody/fake"), True),
        ("package.json", NODE, NODE.replace('"name"', '"overrides": {"a": "1"}, "name"'), True),
        ("pyproject.toml", PROJECT, PROJECT.replace("b>=1", 'b>=1", "c==2'), False),
        ("pyproject.toml", PROJECT, PROJECT.replace("README.md", "docs/readme.md"), False),
        ("pyproject.toml", PROJECT, PROJECT.replace("b>=1", 'b>=1", "pytest @ file:///fake'), True),
        ("pyproject.toml", PROJECT, f"{PROJECT}\n[tool.uv.sources]\npytest = {{ path = 'fake' }}\n", True),
        ("pyproject.toml", PROJECT, f"{PROJECT}\n[tool.poetry.group.dev.dependencies]\na = {{ path = 'x' }}\n", True),
        ("pyproject.toml", PROJECT, f"{PROJECT}\n[tool.poetry.group.dev.dependencies]\na = '^1'\n", False),
        ("pyproject.toml", PROJECT, f"{PROJECT}\n[tool.pdm.scripts]\ntest = 'true'\n", True),
        ("pyproject.toml", PROJECT, f"{PROJECT}\n[tool.hatch.envs.default.scripts]\ntest = 'true'\n", True),
        ("pyproject.toml", PROJECT, f"{PROJECT}\n[tool.poe.tasks]\ntest = 'true'\n", True),
    ],
)
def test_scripts_and_what_comes_from_elsewhere_are_settings_of_checks(
    path: str, before: str, after: str, counts: bool
) -> None:
    assert before != after
    assert bool(meddled([Changed(path=path, before=before.encode(), after=after.encode())])) is counts


@given(st.sampled_from((*PARTS, *DEPENDS, "build.gradle.kts", "other.txt")), st.binary(max_size=300))
def test_any_bytes_have_a_part(name: str, content: bytes) -> None:
    assert isinstance(part_for_checks(name, content), bytes)
    assert part_for_checks(name, content) == part_for_checks(name.upper(), content)
