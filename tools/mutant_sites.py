"""Draw places in the code, and plant a fault in each (tools/mutants.py).

| kind | fault |
| --- | --- |
| factor | a factor, divisor or exponent dropped: `2*x` to `x`, `k**2` to `k` |
| comparison | one turned, its equality moved, or `not` dropped |
| halved | what a function annotated `-> float` returns, or a decimal constant of a module, halved |
| one | a whole number in a comparison, a sum or a range moved by one |
| records | `k` or `records_per_person` taken as 1 |
| extreme | `min` and `max` swapped |
| sign | `+` and `-` swapped, or a minus dropped |

Text is left alone: docstrings, annotations, decorators, messages of errors, f-strings, functions that return text.
"""

from __future__ import annotations

import ast
import copy
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

PACKAGES = ("privacy", "methods", "models", "release", "ledger", "data")
EARLIER = {"methods": "mechanisms"}
"""What a package was called in commits from before it moved."""

TURNED: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.Gt),
    ast.LtE: (ast.Lt, ast.GtE),
    ast.Gt: (ast.GtE, ast.Lt),
    ast.GtE: (ast.Gt, ast.LtE),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
SWAPPED = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum"}


@dataclass(frozen=True)
class Site:
    """A place and the fault planted there; ``ordinal`` tells equal texts in one function apart."""

    path: str
    function: str
    kind: str
    original: str
    ordinal: int
    mutant: str


@dataclass(frozen=True)
class Candidate:
    """A node of a syntax tree with the faults of one kind that can be planted there."""

    node: ast.expr
    function: str
    kind: str
    mutants: tuple[str, ...]


def names_of(package: str) -> list[str]:
    """List what a package is and was called."""
    return [package, *([EARLIER[package]] if package in EARLIER else [])]


def draw(sources: Mapping[str, str], seed: int, count: int) -> dict[int, Site]:
    """Draw `count` sites, as many from each package, uniformly over the package's candidates."""
    generator = random.Random(seed)
    drawn: list[Site] = []
    for index, package in enumerate(PACKAGES):
        pool = []
        for path in sorted(sources):
            if path.startswith(tuple(f"src/onedraw/{name}/" for name in names_of(package))):
                pool += [(path, *numbered) for numbered in numbered_candidates(sources[path])]
        size = count // len(PACKAGES) + (index < count % len(PACKAGES))
        for path, candidate, original, ordinal in generator.sample(pool, size):
            mutant = generator.choice(candidate.mutants)
            drawn.append(Site(path, candidate.function, candidate.kind, original, ordinal, mutant))
    return dict(enumerate(drawn, start=1))


def planted(source: str, site: Site) -> str | None:
    """Return the file's text with the fault in it, or None where the place is no longer there."""
    for candidate, original, ordinal in numbered_candidates(source):
        if (candidate.function, candidate.kind, original, ordinal) == (
            site.function,
            site.kind,
            site.original,
            site.ordinal,
        ):
            start, end = span(source, candidate.node)
            text = source.encode()
            return (text[:start] + f"({site.mutant})".encode() + text[end:]).decode()
    return None


def numbered_candidates(source: str) -> list[tuple[Candidate, str, int]]:
    """Candidates with their text and the number of equal ones before them in the same function."""
    seen: dict[tuple[str, str, str], int] = {}
    rows = []
    for candidate in candidates(ast.parse(source)):
        start, end = span(source, candidate.node)
        original = source.encode()[start:end].decode()
        key = (candidate.function, candidate.kind, original)
        seen[key] = seen.get(key, -1) + 1
        rows.append((candidate, original, seen[key]))
    return rows


def span(source: str, node: ast.expr) -> tuple[int, int]:
    """The first byte of a node and the byte after its last."""
    starts = [0]
    for line in source.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    return starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset


def candidates(tree: ast.Module) -> Iterator[Candidate]:
    """Walk the code, but no text and no annotation."""
    yield from _walk(tree, "", returns_float=False)


def _walk(node: ast.AST, function: str, *, returns_float: bool) -> Iterator[Candidate]:
    if isinstance(node, ast.Raise | ast.JoinedStr) or _is_type_checking(node):
        return
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        function = f"{function}.{node.name}".lstrip(".")
        returns = getattr(node, "returns", None)
        text = "" if returns is None else ast.unparse(returns)
        if text == "str" or node.name in ("__repr__", "__str__"):
            return
        returns_float = text == "float"
    for kind, mutants in _faults(node, module=function == "", returns_float=returns_float):
        target = node.value if isinstance(node, ast.Return | ast.Assign | ast.AnnAssign) else node
        assert isinstance(target, ast.expr)
        yield Candidate(target, function, kind, tuple(mutants))
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list", "type_params"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _walk(child, function, returns_float=returns_float)


def _is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def _faults(node: ast.AST, *, module: bool, returns_float: bool) -> Iterator[tuple[str, list[str]]]:
    """Every kind of fault that can be planted at `node`, with the texts that may replace it."""
    if isinstance(node, ast.BinOp) and not _is_text(node.left) and not _is_text(node.right):
        yield from _arithmetic_faults(node)
    elif isinstance(node, ast.Compare):
        yield "comparison", [ast.unparse(turned) for turned in _turned(node)]
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield "comparison", [ast.unparse(node.operand)]
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and not _is_number(node.operand):
        yield "sign", [ast.unparse(node.operand)]
    elif isinstance(node, ast.Call):
        yield from _call_faults(node)
    elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load):
        name = node.id if isinstance(node, ast.Name) else node.attr
        if name == "records_per_person" or (name == "k" and isinstance(node, ast.Name)):
            yield "records", ["1"]
    elif isinstance(node, ast.Return) and returns_float and node.value is not None and not _is_number(node.value):
        yield "halved", [f"({ast.unparse(node.value)}) / 2"]
    elif isinstance(node, ast.Assign | ast.AnnAssign) and module and isinstance(node.value, ast.Constant):
        yield from [("halved", [f"{node.value.value} / 2"])] if isinstance(node.value.value, float) else []
    if isinstance(node, ast.Compare | ast.BinOp | ast.Call):
        yield from _moved_by_one(node)


def _arithmetic_faults(node: ast.BinOp) -> Iterator[tuple[str, list[str]]]:
    constant_left, constant_right = _is_number(node.left), _is_number(node.right)
    left, right = ast.unparse(node.left), ast.unparse(node.right)
    if constant_left and constant_right:
        return
    if isinstance(node.op, ast.Mult):
        yield "factor", [right] if constant_left else [left] if constant_right else [left, right]
    elif isinstance(node.op, ast.Div | ast.Pow | ast.FloorDiv) and constant_right:
        yield "factor", [left]
    elif isinstance(node.op, ast.Add | ast.Sub):
        swapped = copy.deepcopy(node)
        swapped.op = ast.Sub() if isinstance(node.op, ast.Add) else ast.Add()
        yield "sign", [ast.unparse(swapped)]


def _call_faults(node: ast.Call) -> Iterator[tuple[str, list[str]]]:
    name = getattr(node.func, "id", getattr(node.func, "attr", ""))
    if name in SWAPPED:
        swapped = copy.deepcopy(node)
        if isinstance(swapped.func, ast.Name):
            swapped.func.id = SWAPPED[name]
        elif isinstance(swapped.func, ast.Attribute):
            swapped.func.attr = SWAPPED[name]
        yield "extreme", [ast.unparse(swapped)]


def _turned(node: ast.Compare) -> Iterator[ast.Compare]:
    for index, operator in enumerate(node.ops):
        for other in TURNED[type(operator)]:
            turned = copy.deepcopy(node)
            turned.ops[index] = other()
            yield turned


def _moved_by_one(node: ast.Compare | ast.BinOp | ast.Call) -> Iterator[tuple[str, list[str]]]:
    """Whole numbers that are operands of a comparison or a sum, or ends of a range."""
    if isinstance(node, ast.BinOp) and not isinstance(node.op, ast.Add | ast.Sub):
        return
    if isinstance(node, ast.Call) and not (isinstance(node.func, ast.Name) and node.func.id == "range"):
        return
    mutants = []
    for path in ("left", "right", "comparators", "args"):
        value = getattr(node, path, None)
        for index, child in enumerate(value if isinstance(value, list) else [value]):
            if isinstance(child, ast.Constant) and type(child.value) is int:
                for moved in (child.value + 1, child.value - 1):
                    changed = copy.deepcopy(node)
                    if isinstance(value, list):
                        getattr(changed, path)[index] = ast.Constant(moved)
                    else:
                        setattr(changed, path, ast.Constant(moved))
                    mutants.append(ast.unparse(changed))
    if mutants:
        yield "one", mutants


def _is_number(node: ast.AST | None) -> bool:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node = node.operand
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)


def _is_text(node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp):
        return _is_text(node.left) or _is_text(node.right)
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str | bytes)
    return isinstance(node, ast.JoinedStr | ast.Tuple | ast.List | ast.Starred)
