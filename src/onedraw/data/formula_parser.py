"""The one adapter of formulaic: from the text of a formula to its terms, and nothing else.

formulaic tokenizes the text and applies its operators (``+ - : * / ** ^ %in%``) to sets of terms. It sees no record, and evaluates no
factor: those are read by `onedraw.data.expressions`. A formula whose operators would make more than `MOST_TERMS` terms is refused before
they are applied.
"""

from __future__ import annotations

import ast
import re
import warnings
from typing import Any

from onedraw.errors import InvalidSchema

LONGEST = 2000
"""Characters of a formula."""

MOST_TERMS, SHOWN = 1000, 120
"""Terms that operators may make, and characters that a refusal quotes."""

EXAMPLE = "healed ~ age + C(ward)*treated + log(1 + income)"

_NAME = re.compile(r"[^\W\d]\w*")


def parse(text: str) -> tuple[str | None, bool, list[tuple[str, ...]]]:
    """Return the response, whether there is an intercept, and the factors of each term, in formulaic's order.

    A factor that is the name of a column stands in backticks unless it is an identifier, and an expression that is no call in braces.
    """
    if not isinstance(text, str) or not text.strip():
        raise InvalidSchema(f"A formula is a text such as {EXAMPLE!r}. Write the response, ~, and the terms.")
    if len(text) > LONGEST:
        raise InvalidSchema(f"The formula has {len(text):,} characters. Write at most {LONGEST:,}.")
    shown = _short(text)
    from formulaic.errors import FormulaicError
    from formulaic.parser import DefaultFormulaParser

    parser = DefaultFormulaParser(feature_flags={"twosided"})
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python's, about escapes in texts
            if (count := _terms(parser.get_ast(text))) > MOST_TERMS:
                raise InvalidSchema(
                    f"The formula's operators make up to {count:,} terms, and at most {MOST_TERMS:,} are read. Write the interactions out."
                )
            found = parser.get_terms(text)
    except InvalidSchema:
        raise
    except (
        FormulaicError,
        SyntaxError,
        ValueError,
        TypeError,
        RecursionError,
        MemoryError,
        NotImplementedError,
    ) as error:
        raise InvalidSchema(_refusal(text, error)) from None
    response, terms = getattr(found, "lhs", None), getattr(found, "rhs", getattr(found, "root", None))
    if terms is None or isinstance(terms, tuple) or isinstance(response, tuple):
        raise InvalidSchema(f"The formula {shown!r} has several parts. Write one response, one ~, and the terms.")
    if response is not None and (
        len(response) != 1 or len(next(iter(response)).factors) != 1 or _is_number(next(iter(response)))
    ):
        raise InvalidSchema(
            f"The formula {shown!r} does not have one response before ~. Write one column there, or a function of it."
        )
    ordered = sorted(terms, key=lambda term: term.degree)
    listed = [tuple(_factor(text, factor) for factor in term.factors) for term in ordered if not _is_number(term)]
    return (
        None if response is None else _factor(text, next(iter(response)).factors[0]),
        len(listed) < len(ordered),
        listed,
    )


def _short(text: str) -> str:
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def _is_number(term: Any) -> bool:
    """Whether a term is the 1 of an intercept; formulaic refuses other numbers by themselves."""
    return all(factor.eval_method.value == "literal" for factor in term.factors)


def _factor(text: str, factor: Any) -> str:
    if factor.eval_method.value == "literal":
        shown = _short(text)
        raise InvalidSchema(
            f"The formula {shown!r} multiplies a term by a number, which would only change the unit of its coefficient. "
            "Leave the number out, or write I(2 * x)."
        )
    expression = str(factor.expr)
    if factor.eval_method.value == "lookup":
        return expression if _NAME.fullmatch(expression) else f"`{expression}`"
    try:
        is_call = isinstance(ast.parse(re.sub("`[^`]*`", "x", expression), mode="eval").body, ast.Call)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        is_call = True
    return expression if is_call else f"{{{expression}}}"


def _terms(node: Any) -> int:
    """Return how many terms the operators below a node make at most."""
    if not hasattr(node, "args"):
        return 1
    operator = str(node.operator.symbol)
    if operator in ("**", "^") and len(node.args) == 2:
        power = str(node.args[1])
        if not (power.isdecimal() and 1 <= int(power[:4]) <= 10 and len(power) < 4):
            raise InvalidSchema(
                f"The formula has the power {power[:20]} of terms. Write (a + b)**2, with a number up to 10."
            )
        return int((1 + _terms(node.args[0])) ** int(power))
    counts = [_terms(argument) for argument in node.args]
    if operator in ("*", "/", ":", "in") and len(counts) == 2:
        return (1 + counts[0]) * (1 + counts[1])
    return sum(counts)


def _refusal(text: str, error: Exception) -> str:
    """Return what is wrong, without formulaic's words, which mark places by control characters."""
    shown = _short(text)
    known = {
        r"`\|`": ("has several parts, divided by |", "Write one formula for each"),
        r"`\.` operator": (
            "names all columns by a dot",
            "Name the columns, or leave the formula out: all columns are taken",
        ),
        r"Unknown operator": (
            "holds an operator that is none between terms",
            "Put comparisons and arithmetic into I(…): I(age > 40)",
        ),
        r"literals": (
            "holds a number or text as a term",
            "Write columns and functions of them; 0 or - 1 leaves the intercept out",
        ),
    }
    for pattern, (what, remedy) in known.items():
        if re.search(pattern, str(error)):
            return f"The formula {shown!r} {what}. {remedy}."
    return (
        f"The formula {shown!r} cannot be read. Write it as {EXAMPLE!r}, and check its brackets, operators and quotes."
    )
