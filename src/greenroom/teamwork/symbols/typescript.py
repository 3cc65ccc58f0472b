"""Read what a TypeScript or JavaScript file defines, imports and uses, with ast-grep (the extra `merge`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from greenroom.teamwork.symbols.source import CALL, Call, Chain, Definition, Kind, Parameter, ParameterKind, Symbols

if TYPE_CHECKING:
    from ast_grep_py import SgNode

NAMES: Final = frozenset({"identifier", "type_identifier", "shorthand_property_identifier_pattern"})
FUNCTIONS: Final = frozenset({"function_expression", "arrow_function", "generator_function"})
BODIES: Final = frozenset({"class_body", "interface_body", "enum_body", "object_type"})
WRAPPERS: Final = frozenset({"await_expression", "non_null_expression", "parenthesized_expression"})
PASSING: Final = frozenset({"await_expression", "return_statement", "arrow_function", "array"})
"""What passes a promise on as it does a value."""
OPTIONAL: Final = frozenset({"null", "undefined", "Promise"})
"""Parts of a type that are not what a value of it is in the end."""


def read_script(text: str, *, is_jsx: bool) -> Symbols:
    """Return the symbols of a script. Raise `SyntaxError` if it does not parse or the extra is not installed."""
    try:
        from ast_grep_py import SgRoot
    except ImportError as fault:
        raise SyntaxError("ast-grep-py is not installed") from fault
    root = SgRoot(text, "tsx" if is_jsx else "typescript").root()
    if root.find(kind="ERROR"):
        raise SyntaxError("not TypeScript")
    reader = _ScriptReader()
    for node in root.children():
        declared = node.field("declaration") or node
        reader.owner = _text(declared.field("name")) if declared.field("body") else ""
        reader.bases = _list_bases(declared)
        reader.define(node)
        reader.note(node)
    return reader.found


def _line(node: SgNode) -> int:
    return node.range().start.line + 1


def _text(node: SgNode | None) -> str:
    return node.text().strip("'\"`") if node else ""


def _parts(node: SgNode | None) -> list[SgNode]:
    return [part for part in node.children() if part.is_named() and part.kind() != "comment"] if node else []


def _has(node: SgNode, *words: str) -> bool:
    return any(part.kind() in words for part in node.children())


def _type(node: SgNode | None) -> Chain:
    """Return the chain of an instance of a type: `Cart`, `Cart | null`, `Cart<Item>`, `Promise<Cart>`."""
    while node and node.kind() in {"type_annotation", "union_type", "generic_type", "type_arguments"}:
        parts = [part for part in _parts(node) if part.text() not in OPTIONAL]
        node = parts[0] if len(parts) == 1 or node.kind() == "generic_type" else None
    return (node.text(), CALL) if node and node.kind() == "type_identifier" else ()


def _list_bases(node: SgNode) -> tuple[Chain, ...]:
    """Return what a class or an interface extends, () for what is not a plain name."""
    clauses = [part for part in _parts(node) if part.kind() == "extends_type_clause"]
    clauses += [part for heritage in _parts(node) if heritage.kind() == "class_heritage" for part in _parts(heritage)]
    bases = [_parts(clause)[0] for clause in clauses if clause.kind() != "implements_clause"]
    return tuple((base.text(),) if base.kind() in NAMES else () for base in bases)


def _list_parameters(node: SgNode) -> tuple[Parameter, ...]:
    found: list[Parameter] = []
    single = node.field("parameter")
    for part in [single] if single else _parts(node.field("parameters")):
        pattern = part.field("pattern") or part
        name = pattern.text() if pattern.kind() == "identifier" else f"#{len(found)}"
        is_rest = pattern.kind() == "rest_pattern"
        is_required = not (is_rest or part.kind() == "optional_parameter" or part.field("value"))
        kind: ParameterKind = "rest" if is_rest else "positional"
        of = _type(part.field("type"))
        found += [Parameter(name=name, kind=kind, is_required=is_required, type=of)] if name != "this" else []
    return tuple(found)


def _list_names(node: SgNode | None) -> list[str]:
    """Return the names that a pattern binds."""
    if node and node.kind() in NAMES:
        return [node.text()]
    return [part.text() for kind in NAMES for part in node.find_all(kind=kind)] if node else []


def _find_keys(node: SgNode | None) -> frozenset[str] | None:
    """Return the keys of a literal object, None if it is something else or has more than these."""
    if not node or node.kind() != "object" or _has(node, "spread_element"):
        return None
    return frozenset(_text(part.field("key") or part.field("name") or part) for part in _parts(node))


class _ScriptReader:
    def __init__(self) -> None:
        self.exports: dict[str, str] = {}
        self.found = Symbols(self.exports)
        self.owner = ""
        self.bases: tuple[Chain, ...] = ()

    def chain(self, node: SgNode | None) -> Chain:
        kind = node.kind() if node else ""
        if not node or kind in NAMES:
            return (node.text(),) if node else ()
        if kind in {"this", "super"}:
            start = (self.owner,) if kind == "this" else (*self.bases, ())[0]
            return (*start, CALL) if all(start) and start else ()
        if kind in WRAPPERS or _has(node, "??", "||"):
            return self.chain(_parts(node)[-1])
        inner = node.field("object") or node.field("function") or node.field("constructor")
        start = self.chain(inner) if kind in {"member_expression", "call_expression", "new_expression"} else ()
        return (*start, _text(node.field("property")) or CALL) if start else ()

    def add(self, name: str, node: SgNode, *, like: SgNode | None = None, kind: Kind = "value", of: Chain = ()) -> None:
        """Add a definition; `like` is the function that it is."""
        result = like.field("return_type") if like else None
        is_async = bool(like and (_has(like, "async") or _text(result).startswith(": Promise<")))
        signatures = (_list_parameters(like),) if like else ()
        kind, of = "function" if like and kind == "value" else kind, of or _type(result)
        self.found.define(
            Definition(name=name, line=_line(node), kind=kind, signatures=signatures, is_async=is_async, type=of)
        )

    def define(self, node: SgNode, *, is_exported: bool = False) -> None:
        """Add the definitions, imports and exports of a statement."""
        kind, name = node.kind(), _text(node.field("name"))
        if kind == "import_statement":
            self.add_import(node)
        elif kind == "export_statement":
            self.add_export(node)
        elif node.field("parameters"):
            self.add(name, node, like=node)
        elif name and (node.field("body") or node.field("value")):
            self.add_class(name, node)
        elif kind == "expression_statement":
            self.register(_parts(node)[0])
        for part in _parts(node) if kind in {"lexical_declaration", "variable_declaration"} else ():
            self.add_variable(part, is_exported=is_exported)
        if is_exported and name:
            self.exports[name] = name

    def add_class(self, name: str, node: SgNode) -> None:
        """Add a class, an interface, an enum or a type with its members. An interface is made by its fields."""
        body = node.field("body") or node.field("value")
        kind = body.kind() if body else ""
        members = [
            part for part in _parts(body) if kind in BODIES and part.kind() != "decorator" and not _has(part, "set")
        ]
        fields = tuple(Parameter(name=_text(part.field("name")), is_required=not _has(part, "?")) for part in members)
        signatures = (fields,) if kind in {"interface_body", "object_type"} else ()
        is_open = bool(body and kind not in BODIES and body.find(kind="type_identifier"))
        bases = (*_list_bases(node), *([()] if is_open else []))
        self.found.define(Definition(name=name, line=_line(node), kind="class", signatures=signatures, bases=bases))
        for part in members:
            self.add_member(name, part)

    def add_member(self, owner: str, node: SgNode) -> None:
        """Add a method, a field, a key of an object, or a constructor with the fields that it declares."""
        name, value = _text(node.field("name") or node.field("key") or node), node.field("value")
        like = node if node.field("parameters") else value if value and value.kind() in FUNCTIONS else None
        kind: Kind = "property" if _has(node, "get") else "value"
        of = _type(node.field("type")) or self.chain(value)
        self.add(f"{owner}.{'__init__' if name == 'constructor' else name}", node, like=like, kind=kind, of=of)
        for part in _parts(node.field("parameters")) if name == "constructor" else ():
            if _has(part, "accessibility_modifier", "readonly"):
                self.add(f"{owner}.{_text(part.field('pattern'))}", part, of=_type(part.field("type")))

    def add_variable(self, node: SgNode, *, is_exported: bool) -> None:
        name, value = node.field("name"), node.field("value")
        like, is_object = value if value and value.kind() in FUNCTIONS else None, _find_keys(value) is not None
        of = _type(node.field("type")) or self.chain(value)
        for shown in _list_names(name):
            self.add(shown, node, like=like, kind="class" if is_object else "value", of=of)
            for part in _parts(value) if is_object else ():
                self.add_member(shown, part)
            if is_exported:
                self.exports[shown] = shown

    def add_import(self, node: SgNode) -> None:
        module = _text(node.field("source"))
        for part in (part for clause in _parts(node) for part in _parts(clause)):
            if part.kind() == "identifier":
                self.found.load(part.text(), module, "default", _line(part))
            elif part.kind() == "namespace_import":
                self.found.load(_text(_parts(part)[0]), module, "", _line(part))
            for item in _parts(part) if part.kind() == "named_imports" else ():
                name = _text(item.field("name"))
                self.found.load(_text(item.field("alias")) or name, module, name, _line(item))

    def add_export(self, node: SgNode) -> None:
        module, declared = _text(node.field("source")), node.field("declaration")
        value = (node.field("value") or declared) if _has(node, "default") else None
        clauses = [part for part in _parts(node) if part.kind() in {"export_clause", "namespace_export"}]
        if declared:
            self.define(declared, is_exported=not value)
        if value:
            name = _text(value.field("name") if declared else value)
            self.exports["default"] = name if name.isidentifier() else "default"
            self.add("default", node, like=value if value.field("parameters") else None)
        elif module and not clauses:
            self.found.load("*", module, "*", _line(node))
        for item in (item for clause in clauses for item in _parts(clause)):
            name = _text(item.field("name")) or item.text()
            shown = _text(item.field("alias")) or name
            self.exports[shown] = shown if module else name
            if module:
                self.found.load(shown, module, name if item.kind() == "export_specifier" else "", _line(item))

    def note(self, node: SgNode, parent: str = "", *, is_called: bool = False) -> None:
        """Add what a node and its parts bind and use. `await` is right for a value too, and what returns may do so."""
        kind = node.kind()
        if kind in {"call_expression", "new_expression"}:
            self.note_call(node, is_awaited=None if parent in PASSING else parent == "then")
        elif kind in {"member_expression", *NAMES} and not is_called:
            self.found.use(self.chain(node), _line(node))
        elif kind in {"jsx_self_closing_element", "jsx_opening_element"}:
            self.note_element(node)
        elif kind in {"required_parameter", "optional_parameter", "variable_declarator"}:
            self.note_variable(node)
        called, name = node.field("function"), _text(node.field("property"))
        for part in _parts(node):
            self.note(part, "then" if name in {"then", "catch", "finally"} else kind, is_called=part == called)

    def note_variable(self, node: SgNode) -> None:
        """Add a local name; and an object that is written as a type, as a call of the type."""
        of, value, name = _type(node.field("type")), node.field("value"), node.field("pattern") or node.field("name")
        if of and (keys := _find_keys(value)) is not None:
            self.found.use(of[:1], _line(node), Call(keywords=tuple(sorted(keys))))
        for shown in _list_names(name):
            self.found.bind(shown, (of or self.chain(value)) if name and name.kind() == "identifier" else ())

    def note_call(self, node: SgNode, *, is_awaited: bool | None) -> None:
        function, args = node.field("function") or node.field("constructor"), _parts(node.field("arguments"))
        chain, kinds = self.chain(function), [arg.kind() for arg in args]
        if chain and function and function.kind() == "super":
            chain = (*chain, "__init__")
        call = Call(positional=tuple(map(_find_keys, args)), is_open="spread_element" in kinds)
        self.found.use(chain, _line(node), call, is_awaited=is_awaited)

    def register(self, node: SgNode | None) -> None:
        """Add the routes and commands of a statement: of `app.get(…).post(…)` too."""
        while node and node.kind() == "call_expression":
            function, args = node.field("function"), _parts(node.field("arguments"))
            name = _text(args[0]) if args and args[0].kind() == "string" else ""
            self.found.register(self.chain(function), name, _line(node), is_handler=len(args) > 1)
            node = function.field("object") if function else None

    def note_element(self, node: SgNode) -> None:
        """Add a JSX element as a call with one object. One with children or `{...props}` has more keys."""
        keys = frozenset(_text(_parts(part)[0]) for part in _parts(node) if part.kind() == "jsx_attribute")
        is_open = node.kind() == "jsx_opening_element" or _has(node, "jsx_expression")
        self.found.use(self.chain(node.field("name")), _line(node), Call(positional=(None if is_open else keys,)))
