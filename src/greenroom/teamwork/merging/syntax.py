"""What a language knows of its files: whether they parse, and the members of their blocks."""

import json
import tomllib
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

import yaml

from greenroom.teamwork.merging.lines import split_lines

if TYPE_CHECKING:
    from ast_grep_py import SgNode

GRAMMARS: Final = {
    ".py": "python",
    ".pyi": "python",
    ".js": "javascript",
    ".jsx": "javascript",
    ".mjs": "javascript",
    ".cjs": "javascript",
    ".ts": "typescript",
    ".tsx": "tsx",
    ".json": "json",
    ".yaml": "yaml",
    ".yml": "yaml",
    ".go": "go",
    ".rs": "rust",
    ".java": "java",
}
"""File endings and ast-grep's names of their languages."""


def _split_words(text: str) -> frozenset[str]:
    return frozenset(text.split())


BLOCKS: Final = _split_words(
    "module program source_file block class_body interface_body object_type enum_body enum_body_declarations"
    " declaration_list field_declaration_list enum_variant_list import_spec_list var_spec_list const_spec_list"
    " dictionary list set tuple object array literal_value block_mapping block_sequence named_imports export_clause"
    " use_list"
)
"""Nodes whose children are members."""

MEMBERS: Final = _split_words(
    "import_statement import_from_statement import_declaration import_spec use_declaration function_definition"
    " class_definition decorated_definition function_declaration generator_function_declaration class_declaration"
    " method_definition method_declaration method_signature property_signature public_field_definition"
    " abstract_method_signature abstract_class_declaration interface_declaration type_alias_declaration"
    " enum_declaration constructor_declaration annotation_type_declaration record_declaration type_declaration"
    " function_item struct_item enum_item trait_item impl_item mod_item type_item const_item static_item"
    " function_signature_item pair block_mapping_pair import_specifier export_specifier export_statement"
    " field_declaration enum_variant enum_constant property_identifier keyed_element block_sequence_item"
    " string interpreted_string_literal"
)
"""Members whose order means nothing: when both sides add some, left's come first."""

BODIES: Final = _split_words(
    "class_definition decorated_definition class_declaration abstract_class_declaration interface_declaration"
    " export_statement enum_declaration struct_item enum_item trait_item impl_item mod_item type_declaration type_spec"
    " struct_type interface_type import_declaration import_statement import_clause use_declaration scoped_use_list"
    " pair block_mapping_pair block_node document stream expression_statement assignment lexical_declaration"
    " variable_declarator var_declaration const_declaration var_spec expression_list composite_literal"
    " type_alias_declaration ambient_declaration record_declaration"
)
"""Nodes in which the block of a member is looked for. Bodies of functions are not among them."""

COMMAS: Final = _split_words(
    "dictionary list set tuple object array literal_value named_imports export_clause use_list enum_variant_list"
    " field_declaration_list enum_body"
)


class SyntaxMember(NamedTuple):
    """Lines of a block: one member with the comments above it."""

    key: str
    text: str
    is_free: bool
    block: "SyntaxBlock | None"


class SyntaxBlock(NamedTuple):
    """A block cut into the lines before its members, the members, and the lines after them."""

    kind: str
    head: str
    members: tuple[SyntaxMember, ...]
    foot: str
    has_commas: bool
    ends_with_comma: bool


def find_grammar(path: str) -> str | None:
    """Return ast-grep's name of the language of a file."""
    return GRAMMARS.get("." + path.rsplit(".", 1)[-1].lower())


def parse(text: str, grammar: str) -> "SgNode | None":
    """Return the syntax tree, None if the text has errors or ast-grep is not installed."""
    try:
        from ast_grep_py import SgRoot
    except ImportError:
        return None
    root = SgRoot(text, grammar).root()
    return None if root.find(kind="ERROR") else root


def _load_yaml(text: str) -> object:
    return list(yaml.safe_load_all(text))


CHECKS: Final[dict[str, tuple[Callable[[str], object], type[Exception]]]] = {
    "json": (json.loads, ValueError),
    "toml": (tomllib.loads, tomllib.TOMLDecodeError),
    "yaml": (_load_yaml, yaml.YAMLError),
    "yml": (_load_yaml, yaml.YAMLError),
}


def is_valid(path: str, text: str) -> bool:
    """Return whether a text parses in the language of its path; what has no grammar here always does."""
    ending = path.rsplit(".", 1)[-1].lower()
    if ending in CHECKS:
        load, fault = CHECKS[ending]
        try:
            load(text)
        except fault:
            return False
        return True
    grammar = find_grammar(path)
    return grammar is None or parse(text, grammar) is not None


def cut_file(path: str, text: str) -> SyntaxBlock | None:
    """Cut a file into its members, and those into theirs; None without a grammar or with errors."""
    grammar = find_grammar(path)
    root = parse(text, grammar) if grammar else None
    if root is None:
        return None
    lines = list(split_lines(text))
    node = _find_block(root) if root.kind() in {"document", "stream"} else root
    return _cut(node, lines, 0, len(lines)) if node else None


def _cut(node: "SgNode", lines: list[str], first: int, last: int) -> SyntaxBlock | None:
    """Cut the lines `first:last`, which hold `node`; None if a line belongs to two members."""
    members: list[SyntaxMember] = []
    has_commas = node.kind() in COMMAS and any(child.kind() == "," for child in node.children())
    children = [child for child in node.children() if child.is_named()]
    brackets = [child.range().start.line for child in node.children() if child.kind() in {"{", "[", "("}]
    head = start = max([first, *(line + 1 for line in brackets[:1])]) if children else last
    end = start
    for at, child in enumerate(children):
        begin, end = child.range().start.line, _end_line(child)
        if begin < start or end > last:
            return None
        if child.kind().endswith("comment") and at + 1 < len(children):
            continue
        nested = _find_block(child)
        block = _cut(nested, lines, start, end) if nested else None
        member_text = "".join(lines[start:end])
        if has_commas and member_text.endswith(",\n"):
            member_text = member_text[:-2] + "\n"
        key = _name(child)
        key += f" #{sum(member.key.split(' #')[0] == key for member in members)}"
        members.append(SyntaxMember(key, member_text, child.kind() in MEMBERS, block))
        start = end
    ends_with_comma = "".join(lines[head:end]).rstrip().endswith(",")
    return SyntaxBlock(
        node.kind(), "".join(lines[first:head]), tuple(members), "".join(lines[end:last]), has_commas, ends_with_comma
    )


def _end_line(node: "SgNode") -> int:
    end = node.range().end
    return end.line if end.column == 0 else end.line + 1


def _find_block(node: "SgNode") -> "SgNode | None":
    """Return the outermost block of a member that has lines of its own."""
    for child in node.children():
        is_by_indent = child.kind() in {"block", "block_mapping", "block_sequence"}
        if child.kind() in BLOCKS and (is_by_indent or child.range().end.line > child.range().start.line):
            return child
        if child.kind() in BODIES:
            found = _find_block(child)
            if found:
                return found
    return None


def _name(node: "SgNode") -> str:
    """Return what tells a member from the others of its block."""
    kind = node.kind()
    if kind in {"decorated_definition", "export_statement", "ambient_declaration"}:
        inner = node.field("definition") or node.field("declaration")
        return _name(inner) if inner else f"{kind} {' '.join(node.text().split())}"
    name = node.field("name") or node.field("key")
    if name and "import" not in kind:
        extra = [node.field(part) for part in ("receiver", "parameters") if "method" in kind or "constructor" in kind]
        return " ".join([kind, name.text(), *(" ".join(part.text().split()) for part in extra if part)])
    source = node.field("source") or node.field("module_name")
    if source and "*" not in node.text() and kind in {"import_statement", "import_from_statement"}:
        is_type = node.text().startswith("import type")
        return f"{kind} {is_type} {source.text()}"
    if kind == "import_declaration" and "(" in node.text():
        return kind
    if kind == "impl_item":
        return node.text().split("{")[0].strip()
    for child in node.children():
        if child.kind() in {"variable_declarator", "type_spec", "const_spec", "var_spec", "assignment"}:
            target = child.field("name") or child.field("left")
            return f"{kind} {target.text()}" if target else node.text()
    return f"{kind} {' '.join(node.text().split())}"
