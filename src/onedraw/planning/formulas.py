"""Which columns explain a target: those of a formula, those that are named, or all others of the schema.

Both choices make a schema of their own: of the columns that are read, with the formula. Its digest is part of the question's
fingerprint and of the certificate, and everything that reads records by a schema reads them so: fits, predictions, evaluations.
"""

from __future__ import annotations

from dataclasses import replace

from onedraw.data import Schema
from onedraw.errors import InvalidSchema, WrongCall

from .options import Options


def choose_columns(schema: Schema, target: str | None, options: Options) -> tuple[Schema, str, Options]:
    """Return the schema of the question, its target, and the options that remain.

    Parameters
    ----------
    target : str or None
        The column that is explained; None where the formula names it.
    """
    if options.formula is not None and options.columns is not None:
        raise WrongCall("--formula names the columns, and --columns names them too. Leave one of them out.")
    if options.formula is not None:
        schema = schema.with_formula(options.formula)
    if schema.formula is not None:
        response = schema.formula.response
        if response is None:
            raise WrongCall(f"The formula {str(schema.formula)!r} has no response. Write what is explained before ~.")
        if target is not None and target != response:
            raise WrongCall(
                f"The formula explains {response!r}, and --target names {target!r}. Leave --target out, or make them the same."
            )
        if options.columns is not None:
            raise WrongCall("The schema has a formula, which names the columns. Leave --columns out.")
        if schema.design is None or not schema.design.names:
            raise InvalidSchema(
                f"The formula {str(schema.formula)!r} has no term besides the intercept, so there is nothing to explain {response!r} by. "
                "Add a term, or ask for a proportion, a histogram or a mean."
            )
        return schema, response, replace(options, formula=None)
    if target is None:
        raise WrongCall(
            "A regression explains one column, and none was named. Pass --target COLUMN. A formula names it, too."
        )
    if options.columns is not None:
        names = (options.columns,) if isinstance(options.columns, str) else tuple(options.columns)
        if target in names or len(set(names)) < len(names) or not names:
            raise WrongCall(f"--columns names the columns that explain {target!r}: at least one other, and each once.")
        schema = schema.choose([*names, target])
    return schema, target, replace(options, columns=None)
