"""What a source file defines, imports and uses, and the reader for Python.

A chain is a dotted expression from a name of the file: `cart.add` is `("cart", "add")`, `Cart().add` is
`("Cart", "()", "add")`. `"()"` after a class is an instance, after a function what it returns.
"""

from __future__ import annotations

import ast
from typing import Final, Literal, TypeAlias

from greenroom.core.base.records import evolve, record

Chain: TypeAlias = tuple[str, ...]
Kind = Literal["function", "property", "class", "value"]
ParameterKind = Literal["both", "positional", "keyword", "rest", "keywords"]
CALL: Final = "()"
ROUTES: Final = frozenset({"get", "post", "put", "patch", "delete", "route", "websocket"})
COMMANDS: Final = frozenset({"command", "add_parser", "add_command", "add_url_rule"})
"""Methods that register their first argument with an object: routes with a handler, and commands."""


@record
class Parameter:
    """One parameter of a function, or one field of a class. `fields` are those of an object that is passed for it."""

    name: str
    is_required: bool = True
    kind: ParameterKind = "both"
    type: Chain = ()
    fields: tuple[Parameter, ...] = ()


Signature: TypeAlias = tuple[Parameter, ...]


@record
class Definition:
    """One definition, by its name in the file: `total`, `Cart`, `Cart.add`. `type` is what it is or returns."""

    name: str
    line: int
    kind: Kind = "value"
    signatures: tuple[Signature, ...] = ()
    is_async: bool = False
    type: Chain = ()
    bases: tuple[Chain, ...] = ()


@record
class Call:
    """The arguments of a call. A literal object is the set of its keys. `is_open`: more may come by `*` or `...`."""

    positional: tuple[frozenset[str] | None, ...] = ()
    keywords: tuple[str, ...] = ()
    is_open: bool = False


@record
class Use:
    """A chain that is read, imported or called. `is_awaited` is None if that cannot be told."""

    chain: Chain
    call: Call | None = None
    is_awaited: bool | None = False


class Symbols:
    """What a file defines, imports and uses. `exports` maps exported to local names; None exports everything."""

    def __init__(self, exports: dict[str, str] | None = None) -> None:
        """Begin with nothing. `bound` and `uses` hold lines, `imports` a module and a name ("" for the module)."""
        self.exports: Final = exports
        self.definitions: Final[dict[str, Definition]] = {}
        self.bound: Final[dict[str, list[int]]] = {}
        self.imports: Final[dict[str, tuple[str, str]]] = {}
        self.stars: Final[list[str]] = []
        self.locals: Final[dict[str, Chain]] = {}
        self.uses: Final[dict[Use, int]] = {}

    def define(self, found: Definition) -> None:
        """Add a definition. Alternatives of one name join their signatures."""
        old = self.definitions.setdefault(found.name, found)
        self.bound.setdefault(found.name, []).append(found.line)
        if old is not found and found.signatures:
            self.definitions[found.name] = evolve(old, signatures=(*old.signatures, *found.signatures))

    def bind(self, name: str, of: Chain) -> None:
        """Add a name that the file does not define for all: a local one. If it is different things, it is not known."""
        if name not in self.definitions:
            self.locals[name] = of if self.locals.get(name, of) == of else ()

    def load(self, name: str, module: str, original: str, line: int) -> None:
        """Add an import, which is a use. `*` brings all names of a module."""
        if name == "*":
            self.stars.append(module)
        else:
            self.imports[name] = module, original
            self.use((name,), line)

    def use(self, chain: Chain, line: int, call: Call | None = None, *, is_awaited: bool | None = False) -> None:
        """Add a use, at the first line where it is."""
        if chain:
            self.uses.setdefault(Use(chain=chain, call=call, is_awaited=is_awaited), line)

    def register(self, chain: Chain, name: str, line: int, *, is_handler: bool) -> None:
        """Bind a route or a command, as `app.get /users`, if a call registers one."""
        is_route = is_handler and name.startswith("/") and chain[-1:] and chain[-1] in ROUTES
        if name and (is_route or (chain and chain[-1] in COMMANDS)):
            self.bound.setdefault(f"{'.'.join(chain)} {name}", []).append(line)


def read_python(text: str) -> Symbols:
    """Return the symbols of a Python file. Raise `SyntaxError`, `ValueError` or `RecursionError` if it is not one."""
    reader = _PythonReader()
    for node in ast.parse(text).body:
        reader.owner = node if isinstance(node, ast.ClassDef) else None
        reader.define(node, "")
        for part in ast.walk(node):
            reader.note(part)
    return reader.found


def _find_keys(node: ast.expr | None) -> frozenset[str] | None:
    """Return the keys of a literal dict, None if it is something else or has more than these."""
    keys = node.keys if isinstance(node, ast.Dict) else [None]
    texts = [key.value for key in keys if isinstance(key, ast.Constant) and isinstance(key.value, str)]
    return frozenset(texts) if len(texts) == len(keys) else None


class _PythonReader:
    def __init__(self) -> None:
        self.found = Symbols()
        self.owner: ast.ClassDef | None = None
        self.seen: set[ast.expr] = set()
        self.awaited: set[ast.expr] = set()

    def chain(self, node: ast.expr | None) -> Chain:
        start: Chain = ()
        match node:
            case ast.Name(id=name):
                return (self.owner.name, CALL) if self.owner and name in {"self", "cls"} else (name,)
            case ast.Attribute(value=value, attr=name) | ast.Subscript(value, ast.Constant(value=str(name))):
                start = self.chain(value)
                return (*start, name) if start else ()
            case ast.Call(func=ast.Name(id="super")) if self.owner and self.owner.bases:
                start = self.chain(self.owner.bases[0])
            case ast.Call(func=function):
                start = self.chain(function)
            case ast.Await(value=value) | ast.BoolOp(values=[_, value]):
                return self.chain(value)
            case _:
                pass
        return (*start, CALL) if start else ()

    def type(self, node: ast.expr | None) -> Chain:
        """Return the chain of an instance of an annotation: `Cart`, `"Cart"`, `Cart | None`, `Optional[Cart]`."""
        match node:
            case ast.Constant(value=str(text)):
                return (text, CALL)
            case ast.BinOp(left=inner, right=ast.Constant(value=None)) | ast.Subscript(ast.Name("Optional"), inner):
                return self.type(inner)
            case ast.Name() | ast.Attribute():
                return (*self.chain(node), CALL)
            case _:
                return ()

    def define(self, node: ast.AST, owner: str) -> None:
        """Add the definitions of a statement of a module or a class."""
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self.define_function(node, owner)
            case ast.ClassDef():
                self.define_class(node, owner)
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    self.define_value(target, value, owner, self.chain(value))
            case ast.AnnAssign(target=target, value=value, annotation=kind):
                self.define_value(target, value, owner, self.type(kind) or self.chain(value))
            case ast.If() | ast.Try() | ast.With() | ast.For() | ast.While() | ast.ExceptHandler():
                for part in ast.iter_child_nodes(node):
                    self.define(part, owner)
            case _:
                pass

    def define_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef, owner: str) -> None:
        marks = {name for mark in node.decorator_list for name in self.chain(mark)[-2:]}
        is_async = isinstance(node, ast.AsyncFunctionDef) and not any("contextmanager" in mark for mark in marks)
        kind: Kind = "property" if any("property" in mark for mark in marks) else "function"
        signature = self.list_parameters(node.args)[1 if owner and "staticmethod" not in marks else 0 :]
        name, of = owner + node.name, self.type(node.returns)
        found = Definition(name=name, line=node.lineno, kind=kind, signatures=(signature,), is_async=is_async, type=of)
        for mark in node.decorator_list:
            self.register(mark, node.name)
        if node.name != "_" and not marks & {"setter", "deleter", "getter", "register"}:
            self.found.define(found)

    def list_parameters(self, args: ast.arguments) -> Signature:
        plain = [*args.posonlyargs, *args.args]
        needed, names = len(plain) - len(args.defaults), set(args.posonlyargs)
        rows: list[tuple[ast.arg | None, ParameterKind, bool]] = [
            (arg, "positional" if arg in names else "both", index < needed) for index, arg in enumerate(plain)
        ]
        rows += [(arg, "keyword", value is None) for arg, value in zip(args.kwonlyargs, args.kw_defaults, strict=True)]
        rows += [(args.vararg, "rest", False), (args.kwarg, "keywords", False)]
        return tuple(
            Parameter(name=arg.arg, kind=kind, is_required=is_required, type=self.type(arg.annotation))
            for arg, kind, is_required in rows
            if arg
        )

    def define_class(self, node: ast.ClassDef, owner: str) -> None:
        """Add a class and its members. Annotated values are the parameters of a dataclass or a model."""
        fields = tuple(
            Parameter(name=line.target.id, is_required=line.value is None)
            for line in node.body
            if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name)
            if "ClassVar" not in ast.unparse(line.annotation)
        )
        name, bases = owner + node.name, tuple(map(self.chain, node.bases))
        signatures = (fields,) if fields and (node.bases or node.decorator_list) else ()
        self.found.define(Definition(name=name, line=node.lineno, kind="class", signatures=signatures, bases=bases))
        for line in node.body:
            self.define(line, f"{name}.")

    def define_value(self, target: ast.expr, value: ast.expr | None, owner: str, of: Chain) -> None:
        """Add the names of an assignment; a literal dict with its keys."""
        keys = _find_keys(value)
        for part in ast.walk(target):
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store) and part.id != "_":
                kind: Kind = "value" if keys is None else "class"
                self.found.define(Definition(name=owner + part.id, line=part.lineno, kind=kind, type=of))
        if isinstance(target, ast.Name) and isinstance(value, ast.Dict) and keys is not None:
            for key in filter(None, value.keys):
                self.found.define(Definition(name=f"{owner}{target.id}.{ast.literal_eval(key)}", line=key.lineno))

    def note(self, node: ast.AST) -> None:
        """Add what one node imports, binds, uses or registers."""
        match node:
            case ast.Import(names=names):
                for name in names:
                    self.found.load(name.asname or name.name, name.name, "", node.lineno)
            case ast.ImportFrom(names=names):
                module = "." * node.level + (node.module or "")
                for name in names:
                    self.found.load(name.asname or name.name, module, name.name, node.lineno)
            case ast.Await(value=value):
                self.awaited.add(value)
            case ast.Call():
                self.note_call(node)
            case ast.Name() | ast.Attribute() | ast.Subscript() if node not in self.seen:
                self.found.use(self.chain(node) if isinstance(node.ctx, ast.Load) else (), node.lineno)
            case _:
                self.note_variable(node)

    def note_variable(self, node: ast.AST) -> None:
        match node:
            case ast.arg(arg=name, annotation=kind) | ast.AnnAssign(target=ast.Name(id=name), annotation=kind):
                self.found.bind(name, self.type(kind))
            case ast.Assign(targets=[ast.Name(id=name)], value=value) | ast.withitem(value, ast.Name(id=name)):
                self.found.bind(name, self.chain(value))
            case ast.Assign(targets=[ast.Attribute(ast.Name("self"), name)], value=value) if self.owner:
                found = Definition(name=f"{self.owner.name}.{name}", line=node.lineno, type=self.chain(value))
                self.found.definitions.setdefault(found.name, found)
            case ast.For(target=target) | ast.comprehension(target=target) | ast.withitem(optional_vars=target):
                for part in ast.walk(target) if target else ():
                    self.found.bind(getattr(part, "id", ""), ())
            case _:
                pass

    def note_call(self, node: ast.Call) -> None:
        words = [word.arg for word in node.keywords]
        is_open = None in words or any(isinstance(arg, ast.Starred) for arg in node.args)
        keywords = tuple(word for word in words if word)
        call = Call(positional=tuple(map(_find_keys, node.args)), keywords=keywords, is_open=is_open)
        self.found.use(self.chain(node.func), node.lineno, call, is_awaited=node in self.awaited)
        if node not in self.seen:
            self.register(node)
        self.seen.add(node.func)

    def register(self, node: ast.expr, function: str = "") -> None:
        """Add the route or the command of a call, or of the decorator of a function."""
        if isinstance(node, ast.Call):
            chain = self.chain(node.func)
            name = node.args[0].value if node.args and isinstance(node.args[0], ast.Constant) else ""
            methods = [ast.unparse(word.value) for word in node.keywords if word.arg == "methods"]
            if chain[-1:] == ("command",):
                name = name or function.replace("_", "-")
            self.found.register(chain, " ".join((str(name), *methods)), node.lineno, is_handler=bool(function))
            self.seen.add(node)
