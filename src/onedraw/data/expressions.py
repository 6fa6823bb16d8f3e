"""Factors of a formula: which expressions are allowed, between which numbers they lie, and what they are on a record.

A factor such as ``log(1 + income)`` or ``C(ward, Treatment("B"))`` is read as Python's grammar reads it, and nothing of it is ever
run by Python: a node of its tree that is not known here is refused. There is no attribute access, no subscript, no lambda, no
keyword beyond those named below, and a name is a declared column or one of the functions of this file.

| written | is | bounds |
| --- | --- | --- |
| a number or count, a binary column without `levels:` | its number (no 0, yes 1) | as declared |
| a category, a binary column with `levels:` | one column for each level | 0 and 1 |
| ``+ - * /``, ``**`` by a public number | arithmetic | exact, rounded outward |
| `FUNCTIONS` | an increasing function, or ``abs``, ``sin``, ``cos`` | at the ends, outward by `SLACK` units |
| ``< <= > >= == !=``, ``& | ~`` of them | 0 or 1 | 0 and 1, or the one that the declared ranges allow |
| ``C(x)``, ``C(x, Treatment("B"))`` | a category, compared with its first level or with "B" | 0 and 1 |
| ``I(…)``, ``poly(x, d, raw=True)``, ``bs(x, knots=…, …)`` | the number itself; powers; B-splines | as above; 0 and 1 |

**Bounds.** `Quantity` holds the bounds that follow from the declared ranges by interval arithmetic. Ends of + − × ÷ and of whole
powers are computed as exact fractions and rounded outward. Ends of other functions are moved outward by `SLACK` units in the last place,
more than a C library's functions are off. Each value is moved into these bounds after it is computed, so they hold in floating point too.
What has no finite bound, such as ``log(x)`` of an x that may be 0, is refused with what to write instead.

**One record at a time.** The value of a quantity depends on that record alone, to the last bit: + − × ÷ and square roots are
rounded correctly by IEEE 754 wherever they stand in an array. Every other function is computed by `math`, one number after the other,
because vectorized versions may round differently by position. A missing cell (NaN, or a code below 0) makes the quantity NaN.
"""

from __future__ import annotations

import ast
import math
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onedraw.arrays import Array
from onedraw.data.cells import label_of
from onedraw.errors import InvalidSchema

LONGEST, DEEPEST, SHOWN = 500, 40, 80
"""Characters of a factor, expressions within one another, and characters that a refusal quotes."""

LARGEST_BOUND = 1e60
"""Bounds of a term beyond this leave no room for the squares that sensitivities are made of."""

LARGEST_POWER = 20
LARGEST_DEGREE = 8
LARGEST_CATEGORY = 1000
"""Levels of a count that is read as a category."""

SLACK = 4
"""Units in the last place by which ends of `FUNCTIONS` are moved outward: the GNU C library's are off by less than 1."""


# ── numbers of a record ──────────────────────────────────────────────────────────────────────────────────────


@dataclass(eq=False)
class Values:
    """The encoded columns of some records, and what was computed from them."""

    columns: Mapping[str, NDArray[Any]]
    known: dict[Quantity, Array] = field(default_factory=dict)
    splines: dict[_Spline, list[Array]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Quantity:
    """A number of each record, between finite bounds that follow from the schema.

    Parameters
    ----------
    is_truth : bool
        Whether it is a comparison, with which arithmetic is restricted as in NumPy.
    is_indicator : bool
        Whether it is 0 or 1.
    is_kept : bool
        Whether its values are kept for other quantities that need them.
    """

    lower: float
    upper: float
    compute: Callable[[Values], Array]
    is_truth: bool = False
    is_indicator: bool = False
    is_kept: bool = True

    @property
    def is_constant(self) -> bool:
        return self.lower == self.upper

    def of(self, values: Values) -> Array:
        """Compute it for some records, inside its bounds."""
        if (found := values.known.get(self)) is None:
            with np.errstate(all="ignore"):
                found = np.clip(self.compute(values), self.lower, self.upper)
            if self.is_kept:
                values.known[self] = found
        return found


@dataclass(frozen=True, eq=False)
class Levels:
    """A category: its code on each record, its labels, and the label with which others are compared."""

    labels: tuple[str, ...]
    codes: Callable[[Values], NDArray[Any]]
    base: int = 0
    column: str | None = None

    def is_level(self, code: int) -> Quantity:
        """Return the quantity that is 1 where the category has this level."""

        def compute(values: Values) -> Array:
            codes = self.codes(values)
            return np.where(codes >= 0, codes == code, np.nan)

        return Quantity(0.0, 1.0, compute, is_indicator=True)


@dataclass(frozen=True, eq=False)
class Several:
    """Quantities that one factor stands for, by what follows its name."""

    parts: tuple[tuple[str, Quantity], ...]


Value = Quantity | Levels | Several


def constant(number: float) -> Quantity:
    return Quantity(number, number, lambda values: np.float64(number))  # type: ignore[return-value,arg-type]  # broadcast


def times(one: Quantity, other: Quantity) -> Quantity:
    """Return the product of two quantities."""
    lower, upper = ends_of([a * b for a in exact(one) for b in exact(other)])
    indicator = one.is_indicator and other.is_indicator
    return Quantity(
        lower, upper, lambda values: one.of(values) * other.of(values), is_indicator=indicator, is_kept=False
    )


def exact(one: Quantity) -> tuple[Fraction, Fraction]:
    return Fraction(one.lower), Fraction(one.upper)


def ends_of(found: Sequence[Fraction]) -> tuple[float, float]:
    """Return floats around exact numbers."""
    return rounded(min(found), -math.inf), rounded(max(found), math.inf)


def rounded(number: Fraction, towards: float) -> float:
    """Return the nearest float on this side of an exact number."""
    try:
        nearest = float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf
    outside = Fraction(nearest) >= number if towards > 0 else Fraction(nearest) <= number
    return nearest if outside else math.nextafter(nearest, towards)


def outward(number: float, towards: float) -> float:
    """Return an end moved outward; 0 stays, which functions reach exactly and with the right sign beside it."""
    for _ in range(SLACK if number else 0):
        number = math.nextafter(number, towards)
    return number


def one_by_one(function: Callable[[float], float]) -> Callable[[Array], Array]:
    """Return the function of arrays that computes each number by itself."""

    def compute(numbers: Array) -> Array:
        found = np.fromiter(map(function, np.ravel(numbers).tolist()), np.float64, np.size(numbers))
        return found.reshape(np.shape(numbers))

    return compute


@dataclass(frozen=True)
class Function:
    """An increasing function: how arrays and ends of intervals are computed, and where it is finite."""

    of_array: Callable[[Array], Array]
    of_end: Callable[[float], float]
    least: float = -math.inf
    is_open: bool = False
    is_exact: bool = False
    remedy: str = ""


def _library(function: Callable[[float], float], **known: Any) -> Function:
    return Function(one_by_one(function), function, **known)


_ABOVE_0: dict[str, Any] = {
    "least": 0.0,
    "is_open": True,
    "remedy": "Write log(1 + {0}), or log({0} + c) with a public number c",
}
FUNCTIONS: dict[str, Function] = {
    "log": _library(math.log, **_ABOVE_0),
    "log2": _library(math.log2, **_ABOVE_0),
    "log10": _library(math.log10, **_ABOVE_0),
    "log1p": _library(math.log1p, least=-1.0, is_open=True, remedy="Add a public number to {0}"),
    "exp": _library(math.exp),
    "expm1": _library(math.expm1),
    "sqrt": Function(np.sqrt, math.sqrt, least=0.0, is_exact=True, remedy="Add a public number to {0}, or use abs({0})"),
    "floor": Function(np.floor, np.floor, is_exact=True),
    "ceil": Function(np.ceil, np.ceil, is_exact=True),
}  # fmt: skip
WAVES = {"sin": one_by_one(math.sin), "cos": one_by_one(math.cos)}
CALLS = ("C", "I", "Q", "abs", "bs", "poly", *FUNCTIONS, *WAVES)
"""All that a formula may call."""

LEARNS = {
    "scale": "Give the public numbers: I((x - 50) / 10)",
    "center": "Give the public number: I(x - 50)",
    "standardize": "Give the public numbers: I((x - 50) / 10)",
    "lag": "Records have no order here",
    "diff": "Records have no order here",
    "shift": "Records have no order here",
    "cumsum": "Records have no order here",
    "rank": "Use the number itself",
    "cut": "Use comparisons with public numbers: I(x > 40)",
    "qcut": "Use comparisons with public numbers: I(x > 40)",
    "mean": "Give a public number",
    "sum": "Give a public number",
    "std": "Give a public number",
    "min": "Give a public number",
    "max": "Give a public number",
    "median": "Give a public number",
    "cs": "Use bs with public knots and bounds",
    "cr": "Use bs with public knots and bounds",
    "cc": "Use bs with public knots and bounds",
    "te": "Multiply terms: bs(x, …):bs(z, …)",
}
"""Functions that learn from the records or read other rows, and what to write instead."""

CONTRASTS = ("Sum", "Helmert", "Diff", "Poly", "sum", "helmert", "diff", "poly", "sas")


# ── from text to values ──────────────────────────────────────────────────────────────────────────────────────

QUOTED = re.compile(r"`([^`]*)`")


class Reader:
    """Reads the factors of one formula over declared columns; ``used`` collects the columns that they name."""

    def __init__(self, columns: Mapping[str, Any]) -> None:
        self.columns, self.used = columns, dict[str, None]()
        self._known: dict[str, Value] = {}
        self._text, self._depth = "", 0
        self._quoted: dict[str, str] = {}

    def value(self, text: str) -> Value:
        """Read one factor; the same text is the same object, so that it is computed once for a batch."""
        if text not in self._known:
            self._text, self._depth = text, 0
            self._known[text] = self._visit(self._tree(text))
        return self._known[text]

    def _tree(self, text: str) -> ast.expr:
        if len(text) > LONGEST:
            raise InvalidSchema(f"A term of the formula has {len(text):,} characters. Write at most {LONGEST}.")
        prefix = "quoted"
        while prefix in text:
            prefix += "_"
        self._quoted = {}

        def place(match: re.Match[str]) -> str:
            name = f"{prefix}{len(self._quoted)}"
            self._quoted[name] = match[1]
            return name

        replaced = QUOTED.sub(place, text[1:-1] if text[0] == "{" and text[-1] == "}" else text)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return ast.parse(replaced, mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise self._refusal(
                "cannot be read", "Check brackets and commas; put names with blanks in backticks"
            ) from None

    def _refusal(self, what: str, remedy: str) -> InvalidSchema:
        text = self._text if len(self._text) <= SHOWN else f"{self._text[:SHOWN]}…"
        return InvalidSchema(f"The formula's {text!r} {what}. {remedy}.")

    # ── nodes ──

    def _visit(self, node: ast.expr) -> Value:
        self._depth += 1
        if self._depth > DEEPEST:
            raise self._refusal("is too deep", f"Write at most {DEEPEST} expressions within one another")
        found = self._expression(node)
        self._depth -= 1
        return found

    def _expression(self, node: ast.expr) -> Value:
        match node:
            case ast.Name(id=name):
                return self._column(self._quoted.get(name, name))
            case ast.Constant(value=bool()):
                raise self._refusal("holds True or False", "Write 1 or 0")
            case ast.Constant(value=int() | float() as number):
                return self._constant(number)
            case ast.Call(func=ast.Name(id=name)):
                return self._call(name, node)
            case ast.UnaryOp(op=ast.UAdd() | ast.USub() | ast.Invert()):
                return self._unary(node)
            case ast.BinOp(op=ast.BitAnd() | ast.BitOr()):
                return self._both(node)
            case ast.BinOp(op=ast.Pow()):
                return self._power(node)
            case ast.BinOp(op=ast.Add() | ast.Sub() | ast.Mult() | ast.Div()):
                return self._arithmetic(node)
            case ast.Compare(ops=[_], comparators=[_]):
                return self._comparison(node)
        raise self._refuse_node(node)

    def _refuse_node(self, node: ast.expr) -> InvalidSchema:
        match node:
            case ast.Call(func=ast.Attribute(attr=name)) if name in CALLS:
                return self._refusal("uses an attribute, which a formula may not", f"Write {name}(…) alone")
            case ast.Attribute() | ast.Call(func=ast.Attribute()):
                remedy = "Use a function by its name alone; put a column whose name has a dot in backticks"
                return self._refusal("uses an attribute, which a formula may not", remedy)
            case ast.BoolOp() | ast.UnaryOp():
                return self._refusal(
                    "combines comparisons by words", "Write & for and, | for or, ~ for not, each comparison in brackets"
                )
            case ast.Compare():
                return self._refusal("chains comparisons", "Write I((20 < x) & (x < 30))")
            case ast.Constant(value=str()):
                return self._refusal(
                    "holds a text where a number is needed", "Compare a category with a text: I(ward == 'B')"
                )
        kind = type(node).__name__
        return self._refusal(
            f"holds what a formula may not ({kind})",
            f"Use columns, numbers, + - * / **, comparisons, and the functions {', '.join(CALLS)}",
        )

    def _constant(self, number: float) -> Quantity:
        try:
            return constant(float(number))
        except OverflowError:
            raise self._refusal("holds a number that is too large", f"Use numbers up to {LARGEST_BOUND:g}") from None

    def _column(self, name: str) -> Value:
        if name not in self.columns:
            from onedraw.data.declarations import perhaps

            listed = ", ".join(map(repr, list(self.columns)[:8])) + (", …" if len(self.columns) > 8 else "")
            raise InvalidSchema(
                f"The formula names {name!r}, which the schema does not declare; it has {listed}. Declare the column, or correct "
                f"the name{perhaps(name, self.columns)}."
            )
        self.used[name] = None
        column = self.columns[name]
        role = getattr(column, "role", column.kind)  # what another kind is in a question
        if role == "category" or (role == "binary" and column.levels is not None):
            return Levels(tuple(column.labels), lambda values: values.columns[name], column=name)
        if role not in ("number", "count", "binary"):
            raise self._refusal(
                f"names {name!r}, whose kind is {column.kind}", "Use a number, count, category or binary column"
            )
        lower, upper = column.ends

        def compute(values: Values) -> Array:
            numbers = np.asarray(values.columns[name], dtype=np.float64)
            known = np.isfinite(numbers) if role == "number" else numbers >= 0.0
            return np.where(known, numbers, np.nan)

        return Quantity(lower, upper, compute, is_indicator=role == "binary")

    def _quantity(self, node: ast.expr) -> Quantity:
        found = self._visit(node)
        if isinstance(found, Levels):
            raise self._refusal(
                "computes with a category, which is no number",
                "Use it as a term by itself, or compare it: I(ward == 'B')",
            )
        if isinstance(found, Several):
            raise self._refusal(
                "computes with a function of several columns", "Use poly(…) and bs(…) as terms by themselves"
            )
        return found

    def _made(self, lower: float, upper: float, compute: Callable[[Values], Array], **known: bool) -> Quantity:
        if not (-math.inf < lower <= upper < math.inf):
            raise self._refusal(
                "has no finite bound by the declared ranges, and without one no promise exists",
                "Narrow the ranges in the schema, or use log or sqrt of the column",
            )
        return Quantity(lower, upper, compute, **known)

    # ── arithmetic ──

    def _unary(self, node: ast.UnaryOp) -> Quantity:
        one = self._quantity(node.operand)
        if isinstance(node.op, ast.Invert):
            if not one.is_truth:
                raise self._refusal("uses ~ on what is no comparison", "Write ~(x > 3)")
            return Quantity(
                1.0 - one.upper, 1.0 - one.lower, lambda values: 1.0 - one.of(values), is_truth=True, is_indicator=True
            )
        if isinstance(node.op, ast.UAdd):
            return one
        self._refuse_truths(one)
        return Quantity(0.0 - one.upper, 0.0 - one.lower, lambda values: 0.0 - one.of(values))

    def _refuse_truths(self, *several: Quantity) -> None:
        if all(one.is_truth for one in several):
            raise self._refusal("adds or negates comparisons", "Make a number of each: 1 * (x > 3)")

    def _arithmetic(self, node: ast.BinOp) -> Quantity:
        one, other = self._quantity(node.left), self._quantity(node.right)
        pairs = [(a, b) for a in exact(one) for b in exact(other)]
        match node.op:
            case ast.Mult():
                found = times(one, other)
                return self._made(found.lower, found.upper, found.compute, is_indicator=found.is_indicator)
            case ast.Div():
                if other.lower <= 0.0 <= other.upper:
                    raise self._refusal(
                        "divides by what may be 0 by the declared ranges, so that it has no finite bound",
                        "Add a public number to the divisor, or declare a range without 0",
                    )
                return self._made(*ends_of([a / b for a, b in pairs]), lambda values: one.of(values) / other.of(values))
            case ast.Add():
                self._refuse_truths(one, other)
                return self._made(*ends_of([a + b for a, b in pairs]), lambda values: one.of(values) + other.of(values))
        self._refuse_truths(one, other)
        return self._made(*ends_of([a - b for a, b in pairs]), lambda values: one.of(values) - other.of(values))

    def _power(self, node: ast.BinOp) -> Quantity:
        one, power = self._quantity(node.left), self._quantity(node.right)
        if not power.is_constant or power.lower == 0.0 or abs(power.lower) > LARGEST_POWER:
            raise self._refusal(
                "has a power that is no public number", f"Write x**2, with a number up to {LARGEST_POWER} other than 0"
            )
        if power.lower == int(power.lower):
            return self._whole_power(one, int(power.lower))
        least, exponent = one.lower, power.lower
        if least < 0.0 or (least == 0.0 and exponent < 0.0):
            raise self._refusal(
                "takes a power of what may be negative or 0 by the declared ranges",
                "Use a whole power, or a range above 0",
            )
        low, high = sorted((_pow(one.lower, exponent), _pow(one.upper, exponent)))
        raised = one_by_one(lambda number: math.pow(number, exponent))
        return self._made(
            max(outward(low, -math.inf), 0.0), outward(high, math.inf), lambda values: raised(one.of(values))
        )

    def _whole_power(self, one: Quantity, power: int) -> Quantity:
        """Powers by repeated products, each of them rounded correctly."""
        if power < 0 and one.lower <= 0.0 <= one.upper:
            raise self._refusal(
                "divides by what may be 0 by the declared ranges, so that it has no finite bound",
                "Declare a range without 0",
            )
        found = [end**power for end in exact(one)]
        if power % 2 == 0 and one.lower < 0.0 < one.upper:
            found.append(Fraction(0))

        def compute(values: Values) -> Array:
            base = one.of(values)
            product = base
            for _ in range(abs(power) - 1):
                product = product * base
            return product if power > 0 else 1.0 / product

        return self._made(*ends_of(found), compute, is_indicator=one.is_indicator and power > 0)

    # ── comparisons ──

    def _comparison(self, node: ast.Compare) -> Quantity:
        left, right, op = node.left, node.comparators[0], node.ops[0]
        texts = [isinstance(side, ast.Constant) and isinstance(side.value, str) for side in (left, right)]
        if any(texts):
            return self._is_level(*((right, left) if texts[0] else (left, right)), op)
        one, other = self._quantity(left), self._quantity(right)
        compare = {ast.Lt: np.less, ast.LtE: np.less_equal, ast.Gt: np.greater, ast.GtE: np.greater_equal,
                   ast.Eq: np.equal, ast.NotEq: np.not_equal}.get(type(op))  # fmt: skip
        if compare is None:
            raise self._refusal("compares by words", "Use <, <=, >, >=, == or !=")
        function: Any = compare

        def compute(values: Values) -> Array:
            a, b = one.of(values), other.of(values)
            return np.where(np.isnan(a) | np.isnan(b), np.nan, function(a, b))

        return Quantity(*_truth_ends(one, other, op), compute, is_truth=True, is_indicator=True)

    def _is_level(self, category: ast.expr, text: ast.expr, op: ast.cmpop) -> Quantity:
        levels, label = self._visit(category), text.value  # type: ignore[attr-defined]  # a constant text
        if not isinstance(levels, Levels) or not isinstance(op, ast.Eq | ast.NotEq):
            raise self._refusal("compares with a text", "Compare a category by == or !=: I(ward == 'B')")
        code = self._code(levels, label)
        quantity = levels.is_level(code)
        if isinstance(op, ast.NotEq):
            return Quantity(0.0, 1.0, lambda values: 1.0 - quantity.of(values), is_truth=True, is_indicator=True)
        return Quantity(0.0, 1.0, quantity.compute, is_truth=True, is_indicator=True)

    def _code(self, levels: Levels, label: Any) -> int:
        found = [code for code, one in enumerate(levels.labels) if label_of(one) == label_of(label)]
        if not found:
            listed = ", ".join(map(repr, levels.labels[:8])) + (", …" if len(levels.labels) > 8 else "")
            raise self._refusal(f"names the level {label!r}, which the schema does not declare", f"There are: {listed}")
        return found[0]

    def _both(self, node: ast.BinOp) -> Quantity:
        one, other = self._quantity(node.left), self._quantity(node.right)
        if not (one.is_truth and other.is_truth):
            raise self._refusal(
                "uses & or | on what is no comparison", "Put each comparison in brackets: (x > 3) & (z < 5)"
            )
        joined: Any = np.minimum if isinstance(node.op, ast.BitAnd) else np.maximum
        lower, upper = (float(joined(*ends)) for ends in ((one.lower, other.lower), (one.upper, other.upper)))
        return Quantity(
            lower, upper, lambda values: joined(one.of(values), other.of(values)), is_truth=True, is_indicator=True
        )

    # ── functions ──

    def _call(self, name: str, node: ast.Call) -> Value:
        if name in LEARNS:
            raise self._refusal(f"calls {name}, which learns from the records or reads other rows", LEARNS[name])
        if name not in CALLS:
            raise self._refusal(f"calls {name!r}, which is no function of a formula", f"There are: {', '.join(CALLS)}")
        if any(isinstance(one, ast.Starred) for one in node.args) or any(one.arg is None for one in node.keywords):
            raise self._refusal("unpacks arguments", "Write them out")
        if name == "C":
            return self._category(node)
        if name == "poly":
            return self._polynomial(node)
        if name == "bs":
            return self._spline(node)
        if len(node.args) != 1 or node.keywords:
            raise self._refusal(f"gives {name} more or fewer than one argument", f"Write {name}(x)")
        if name == "Q":
            if not (isinstance(node.args[0], ast.Constant) and isinstance(node.args[0].value, str)):
                raise self._refusal("gives Q no text", "Write Q('a name with blanks')")
            return self._column(node.args[0].value)
        one = self._quantity(node.args[0])
        if name == "I":
            return one
        if name == "abs":
            found = [abs(end) for end in exact(one)] + [Fraction(0)] * (one.lower < 0.0 < one.upper)
            return Quantity(*ends_of(found), lambda values: np.abs(one.of(values)))
        if name in WAVES:
            return Quantity(-1.0, 1.0, lambda values: WAVES[name](one.of(values)))
        return self._increasing(name, FUNCTIONS[name], one, node.args[0])

    def _increasing(self, name: str, function: Function, one: Quantity, argument: ast.expr) -> Quantity:
        if one.lower < function.least or (function.is_open and one.lower == function.least):
            shown = self._shown(argument)
            below = f"{function.least:g} or less" if function.is_open else f"less than {function.least:g}"
            raise self._refusal(
                f"takes {name} of what may be {below} by the declared ranges, where it has no finite value",
                f"{function.remedy.format(shown)}, or declare a range above {function.least:g}",
            )
        try:
            low, high = float(function.of_end(one.lower)), float(function.of_end(one.upper))
        except OverflowError:
            low, high = 0.0, math.inf
        if not function.is_exact:
            low, high = outward(low, -math.inf), outward(high, math.inf)
            low = max(low, 0.0) if name == "exp" else low
        return self._made(low, high, lambda values: function.of_array(one.of(values)))

    def _shown(self, node: ast.expr) -> str:
        text = ast.unparse(node)
        for name, column in self._quoted.items():
            text = text.replace(name, f"`{column}`")
        return text

    def _category(self, node: ast.Call) -> Levels:
        if not 1 <= len(node.args) <= 2:
            raise self._refusal("gives C no column", "Write C(ward)")
        found = self._visit(node.args[0])
        given = {str(one.arg): one.value for one in node.keywords}
        if set(given) - {"contrasts"} or (len(node.args) == 2 and given):
            what = "names levels, which come from the schema" if "levels" in given else "gives C what it does not know"
            raise self._refusal(what, "Write C(ward), or C(ward, Treatment('B')) to compare with the level B")
        contrast = node.args[1] if len(node.args) == 2 else given.get("contrasts")
        levels = self._levels(found, node.args[0])
        return levels if contrast is None else self._compared(levels, contrast)

    def _levels(self, found: Value, argument: ast.expr) -> Levels:
        if isinstance(found, Levels):
            return found
        name = self._quoted.get(argument.id, argument.id) if isinstance(argument, ast.Name) else None
        column = None if name is None else self.columns[name]
        if isinstance(found, Quantity) and found.is_truth:
            quantity, labels = found, ("False", "True")
        elif column is not None and column.kind == "binary":
            quantity, labels = found, tuple(column.labels)  # type: ignore[assignment]  # a binary column is a quantity
        elif column is not None and column.kind == "count" and column.cap <= LARGEST_CATEGORY:
            quantity, labels = found, tuple(map(str, range(column.cap + 1)))  # type: ignore[assignment]
        else:
            raise self._refusal(
                "makes a category of what has no declared levels; levels found in the records would tell which of them occur",
                "Declare the column as `kind: category` with `levels:`, or use comparisons: I(x > 40)",
            )

        def codes(values: Values) -> NDArray[Any]:
            numbers = quantity.of(values)
            return np.where(np.isnan(numbers), -1.0, numbers)

        return Levels(labels, codes, column=name)

    def _compared(self, levels: Levels, contrast: ast.expr) -> Levels:
        """Apply ``Treatment("B")``, ``contr.treatment("B")`` or ``contr.treatment``, which compares with the first level."""
        called = contrast.func if isinstance(contrast, ast.Call) else contrast
        match called:
            case ast.Name(id="Treatment") | ast.Attribute(value=ast.Name(id="contr"), attr="treatment"):
                pass
            case ast.Name(id=name) | ast.Attribute(value=ast.Name(id="contr"), attr=name) if name in CONTRASTS:
                raise self._refusal(
                    f"asks for {name} contrasts", "Levels are compared with one of them: C(ward, Treatment('B'))"
                )
            case _:
                raise self._refusal("gives C a contrast that is not known", "Write C(ward, Treatment('B'))")
        if not isinstance(contrast, ast.Call):
            return levels
        keyword = "reference" if isinstance(called, ast.Name) else "base"
        given = [*contrast.args, *(one.value for one in contrast.keywords if one.arg == keyword)]
        if len(given) != len(contrast.args) + len(contrast.keywords) or len(given) > 1:
            raise self._refusal("gives a contrast what it does not know", "Write C(ward, Treatment('B'))")
        if not given:
            return levels
        if not (isinstance(given[0], ast.Constant) and isinstance(given[0].value, str | int | float)):
            raise self._refusal("names no level to compare with", "Write it as a text: C(ward, Treatment('B'))")
        return Levels(levels.labels, levels.codes, self._code(levels, given[0].value), levels.column)

    # ── polynomials and splines ──

    def _arguments(self, node: ast.Call, names: Sequence[str], example: str) -> dict[str, ast.expr]:
        given = dict(zip(names, node.args, strict=False)) | {str(one.arg): one.value for one in node.keywords}
        if len(given) != len(node.args) + len(node.keywords) or not set(given) <= set(names) or "x" not in given:
            raise self._refusal("has arguments that are not known", f"Write {example}")
        return given

    def _public(self, node: ast.expr, example: str) -> float:
        try:
            number = ast.literal_eval(node)
        except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
            number = None
        if isinstance(number, bool) or not isinstance(number, int | float) or not abs(number) < LARGEST_BOUND:
            raise self._refusal("has an argument that is no public number", f"Write {example}")
        return float(number)

    def _whole(self, node: ast.expr, example: str) -> int:
        number = self._public(node, example)
        if number != int(number) or not 1 <= number <= LARGEST_DEGREE:
            raise self._refusal(f"has a degree that is no whole number from 1 to {LARGEST_DEGREE}", f"Write {example}")
        return int(number)

    def _polynomial(self, node: ast.Call) -> Several:
        example = "poly(x, 2, raw=True)"
        given = self._arguments(node, ("x", "degree", "raw"), example)
        raw = given.get("raw")
        if not (isinstance(raw, ast.Constant) and raw.value is True):
            raise self._refusal(
                "calls poly, which learns orthogonal polynomials from the records",
                f"Write {example}: powers of the number",
            )
        one, degree = self._quantity(given["x"]), self._whole(given["degree"], example) if "degree" in given else 1
        powers = (one if power == 1 else self._whole_power(one, power) for power in range(1, degree + 1))
        return Several(tuple((f"[{place}]", power) for place, power in enumerate(powers)))

    def _spline(self, node: ast.Call) -> Several:
        example = "bs(x, knots=[30, 50], degree=3, lower_bound=0, upper_bound=100)"
        names = ("x", "df", "knots", "degree", "include_intercept", "lower_bound", "upper_bound", "extrapolation")
        given = self._arguments(node, names, example)
        given = {name: one for name, one in given.items() if not (isinstance(one, ast.Constant) and one.value is None)}
        if "df" in given or not {"knots", "lower_bound", "upper_bound"} <= set(given):
            raise self._refusal(
                "calls bs without public knots and bounds, which it would then take from the records",
                f"Write {example}",
            )
        intercept = given.get("include_intercept")
        if intercept is not None and not (isinstance(intercept, ast.Constant) and intercept.value is False):
            raise self._refusal("asks bs for its intercept", "Leave include_intercept out")
        one, low, high = (
            self._quantity(given["x"]),
            *(self._public(given[name], example) for name in ("lower_bound", "upper_bound")),
        )
        degree = self._whole(given["degree"], example) if "degree" in given else 3
        if not isinstance(given["knots"], ast.List | ast.Tuple) or len(given["knots"].elts) > 100:
            raise self._refusal("has knots that are no list of numbers", f"Write {example}")
        inner = [self._public(knot, example) for knot in given["knots"].elts]
        if not all(a < b for a, b in zip([low, *inner], [*inner, high], strict=True)):
            raise self._refusal("has knots that do not rise from lower_bound to upper_bound", f"Write {example}")
        beyond = given.get("extrapolation")
        clips = isinstance(beyond, ast.Constant) and beyond.value == "clip"
        if not clips and (beyond is not None and not (isinstance(beyond, ast.Constant) and beyond.value == "raise")):
            raise self._refusal("extrapolates a spline", 'Leave extrapolation out, or write extrapolation="clip"')
        if not clips and not (low <= one.lower and one.upper <= high):
            raise self._refusal(
                f"has a spline from {low:g} to {high:g}, and the declared range is {one.lower:g} to {one.upper:g}",
                'Widen lower_bound and upper_bound, or add extrapolation="clip"',
            )
        spline = _Spline(one, tuple([low] * (degree + 1) + inner + [high] * (degree + 1)), degree)
        return Several(tuple((f"[{place}]", spline.part(place)) for place in range(1, len(inner) + degree + 1)))


@dataclass(frozen=True, eq=False)
class _Spline:
    """B-splines by the recursion of Cox and de Boor, of which every step is a product or quotient, rounded correctly."""

    of: Quantity
    knots: tuple[float, ...]
    degree: int

    def part(self, place: int) -> Quantity:
        """Return one B-spline; each lies between 0 and 1."""
        return Quantity(0.0, 1.0, lambda values: self._all(values)[place])

    def _all(self, values: Values) -> list[Array]:
        """Return all of them, computed together and kept, since each degree needs neighbors of the one below."""
        if self not in values.splines:
            x, knots = np.clip(self.of.of(values), self.knots[0], self.knots[-1]), self.knots
            found = [self._step(x, start) for start in range(len(knots) - 1)]
            for degree in range(1, self.degree + 1):
                rising = [_share(x, knots[start], knots[start + degree]) for start in range(len(knots) - degree)]
                found = [
                    rising[start] * found[start] + (1.0 - rising[start + 1]) * found[start + 1]
                    for start in range(len(found) - 1)
                ]
            values.splines[self] = found
        return values.splines[self]

    def _step(self, x: Array, start: int) -> Array:
        """Return the spline of degree 0 between two knots; the last of them takes its end in."""
        low, high = self.knots[start : start + 2]
        is_last = start + 1 == len(self.knots) - self.degree - 1
        return np.where(np.isnan(x), np.nan, (x >= low) & ((x <= high) if is_last else (x < high)))


def _share(x: Array, low: float, high: float) -> Array:
    """Return how far numbers are on the way between two knots; 0 where the knots are one."""
    return (x - low) / (high - low) if low < high else 0.0 * x


def _pow(number: float, power: float) -> float:
    try:
        return math.pow(number, power)
    except (OverflowError, ValueError):
        return math.inf


def _truth_ends(one: Quantity, other: Quantity, op: ast.cmpop) -> tuple[float, float]:
    """Return (1, 1) or (0, 0) for a comparison that the declared ranges decide, else (0, 1)."""
    always, never = {
        ast.Lt: (one.upper < other.lower, one.lower >= other.upper),
        ast.LtE: (one.upper <= other.lower, one.lower > other.upper),
        ast.Gt: (one.lower > other.upper, one.upper <= other.lower),
        ast.GtE: (one.lower >= other.upper, one.upper < other.lower),
        ast.Eq: (False, one.upper < other.lower or one.lower > other.upper),
        ast.NotEq: (one.upper < other.lower or one.lower > other.upper, False),
    }[type(op)]
    return float(always), float(not never)
