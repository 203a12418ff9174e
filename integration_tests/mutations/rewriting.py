"""Rewriting of Python code by patterns, which are compared as syntax trees.

So layout, comments and parentheses do not matter. In a pattern, ``_`` stands for any expression or name,
``_1``, ``_2`` and so on for expressions that the replacement repeats, and ``...`` for the rest of a block or
of a call's arguments; in the replacement of a block, ``...`` repeats that rest.
"""

import ast
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

_IGNORED = frozenset({"ctx", "kind", "type_comment"})


class PatternError(Exception):
    """A pattern does not occur exactly once, or the function that should contain it does not exist."""


@dataclass(slots=True)
class _Found:
    """The code that the placeholders of a pattern stand for."""

    expressions: dict[str, ast.expr] = field(default_factory=dict)
    rests: list[list[ast.AST]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Place:
    """Nodes that match a pattern: `count` elements of a list from `index` on, or one field (`index` -1)."""

    parent: ast.AST
    name: str
    index: int
    count: int
    found: _Found


def rewrite(source: str, scope: str, old: str, new: str) -> str:
    """Replace a pattern in a function, method or class.

    Args:
        source: The source of a module.
        scope: Qualified name of the function or class that contains the pattern; empty for the whole module.
        old: An expression, one keyword argument as ``_(name=value)``, or statements.
        new: The replacement of the same kind; empty statements are removed.

    Returns:
        The source of the changed module, without comments.

    Raises:
        PatternError: The pattern does not occur exactly once.
    """
    tree = ast.parse(source)
    olds, news = _parse(old, new)
    places = list(_places(_scope(tree, scope), olds))
    if len(places) != 1:
        raise PatternError(f"{old!r} occurs {len(places)} times in {scope or 'the module'}")
    (place,) = places
    inserted = _filled(news, place.found)
    if place.index < 0:
        setattr(place.parent, place.name, *inserted)
    else:
        siblings = getattr(place.parent, place.name)
        siblings[place.index : place.index + place.count] = inserted
        if not siblings and place.name == "body":
            siblings.append(ast.Pass())
    return ast.unparse(tree)


def _parse(old: str, new: str) -> tuple[list[ast.AST], list[ast.AST]]:
    """Return both as expressions or keyword arguments if they are, otherwise as statements."""
    olds, news = ast.parse(old).body, ast.parse(new).body
    match olds, news:
        case [ast.Expr(ast.Call(ast.Name("_"), [], [_] as before))], [
            ast.Expr(ast.Call(ast.Name("_"), [], after))
        ]:
            return list(before), list(after)
        case [ast.Expr(before)], [ast.Expr(after)]:
            return [before], [after]
    return list(olds), list(news)


def _scope(tree: ast.Module, path: str) -> ast.AST:
    scope: ast.AST = tree
    for name in filter(None, path.split(".")):
        inner = [node for node in getattr(scope, "body", ()) if getattr(node, "name", None) == name]
        if len(inner) != 1:
            raise PatternError(f"there are {len(inner)} definitions of {path}")
        scope = inner[0]
    return scope


def _places(scope: ast.AST, patterns: list[ast.AST]) -> Iterator[_Place]:
    for parent in ast.walk(scope):
        for name, value in ast.iter_fields(parent):
            if isinstance(value, list):
                for index in range(len(value) - len(patterns) + 1):
                    found = _Found()
                    nodes = value[index : index + len(patterns)]
                    if all(map(_matches, patterns, nodes, [found] * len(nodes))):
                        yield _Place(parent, name, index, len(nodes), found)
            elif len(patterns) == 1 and _matches(patterns[0], value, found := _Found()):
                yield _Place(parent, name, -1, 1, found)


def _matches(pattern: Any, node: Any, found: _Found) -> bool:
    if isinstance(pattern, ast.Name) and _is_placeholder(pattern.id) and isinstance(node, ast.expr):
        known = found.expressions.setdefault(pattern.id, node)
        return pattern.id == "_" or ast.unparse(known) == ast.unparse(node)
    if isinstance(pattern, list) and isinstance(node, list):
        count = len(pattern)
        if pattern and _is_rest(pattern[-1]):
            count -= 1
            found.rests.append(node[count:])
            pattern, node = pattern[:count], node[:count]
        return len(node) == count and all(
            _matches(one, other, found) for one, other in zip(pattern, node, strict=True)
        )
    if not isinstance(pattern, ast.AST):
        return bool(pattern == node) or (pattern == "_" and isinstance(node, str))
    if type(pattern) is not type(node):
        return False
    ignored = _IGNORED
    if isinstance(pattern, ast.Call) and pattern.args and _is_rest(pattern.args[-1]):
        ignored |= {"keywords"}
    return all(
        _matches(getattr(pattern, name), getattr(node, name), found)
        for name in pattern._fields
        if name not in ignored
    )


def _is_placeholder(name: str) -> bool:
    return name == "_" or (name.startswith("_") and name[1:].isdigit())


def _is_rest(node: ast.AST) -> bool:
    return isinstance(node.value if isinstance(node, ast.Expr) else node, ast.Constant) and (
        ast.unparse(node) == "..."
    )


def _filled(replacement: list[ast.AST], found: _Found) -> list[ast.AST]:
    """Return a replacement with what its placeholders stand for."""
    rests = iter(found.rests)

    class Filler(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.AST:
            return deepcopy(found.expressions.get(node.id, node))

        def visit_Expr(self, node: ast.Expr) -> Any:
            return next(rests) if _is_rest(node) else self.generic_visit(node)

    return [Filler().visit(node) for node in replacement]
