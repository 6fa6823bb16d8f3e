"""Formulas: columns, names and numbers are formulaic's; nothing else is read; one record is one row to the last bit."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import math
import sqlite3
from pathlib import Path

import formulaic
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from formulaic.transforms import TRANSFORMS
from hypothesis import example, given, settings
from hypothesis import strategies as st

from onedraw.data import DatabaseTable, Schema, expressions, read
from onedraw.data.formula import Formula
from onedraw.errors import InvalidSchema
from onedraw.models.features import declared_features, schema_features, schema_rows

LEVELS = ["medicine", "surgery", "intensive care"]
COLUMNS = {
    "age": {"kind": "number", "lower": 18, "upper": 95, "missing": 50},
    "income": {"kind": "number", "lower": 0, "upper": 5000, "missing": 1000},
    "debt": {"kind": "number", "lower": -100, "upper": 100, "missing": 0},
    "length of stay": {"kind": "number", "lower": 1, "upper": 60, "missing": 5},
    "ward": {"kind": "category", "levels": LEVELS, "missing": "medicine"},
    "sex": {"kind": "binary", "levels": ["m", "f"], "missing": "m"},
    "treated": {"kind": "binary", "missing": "no"},
    "visits": {"kind": "count", "cap": 3, "missing": 0},
    "healed": {"kind": "binary", "missing": "no"},
    "wage": {"kind": "number", "lower": 1, "upper": 100, "missing": 10},
}
SCHEMA = Schema.from_dict({"columns": COLUMNS})

ALLOWED = [
    "wage ~ age + C(ward)*treated + log(1 + income)",
    "wage ~ ward + sex + visits",
    "wage ~ 0 + ward + age",
    "wage ~ age - 1 + C(sex):C(ward)",
    "wage ~ C(ward):age + C(sex)*C(ward)",
    "wage ~ (age + treated + sex)**2",
    "wage ~ age*income*sex - age:income:sex",
    "wage ~ C(ward, Treatment('surgery')) + C(sex, contr.treatment('f'))",
    "wage ~ C(ward, contr.treatment(base='intensive care')):debt",
    "wage ~ poly(debt, 3, raw=True) + I(age**2) + I(age**-1)",
    "wage ~ bs(age, knots=[30, 50, 70], degree=3, lower_bound=18, upper_bound=95)",
    "wage ~ bs(debt, knots=[0], degree=2, lower_bound=-50, upper_bound=50, extrapolation='clip'):sex",
    "wage ~ I(age > 40) + I((income >= 100) & ~(debt < 0)) + C(age > 65)*sex",
    "wage ~ `length of stay` + log(`length of stay`) + sqrt(income) + exp(debt / 50)",
    "wage ~ I(ward == 'surgery')*visits + I(sex != 'm'):age",
    "log(wage) ~ log1p(income) + log2(age) + log10(age) + expm1(debt / 100) + abs(debt)",
    "I(wage / 2 - 1) ~ C(visits) + sin(age / 10) + cos(age / 10) + floor(age / 10) + ceil(income / 1000)",
    "I(wage > 20) ~ C(ward)/age + treated",
    "wage ~ sex %in% ward + I(1 / (1 + income)) + I(age**0.5) + {age * debt}",
    "healed ~ Q('length of stay') + age^2 + C(treated) + C(treated):age + age + age:ward:sex",
]

CONTEXT = {"sqrt": np.sqrt, "log1p": np.log1p, "expm1": np.expm1, "abs": np.abs, "sin": np.sin, "cos": np.cos,
           "floor": np.floor, "ceil": np.ceil} | {name: one for name, one in TRANSFORMS.items() if name != "np"}  # fmt: skip


def table(n: int = 200, seed: int = 7) -> dict[str, np.ndarray]:
    """Public records that fill what is declared."""
    rng = np.random.default_rng(seed)
    number = {
        name: rng.uniform(one["lower"], one["upper"], n) for name, one in COLUMNS.items() if one["kind"] == "number"
    }
    return number | {
        "ward": rng.choice(LEVELS, n), "sex": rng.choice(["m", "f"], n), "treated": rng.choice(["no", "yes"], n),
        "healed": rng.choice(["no", "yes"], n), "visits": rng.integers(0, 4, n),
    }  # fmt: skip


def as_formulaic_has_them(columns: dict[str, np.ndarray]) -> pd.DataFrame:
    """Categories with the schema's levels; binary columns without levels are numbers, unless C() makes categories of them."""
    frame = pd.DataFrame(columns)
    frame["ward"] = pd.Categorical(frame["ward"], categories=LEVELS)
    frame["sex"] = pd.Categorical(frame["sex"], categories=["m", "f"])
    return frame


def theirs(formula: str, frame: pd.DataFrame) -> tuple[list[str], np.ndarray]:
    """formulaic's columns without its intercept, and its numbers."""
    for name in ("treated", "healed"):
        as_category = f"C({name})" in formula
        coded = (
            pd.Categorical(frame[name], categories=["no", "yes"])
            if as_category
            else (frame[name] == "yes").astype(float)
        )
        frame = frame.assign(**{name: coded})
    found = formulaic.model_matrix(formula.partition("~")[2], frame, context=CONTEXT)
    names = [name for name in found.columns if name != "Intercept"]
    return names, found[names].to_numpy(dtype=np.float64)


def ours(formula: str, columns: dict[str, np.ndarray]) -> tuple[Schema, dict[str, np.ndarray], np.ndarray]:
    """The schema with the formula, a batch of encoded records, and the rows of its design."""
    schema = SCHEMA.with_formula(formula)
    target = schema.formula.response
    batches = list(read(columns, schema, target=target).batches(schema.read_for(target)))
    batch = {name: np.concatenate([one[name] for one in batches]) for name in batches[0]}
    return schema, batch, schema_rows(batch, schema, target)


@pytest.mark.parametrize("formula", ALLOWED)
def test_names_and_numbers_are_those_of_formulaic(formula):
    """To 1e-10, for 20 allowed formulas, and predictions from equal coefficients with them."""
    columns = table()
    schema, _, rows = ours(formula, columns)
    names, numbers = theirs(formula, as_formulaic_has_them(columns))
    assert list(schema.design.names) == names
    assert rows.shape == numbers.shape
    largest = np.maximum(1.0, np.abs(numbers).max(axis=0))
    np.testing.assert_allclose(rows / largest, numbers / largest, rtol=1e-10, atol=1e-10)
    coefficients = np.random.default_rng(3).normal(size=len(names)) / largest
    np.testing.assert_allclose(rows @ coefficients, numbers @ coefficients, rtol=1e-10, atol=1e-10)
    assert schema.formula.intercept == ("0 +" not in formula and "- 1" not in formula.replace("2 - 1)", ""))


@pytest.mark.parametrize("formula", ALLOWED)
def test_rows_lie_within_the_bounds_that_the_plan_rests_on(formula):
    """Also at the corners of what is declared, where bounds are attained."""
    ends = {
        name: [one["lower"], (one["lower"] + one["upper"]) / 2, one["upper"]]
        for name, one in COLUMNS.items()
        if one["kind"] == "number"
    }
    rng = np.random.default_rng(1)
    columns = {name: rng.choice(values, 400) for name, values in ends.items()} | {
        name: values for name, values in table(400).items() if name not in ends
    }
    schema, batch, rows = ours(formula, columns)
    lower, upper = map(np.array, schema.design.ends)
    assert np.all((lower <= rows) & (rows <= upper))
    features = declared_features("A test", **schema_features(schema, schema.formula.response), data_norm=None, **(
        {} if "intercept" in schema_features(schema, schema.formula.response) else {"intercept": True}
    ), scaled=True)  # fmt: skip
    assert np.linalg.norm(features.enforce(rows), axis=1).max() <= features.reach
    for one in schema.design.coded:  # of which a fit uses that they exclude one another
        block = rows[:, one.start : one.stop]
        assert set(np.unique(block)) <= {0.0, 1.0}
        assert block.sum(axis=1).max() <= 1.0
    if schema.derived is not None:
        declared = schema.column(schema.derived)
        assert np.all((declared.ends[0] <= batch[schema.derived]) & (batch[schema.derived] <= declared.ends[1]))


@pytest.mark.parametrize("formula", ALLOWED)
def test_one_record_is_the_same_to_the_last_bit_beside_any_others(formula):
    columns = table(67)
    _, batch, rows = ours(formula, columns)
    schema = SCHEMA.with_formula(formula)
    for place in (0, 1, 31, 66):
        alone = schema_rows({name: values[place : place + 1] for name, values in batch.items()}, schema, None)
        assert alone.tobytes() == np.ascontiguousarray(rows[place : place + 1]).tobytes()
    shuffled = np.random.default_rng(5).permutation(67)
    strided = {name: np.repeat(values[shuffled], 3)[::3] for name, values in batch.items()}
    assert schema_rows(strided, schema, None).tobytes() == np.ascontiguousarray(rows[shuffled]).tobytes()


UNSAFE = {
    "wage ~ __import__('os').system('id')": "cannot be read",
    "wage ~ I(__import__('os').system('id'))": "attribute",
    "wage ~ age.__class__": "does not declare",
    "wage ~ I(age.mean())": "attribute",
    "wage ~ np.log(age)": "Write log(…) alone",
    "wage ~ eval('1')": "no function of a formula",
    "wage ~ open('secret.csv')": "no function of a formula",
    "wage ~ I((lambda: 1)())": "may not",
    "wage ~ I([x for x in (1, 2)])": "may not",
    "wage ~ I(age if age > 3 else 1)": "may not",
    "wage ~ I(age[0])": "may not",
    "wage ~ scale(age)": "learns",
    "wage ~ center(age) + income": "learns",
    "wage ~ poly(age, 2)": "raw=True",
    "wage ~ bs(age, df=5)": "public knots and bounds",
    "wage ~ bs(age, knots=[40], degree=3)": "public knots and bounds",
    "wage ~ lag(age)": "other rows",
    "wage ~ log(income)": "Write log(1 + income)",
    "wage ~ I(1 / debt)": "may be 0",
    "wage ~ exp(income)": "no finite bound",
    "wage ~ C(age)": "no declared levels",
    "wage ~ C(ward, levels=['surgery'])": "come from the schema",
    "wage ~ C(ward, Sum)": "contrasts",
    "wage ~ hashed(ward, levels=3)": "no function of a formula",
    "wage ~ I(age // 10)": "may not",
    "wage ~ I((age := 3))": "may not",
    "wage ~ I(f'{age}')": "may not",
    "wage ~ I(age > 40 and debt > 0)": "Write &",
    "wage ~ I(20 < age < 30)": "chains",
    "wage ~ I(age > 200)": "whatever a record holds",
    "wage ~ I(ward + 1)": "no number",
    "wage ~ I(ward == 'cardiology')": "does not declare",
    "wage ~ patient": "does not declare",
    "wage ~ wage + age": "both sides",
    "log(wage) ~ I(wage**2)": "both sides",
    "log(income) ~ age": "no finite",
    "ward + sex ~ age": "one response",
    "log(wage) | age ~ sex": "several parts",
    "wage ~ age | sex": "several parts",
    "wage ~ .": "dot",
    "wage ~ (age > 40)": "I(age > 40)",
    "wage ~ 'age'": "as a term",
    "wage ~ 2:age": "multiplies a term by a number",
    "wage ~ age +": "cannot be read",
    "wage ~ (age + sex)**1000000": "up to 10",
    "wage ~ (age+sex+ward)*(debt+income)*(visits+treated)*(age+sex+ward)*(debt+income)*(visits+treated)*(age+debt)": "make up to",
    "wage ~ I(" + "-" * 60 + "age)": "too deep",
    "wage ~ I(" + "age + " * 100 + "age)": "Write at most 500",
    "wage ~ I(age**100)": "a number up to 20",
    "wage ~ I(age**20) + I(income**20)": "Narrow the ranges",
    "wage ~ I(10**400 * age)": "up to 20",
    "": "is a text such as",
}  # fmt: skip


@pytest.mark.parametrize("formula", UNSAFE)
def test_what_is_not_allowed_is_refused_before_any_record_is_read(formula):
    """A file that does not exist is never looked for."""
    import onedraw as od

    with pytest.raises(InvalidSchema) as refused:
        od.DPLinearRegression(epsilon=1.0, schema=SCHEMA, formula=formula).fit(Path("no such file.csv"))
    assert UNSAFE[formula] in str(refused.value)
    assert len(str(refused.value)) < 500
    assert str(refused.value).rstrip().endswith(".")
    assert "\x1b" not in str(refused.value)


def test_a_formula_that_is_no_part_of_a_schema_stays_refused_in_a_certificates_schema():
    """A certificate's schema is read without formulaic, by the same whitelist."""
    declared = SCHEMA.with_formula("wage ~ age + sex").to_dict()
    assert Schema.from_dict(declared).design.names == ("age", "sex[T.f]")
    for terms in (
        [["__import__('os')"]],
        [["age", "age"]],
        [["age"], ["age"]],
        [[]],
        [["age"] * 7],
        "age",
        [["log(income)"]],
    ):
        with pytest.raises(InvalidSchema):
            Schema.from_dict(declared | {"formula": {"response": "wage", "intercept": True, "terms": terms}})


def test_formulaic_is_not_needed_to_read_a_schema_with_a_formula(monkeypatch):
    import builtins

    declared, plain = SCHEMA.with_formula(ALLOWED[0]).to_dict(), builtins.__import__

    def refuse(name, *rest):
        assert not name.startswith("formulaic")
        return plain(name, *rest)

    monkeypatch.setattr(builtins, "__import__", refuse)
    assert len(Schema.from_dict(declared).design.names) == 7


def test_the_text_of_a_formula_reads_as_itself():
    for text in ALLOWED:
        formula = Formula.parse(text)
        assert Formula.parse(str(formula)) == formula


def test_only_the_columns_that_are_named_are_read():
    schema = SCHEMA.with_formula("log(wage) ~ C(ward)*age")
    assert tuple(schema.columns) == ("age", "ward", "wage")
    assert schema.predictors("log(wage)") == ("age", "ward")
    assert schema.read_for("log(wage)") == ("age", "ward", "wage", "log(wage)")
    assert tuple(schema.of_predictors("log(wage)").columns) == ("age", "ward")
    assert schema.of_predictors("log(wage)").design.names == schema.design.names
    assert schema.digest != SCHEMA.choose(schema.columns).digest


def test_a_missing_cell_makes_each_column_that_needs_it_missing_and_no_other():
    """An encoder marks it by NaN, −∞ or a code below 0."""
    schema = SCHEMA.with_formula(
        "wage ~ age + ward:age + I(age > 40) + C(visits) + bs(age, knots=[40], lower_bound=18, upper_bound=95) + log(age) + I(ward == 'surgery') + income"
    )
    batch = {
        "age": np.array([30.0, np.nan]),
        "ward": np.array([0, -1]),
        "visits": np.array([1, -1]),
        "income": np.array([5.0, 5.0]),
    }
    marked = {"age": [30.0, -np.inf], "ward": [0.0, np.nan], "visits": [1.0, np.nan], "income": [5.0, 5.0]}
    rows = schema.design.rows(batch)
    np.testing.assert_array_equal(rows, schema.design.rows({name: np.array(one) for name, one in marked.items()}))
    assert np.isfinite(rows[0]).all()
    assert np.isfinite(rows[1, schema.design.names.index("income")])
    assert np.isfinite(rows[1]).sum() == 1


@pytest.mark.parametrize("response", ["wage", "log(wage)", "I(wage > 20)"])
def test_the_response_is_computed_of_its_own_record(response):
    columns = table(50)
    schema = SCHEMA.with_formula(f"{response} ~ age")
    found = np.concatenate(list(read(columns, schema, target=response).values()))
    expected = {"wage": columns["wage"], "log(wage)": np.log(columns["wage"]), "I(wage > 20)": columns["wage"] > 20}[
        response
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-14)
    declared = schema.column(response)
    assert declared.kind == ("binary" if "I(" in response else "number")
    if response == "log(wage)":
        assert declared.lower <= 0.0 <= math.log(100.0) <= declared.upper <= math.log(100.0) * (1 + 1e-14)


# ── neighbors ────────────────────────────────────────────────────────────────────────────────────────────────

PROPERTY = "log(wage) ~ age + C(ward)*treated + log(1 + income) + I(debt > 0):sex + bs(age, knots=[40], lower_bound=18, upper_bound=95)"
cell = st.one_of(
    st.none(),
    st.floats(),
    st.integers(),
    st.text(max_size=6),
    st.sampled_from([[1], (), object(), 10**400, 1j, b"\xff"]),
)


def encoded(columns: dict[str, list], make) -> np.ndarray:
    schema = SCHEMA.with_formula(PROPERTY)
    records = read(make(columns), schema, target="log(wage)", batch_rows=7)
    batches = list(records.batches(schema.read_for("log(wage)")))
    rows = np.concatenate([schema_rows(batch, schema, "log(wage)") for batch in batches])
    return np.column_stack([rows, np.concatenate([batch["log(wage)"] for batch in batches])])


def plain(columns: dict[str, list]) -> dict[str, list]:
    return {name: list(values) for name, values in columns.items()}


@pytest.mark.parametrize(
    "make",
    [plain, lambda columns: pd.DataFrame({name: pd.Series(values, dtype=object) for name, values in columns.items()})],
    ids=["lists", "pandas"],
)
@settings(max_examples=60, deadline=None)
@given(
    odd=cell, row=st.integers(0, 19), name=st.sampled_from(["age", "ward", "wage", "treated", "income", "debt", "sex"])
)
@example(odd=float("nan"), row=3, name="wage")
@example(odd=-1e308, row=3, name="income")
def test_one_odd_cell_changes_at_most_one_encoded_record(make, odd, row, name):
    columns = {key: values.tolist() for key, values in table(20).items()}
    before = encoded(columns, make)
    columns[name][row] = odd
    after = encoded(columns, make)
    changed = [place for place in range(20) if before[place].tobytes() != after[place].tobytes()]
    assert changed in ([], [row])
    assert np.isfinite(after).all()


def test_a_planted_function_of_all_records_is_found(monkeypatch):
    """The check of neighbors can fail."""
    spoiled = dataclasses.replace(
        expressions.FUNCTIONS["log"], of_array=lambda numbers: np.log(numbers) - np.log(numbers).mean()
    )
    monkeypatch.setitem(expressions.FUNCTIONS, "log", spoiled)
    columns = {key: values.tolist() for key, values in table(7).items()}
    before = encoded(columns, plain)
    columns["income"][3] = 0.0
    assert np.any(encoded(columns, plain) != before, axis=1).sum() > 1


def test_a_wrong_bound_of_a_function_breaks_no_promise(monkeypatch):
    """Half of the right one: values are moved into it."""
    spoiled = dataclasses.replace(expressions.FUNCTIONS["log"], of_end=lambda end: math.log(end) / 2)
    monkeypatch.setitem(expressions.FUNCTIONS, "log", spoiled)
    schema, _, rows = ours("wage ~ log(1 + income)", table())
    assert schema.design.ends[1][0] < math.log(5001) / 1.9
    assert rows.max() == schema.design.ends[1][0]


@pytest.mark.parametrize(
    "row", [{"age": 18.0, "debt": -100.0}, {"age": 95.0, "debt": 100.0}, {"age": np.nan, "debt": np.nan}]
)
def test_no_record_makes_a_function_fail_or_warn(row):
    """At the ends of what is declared, where a bound is attained, and for missing cells; warnings are errors here."""
    formula = "wage ~ log(age - 17) + sqrt(debt + 100) + I((age - 18)**0.5) + exp(debt) + I(1 / (debt + 100.5)) + I(debt**-2 * 0 + age)"
    with pytest.raises(InvalidSchema, match="may be 0"):
        SCHEMA.with_formula(formula)
    rows = SCHEMA.with_formula(formula.replace("I(debt**-2 * 0 + age)", "sin(debt) + floor(age / 7)")).design.rows(
        {name: np.array([value]) for name, value in row.items()}
    )
    assert np.isfinite(rows).all() == np.isfinite(row["age"])


def test_every_container_and_file_gives_the_same_rows(tmp_path):
    columns = {name: values.tolist() for name, values in table(30).items()}
    frame = pd.DataFrame(columns)
    expected = encoded(columns, plain)
    frame.to_csv(tmp_path / "records.csv", index=False)
    frame.to_parquet(tmp_path / "records.parquet")
    import polars as pl

    with contextlib.closing(sqlite3.connect(tmp_path / "records.sqlite")) as database:
        frame.to_sql("visits", database, index=False)
    sources = [
        tmp_path / "records.csv",
        tmp_path / "records.parquet",
        DatabaseTable(str(tmp_path / "records.sqlite"), "visits"),
    ]
    for make in (pa.table, pl.DataFrame, *(lambda _, source=source: source for source in sources)):
        assert encoded(columns, make).tobytes() == expected.tobytes()


# ── coding ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_coding_is_formulaics_for_every_small_set_of_terms():
    """All sums of up to four of the terms of three factors, with and without an intercept, against `ensure_full_rank`."""
    frame = as_formulaic_has_them(table(60))
    frame["treated"] = (frame["treated"] == "yes").astype(float)
    terms = ["ward", "sex", "age", "ward:sex", "ward:age", "sex:age", "ward:sex:age"]
    for intercept, size in itertools.product(("1", "0"), (1, 2, 3, 4)):
        for some in itertools.combinations(terms, size):
            right = " + ".join([intercept, *some])
            names = [name for name in formulaic.model_matrix(right, frame).columns if name != "Intercept"]
            assert list(SCHEMA.with_formula(f"wage ~ {right}").design.names) == names, right
