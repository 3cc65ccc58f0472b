"""Tools and callbacks of a workspace from files, packages and MCP servers: what may be used, and why not the rest.

Files of the person and of a trusted project are run here as modules, exactly as they were read. Callbacks hear of every
tool call, each in a thread of its own.
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib.util
import inspect
import logging
import os
import sys
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from copy import deepcopy
from functools import partial
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import CodeType, ModuleType
from typing import Final, TypeAlias, TypeVar, cast, get_args

from greenroom.abilities.protocols.calls import BadSchema, faults
from greenroom.app.functions import Tool, as_text, group_of, refuse_name
from greenroom.app.settings.home import config_folder
from greenroom.app.settings.layers import load
from greenroom.app.settings.schema import Settings
from greenroom.app.threads import Ended, aside, in_thread
from greenroom.app.toolset.mcp import equipment_of, meet
from greenroom.app.toolset.toolbox import Equipment, together
from greenroom.app.toolset.toolset import toolbox_of
from greenroom.app.trust import (
    FOLDERS,
    Broken,
    Kind,
    Script,
    Trusted,
    brought,
    own_ledger,
    own_scripts,
    project_scripts,
)
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import Data
from greenroom.core.ports.executor import Bench, Outcome
from greenroom.core.ports.model import ToolSpec
from greenroom.core.ports.tool import SHOWN, Target, ToolCard, ToolExecutor
from greenroom.core.state.step import SIDE_EFFECTS, Effect, Step, StepType, Terms
from greenroom.core.state.world import World

G = TypeVar("G")
FORM: Final = ("name", "description", "parameters", "execute")


class Unfit(WorldFault):
    """It has the form, and cannot be used. The text says why."""


def has_form(value: object) -> bool:
    """Whether this is a tool in that form, or the class of one."""
    return all(hasattr(value, name) for name in FORM)


class Foreign:
    """One of them. What it does not say of itself is what is safest: effectful, and a person is asked."""

    type: StepType = "tool"

    def __init__(self, thing: object, source: str) -> None:
        self._thing = thing() if isinstance(thing, type) else thing
        self.name = str(self._said("name", ""))
        refuse_name(self.name)
        self.description = str(self._said("description", "")).strip()
        if not self.description:
            raise Unfit(f"the tool {self.name!r} has no description: nobody would know when to call it")
        effect = self._effect()
        spec = ToolSpec(
            name=self.name, description=self.description, parameters=self._parameters(), pure=effect == "pure"
        )
        self.card = ToolCard(
            spec=spec,
            group=group_of(self._said("group", None), effect, self.name),
            effect=effect,
            seconds=self._number("seconds", 0),
            shown=self._number("shown", SHOWN),
            source=source,
        )

    def can_be_used(self) -> bool:
        """What its `check` says, if it has one."""
        check = self._said("check", None)
        return not callable(check) or bool(check())

    def targets(self, _: Data) -> tuple[Target, ...]:
        """Nothing is known of what it touches."""
        return (Target(kind="tool", value=self.name, writes=self.card.effect in SIDE_EFFECTS),)

    def terms(self, _: World, __: Step) -> Terms:
        """Its effect; permission is somebody else's business."""
        return Terms(effect=self.card.effect)

    async def run(self, bench: Bench) -> Outcome:
        """Call it: a coroutine here, everything else in a thread."""
        execute = cast("Callable[..., object]", self._said("execute", None))
        given = dict(bench.step.work.instruction_content or {})
        if inspect.iscoroutinefunction(execute):
            value: object = await execute(given)
        else:
            value = await in_thread(partial(execute, given), {})
        return _outcome(value)

    def _said(self, name: str, otherwise: object) -> object:
        return getattr(self._thing, name, otherwise)

    def _effect(self) -> Effect:
        said = self._said("effect", "effectful")
        if said not in get_args(Effect):
            raise Unfit(f"the tool {self.name!r} has an effect {said!r}. There are: {', '.join(get_args(Effect))}")
        return cast("Effect", said)

    def _number(self, name: str, otherwise: int) -> int:
        said = self._said(name, otherwise)
        if type(said) is not int or said < 0:
            raise Unfit(f"`{name}` of the tool {self.name!r} must be a whole number from 0 on, not {said!r}")
        return said

    def _parameters(self) -> Data:
        said = self._said("parameters", None)
        if not isinstance(said, Mapping):
            raise Unfit(f"`parameters` of the tool {self.name!r} must be a JSON schema, not {type(said).__name__}")
        return dict(said)


def _outcome(value: object) -> Outcome:
    """What `execute` returned: `success`, `stdout` and `stderr`; anything else is the result itself."""
    if not isinstance(value, Mapping) or "success" not in value:
        return Outcome(result={"output": as_text(value)})
    out, error = as_text(value.get("stdout") or ""), as_text(value.get("stderr") or "")
    if value["success"]:
        return Outcome(result={"output": f"{out}\n{error}".strip("\n") if error else out})
    told = error or out or "It failed and did not say why."
    return Outcome(state="failed", error=told, result={"output": out} if error and out else None)


def given_by(module: ModuleType, source: str) -> list[ToolExecutor]:
    """The tools that stand at the top of a module, in their order. What it has imported is another's."""
    own = [value for name, value in vars(module).items() if not name.startswith("_") and _is_own(value, module)]
    return made(own, source)


def made(things: Iterable[object], source: str) -> list[ToolExecutor]:
    """Tools of these; what says that it cannot be used now (`check`) is left out without a word."""
    unique = {id(one): one for one in things}
    tools = [one for thing in unique.values() for one in _tool(thing, source)]
    for tool in tools:
        _refuse_schema(tool)
    return tools


def _is_own(value: object, module: ModuleType) -> bool:
    if isinstance(value, Tool):
        return getattr(value.function, "__module__", None) == module.__name__
    if not has_form(value):
        return False
    kind = value if isinstance(value, type) else type(value)
    made_here = kind.__module__ == module.__name__
    # An instance stands for its class, which else would be a second tool of the same name.
    return made_here and not (isinstance(value, type) and any(type(one) is value for one in vars(module).values()))


def _tool(thing: object, source: str) -> Iterator[ToolExecutor]:
    if isinstance(thing, Tool):
        mine = thing.given(None)
        mine.source = source
        yield mine
    elif has_form(thing):
        foreign = Foreign(thing, source)
        if foreign.can_be_used():
            yield foreign
    else:
        raise Unfit(f"{type(thing).__name__} is no tool. Make it one with @tool")


def _refuse_schema(tool: ToolExecutor) -> None:
    schema = tool.card.spec.parameters
    if schema.get("type") != "object":
        raise WorldFault(f"the parameters of the tool {tool.name!r} are no schema of an object")
    try:
        faults(schema, {})
    except BadSchema as error:
        raise WorldFault(f"the parameters of the tool {tool.name!r} are no JSON schema: {error}") from None


GROUP: Final = "greenroom.tools"


def of_packages() -> tuple[list[ToolExecutor], list[str]]:
    """All tools, and what is wrong with entry points that give none. Who installed a package has agreed to it."""
    found: list[ToolExecutor] = []
    troubles: list[str] = []
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name):
        package = entry.dist.name if entry.dist is not None else entry.value
        try:
            found += _given_by_entry(entry, f"package:{package}")
        except WorldFault as fault:
            troubles.append(
                f"The package {package!r} gives tools under {entry.name!r}, which cannot be used: "
                f"{str(fault).rstrip('.')}. It is left out; update or uninstall it."
            )
    return found, troubles


def _given_by_entry(entry: EntryPoint, source: str) -> list[ToolExecutor]:
    """The tools of an entry point: a tool, or a function that gives one or several; `WorldFault` if it fails."""
    try:
        given: object = entry.load()
        if not isinstance(given, Tool) and not has_form(given):
            if not callable(given):
                raise WorldFault(f"{type(given).__name__} is neither a tool nor a function that gives tools")
            given = given()
        is_one = isinstance(given, Tool) or has_form(given) or not isinstance(given, Iterable)
        return made([given] if is_one else cast("Iterable[object]", given), source)
    except WorldFault:
        raise
    except (Exception, SystemExit) as error:
        raise WorldFault(f"{type(error).__name__}: {error}") from error


FACTORIES: Final = ("get_after_tool_call_cb", "register_after_tool_call_cb")


def find_callbacks(folders: Iterable[Path]) -> tuple[list[Callback], list[str]]:
    """The callbacks of all files, by folder and name; and what is wrong with files that give none.

    Files whose name begins with `_` are there for others.
    """
    found: list[Callback] = []
    notes: list[str] = []
    for scripts in map(own_scripts, folders):
        notes += scripts.troubles
        found += _collect(scripts.found, given_callbacks, notes)
    return found, notes


def _collect(scripts: Iterable[Script], give: Callable[[Script], Iterable[G]], notes: list[str]) -> list[G]:
    """What all files give; why some of them cannot be used is noted."""
    found: list[G] = []
    for script in scripts:
        try:
            found += give(script)
        except Broken as broken:
            notes.append(str(broken))
    return found


def given_callbacks(script: Script) -> list[Callback]:
    """The callbacks of one file, of what stood in it when it was looked at; `Broken` when it cannot be used."""
    file, module = script.path, load_module(script.path, script.beside)
    direct = getattr(module, "after_tool_call_cb", None)
    if callable(direct):
        return [cast("Callback", direct)]
    for name in FACTORIES:
        factory = getattr(module, name, None)
        if callable(factory):
            return _made(file, name, factory)
    return []


def _made(file: Path, name: str, factory: Callable[[], object]) -> list[Callback]:
    try:
        made = factory()
    except (Exception, SystemExit) as error:
        raise Broken(file, f"{name}() failed: {type(error).__name__}: {error}") from error
    if callable(made):
        return [cast("Callback", made)]
    if made is None and name == FACTORIES[1]:
        return []
    raise Broken(file, f"{name}() returned {type(made).__name__}, which cannot be called")


LEFT_OUT: Final = "greenroom trust"


def custom_equipment(root: Path, settings: Settings, trusted: Trusted) -> Equipment:
    """All that may be used here, and a note for all that may not. This is where such files are run.

    Of two tools with one name the first one stays: the house's, then the person's, packages', the project's.
    """
    folder, notes, unagreed = config_folder(), list[str](), list[str]()
    own = own_scripts(folder / FOLDERS["tool"])
    notes += own.troubles
    mine = _collect(own.found, partial(_tools_in, whose="yours"), notes)
    packed, troubles = of_packages()
    notes += troubles
    brought_tools = _projects(root, "tool", trusted, notes, unagreed)
    theirs = _collect(brought_tools, partial(_tools_in, whose="project"), notes)
    tools = _first_of_each(root, (*mine, *packed, *theirs), notes)
    places = list(dict.fromkeys((folder / FOLDERS["callback"], *map(Path, settings.after_tool_call))))
    notes += [f"{place} is no folder, so no callback is found there." for place in places[1:] if not place.is_dir()]
    callbacks, troubles = find_callbacks(place for place in places if place.is_dir())
    notes += troubles
    callbacks += _collect(_projects(root, "callback", trusted, notes, unagreed), given_callbacks, notes)
    after = (Callbacks(callbacks),) if callbacks else ()
    return Equipment(tools=tools, after=after, notes=tuple(notes), unagreed=tuple(unagreed))


def _tools_in(script: Script, whose: str) -> list[ToolExecutor]:
    module = load_module(script.path, script.beside)
    try:
        return given_by(module, f"{whose}:{script.path.name}")
    except WorldFault as fault:
        raise Broken(script.path, str(fault).rstrip(".")) from None
    except (Exception, SystemExit) as error:
        raise Broken(script.path, f"gives no tool: {type(error).__name__}: {error}") from error


def _first_of_each(root: Path, tools: Iterable[ToolExecutor], notes: list[str]) -> tuple[ToolExecutor, ...]:
    known = {tool.name: tool.card.source for tool in toolbox_of(root)}
    kept: list[ToolExecutor] = []
    for tool in tools:
        first = known.get(tool.name)
        if first is None:
            known[tool.name] = tool.card.source
            kept.append(tool)
            continue
        whose = "Greenroom has one itself" if first == "built-in" else f"{first} gives one"
        notes.append(f"The tool {tool.name!r} of {tool.card.source} is left out: {whose}. Give it another name.")
    return tuple(kept)


def _projects(root: Path, kind: Kind, trusted: Trusted, notes: list[str], unagreed: list[str]) -> list[Script]:
    """The files of the project that may be used; what is wrong with others is noted, and what waits for trust."""
    scripts = project_scripts(root, kind)
    notes += scripts.troubles
    usable = [script for script in scripts.found if trusted(brought(script, kind, root))]
    left = [script.path.name for script in scripts.found if script not in usable]
    if left:
        several = len(left) > 1
        what, verb, it = (FOLDERS[kind], "are", "them") if several else (kind, "is", "it")
        note = f"The {what} of this project {verb} not used before you agree to {it}"
        unagreed.append(f"{note}, {', '.join(left)}: {LEFT_OUT}")
    return usable


def equipment_in(root: Path) -> Equipment:
    """All that may be used, and a note for all that may not."""
    return together((files_in(root), servers_in(root)))


def files_in(root: Path) -> Equipment:
    """What files and packages give. This is where they are run."""
    return custom_equipment(root, *_agreed(root))


def servers_in(root: Path) -> Equipment:
    """The tools of MCP servers; each of them starts at its first call, and ends when this is closed."""
    settings, trusted = _agreed(root)
    return equipment_of(root, os.environ, settings, trusted)


async def meet_servers(root: Path) -> tuple[str, ...]:
    """Before a run: see what servers have that nobody has looked at; a sentence for each that does not work."""
    settings, trusted = _agreed(root)
    return await meet(root, os.environ, settings, trusted)


def _agreed(root: Path) -> tuple[Settings, Trusted]:
    """The person's settings there, and what they have agreed to."""
    return load({}, os.environ, root).settings, own_ledger().trusted(root)


PREFIX: Final = "greenroom_files_"


def load_module(path: Path, beside: Mapping[str, bytes]) -> ModuleType:
    """The module of a file; `Broken` when it cannot be run.

    `beside` is what was read in its folder, by file name, its own text too. Exactly that is run, whatever the files
    say by now, and it is all that can be imported from beside it (`from . import …`). Other bytes make other modules,
    so a file runs once as long as its folder stays the same.
    """
    whole = hashlib.sha256(str(path.parent).encode(errors="surrogateescape"))
    for name, text in sorted(beside.items()):
        whole.update(f"\0{name}\0{len(text)}\0".encode(errors="surrogateescape") + text)
    package = f"{PREFIX}{whole.hexdigest()[:32]}"
    if package not in sys.modules:
        made = sys.modules[package] = ModuleType(package)
        made.__path__ = []  # nothing of it is looked for on the disk
        sys.meta_path.insert(0, _FilesRead(package, path.parent, dict(beside)))
    name = f"{package}.{_module_name(path.name)}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.find_spec(name)
    if spec is None or spec.loader is None:
        raise Broken(path, "is not a Python file")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)  # dataclasses look for their module there
    try:
        spec.loader.exec_module(module)
        return module
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        line = getattr(error, "lineno", None)
        where = f" in line {line}" if line else ""
        raise Broken(path, f"cannot be run: {type(error).__name__}{where}: {error}") from error


def _module_name(file: str) -> str:
    return file.removesuffix(".py").replace(".", "_")


class _FilesRead(MetaPathFinder):
    """Finds the files of one folder as they were read, as the modules of a package."""

    def __init__(self, package: str, folder: Path, files: Mapping[str, bytes]) -> None:
        self._package = package
        self._files = {_module_name(name): (folder / name, files[name]) for name in files}

    def find_spec(self, fullname: str, path: object, target: object = None) -> ModuleSpec | None:
        """The module of this name, if it is one of them."""
        package, _, name = fullname.partition(".")
        if package != self._package or name not in self._files:
            return None
        file, source = self._files[name]
        return importlib.util.spec_from_file_location(fullname, file, loader=_Source(fullname, file, source))


class _Source(SourceFileLoader):
    """Runs what was read. Compiled code that lies beside a file is never run: no person has read that."""

    def __init__(self, name: str, path: Path, source: bytes) -> None:
        super().__init__(name, str(path))
        self._source = source

    def get_code(self, fullname: str) -> CodeType:
        return self.source_to_code(self._source, self.path)

    def get_data(self, path: str) -> bytes:
        """What was read, for a traceback that shows the text of a module."""
        return self._source if path == self.path else super().get_data(path)


Callback: TypeAlias = Callable[[Mapping[str, object]], object]

SECONDS: Final = 5.0
"""How long one of them is waited for."""


class Callbacks:
    """All callbacks, told one after the other. Each runs in a thread and has a copy of its own.

    One that fails, or does not end, is told of in the log of the program, and costs nobody anything. As long as it has
    not ended it hears of nothing more.
    """

    def __init__(self, callbacks: Iterable[Callback] = (), seconds: float = SECONDS) -> None:
        self._callbacks = tuple(callbacks)
        self._seconds = seconds
        self._going: dict[int, asyncio.Future[Ended]] = {}

    async def __call__(self, step: Step, outcome: Outcome) -> None:
        """Tell all of them of a call that was made."""
        await self.tell(told_of(step, outcome), step.work.executor)

    async def tell(self, told: Mapping[str, object], after: str) -> None:
        """Tell all of them; `after` is what this is about, in a word."""
        log = logging.getLogger(__name__)
        for number, callback in enumerate(self._callbacks):
            going = self._going.get(number)
            if going is not None and not going.done():
                log.warning("%s is not told of %s: it has not ended yet", _name(callback), after)
                continue
            thread = self._going[number] = aside(partial(_called, callback, deepcopy(dict(told))))
            await asyncio.wait({thread}, timeout=self._seconds)
            if not thread.done():
                late = "%s has not ended %g seconds after %s: nobody waits for it any more"
                log.warning(late, _name(callback), self._seconds, after)
            elif thread.result().error is not None:
                log.error("%s failed after %s", _name(callback), after, exc_info=thread.result().error)


def _called(callback: Callback, told: Mapping[str, object]) -> None:
    """A coroutine gets a loop of its own: on the house's one it could hold everybody up."""
    said = callback(told)

    async def awaited() -> None:
        await cast("Awaitable[object]", said)

    if inspect.isawaitable(said):
        asyncio.run(awaited())


def _name(callback: Callback) -> str:
    return f"The callback {getattr(callback, '__qualname__', type(callback).__name__)!r}"


def told_of(step: Step, outcome: Outcome) -> Mapping[str, object]:
    """What a callback is told."""
    return {
        "agent": step.agent_id,
        "tool": step.work.executor,
        "arguments": dict(step.work.instruction_content or {}),
        "state": outcome.state,
        "output": str((outcome.result or {}).get("output", "")),
        "error": outcome.error,
    }
