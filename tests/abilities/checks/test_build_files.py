"""Files that decide what a check's command does: each by the program that reads it, and only the part that decides."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.abilities.checks.build_files import DEPENDS, PARTS, part_for_checks
from greenroom.abilities.checks.closure import closure
from greenroom.abilities.checks.finding.found import found
from greenroom.abilities.checks.meddling import Changed, meddled, run_by_checks
from greenroom.core.ports.checks import Check
from tests.abilities.checks.shelves import Table

CMAKE = "project(a)\nenable_testing()\nadd_executable(t t.c)\nadd_test(NAME t COMMAND t)\n"
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
    ("a.csproj", "<Project/>", "<Project><IsTestProject>false</IsTestProject></Project>"),
]
HARMLESS = [
    ("CMakeLists.txt", CMAKE, CMAKE.replace("enable_testing()\n", "enable_testing()\nfind_package(ZLIB REQUIRED)\n")),
    ("Cargo.toml", CARGO, CARGO.replace("1.0.0", "1.1.0") + "serde = '1'\n"),
    ("pom.xml", POM, POM.replace("<dependencies/>", "<dependencies><a/></dependencies>")),
    ("build.gradle", GRADLE, GRADLE.replace("    imp", "    testImplementation 'c:d:2'\n    imp")),
    ("build.gradle.kts", GRADLE, GRADLE.replace("    imp", '    implementation("c:d:2")\n    imp')),
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


@given(st.sampled_from((*PARTS, *DEPENDS, "build.gradle.kts", "other.txt")), st.binary(max_size=300))
def test_any_bytes_have_a_part(name: str, content: bytes) -> None:
    assert isinstance(part_for_checks(name, content), bytes)
    assert part_for_checks(name, content) == part_for_checks(name.upper(), content)
