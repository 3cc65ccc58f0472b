"""Find semantic conflicts: two changes that git merges cleanly, but that do not fit each other.

A finding is a use that one side wrote, that fits the definitions of that side, and that does not fit the merged ones;
or a name that both sides gave to different things. Python is read with `ast`; TypeScript and JavaScript need the extra
`merge` and are left out without it.
"""

from __future__ import annotations

import builtins
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from posixpath import basename, dirname, join, normpath, splitext
from typing import Final, Literal, TypeAlias

from greenroom.core.base.errors import translate
from greenroom.core.base.records import evolve, record
from greenroom.teamwork.symbols.source import CALL, Call, Chain, Definition, Signature, Symbols, Use, read_python
from greenroom.teamwork.symbols.typescript import read_script

Content: TypeAlias = str | bytes
Contents: TypeAlias = Mapping[str, Content]
Message: TypeAlias = tuple[str, Mapping[str, object]]
SCRIPTS: Final = (".ts", ".tsx", ".mts", ".cts", ".js", ".jsx", ".mjs", ".cjs")
ALIASES: Final = ("@/", "~/", "src/")
DEEPEST: Final = 12
MAX_SIZE: Final = 1_000_000
"""A larger file is generated, and is not read."""
EMPTY_BASES: Final = frozenset({"ABC", "Enum", "Exception", "IntEnum", "Protocol", "StrEnum", "TypedDict", "object"})
"""Classes of Python itself that bring no members that a project would name."""


@record
class Place:
    """Where a definition or a use is."""

    path: str
    line: int

    def __str__(self) -> str:
        """Return `path:line`."""
        return f"{self.path}:{self.line}"


@record
class SemanticConflict:
    """Two places that do not fit each other. The author of the right side mends it."""

    kind: Literal["api-inconsistency", "naming-conflict"]
    name: str
    left: Place
    right: Place
    sentence: str


Finding: TypeAlias = tuple[Literal["api-inconsistency", "naming-conflict"], str, Place, Place, Message]


@record
class Found:
    """A definition and its file; a module if there is no definition, or what the file does not have."""

    path: str
    definition: Definition | None = None
    is_missing: bool = False

    @property
    def place(self) -> Place:
        """Where it is."""
        return Place(path=self.path, line=self.definition.line if self.definition else 1)


def find_semantic_conflicts(
    base: Contents,
    left: Contents,
    right: Contents,
    merged: Contents,
    *,
    paths: Iterable[str] = (),
    read: Callable[[str], Content | None] = lambda path: None,
    authors: tuple[str, str] = ("left", "right"),
) -> tuple[SemanticConflict, ...]:
    """Return what does not fit in a clean merge. Files that do not parse are left out.

    Each mapping holds the files that either side changed, as they are in that version; a missing one does not exist
    there. `paths` are the files that neither side changed, and `read` returns the content of one of them.
    In a merge queue `left` is main before the entry, `right` the entry, `base` their merge base and `merged` git's
    result. `authors` name the two sides in the sentences.
    """
    merge = _Merge((base, left, right, merged), paths, read, authors)
    found: dict[tuple[str, str, str], SemanticConflict] = {}
    for kind, name, first, second, (code, words) in (*merge.list_misfits(), *merge.list_twice()):
        sentence = translate(code, name=name, left=first, right=second, **words)
        conflict = SemanticConflict(kind=kind, name=name, left=first, right=second, sentence=sentence)
        found.setdefault((name, first.path, second.path), conflict)
    return tuple(found.values())


def parse_symbols(path: str, text: Content) -> Symbols | None:
    """Return the symbols of a Python, TypeScript or JavaScript file, None for others and for what does not parse."""
    if not path.endswith((".py", *SCRIPTS)) or path.endswith(".d.ts") or len(text) > MAX_SIZE:
        return None
    try:
        text = text.decode() if isinstance(text, bytes) else text
        with warnings.catch_warnings(action="ignore"):
            return read_python(text) if path.endswith(".py") else read_script(text, is_jsx=not path.endswith("ts"))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _name_module(path: str) -> str:
    """Return the name by which a file is imported: without its ending, a package by its folder; "" if it is none."""
    stem, ending = splitext(path)
    stem = dirname(stem) if basename(stem) in {"__init__", "index"} else stem
    return f"{stem}.py" if ending == ".py" else stem if ending in SCRIPTS else ""


class _Files:
    """The files of all versions, by the names of their modules: a module that is gone is known to be gone."""

    def __init__(self, changed: Iterable[str], paths: Iterable[str], read: Callable[[str], Content | None]) -> None:
        self.unchanged = set(paths).difference(changed)
        self.read, self.parse = cache(read), cache(parse_symbols)
        self.files: dict[str, list[str]] = {}
        self.tails: dict[str, list[str]] = {}
        for path in sorted({*self.unchanged, *changed}):
            if name := _name_module(path):
                self.files.setdefault(name, []).append(path)
        for name in self.files:
            self.tails.setdefault(basename(name), []).append(name)

    def find(self, path: str, name: str) -> list[str]:
        """Return the files of a module that the file `path` imports."""
        if path.endswith(".py"):
            level = len(name) - len(name.lstrip("."))
            tail = name[level:].replace(".", "/")
            folder = normpath(join(dirname(path), "../" * (level - 1), tail))
            return self.files.get(f"{folder}.py", []) if level else self.find_tail(path, f"{tail}.py")
        stem = splitext(name)[0] if name.endswith(SCRIPTS) else name
        if stem.startswith("."):
            return self.files.get(normpath(join(dirname(path), stem)), [])
        return next((self.find_tail(path, stem.removeprefix(alias)) for alias in ALIASES if stem.startswith(alias)), [])

    def find_tail(self, path: str, tail: str) -> list[str]:
        """Return the module with this end of its name that is nearest to `path`. A package is not a root of modules."""
        found = []
        for name in self.tails.get(basename(tail), ()):
            root = name.removesuffix(tail)
            package = self.files.get(f"{root.rstrip('/')}.py", [""])[0]
            if f"/{name}".endswith(f"/{tail}") and not package.endswith("__init__.py"):
                found.append((not path.startswith(root), -len(root) if path.startswith(root) else len(root), name))
        return self.files[min(found)[2]] if found else []


class _Version:
    """One version of the project, in which names are resolved. None is what cannot be known."""

    def __init__(self, files: _Files, contents: Contents) -> None:
        self.files, self.contents = files, contents

    def has(self, path: str) -> bool:
        return path in self.contents or path in self.files.unchanged

    def parse(self, path: str) -> Symbols | None:
        text = self.files.read(path) if path in self.files.unchanged else self.contents.get(path)
        return None if text is None else self.files.parse(path, text)

    def find_module(self, path: str, name: str) -> Found | None:
        files = self.files.find(path, name)
        here = [file for file in files if self.has(file)]
        return Found(path=(here or files)[0], is_missing=not here) if files else None

    def resolve(self, path: str, chain: Chain, depth: int = 0) -> Found | None:
        """Return what a chain in a file is."""
        source = self.parse(path)
        if not source or not chain or depth > DEEPEST:
            return None
        size = next((size for size in range(len(chain), 1, -1) if ".".join(chain[:size]) in source.imports), 1)
        head = ".".join(chain[:size])
        is_local = head in source.locals
        target = self.resolve(path, source.locals[head], depth + 1) if is_local else self.look_up(path, head, depth)
        for name in chain[size:]:
            target = self.step(target, name, depth + 1) if target and not target.is_missing else target
        return target

    def look_up(self, path: str, name: str, depth: int = 0, *, is_export: bool = False) -> Found | None:
        """Return what a name of a file is; with `is_export` as another file sees it."""
        source, missing = self.parse(path), Found(path=path, is_missing=True)
        if source is None or depth > DEEPEST:
            return None if self.has(path) else missing
        local = source.exports.get(name, "") if is_export and source.exports is not None else name
        if local in source.definitions:
            return Found(path=path, definition=source.definitions[local])
        if local in source.imports:
            return self.follow(path, *source.imports[local], depth + 1)
        for star in source.stars:
            module = self.find_module(path, star)
            target = self.look_up(module.path, name, depth + 1, is_export=True) if module else None
            if not target or not target.is_missing:
                return target
        is_dynamic = "__getattr__" in source.definitions or (is_export and local and source.exports is not None)
        return None if is_dynamic or (not is_export and hasattr(builtins, name)) else missing

    def follow(self, path: str, module: str, name: str, depth: int) -> Found | None:
        """Return what an import brings: a module, or a name of one. A folder without `__init__.py` has modules only."""
        target = self.find_module(path, module)
        if name and target:
            return self.step(target, name, depth)
        return self.find_module(path, f"{module.rstrip('.')}.{name}") if name and path.endswith(".py") else target

    def step(self, target: Found, name: str, depth: int) -> Found | None:
        """Return what a member of a module or of an object is, or what a call brings."""
        definition = target.definition
        if definition is None:
            found = self.look_up(target.path, name, depth, is_export=True)
            is_package = target.path.endswith("__init__.py") and found and found.is_missing
            inner = self.find_module(target.path, f".{name}") if is_package else None
            return inner or found
        if definition.kind == "class":
            return target if name == CALL else self.find_member(target.path, definition, name, depth)
        if definition.kind == "function" and name != CALL:
            return None
        owner = self.resolve(target.path, definition.type, depth + 1)
        return owner if not owner or definition.kind == "function" else self.step(owner, name, depth + 1)

    def find_member(self, path: str, owner: Definition, name: str, depth: int) -> Found | None:
        """Return a member of a class or of the classes it is derived from."""
        source = self.parse(path)
        known = source.definitions if source else {}
        if own := known.get(f"{owner.name}.{name}"):
            return Found(path=path, definition=own)
        if f"{owner.name}.__getattr__" in known or depth > DEEPEST:
            return None
        for chain in owner.bases:
            base = self.resolve(path, chain, depth + 1)
            found = self.find_member(base.path, base.definition, name, depth + 1) if base and base.definition else None
            if chain[-1:] and chain[-1] in EMPTY_BASES and not found:
                continue
            if not found or not found.is_missing:
                return found
        return Found(path=path, is_missing=True)

    def list_signatures(self, found: Found | None) -> list[Signature]:
        """Return how a definition can be called, a class by its constructor, with the fields of each parameter."""
        if not found or not found.definition:
            return []
        is_class = found.definition.kind == "class"
        maker = self.find_member(found.path, found.definition, "__init__", 0) if is_class else None
        path, made = (maker.path, maker.definition) if maker and maker.definition else (found.path, found.definition)
        types = {part.type: self.resolve(path, part.type) for signature in made.signatures for part in signature}
        shapes = {
            of: (*owner.definition.signatures, ())[0] for of, owner in types.items() if owner and owner.definition
        }
        return [tuple(evolve(part, fields=shapes.get(part.type, ())) for part in row) for row in made.signatures]


class _Merge:
    """The four versions of a merge, and what does not fit in them."""

    def __init__(
        self,
        versions: tuple[Contents, Contents, Contents, Contents],
        paths: Iterable[str],
        read: Callable[[str], Content | None],
        authors: tuple[str, str],
    ) -> None:
        self.changed = sorted({path for contents in versions for path in contents})
        self.files, self.authors = _Files(self.changed, paths, read), authors
        self.base, self.left, self.right, self.merged = (_Version(self.files, contents) for contents in versions)

    def list_misfits(self) -> Iterator[Finding]:
        """Return the uses that one side alone has, that fit the definitions of that side and not the merged ones."""
        for ours, other, author in ((self.left, self.right, self.authors[1]), (self.right, self.left, self.authors[0])):
            for place, use in self.list_new_uses(ours, other):
                if misfit := self.find_misfit(ours, place.path, use):
                    name, changed, (code, values) = misfit
                    words = {**values, "place": changed, "use": place, "author": author}
                    pair = (place, changed) if ours is self.left else (changed, place)
                    yield "api-inconsistency", name, *pair, (code, words)

    def list_new_uses(self, ours: _Version, other: _Version) -> Iterator[tuple[Place, Use]]:
        for path in self.changed:
            sources = [view.parse(path) for view in (self.merged, ours, other)]
            merged, mine, theirs = (source.uses if source else {} for source in sources)
            for use in [use for use in merged if use in mine and use not in theirs]:
                yield Place(path=path, line=merged[use]), use

    def find_misfit(self, ours: _Version, path: str, use: Use) -> tuple[str, Place, Message] | None:
        """Return the name, the place of the definition and the message if a use does not fit the merged version."""
        before, after = ours.resolve(path, use.chain), self.merged.resolve(path, use.chain)
        if not before or before.is_missing or not after:
            return None
        old, new = before.definition, after.definition
        if after.is_missing:
            return (old.name if old else before.path, *self.find_new_place(before, after))
        fault = _find_other_kind(old, new, use) if old and new else None
        if use.call and not fault:
            fitting = [signature for signature in ours.list_signatures(before) if not _find_fault(signature, use.call)]
            signatures = self.merged.list_signatures(after) if fitting else []
            faults = [_find_fault(now, use.call) or _find_shift(fitting[0], now, use.call) for now in signatures]
            fault = faults[0] if faults and all(faults) else None
        return (new.name, after.place, fault) if new and fault else None

    def find_new_place(self, before: Found, after: Found) -> tuple[Place, Message]:
        """Return where a missing definition went: to another file, or behind one that no longer brings it."""
        name = before.definition.name if before.definition else ""
        for path in self.changed:
            merged, base = self.merged.parse(path), self.base.parse(path)
            if merged and name in merged.definitions and not (base and name in base.definitions):
                return Place(path=path, line=merged.definitions[name].line), ("semantic.moved", {})
        if after.path != before.path and "." not in name:
            return after.place, ("semantic.hidden", {"where": after.path})
        return before.place, ("semantic.removed", {})

    def list_twice(self) -> Iterator[Finding]:
        """Return the names that both sides gave to different things: in a file, in a package, or of one object."""
        message = "semantic.twice", {"left_author": self.authors[0], "right_author": self.authors[1]}
        for path in self.changed:
            sources = [view.parse(path) for view in (self.base, self.left, self.right, self.merged)]
            base, left, right, merged = (source.bound if source else {} for source in sources)
            for name in sorted(left.keys() & right.keys() - base.keys()):
                if len(merged.get(name, ())) >= len(left[name]) + len(right[name]):
                    pair = Place(path=path, line=left[name][0]), Place(path=path, line=right[name][0])
                    yield "naming-conflict", name, *pair, message
        first, second = self.list_added(self.left), self.list_added(self.right)
        for key in sorted(first.keys() & second.keys()):
            if first[key].path != second[key].path:
                yield "naming-conflict", key[1], first[key], second[key], message

    def list_added(self, ours: _Version) -> dict[tuple[str, str], Place]:
        """Return what a side added for other files, by scope and name: routes of an object, names of a package."""
        folders = {folder for path in self.changed for folder in (dirname(path), dirname(dirname(path)))}
        packages = [path for path in (*self.files.unchanged, *self.changed) if dirname(path) in folders]
        packages = [path for path in packages if basename(path).startswith(("__init__.", "index."))]
        found = {}
        for place, name in self.list_new_names(ours):
            head, _, registered = name.partition(" ")
            receiver, _, verb = head.rpartition(".")
            target = ours.resolve(place.path, tuple(receiver.split("."))) if registered else None
            if target and target.definition:
                found[f"{target.path} {target.definition.name}", f"{verb} {registered}"] = place
            for package in packages if "." not in name else ():
                shown = ours.look_up(package, name, is_export=True)
                if shown and shown.definition and shown.path == place.path:
                    found[package, name] = shown.place
        return found

    def list_new_names(self, ours: _Version) -> Iterator[tuple[Place, str]]:
        for path in self.changed:
            base, mine = (source.bound if (source := view.parse(path)) else {} for view in (self.base, ours))
            for name in mine.keys() - base.keys():
                yield Place(path=path, line=mine[name][0]), name


def _find_other_kind(old: Definition, new: Definition, use: Use) -> Message | None:
    """Return how a definition must be used in another way now: awaited, called or read."""
    was, now = old.kind == "function", new.kind == "function"
    if was and now and use.call and old.is_async == use.is_awaited != new.is_async:
        return ("semantic.async" if new.is_async else "semantic.sync"), {}
    if "." in new.name and "class" not in {old.kind, new.kind} and was == bool(use.call) != now:
        return ("semantic.method" if now else "semantic.property"), {}
    return None


def _find_fault(signature: Signature, call: Call) -> Message | None:
    """Return what a call passes too much or lacks, in an object too."""
    plain = [parameter for parameter in signature if parameter.kind in {"both", "positional"}]
    kinds = {parameter.kind for parameter in signature}
    extra = set(call.keywords) - {parameter.name for parameter in signature if parameter.kind in {"both", "keyword"}}
    given = {*(parameter.name for parameter in plain[: len(call.positional)]), *call.keywords}
    missing = [parameter.name for parameter in signature if parameter.is_required and parameter.name not in given]
    if extra and "keywords" not in kinds:
        return "semantic.takes", {"extra": ", ".join(sorted(extra))}
    if len(call.positional) > len(plain) and "rest" not in kinds:
        return "semantic.count", {"limit": len(plain), "count": len(call.positional)}
    if missing and not call.is_open:
        return "semantic.needs", {"missing": ", ".join(missing)}
    objects = [
        (parameter.fields, keys) for parameter, keys in zip(plain, call.positional, strict=False) if keys is not None
    ]
    faults = (_find_fault(fields, Call(keywords=tuple(sorted(keys)))) for fields, keys in objects if fields)
    return next(filter(None, faults), None)


def _find_shift(before: Signature, after: Signature, call: Call) -> Message | None:
    """Return the new order if a positional argument now goes to another parameter that both versions have."""
    old, new = ({parameter.name for parameter in signature} for signature in (before, after))
    pairs = zip(before, after, call.positional, strict=False)
    is_shifted = any(was.name != now.name and (now.name in old or was.name in new) for was, now, _ in pairs)
    return ("semantic.order", {"order": ", ".join(parameter.name for parameter in after)}) if is_shifted else None
