"""The checks of projects that have one usual way: Rust, Go, Ruby, Java, C and C++, Deno, PHP and more."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from greenroom.abilities.checks.looking import Place, json_object, table
from greenroom.core.ports.checks import Check, CheckKind

BUILT: Final = (
    'dir=$(mktemp -d) && cmake -S . -B "$dir" >/dev/null && cmake --build "$dir" && '
    'ctest --test-dir "$dir" --output-on-failure'
)
"""Outside of the tree: what is built is not part of the work."""


def others(place: Place) -> Iterator[Check]:
    """What the files of this folder say, one language after the other."""
    for find in (_rust, _go, _ruby, _java, _cmake, _deno, _php, _simple, _pre_commit):
        yield from find(place)


def _of(line: str, why: str, *, kind: CheckKind = "test", name: str = "", means: str = "") -> Check:
    return Check(name=name or line, line=line, kind=kind, why=why, means=means)


def _rust(place: Place) -> Iterator[Check]:
    if "Cargo.toml" in place.names:
        yield _of("cargo test --offline", "Cargo.toml is there.", name="cargo test")


def _go(place: Place) -> Iterator[Check]:
    if "go.mod" in place.names:
        yield _of("go test -v ./...", "go.mod is there.", name="go test")  # else it names only what fails
        yield _of("go vet ./...", "go.mod is there.", kind="lint", name="go vet")


def _ruby(place: Place) -> Iterator[Check]:
    bundled = "bundle exec " if "Gemfile" in place.names else ""
    if ".rspec" in place.names or (bundled and "spec" in place.names):
        source = place.first(".rspec") or "spec/"
        yield _of(f"{bundled}rspec", f"{source} is there.", name="rspec")
    elif "Rakefile" in place.names and "test" in place.names:
        means = place.text("Rakefile")
        yield _of(f"{bundled}rake test", "Rakefile and test/ are there.", name="rake test", means=means)
    if ".rubocop.yml" in place.names:
        yield _of(f"{bundled}rubocop", ".rubocop.yml is there.", kind="lint", name="rubocop")


def _java(place: Place) -> Iterator[Check]:
    gradle = place.first("build.gradle.kts", "build.gradle")
    if "pom.xml" in place.names:
        program = "./mvnw" if "mvnw" in place.names else "mvn"
        yield _of(f"{program} -o -B test", "pom.xml is there.", name="mvn test")
    elif gradle:
        program = "./gradlew" if "gradlew" in place.names else "gradle"
        yield _of(f"{program} --offline --console=plain test", f"{gradle} is there.", name="gradle test")


def _cmake(place: Place) -> Iterator[Check]:
    text = place.text("CMakeLists.txt").lower()
    if "enable_testing" in text or "include(ctest)" in text:
        yield _of(BUILT, "CMakeLists.txt has tests.", name="ctest")


def _deno(place: Place) -> Iterator[Check]:
    file = place.first("deno.json", "deno.jsonc")
    if not file:
        return
    task = table(json_object(place.text(file)), "tasks").get("test")
    if isinstance(task, str):
        yield _of("deno task test", f"{file} has the task 'test'.", means=task)
    else:
        yield _of("deno test", f"{file} is there.")
    yield _of("deno lint", f"{file} is there.", kind="lint")


def _php(place: Place) -> Iterator[Check]:
    script = table(json_object(place.text("composer.json")), "scripts").get("test")
    file = place.first("phpunit.xml", "phpunit.xml.dist", "phpunit.dist.xml")
    if script:
        yield _of("composer test", "composer.json has the script 'test'.", means=str(script))
    elif file:
        yield _of("vendor/bin/phpunit", f"{file} is there.", name="phpunit")


def _simple(place: Place) -> Iterator[Check]:
    if "mix.exs" in place.names:
        yield _of("mix test", "mix.exs is there.")
    if "Package.swift" in place.names:
        yield _of("swift test", "Package.swift is there.")
    solution = sorted(one for one in place.names if one.endswith((".sln", ".slnx", ".csproj", ".fsproj")))
    if solution:
        yield _of("dotnet test", f"{solution[0]} is there.")


def _pre_commit(place: Place) -> Iterator[Check]:
    file = place.first(".pre-commit-config.yaml", ".pre-commit-config.yml")
    if file:
        means = place.text(file)
        own = next((f"{one}/bin/" for one in (".venv", "venv") if "pre-commit" in place.inside(f"{one}/bin")), "")
        line = f"{own}pre-commit run --all-files"
        yield _of(line, f"{file} is there.", kind="lint", name="pre-commit", means=means)
