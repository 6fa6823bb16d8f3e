"""A user's function for one row, as the operations it is made of: looked at once, and then what runs.

The sensitivity of a loss is that of one record only if one record's loss is all that it moves. Rows are therefore
given to a user's function one at a time. But `jax.vmap`, which maps it over the rows, asks each operation how it is
mapped, and ``jax.custom_batching.custom_vmap``, a callback or a foreign call may answer with all rows in sight; printing
shows records to whoever reads along. So the function is not mapped itself. Its Python code runs once, on a row without
values; the operations it leaves behind are examined, through loops and branches, and they alone run afterwards:

* every operation must be in `OPERATIONS`: JAX's own, mapped row by row. Whatever else there is, or will be, is refused;
* rules of ``custom_jvp`` and ``custom_vjp`` are left out, for they are Python code that would run later. Derivatives are
  those of the operations (of a ReLU at 0 the half).

What no examination sees is where the function's constants come from: the certificate names the function, and says that
it and everything it refers to were fixed without looking at the records.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from onedraw.errors import InvalidModel

from .compute import jax, jnp

# isort: split
from jax.extend.core import ClosedJaxpr, Literal, jaxpr_as_fun, jaxprs_in_params, primitives

_ARITHMETIC = """
abs acos acosh add add_jaxvals and argmax argmin asin asinh atan atan2 atanh bessel_i0e bessel_i1e
bitcast_convert_type cbrt ceil clamp clz complex conj convert_element_type copy cos cosh cumlogsumexp cummax cummin
cumprod cumsum device_put digamma div dot_general eq eq_to erf erf_inv erfc exp exp2 expm1 fft floor ge gt igamma
igamma_grad_a igammac imag integer_pow iota is_finite le le_to lgamma log log1p logistic lt lt_to max min mul mulhi ne
neg nextafter not optimization_barrier or polygamma population_count pow real reduce_and reduce_max reduce_min
reduce_or reduce_precision reduce_prod reduce_sum reduce_xor regularized_incomplete_beta rem round rsqrt shift_left
shift_right_arithmetic shift_right_logical sign sin sinh sqrt square stop_gradient sub tan tanh xor zeta
"""
_ARRAYS = """
broadcast_in_dim concatenate conv_general_dilated dynamic_slice dynamic_update_slice empty2 gather name pad reduce
reduce_window reduce_window_max reduce_window_min reduce_window_sum reshape rev scatter scatter_add scatter_max
scatter_min scatter_mul scatter_sub select_and_gather_add select_and_scatter select_and_scatter_add select_n slice sort
split squeeze stack tile top_k transpose unstack
"""
_MATRICES = "cholesky eigh householder_product lu lu_pivots_to_permutation qr svd triangular_solve tridiagonal_solve"


def _named(names: str) -> frozenset[Any]:
    """The operations themselves, not their names, which anybody can give to his own; those this JAX does not have aside."""
    found = (
        getattr(where, f"{name}_p", None) for name in names.split() for where in (primitives, jax.lax, jax.lax.linalg)
    )
    return frozenset(primitive for primitive in found if primitive is not None)


_asked = jax.make_jaxpr(lambda x: jax.lax.platform_dependent(x, cpu=jnp.sin, default=jnp.cos))(1.0).eqns
WHICH_PLATFORM = frozenset(equation.primitive for equation in _asked if not equation.invars)
"""The question JAX asks, of nobody's row, where an operation is done differently on a GPU; it has no public name."""
LOOPS = _named("scan while cond linear_solve")
OPERATIONS = _named(_ARITHMETIC + _ARRAYS + _MATRICES) | WHICH_PLATFORM | LOOPS
CALLS = _named("jit call closed_call remat custom_jvp_call custom_vjp_call")
"""Operations that stand for those within them, which take their place."""


_shaped: Any = jax.ShapeDtypeStruct  # it has no types


@dataclass(frozen=True, eq=False)
class OneRow:
    """The examined operations of a function of one row; called like the function, and mapped by `jax.vmap`."""

    operations: ClosedJaxpr
    structure: Any

    def __call__(self, *arguments: Any) -> Any:
        given = [jnp.asarray(argument, dtype=float) for argument in arguments]
        return jax.tree.unflatten(self.structure, jaxpr_as_fun(self.operations)(*given))


@functools.cache
def one_row(fn: Callable[..., Any], called: str, *shapes: tuple[int, ...]) -> OneRow:
    """The operations of ``fn`` on real arguments of these shapes; `InvalidModel` if one of them could see other rows.

    Once in a process: a function that changes its mind between two calls has no second one.
    """
    traced, result = jax.make_jaxpr(fn, return_shape=True)(*(_shaped(shape, float) for shape in shapes))
    _check(traced, OPERATIONS | CALLS, called)
    operations = _without_calls(traced)
    _check(operations, OPERATIONS, called)
    return OneRow(operations, jax.tree.structure(result))


def checked_row(
    fn: Callable[..., Any], called: str, signature: str, *shapes: tuple[int, ...], returns: tuple[int, ...] = ()
) -> OneRow:
    """`one_row`, refused unless ``fn`` can be called as its signature says and gives real numbers of the shape ``returns``."""
    try:
        row = one_row(fn, called, *shapes)
        result = jax.eval_shape(row, *map(jnp.zeros, shapes))
    except InvalidModel:
        raise
    except Exception as error:  # whatever the user's function raises, the call is what is wrong
        raise InvalidModel(
            f"{called} cannot be called as {signature} with shapes {', '.join(map(str, shapes))}: {type(error).__name__}. Write "
            "it with jax.numpy, for one record."
        ) from error
    if getattr(result, "shape", None) != returns or result.dtype != float:
        numbers = f"{returns[0]} real numbers" if returns else "one real number"
        raise InvalidModel(f"{called} must return {numbers} for one record.")
    return row


def _check(program: ClosedJaxpr, allowed: frozenset[Any], called: str) -> None:
    strange = {str(primitive) for primitive in _operations(program.jaxpr) if primitive not in allowed}
    strange |= {type(effect).__name__ for effect in program.effects}
    if strange:
        raise InvalidModel(
            f"{called} uses {', '.join(sorted(strange))}, which could see other people's rows or show them: a rule of its own for "
            "many rows, a call back to Python or to foreign code, printing, randomness. Write it with jax.numpy alone, "
            "for one row."
        )


def _operations(program: Any) -> Iterator[Any]:
    for equation in program.eqns:
        yield equation.primitive
        for inner in jaxprs_in_params(equation.params):
            yield from _operations(inner)


def _without_calls(program: ClosedJaxpr) -> ClosedJaxpr:
    """The same operations, calls replaced by what they call, within loops and branches too."""
    row = [_shaped(kind.shape, kind.dtype, weak_type=kind.weak_type) for kind in program.in_avals]
    plain: ClosedJaxpr = jax.make_jaxpr(lambda *given: _evaluate(program.jaxpr, program.consts, given))(*row)
    return plain


def _evaluate(program: Any, constants: Any, given: Any) -> list[Any]:
    values = dict(zip((*program.constvars, *program.invars), (*constants, *given), strict=True))

    def read(variable: Any) -> Any:
        return variable.val if isinstance(variable, Literal) else values[variable]

    for equation in program.eqns:
        arguments = [read(variable) for variable in equation.invars]
        primitive, options = equation.primitive, equation.params
        if primitive in CALLS:
            inner = options["call_jaxpr"] if "call_jaxpr" in options else options["jaxpr"]
            closed = isinstance(inner, ClosedJaxpr)
            results = _evaluate(inner.jaxpr if closed else inner, inner.consts if closed else (), arguments)
        else:
            if primitive in LOOPS:
                options = {name: _plain_option(value) for name, value in options.items()}
            found = primitive.bind(*arguments, **options)
            results = found if primitive.multiple_results else [found]
        values.update(zip(equation.outvars, results, strict=True))
    return [read(variable) for variable in program.outvars]


def _plain_option(value: Any) -> Any:
    """An option of a loop: its bodies without calls, anything else as it is."""
    if isinstance(value, ClosedJaxpr):
        return _without_calls(value)
    if isinstance(value, tuple) and any(isinstance(part, ClosedJaxpr) for part in value):
        parts = map(_plain_option, value)
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return value
