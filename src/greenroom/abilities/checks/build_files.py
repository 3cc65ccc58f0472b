"""Files that decide what a command of a check does: settings of checks, and descriptions of how a project is built.

Most of such a file is the work itself: its version, its dependencies. So of each only the part counts that checks
depend on; a file of which nobody knows the parts counts whole. What a program reads unasked is named here, by program.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final
from xml.etree.ElementTree import Element, ParseError, XMLParser, tostring

from greenroom.abilities.checks.cmake_sources import without_new_sources
from greenroom.abilities.checks.looking import ini, json_object, table, toml
from greenroom.core.base.records import Data, encode

MAKEFILES: Final = ("GNUmakefile", "makefile", "Makefile")
GRADLE: Final = (
    *("build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts", "gradle.properties"),
    *("gradlew", "gradle-wrapper.properties", "init.gradle"),
)
MAVEN: Final = ("pom.xml", "mvnw", "maven.config", "jvm.config", "extensions.xml", "maven-wrapper.properties")
CMAKE: Final = ("CMakeLists.txt", "CMakePresets.json", "CMakeUserPresets.json", "*.cmake")
READ_HERE: Final[Mapping[str, tuple[str, ...]]] = {
    "make": MAKEFILES,
    "gmake": MAKEFILES,
    "just": ("justfile", "Justfile", ".justfile"),
    "task": ("Taskfile.yml", "Taskfile.yaml"),
    "rake": ("Rakefile",),
}
"""Where it runs: all of them, for a new one may take the place of the one there is."""

READ_BELOW: Final[Mapping[str, tuple[str, ...]]] = {
    "cargo": ("Cargo.toml", "build.rs", "rust-toolchain", "rust-toolchain.toml"),
    "go": ("go.mod", "go.work"),
    "mvn": MAVEN,
    "mvnw": MAVEN,
    "gradle": GRADLE,
    "gradlew": GRADLE,
    "cmake": CMAKE,
    "ctest": CMAKE,
    "deno": ("deno.json", "deno.jsonc"),
    "composer": ("composer.json",),
    "phpunit": ("composer.json",),
    "mix": ("mix.exs", ".formatter.exs"),
    "swift": ("Package.swift",),
    "dotnet": ("*.csproj", "*.fsproj", "*.sln", "*.slnx", "Directory.Build.*", "*.runsettings", "global.json"),
    "uv": ("uv.toml",),
    "poetry": ("poetry.toml",),
}
"""Anywhere below: a project of several has one for each."""

TOOLS: Final = (
    *("pytest", "ruff", "mypy", "coverage", "pyright", "basedpyright", "tox", "nox", "black", "flake8", "pylint"),
    "isort",
)
RECIPES: Final = (("hatch", "envs"), ("pdm", "scripts"), ("poe",), ("taskipy",), ("rye", "scripts"))
"""Tables in which tools have what a command of theirs stands for."""

PYTHON_NEEDS: Final = (
    *(("project", "optional-dependencies"), ("dependency-groups",), ("tool", "uv", "sources")),
    *(("tool", "poetry", "dependencies"), ("tool", "poetry", "group"), ("tool", "poetry", "dev-dependencies")),
)
SECTIONS: Final = ("tool:pytest", "pytest", "mypy", "flake8", "coverage", "pylint", "isort", "tox", "aliases")
NODE: Final = (
    *("jest", "mocha", "vitest", "ava", "tap", "c8", "nyc", "babel", "eslintConfig", "eslintIgnore", "prettier"),
    *("stylelint", "xo", "standard", "lint-staged", "overrides", "resolutions"),
)
NODE_NEEDS: Final = ("dependencies", "devDependencies", "optionalDependencies", "peerDependencies")
HOOKS: Final = ("pre", "post", "install", "dependencies")
"""How scripts begin that are run unasked, before or after others."""

PLUGINS: Final = "pytest11"
"""Under this name a package brings plugins to pytest."""

CARGO: Final = ("lib", "bin", "test", "bench", "example", "profile", "patch", "replace", "lints")
CARGO_NEEDS: Final = ("dependencies", "dev-dependencies", "build-dependencies", "target")
CARGO_PACKAGE: Final = ("build", "autotests", "autobins", "autobenches", "autoexamples", "workspace", "metadata")
CARGO_WORKSPACE: Final = ("members", "exclude", "default-members", "lints", "metadata")
DENO: Final = ("tasks", "test", "lint", "fmt", "bench", "compilerOptions", "include", "exclude", "unstable")
COMPOSER: Final = ("scripts", "autoload-dev", "config", "repositories")
POM: Final = frozenset({"dependencies", "dependencyManagement", "version", "description", "name", "url"})
LONGEST: Final = 2_000_000

PLACES: Final = frozenset({"path", "git", "url", "file", "package", "registry"})
ELSEWHERE: Final = re.compile(r"^(?:\.|/|file:|link:|portal:|git)|@ ?file:|git\+|^https?:.*gz$|^[\w.-]+/[\w.-]+$")
"""How a dependency says that it is not what its name is elsewhere: it lies in a folder, or somebody else has it."""

DEPENDS: Final[Mapping[str, re.Pattern[str]]] = {
    "build.gradle": re.compile(
        r"^\s*(?:\w*[iI]mplementation|api|\w*[cC]ompileOnly|\w*[rR]untimeOnly)[ \t(]+(?:platform\()?"
        r"(?:\"[\w.:+-]*\"|'[\w.:+-]*'|libs\.[\w.]+)\)*\s*$|^\s*version\s*=?\s*[\"'][\w.+-]*[\"']\s*$"
    ),
    "mix.exs": re.compile(r"^\s*\{:\w+,\s*\"[^\"]*\"(?:,\s*only:[^}]*)?\},?\s*$|^\s*version:\s*\"[^\"]*\",?\s*$"),
    "cmakelists.txt": re.compile(r"^\s*(?:find_package|target_link_libraries)\s*\([^()]*\)\s*$", re.IGNORECASE),
    "package.swift": re.compile(r"^\s*\.(?:package|product)\((?![^()]*\bpath:)[^()]*\),?\s*$"),
    "go.mod": re.compile(r"^\s*(?:require\s+)?[\w.~/-]+\s+v\d\S*(?:\s*//.*)?$|^\s*(?:require\s*\(|\)|//.*)?\s*$"),
}
"""Lines that only name what is needed: whoever adds a dependency has changed no judge."""


def has_parts(name: str) -> bool:
    """Whether only a part of a file with this name is for checks."""
    return name.lower() in PARTS or _kind(name) in DEPENDS


def part_for_checks(name: str, content: bytes | None) -> bytes:
    """What of a file with this name decides about checks, in one form."""
    small, text = name.lower(), _text(content)
    read = PARTS.get(small)
    found = read(text) if read is not None else None
    if found is not None:
        return encode(_plain(found))
    lines = DEPENDS.get(_kind(name))
    if lines is None:
        return content or b""
    return "\n".join(line.rstrip() for line in text.splitlines() if not lines.match(line)).encode()


def same_for_checks(name: str, before: bytes | None, after: bytes | None) -> bool:
    """Whether what decides about checks in a file of this name is as it was. Scripts that are only added decide
    nothing, unless they are run unasked, and sources that are only added to a program are work."""
    if name.lower() == "cmakelists.txt" and before is not None and after is not None:
        after = without_new_sources(_text(before), _text(after)).encode()
    if part_for_checks(name, before) != part_for_checks(name, after):
        return False
    if name.lower() != "package.json":
        return True
    old, new = _scripts(before), _scripts(after)
    return old == {key: line for key, line in new.items() if key in old or key.startswith(HOOKS)}


def _scripts(content: bytes | None) -> Data:
    return table(json_object(_text(content)), "scripts")


def _text(content: bytes | None) -> str:
    return (content or b"").decode("utf-8-sig", "replace")


def _kind(name: str) -> str:
    return name.lower().removesuffix(".kts")


def _pyproject(text: str) -> Data | None:
    every = toml(text)
    if not every and text.strip():
        return None
    plugins = (table(every, "project", "entry-points", PLUGINS), table(every, "tool", "poetry", "plugins", PLUGINS))
    tables = (table(every, *path) for path in PYTHON_NEEDS)
    recipes = {".".join(path): table(every, "tool", *path) for path in RECIPES}
    needs = [_elsewhere(one) for one in (table(every, "project").get("dependencies"), *tables)]
    return {**{key: table(every, "tool", key) for key in TOOLS}, **recipes, PLUGINS: list(plugins), "needs": needs}


def _setup_cfg(text: str) -> Data:
    every = ini(text)
    found = {key: value for key, value in every.items() if key.startswith(SECTIONS)}
    return {**found, PLUGINS: every.get("options.entry_points", {}).get(PLUGINS, "")}


def _cargo(text: str) -> Data | None:
    every = toml(text)
    if not every and text.strip():
        return None
    package = {key: table(every, "package").get(key) for key in CARGO_PACKAGE}
    workspace = {key: table(every, "workspace").get(key) for key in CARGO_WORKSPACE}
    needs = [_elsewhere(table(every, key)) for key in CARGO_NEEDS]
    needs.append(_elsewhere(table(every, "workspace", "dependencies")))
    return {**{key: every.get(key) for key in CARGO}, "package": package, "workspace": workspace, "needs": needs}


def _elsewhere(value: object, at: str = "") -> dict[str, object]:
    """What of this names a place, however deep: a dependency by its version alone is not in it."""
    if isinstance(value, Mapping) and not PLACES.isdisjoint(value):
        return {at: value}
    if isinstance(value, Mapping):
        return {name: one for key in value for name, one in _elsewhere(value[key], f"{at}.{key}").items()}
    if isinstance(value, list):
        return {f"{at}.{one}": one for one in value if isinstance(one, str) and ELSEWHERE.search(one)}
    return {at: value} if isinstance(value, str) and ELSEWHERE.search(value) else {}


def _keys(*keys: str, needs: tuple[str, ...] = ()) -> Callable[[str], Data | None]:
    """These keys of a file in JSON, and what it `needs` from elsewhere. One that cannot be read (it may have comments
    in it) counts whole."""

    def read(text: str) -> Data | None:
        every = json_object(text)
        if not every and text.strip():
            return None
        return {**{key: every.get(key) for key in keys}, "needs": [_elsewhere(table(every, key)) for key in needs]}

    return read


def _pom(text: str) -> Data | None:
    parser = XMLParser()
    try:
        if "<!DOCTYPE" in text or "<!ENTITY" in text or len(text) > LONGEST:
            return None
        parser.feed(text)
        root = parser.close()
    except (ParseError, ValueError, RecursionError):
        return None
    kept = [one for one in root if _tag(one) not in POM or any(_tag(inner) == "systemPath" for inner in one.iter())]
    return {"parts": [b" ".join(tostring(one).split()).decode("utf-8", "replace") for one in kept]}


def _tag(element: Element) -> str:
    return element.tag.rpartition("}")[2]


PARTS: Final[Mapping[str, Callable[[str], Data | None]]] = {
    "pyproject.toml": _pyproject,
    "setup.cfg": _setup_cfg,
    "package.json": _keys(*NODE, needs=NODE_NEEDS),
    "cargo.toml": _cargo,
    "deno.json": _keys(*DENO, needs=("imports",)),
    "deno.jsonc": _keys(*DENO, needs=("imports",)),
    "composer.json": _keys(*COMPOSER),
    "pom.xml": _pom,
}


def _plain(value: object) -> object:
    """What can be written down: TOML has dates."""
    if isinstance(value, Mapping):
        return {str(key): _plain(value[key]) for key in sorted(value, key=str)}
    if isinstance(value, list):
        return [_plain(one) for one in value]
    return value if isinstance(value, str | int | float | bool) or value is None else str(value)
