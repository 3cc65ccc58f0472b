"""Custom tools and callbacks from files, packages and MCP servers: which can be used, and why the others cannot.

Files of the person and of a trusted project run here as modules, exactly as they were read. Callbacks run after every
tool call, each in its own thread.
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

from greenroom.abilities.protocols.calls import BadSchema, find_faults
from greenroom.app.function_tool import Tool, check_tool_name, choose_group, format_value
from greenroom.app.messages import translate
from greenroom.app.settings.home import config_folder
from greenroom.app.settings.layers import load_settings
from greenroom.app.settings.schema import Settings
from greenroom.app.skill_library import ReadSkillTool, open_skills
from greenroom.app.threads import CallOutcome, run_in_thread, start_in_thread
from greenroom.app.toolset.mcp import inspect_new_servers, load_server_tools
from greenroom.app.toolset.toolbox import ToolSource, merge_tool_sources
from greenroom.app.toolset.toolset import build_toolbox
from greenroom.app.trust import (
    SCRIPT_FOLDERS,
    IsTrusted,
    ScriptKind,
    TrustedScript,
    UnusableFile,
    describe_script,
    open_trust_store,
    read_own_scripts,
    read_project_scripts,
)
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import Data
from greenroom.core.ports.executor import Outcome, StepContext
from greenroom.core.ports.model import ToolSpec
from greenroom.core.ports.tool import MAX_RESULT_BYTES, Target, ToolCard, ToolExecutor
from greenroom.core.state.step import SIDE_EFFECTS, Effect, Step, StepTerms, StepType
from greenroom.core.state.team_state import TeamState

G = TypeVar("G")
TOOL_ATTRIBUTES: Final = ("name", "description", "parameters", "execute")


class UnusableTool(WorldFault):
    """A tool-like object that cannot be used. The text says why."""


def is_tool_like(value: object) -> bool:
    """Whether an object is a tool in this form, or the class of one."""
    return all(hasattr(value, name) for name in TOOL_ATTRIBUTES)


class ForeignTool:
    """A tool object of another design. Missing properties get the safest value: effectful, with approval."""

    type: StepType = "tool"

    def __init__(self, tool_object: object, source: str) -> None:
        self._object = tool_object() if isinstance(tool_object, type) else tool_object
        self.name = str(self._read("name", ""))
        check_tool_name(self.name)
        self.description = str(self._read("description", "")).strip()
        if not self.description:
            raise UnusableTool(translate("custom.no_description", name=self.name))
        value = self._read("effect", "effectful")
        if value not in get_args(Effect):
            raise UnusableTool(
                translate("custom.bad_effect", name=self.name, value=value, known=", ".join(get_args(Effect)))
            )
        effect = cast("Effect", value)
        spec = ToolSpec(
            name=self.name, description=self.description, parameters=self._read_parameters(), pure=effect == "pure"
        )
        self.card = ToolCard(
            spec=spec,
            group=choose_group(self._read("group", None), effect, self.name),
            effect=effect,
            seconds=self._read_number("seconds", 0),
            shown=self._read_number("shown", MAX_RESULT_BYTES),
            source=source,
        )

    def can_be_used(self) -> bool:
        """The result of the object's `check`, if it has one."""
        check = self._read("check", None)
        return not callable(check) or bool(check())

    def targets(self, _: Data) -> tuple[Target, ...]:
        """Return no targets: what the tool touches is unknown."""
        return (Target(kind="tool", value=self.name, writes=self.card.effect in SIDE_EFFECTS),)

    def terms(self, _: TeamState, __: Step) -> StepTerms:
        """Return the effect. The policy decides about permission."""
        return StepTerms(effect=self.card.effect)

    async def run(self, context: StepContext) -> Outcome:
        """Call the tool: coroutines on the event loop, other functions in a thread."""
        execute = cast("Callable[..., object]", self._read("execute", None))
        arguments = dict(context.step.work.instruction_content or {})
        if inspect.iscoroutinefunction(execute):
            value: object = await execute(arguments)
        else:
            value = await run_in_thread(partial(execute, arguments), {})
        if not isinstance(value, Mapping) or "success" not in value:
            return Outcome(result={"output": format_value(value)})
        out, error = format_value(value.get("stdout") or ""), format_value(value.get("stderr") or "")
        if value["success"]:
            return Outcome(result={"output": f"{out}\n{error}".strip("\n") if error else out})
        message = error or out or "It failed and did not say why."
        return Outcome(state="failed", error=message, result={"output": out} if error and out else None)

    def _read(self, name: str, default: object) -> object:
        return getattr(self._object, name, default)

    def _read_number(self, name: str, default: int) -> int:
        value = self._read(name, default)
        if type(value) is not int or value < 0:
            raise UnusableTool(translate("custom.bad_number", key=name, name=self.name, value=value))
        return value

    def _read_parameters(self) -> Data:
        value = self._read("parameters", None)
        if not isinstance(value, Mapping):
            raise UnusableTool(translate("custom.schema_expected", name=self.name, kind=type(value).__name__))
        return dict(value)


def find_tools(module: ModuleType, source: str) -> list[ToolExecutor]:
    """Return the tools defined at the top of a module, in order. Imported objects do not count."""
    own_values = [value for name, value in vars(module).items() if not name.startswith("_") and _is_own(value, module)]
    return make_tools(own_values, source)


def make_tools(objects: Iterable[object], source: str) -> list[ToolExecutor]:
    """Make tools from these objects. Skip objects whose `check` says that they cannot be used now."""
    unique = {id(item): item for item in objects}
    tools = [item for tool_object in unique.values() for item in _make_tool(tool_object, source)]
    for tool in tools:
        schema = tool.card.spec.parameters
        if schema.get("type") != "object":
            raise WorldFault("custom.no_object_schema", name=tool.name)
        try:
            find_faults(schema, {})
        except BadSchema as error:
            raise WorldFault("custom.bad_schema", name=tool.name, error=error) from None
    return tools


def _is_own(value: object, module: ModuleType) -> bool:
    if isinstance(value, Tool):
        return getattr(value.function, "__module__", None) == module.__name__
    if not is_tool_like(value):
        return False
    kind = value if isinstance(value, type) else type(value)
    is_defined_here = kind.__module__ == module.__name__
    # An instance replaces its class, which would be a second tool of the same name.
    return is_defined_here and not (
        isinstance(value, type) and any(type(other) is value for other in vars(module).values())
    )


def _make_tool(tool_object: object, source: str) -> Iterator[ToolExecutor]:
    if isinstance(tool_object, Tool):
        function_tool = tool_object.with_context(None)
        function_tool.source = source
        yield function_tool
    elif is_tool_like(tool_object):
        foreign_tool = ForeignTool(tool_object, source)
        if foreign_tool.can_be_used():
            yield foreign_tool
    else:
        raise UnusableTool("toolset.not_a_tool", name=type(tool_object).__name__)


def load_package_tools() -> tuple[list[ToolExecutor], list[str]]:
    """Load the tools of installed packages, and the errors of broken entry points. Installing a package means trust."""
    tools: list[ToolExecutor] = []
    faults: list[str] = []
    for entry in sorted(entry_points(group="greenroom.tools"), key=lambda entry: entry.name):
        package = entry.dist.name if entry.dist is not None else entry.value
        try:
            tools += _load_entry_point(entry, f"package:{package}")
        except WorldFault as fault:
            faults.append(
                translate("custom.package_unusable", package=package, name=entry.name, fault=str(fault).rstrip("."))
            )
    return tools, faults


def _load_entry_point(entry: EntryPoint, source: str) -> list[ToolExecutor]:
    """Load an entry point: a tool, or a function that returns tools. Raise `WorldFault` if it fails."""
    try:
        loaded: object = entry.load()
        if not isinstance(loaded, Tool) and not is_tool_like(loaded):
            if not callable(loaded):
                raise WorldFault("toolset.bad_entry_point", name=type(loaded).__name__)
            loaded = loaded()
        is_one = isinstance(loaded, Tool) or is_tool_like(loaded) or not isinstance(loaded, Iterable)
        return make_tools([loaded] if is_one else cast("Iterable[object]", loaded), source)
    except WorldFault:
        raise
    except (Exception, SystemExit) as error:
        raise WorldFault(f"{type(error).__name__}: {error}") from error


CALLBACK_FACTORIES: Final = ("get_after_tool_call_cb", "register_after_tool_call_cb")


def find_callbacks(folders: Iterable[Path]) -> tuple[list[Callback], list[str]]:
    """Return the callbacks of all files, by folder and name, and the errors of broken files. Files whose names start
    with `_` are skipped; other files can import them."""
    callbacks: list[Callback] = []
    notes: list[str] = []
    for scripts in map(read_own_scripts, folders):
        notes += scripts.troubles
        callbacks += _collect(scripts.scripts, load_callbacks, notes)
    return callbacks, notes


def _collect(
    scripts: Iterable[TrustedScript], read_script: Callable[[TrustedScript], Iterable[G]], notes: list[str]
) -> list[G]:
    """Collect the results of all files, and add the errors of broken files to the notes."""
    collected: list[G] = []
    for script in scripts:
        try:
            collected += read_script(script)
        except UnusableFile as broken:
            notes.append(str(broken))
    return collected


def load_callbacks(script: TrustedScript) -> list[Callback]:
    """Load the callbacks of one file, from the content that was read. Raise `UnusableFile` if it fails."""
    file, module = script.path, load_module(script.path, script.sources)
    direct = getattr(module, "after_tool_call_cb", None)
    if callable(direct):
        return [cast("Callback", direct)]
    for name in CALLBACK_FACTORIES:
        factory = getattr(module, name, None)
        if callable(factory):
            return _call_factory(file, name, factory)
    return []


def _call_factory(file: Path, name: str, factory: Callable[[], object]) -> list[Callback]:
    try:
        callback = factory()
    except (Exception, SystemExit) as error:
        raise UnusableFile(
            file, translate("custom.factory_failed", name=name, kind=type(error).__name__, error=error)
        ) from error
    if callable(callback):
        return [cast("Callback", callback)]
    if callback is None and name == CALLBACK_FACTORIES[1]:
        return []
    raise UnusableFile(file, translate("custom.not_callable", name=name, kind=type(callback).__name__))


def load_custom_tools(root: Path, settings: Settings, trusted: IsTrusted) -> ToolSource:
    """Load all custom tools and callbacks that can be used, with a note for each other one. The files run here. Of two
    tools with one name the first wins: built-in, the person's, packages', the project's."""
    folder, notes, untrusted = config_folder(), list[str](), list[str]()
    own_files = read_own_scripts(folder / SCRIPT_FOLDERS["tool"])
    notes += own_files.troubles
    own_tools = _collect(own_files.scripts, partial(_load_script_tools, owner="yours"), notes)
    package_tools, faults = load_package_tools()
    notes += faults
    tool_scripts = _list_project_scripts(root, "tool", trusted, notes, untrusted)
    project_tools = _collect(tool_scripts, partial(_load_script_tools, owner="project"), notes)
    tools = _drop_duplicates(root, (*own_tools, *package_tools, *project_tools), notes)
    callback_folders = list(dict.fromkeys((folder / SCRIPT_FOLDERS["callback"], *map(Path, settings.after_tool_call))))
    notes += [
        translate("custom.no_callback_folder", folder=callback_folder)
        for callback_folder in callback_folders[1:]
        if not callback_folder.is_dir()
    ]
    callbacks, faults = find_callbacks(
        callback_folder for callback_folder in callback_folders if callback_folder.is_dir()
    )
    notes += faults
    callbacks += _collect(_list_project_scripts(root, "callback", trusted, notes, untrusted), load_callbacks, notes)
    after = (Callbacks(callbacks),) if callbacks else ()
    return ToolSource(tools=tools, observers=after, notes=tuple(notes), untrusted=tuple(untrusted))


def _load_script_tools(script: TrustedScript, owner: str) -> list[ToolExecutor]:
    module = load_module(script.path, script.sources)
    try:
        return find_tools(module, f"{owner}:{script.path.name}")
    except WorldFault as fault:
        raise UnusableFile(script.path, str(fault).rstrip(".")) from None
    except (Exception, SystemExit) as error:
        raise UnusableFile(
            script.path, translate("custom.gives_no_tool", kind=type(error).__name__, error=error)
        ) from error


def _drop_duplicates(root: Path, tools: Iterable[ToolExecutor], notes: list[str]) -> tuple[ToolExecutor, ...]:
    sources = {tool.name: tool.card.source for tool in build_toolbox(root)}
    unique: list[ToolExecutor] = []
    for tool in tools:
        other_source = sources.get(tool.name)
        if other_source is None:
            sources[tool.name] = tool.card.source
            unique.append(tool)
            continue
        key = "custom.builtin_exists" if other_source == "built-in" else "custom.other_defines"
        owner_text = translate(key, other=other_source)
        notes.append(translate("custom.tool_left_out", name=tool.name, source=tool.card.source, owner=owner_text))
    return tuple(unique)


def _list_project_scripts(
    root: Path, kind: ScriptKind, trusted: IsTrusted, notes: list[str], untrusted: list[str]
) -> list[TrustedScript]:
    """Return the trusted scripts of a project. Note broken files, and files that wait for trust."""
    scripts = read_project_scripts(root, kind)
    notes += scripts.troubles
    usable = [script for script in scripts.scripts if trusted(describe_script(script, kind, root))]
    left_out = [script.path.name for script in scripts.scripts if script not in usable]
    if left_out:
        code = "custom.untrusted_tools" if kind == "tool" else "custom.untrusted_callbacks"
        untrusted.append(translate(code, names=", ".join(left_out)))
    return usable


def find_tool_source(root: Path) -> ToolSource:
    """Return the custom tools of files, packages and servers, with notes, and the tool that reads skills."""
    return merge_tool_sources((find_skill_tools(root), find_file_tools(root), find_server_tools(root)))


def find_skill_tools(root: Path) -> ToolSource:
    """Return the tool that reads the skills of a workspace, if there are any."""
    skills = open_skills(root, load_settings({}, os.environ, root).settings.skills)
    return ToolSource(tools=() if skills.is_empty else (ReadSkillTool(skills),))


def find_file_tools(root: Path) -> ToolSource:
    """Return the tools of files and packages. The files run here."""
    return load_custom_tools(root, *_read_settings_and_trust(root))


def find_server_tools(root: Path) -> ToolSource:
    """Return the tools of MCP servers. Each server starts at its first call and ends on close."""
    settings, trusted = _read_settings_and_trust(root)
    return load_server_tools(root, os.environ, settings, trusted)


async def check_new_servers(root: Path) -> tuple[str, ...]:
    """Inspect new MCP servers before a run. Return a sentence for each that does not work."""
    settings, trusted = _read_settings_and_trust(root)
    return await inspect_new_servers(root, os.environ, settings, trusted)


def _read_settings_and_trust(root: Path) -> tuple[Settings, IsTrusted]:
    return load_settings({}, os.environ, root).settings, open_trust_store().make_trust_check(root)


MODULE_PREFIX: Final = "greenroom_files_"


def load_module(path: Path, folder_files: Mapping[str, bytes]) -> ModuleType:
    """Load a file as a module. Raise `UnusableFile` if it cannot run.

    `folder_files` is the content of its folder by file name, including its own. Exactly this content runs, and only
    these files can be imported from beside it (`from . import …`). Changed content makes new modules, so a file runs
    once as long as its folder stays the same.
    """
    digest = hashlib.sha256(str(path.parent).encode(errors="surrogateescape"))
    for name, text in sorted(folder_files.items()):
        digest.update(f"\0{name}\0{len(text)}\0".encode(errors="surrogateescape") + text)
    package = f"{MODULE_PREFIX}{digest.hexdigest()[:32]}"
    if package not in sys.modules:
        package_module = sys.modules[package] = ModuleType(package)
        package_module.__path__ = []  # no file of the package is searched on disk
        sys.meta_path.insert(0, _FilesFinder(package, path.parent, dict(folder_files)))
    name = f"{package}.{_module_name(path.name)}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.find_spec(name)
    if spec is None or spec.loader is None:
        raise UnusableFile(path, translate("custom.not_python"))
    module = sys.modules[name] = importlib.util.module_from_spec(spec)  # dataclasses look for their module there
    try:
        spec.loader.exec_module(module)
        return module
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        line = getattr(error, "lineno", None)
        where = translate("custom.in_line", line=line) if line else ""
        raise UnusableFile(
            path, translate("custom.cannot_run", kind=type(error).__name__, where=where, error=error)
        ) from error


def _module_name(file: str) -> str:
    return file.removesuffix(".py").replace(".", "_")


class _FilesFinder(MetaPathFinder):
    """Finds the files of one folder, as they were read, as modules of a package."""

    def __init__(self, package: str, folder: Path, files: Mapping[str, bytes]) -> None:
        self._package = package
        self._files = {_module_name(name): (folder / name, files[name]) for name in files}

    def find_spec(self, fullname: str, path: object, target: object = None) -> ModuleSpec | None:
        """Return the spec of a module if it is one of the files."""
        package, _, name = fullname.partition(".")
        if package != self._package or name not in self._files:
            return None
        file, source = self._files[name]
        return importlib.util.spec_from_file_location(fullname, file, loader=_SourceLoader(fullname, file, source))


class _SourceLoader(SourceFileLoader):
    """Runs the source that was read. Compiled code beside a file never runs, because no person has read it."""

    def __init__(self, name: str, path: Path, source: bytes) -> None:
        super().__init__(name, str(path))
        self._source = source

    def get_code(self, fullname: str) -> CodeType:
        return self.source_to_code(self._source, self.path)

    def get_data(self, path: str) -> bytes:
        """Return the source, for tracebacks."""
        return self._source if path == self.path else super().get_data(path)


Callback: TypeAlias = Callable[[Mapping[str, object]], object]

CALLBACK_TIMEOUT_S: Final = 5.0
"""How long a callback can run before it is abandoned, in seconds."""


class Callbacks:
    """Calls all callbacks in order, each in a thread with its own copy of the data. A callback that fails or does not
    end is logged and has no other effect. It is skipped until it has ended."""

    def __init__(self, callbacks: Iterable[Callback] = (), seconds: float = CALLBACK_TIMEOUT_S) -> None:
        self._callbacks = tuple(callbacks)
        self._seconds = seconds
        self._running: dict[int, asyncio.Future[CallOutcome]] = {}

    async def __call__(self, step: Step, outcome: Outcome) -> None:
        """Call all callbacks after a tool call."""
        await self.tell(describe_call(step, outcome), step.work.executor)

    async def tell(self, call_fields: Mapping[str, object], after: str) -> None:
        """Call all callbacks. `after` names the event for the log."""
        log = logging.getLogger(__name__)
        for number, callback in enumerate(self._callbacks):
            running = self._running.get(number)
            if running is not None and not running.done():
                log.warning("%s is not called after %s: it has not ended yet", _describe_callback(callback), after)
                continue
            thread = self._running[number] = start_in_thread(
                partial(_run_callback, callback, deepcopy(dict(call_fields)))
            )
            await asyncio.wait({thread}, timeout=self._seconds)
            if not thread.done():
                warning = "%s has not ended %g seconds after %s: it is abandoned"
                log.warning(warning, _describe_callback(callback), self._seconds, after)
            elif thread.result().error is not None:
                log.error("%s failed after %s", _describe_callback(callback), after, exc_info=thread.result().error)


def _run_callback(callback: Callback, call_fields: Mapping[str, object]) -> None:
    """Run a callback. A coroutine gets its own event loop, so that it cannot block the main one."""
    returned = callback(call_fields)

    async def wait() -> None:
        await cast("Awaitable[object]", returned)

    if inspect.isawaitable(returned):
        asyncio.run(wait())


def _describe_callback(callback: Callback) -> str:
    return f"The callback {getattr(callback, '__qualname__', type(callback).__name__)!r}"


def describe_call(step: Step, outcome: Outcome) -> Mapping[str, object]:
    """Return the data that a callback receives."""
    return {
        "agent": step.agent_id,
        "tool": step.work.executor,
        "arguments": dict(step.work.instruction_content or {}),
        "state": outcome.state,
        "output": str((outcome.result or {}).get("output", "")),
        "error": outcome.error,
    }
