"""What a language knows of its files: whether they parse, and which lines are whole members of one block."""

import ast
import json
import tomllib
import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

import yaml

if TYPE_CHECKING:
    from ast_grep_py import SgNode, SgRoot

GRAMMARS: Final = {
    ending: grammar
    for grammar, endings in {
        "python": "py pyi",
        "javascript": "js jsx mjs cjs",
        "typescript": "ts mts cts",
        "yaml": "yaml yml",
        **{grammar: grammar for grammar in ("tsx", "json", "go", "java")},
        "rust": "rs",
    }.items()
    for ending in endings.split()
}
"""File endings and ast-grep's names of their languages."""


def _split_words(text: str) -> frozenset[str]:
    return frozenset(text.split())


MEMBERS: Final = _split_words(
    "import_statement import_from_statement import_declaration import_spec use_declaration function_definition"
    " class_definition decorated_definition function_declaration generator_function_declaration class_declaration"
    " method_definition method_declaration method_signature property_signature public_field_definition"
    " abstract_method_signature abstract_class_declaration interface_declaration type_alias_declaration"
    " enum_declaration constructor_declaration annotation_type_declaration record_declaration type_declaration"
    " function_item struct_item enum_item trait_item impl_item mod_item type_item const_item static_item"
    " function_signature_item attribute_item pair block_mapping_pair import_specifier export_specifier"
    " export_statement field_declaration enum_variant enum_constant keyed_element block_sequence_item"
    " shorthand_property_identifier shorthand_field_initializer field_initializer test_case"
    " Import ImportFrom FunctionDef AsyncFunctionDef ClassDef"
)
"""Members whose order means nothing, as ast-grep and Python's `ast` call them."""

VARIABLES: Final = _split_words(
    "expression_statement lexical_declaration var_declaration const_declaration Assign AnnAssign"
)
OUTER: Final = _split_words("module program source_file class_body Module ClassDef")
"""Blocks in which variables are members: a function's statements stand in an order that has a meaning."""

LISTS: Final = _split_words("array list literal_value array_expression")
"""Blocks of which every child is a member."""

TESTS: Final = ("it(", "test(", "describe(")


class SyntaxSpan(NamedTuple):
    """A node of a syntax tree: the lines `start:end`, counted from 0, and how to look into it."""

    kind: str
    name: str
    start: int
    end: int
    look: Callable[[], "list[SyntaxSpan]"]


def _find_ending(path: str) -> str:
    return path.rsplit(".", 1)[-1].lower()


def _load_parser() -> "type[SgRoot] | None":
    try:
        from ast_grep_py import SgRoot
    except ImportError:
        return None
    return SgRoot


def parse(path: str, text: str) -> SyntaxSpan | None:
    """Return the syntax tree of a file, None if it has errors or there is no parser at hand."""
    grammar = GRAMMARS.get(_find_ending(path))
    parser = _load_parser()
    if grammar is None or parser is None:
        return _parse_python(text) if grammar == "python" else None
    root = parser(text, grammar).root()
    return None if root.find(kind="ERROR") else _wrap(root)


def _parse_python(text: str) -> SyntaxSpan | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _wrap_python(ast.parse(text))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _wrap_python(node: ast.AST) -> SyntaxSpan:
    above = [part.lineno for part in getattr(node, "decorator_list", [])]
    start = min([getattr(node, "lineno", 1), *above]) - 1
    end: int = getattr(node, "end_lineno", start)
    is_block = isinstance(node, ast.Module | ast.ClassDef)
    name = getattr(node, "name", "") if is_block or "name" in node._fields else ast.unparse(node).split("=")[0]
    body: list[ast.stmt] = getattr(node, "body", []) if is_block else []
    return SyntaxSpan(type(node).__name__, name, start, end, lambda: [_wrap_python(child) for child in body])


def _wrap(node: "SgNode") -> SyntaxSpan:
    start, end = node.range().start, node.range().end
    is_test = node.kind() == "expression_statement" and node.text().startswith(TESTS)
    return SyntaxSpan(
        "test_case" if is_test else node.kind(),
        _name(node),
        start.line,
        end.line if end.column == 0 else end.line + 1,
        lambda: [_wrap(child) for child in node.children() if child.is_named()],
    )


def _name(node: "SgNode") -> str:
    """Return what tells a member from the others of its block."""
    kind = node.kind()
    inner = node.field("definition") or node.field("declaration")
    if inner:
        return _name(inner)
    if kind in VARIABLES:
        text = node.text()
        return text.split("," if text.startswith(TESTS) else "=")[0].strip()
    name = node.field("name") or node.field("key")
    if name is None or "import" in kind:
        return " ".join(node.text().split())
    extra = [node.field(part) for part in ("receiver", "parameters") if kind.startswith(("method", "constructor"))]
    return " ".join([name.text(), *(" ".join(part.text().split()) for part in extra if part)])


def find_members(root: SyntaxSpan, start: int, end: int) -> tuple[str, frozenset[str]] | None:
    """Return the kind of a block and the names of those of its members that the lines `start:end` are.

    None if the lines are not whole members of one block, or these stand in an order that has a meaning.
    """
    node = root
    while True:
        children = [child for child in node.look() if child.start < end and child.end > start]
        if children and all(start <= child.start and child.end <= end for child in children):
            break
        if len(children) != 1:
            return None
        node = children[0]
    members = [child for child in children if not child.kind.endswith("comment")]
    is_free = node.kind in LISTS or all(
        child.kind in MEMBERS or (child.kind in VARIABLES and node.kind in OUTER) for child in members
    )
    return (node.kind, frozenset(child.name for child in members)) if members and is_free else None


def is_valid(path: str, text: str) -> bool | None:
    """Return whether a text parses in the language of its path, None if there is no parser at hand."""
    ending = _find_ending(path)
    if ending in CHECKS:
        try:
            return CHECKS[ending](text) is not None
        except (ValueError, RecursionError, yaml.YAMLError):
            return False
    grammar = GRAMMARS.get(ending)
    if grammar == "python":
        return _compiles(text)
    return None if grammar is None or _load_parser() is None else parse(path, text) is not None


def _compiles(text: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(text, "<merged>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _check_json(text: str) -> bool:
    json.loads(text, object_pairs_hook=_collect)
    return True


def _collect(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key stands twice in one object")
    return found


def _check_yaml(text: str) -> int:
    return sum(1 for _ in yaml.parse(text, Loader=yaml.SafeLoader))


CHECKS: Final[Mapping[str, Callable[[str], object]]] = {
    "json": _check_json,
    "toml": tomllib.loads,
    "yaml": _check_yaml,
    "yml": _check_yaml,
}
