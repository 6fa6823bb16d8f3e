"""Which columns explain a target: formulas and named columns, from a schema alone."""

import dataclasses

import pytest

import onedraw as od
from onedraw.data import Schema
from onedraw.errors import InvalidModel, InvalidSchema, WrongCall
from onedraw.planning.formulas import choose_columns
from onedraw.planning.options import Options
from onedraw.planning.regression import regression_for

SCHEMA = Schema.from_dict(
    {
        "dataset": "clinic",
        "person": "patient",
        "max_records": 2,
        "columns": {
            "age": {"kind": "number", "lower": 18, "upper": 95, "missing": 50},
            "ward": {"kind": "category", "levels": ["a", "b", "c"], "missing": "a"},
            "treated": {"kind": "binary", "missing": "no"},
            "stay": {"kind": "count", "cap": 30, "missing": 0},
            "wage": {"kind": "number", "lower": 10, "upper": 100, "missing": 20},
        },
    }
)
PUBLIC = {"n": 5000, "epsilon": 1.0}


def question(formula, model="linear", **options):
    schema, target, options = choose_columns(SCHEMA, None, Options.named({"formula": formula, **options}))
    return regression_for(schema, target, model=model, options=options)


def test_a_plan_is_a_function_of_schema_and_formula():
    planned = od.plan(SCHEMA, None, "linear", formula="log(wage) ~ age*treated + C(ward)", **PUBLIC)
    model = planned.plan.model
    assert model.features.names == ("age", "treated", "C(ward)[T.b]", "C(ward)[T.c]", "age:treated")
    assert model.features.ends == ((18.0, 0.0, 0.0, 0.0, 0.0), (95.0, 1.0, 1.0, 1.0, 95.0))
    assert planned.plan.mechanism.categories == ((1, 2), (2, 4))
    assert planned.asked.target == "log(wage)"
    assert planned.asked.schema.person == "patient"
    assert planned.to_dict()["formula"] == "log(wage) ~ 1 + age + treated + C(ward) + age:treated"
    low, high = planned.asked.schema.column("log(wage)").ends
    assert planned.asked.measure.centre == pytest.approx((low + high) / 2)


def test_the_formula_is_part_of_the_fingerprint():
    """Formulas that mean the same have one fingerprint; others have others."""
    one, same, other, plain = (
        od.plan(SCHEMA, None, "linear", formula=formula, **PUBLIC).fingerprint
        for formula in ("wage ~ age*treated", "wage ~ age + treated + age:treated", "wage ~ age + treated", "wage ~ age + stay")
    )  # fmt: skip
    assert one == same
    assert len({one, other, plain}) == 3
    named = od.plan(SCHEMA, "wage", "linear", columns=["age", "treated"], **PUBLIC)
    assert named.fingerprint != other


def test_columns_are_named():
    planned = od.plan(SCHEMA, "wage", "linear", columns=["ward", "age"], **PUBLIC)
    assert planned.plan.model.features.names == ("ward=b", "ward=c", "age")
    assert list(SCHEMA.columns) == ["age", "ward", "treated", "stay", "wage"]  # the caller's schema is as it was


def test_a_covariance_of_some_columns_leaves_the_schema_as_it_was():
    planned = od.plan(SCHEMA, None, "covariance", columns=["age", "stay"], **PUBLIC)
    assert list(planned.asked.schema.columns) == ["age", "stay"]
    assert len(SCHEMA.columns) == 5


@pytest.mark.parametrize(
    ("target", "options", "words"),
    [
        ("wage", {"formula": "log(wage) ~ age"}, "Leave target… out"),
        (None, {"formula": "~ age"}, "has no response"),
        (None, {"formula": "wage ~ 1"}, "no term besides the intercept"),
        (None, {}, "none was named"),
        ("wage", {"formula": "wage ~ age", "columns": ["age"]}, "Leave one of them out"),
        ("wage", {"columns": ["wage", "age"]}, "at least one other"),
        ("wage", {"columns": []}, "at least one other"),
        ("wage", {"columns": ["age", "age"]}, "each once"),
        ("wage", {"columns": ["agee"]}, "perhaps 'age'"),
        (None, {"formula": "ward ~ age"}, "explains a number"),
    ],
)
def test_what_contradicts_itself_is_refused(target, options, words):
    with pytest.raises((WrongCall, InvalidSchema)) as refused:
        od.plan(SCHEMA, target, "linear", **options, **PUBLIC)
    assert words.replace("target…", "target") in str(refused.value).replace("--target", "target")


def test_a_formula_does_not_belong_to_a_mean():
    with pytest.raises(InvalidModel, match="formula does not belong to a mean"):
        od.plan(SCHEMA, "wage", "mean", formula="wage ~ age", **PUBLIC)
    with pytest.raises(InvalidModel, match="columns does not belong to a mean"):
        od.plan(SCHEMA, "wage", "mean", columns=["age"], **PUBLIC)


def test_classes_follow_from_the_response():
    assert question("I(wage > 20) ~ age", "logistic").classes == ("no", "yes")
    assert question("treated ~ age", "logistic").classes == ("no", "yes")
    assert question("ward ~ age", "logistic").kind == "softmax"
    assert question("stay ~ age", "poisson").largest == 30
    with pytest.raises(InvalidSchema, match="explains a count"):
        question("log(1 + stay) ~ age", "poisson")


def test_without_an_intercept_responses_are_measured_from_zero():
    """Nothing could take up the middle of their range."""
    asked = question("wage ~ 0 + ward + age")
    assert not asked.intercept
    assert (asked.measure.centre, asked.measure.unit) == (0.0, 25.0)
    assert asked.rows.column_names == ("ward[a]", "ward[b]", "ward[c]", "age")


def test_effects_are_named_by_term():
    text = "wage ~ age + C(ward)*treated + poly(stay, 2, raw=True)"
    assert question(text, effects=["C(ward)"]).effect_places == (1, 2)
    assert question(text, effects=["C(ward):treated", "treated"]).effect_places == (3, 6, 7)
    assert question(text, effects=["C(ward)[T.c]"]).effect_places == (2,)
    assert question(text, effects=["poly(stay, 2, raw=True)"]).effect_places == (4, 5)
    for name, words in (("C(ward)[T.a]", "no coefficient"), ("ward", "Perhaps C"), ("zzz", "Name some of: age, C")):
        with pytest.raises(InvalidModel, match=words):
            question(text, effects=[name])


def test_terms_are_part_of_the_question():
    asked = question("wage ~ age + C(ward)")
    assert [(term.name, term.start, term.stop) for term in asked.terms] == [("age", 0, 1), ("C(ward)", 1, 3)]
    assert hash(asked) == hash(dataclasses.replace(asked))
