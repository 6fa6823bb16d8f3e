"""Estimators with a schema: frames by name, categories by level, missing cells and units as declared; and what a release does by itself."""

import matplotlib as mpl
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

import onedraw as od
from onedraw.errors import CertificateRejected, FileMismatch, InvalidModel, InvalidSchema, WrongCall
from onedraw.estimators import NotCovered

FEATURES = {
    "age": {"kind": "number", "lower": 18, "upper": 98, "missing": 58},
    "ward": {"kind": "category", "levels": ["a", "b", "c"], "missing": "a"},
    "smoker": {"kind": "binary", "missing": "no"},
}
TARGETS = {
    "ill": {"kind": "binary", "levels": ["no", "yes"], "missing": "no"},
    "cost": {"kind": "number", "lower": 0, "upper": 12000, "missing": 5000},
    "visits": {"kind": "count", "cap": 6, "missing": 0},
}
TRUTH = {"age": 30.0, "ward=b": 800.0, "ward=c": -500.0, "smoker=yes": 600.0, "intercept": 3500.0}


def schema(target):
    return od.Schema.from_dict({"dataset": "p", "columns": FEATURES | {target: TARGETS[target]}})


@pytest.fixture(scope="module")
def patients():
    generator = np.random.default_rng(4)
    n = 6000
    frame = pd.DataFrame(
        {
            "age": generator.uniform(18, 98, n),
            "ward": generator.choice(list("abc"), n),
            "smoker": generator.random(n) < 0.5,
        }
    )
    mean = 3500 + 30 * frame.age + 800 * (frame.ward == "b") - 500 * (frame.ward == "c") + 600 * frame.smoker
    frame["cost"] = mean + 500 * generator.standard_normal(n)
    frame["ill"] = np.where(generator.random(n) < 1 / (1 + np.exp((5500 - mean) / 1000)), "yes", "no")
    frame["visits"] = generator.poisson(mean / 5000)
    frame["smoker"] = np.where(frame.smoker, "yes", "no")
    return frame


@pytest.fixture(scope="module")
def line(patients):
    return od.DPLinearRegression(3.0, schema=schema("cost"), target="cost", random_state=0).fit(patients)


def test_coefficients_have_the_names_of_levels_and_the_units_of_the_columns(line, patients):
    assert [row.term for row in line.summary()] == list(TRUTH)
    assert np.append(line.coef_, line.intercept_) == pytest.approx(list(line.release_.named().values()))
    assert np.all(np.abs(np.append(line.coef_, line.intercept_) - list(TRUTH.values())) < 4 * line.bse_)
    assert line.feature_names_in_.tolist() == ["age", "ward", "smoker"]
    assert line.score(patients, patients.cost) > 0.6
    assert line.summary().joint[0].p_value < 1e-6
    assert od.verify(line.certificate_).answer == "consistent"
    assert line.certificate_.data.target == "cost"


def test_new_rows_are_read_by_name_with_missing_and_unknown_cells_as_declared(line):
    new = pd.DataFrame({"smoker": ["yes", None], "ward": ["b", "z"], "age": [60.0, np.nan], "of no interest": [1, 2]})
    as_read = pd.DataFrame({"age": [60.0, 58.0], "ward": ["b", "a"], "smoker": ["yes", "no"]})
    assert line.predict(new) == pytest.approx(line.predict(as_read))
    assert line.predict(pl.from_pandas(as_read)) == pytest.approx(line.predict(as_read))
    assert line.predict(as_read.to_numpy()) == pytest.approx(line.predict(as_read))
    assert line.release_.predict(new).values[:, 0] == pytest.approx(line.predict(new))
    expected = line.predict(new, interval=0.95)
    assert (expected.low < line.predict(new)).all()
    with pytest.raises(FileMismatch, match="lacks 'ward'"):
        line.predict(new.drop(columns="ward"))
    with pytest.raises(InvalidModel, match="array of 3 columns, in the order of the schema"):
        line.predict(np.zeros((2, 2)))


def test_y_may_stand_beside_the_features_or_among_them(patients):
    options = {"schema": schema("ill"), "random_state": 1}
    among = od.DPLogisticRegression(3.0, target="ill", **options).fit(patients)
    beside = od.DPLogisticRegression(3.0, **options).fit(patients.drop(columns="ill"), patients.ill)
    frames = od.DPLogisticRegression(3.0, target="ill", **options).fit(pl.from_pandas(patients))
    assert np.array_equal(among.coef_, beside.coef_)
    assert np.array_equal(among.coef_, frames.coef_)
    assert among.classes_.tolist() == ["no", "yes"]
    assert among.score(patients, patients.ill) > 0.65
    assert set(among.predict(patients)) == {"no", "yes"}
    numbered = (patients.ill == "yes").astype(int).rename("ill")
    plain = od.Schema.from_dict({"columns": FEATURES | {"ill": {"kind": "binary", "missing": 0}}})
    typed = od.DPLogisticRegression(3.0, schema=plain, classes=[0, 1]).fit(patients.drop(columns="ill"), numbered)
    assert typed.predict(patients).dtype.kind == "i"
    assert typed.score(patients, numbered) > 0.65


def test_counts_and_quantiles_and_margins_take_a_schema_too(patients):
    rates = od.DPPoissonRegressor(5.0, schema=schema("visits"), target="visits").fit(patients)
    assert rates.predict(patients).mean() == pytest.approx(patients.visits.mean(), rel=0.2)
    middle = od.DPQuantileRegressor(5.0, schema=schema("cost"), target="cost").fit(patients)
    assert np.mean(patients.cost < middle.predict(patients)) == pytest.approx(0.5, abs=0.1)
    sides = od.DPLinearSVC(5.0, schema=schema("ill"), target="ill").fit(patients)
    assert sides.score(patients, patients.ill) > 0.6


def test_a_schema_may_be_a_file_or_a_dictionary_and_estimators_are_cloned(patients, tmp_path):
    schema("cost").save(tmp_path / "cost.yaml")
    fits = [
        clone(od.DPLinearRegression(3.0, schema=given, target="cost", random_state=7)).fit(patients.head(500))
        for given in (schema("cost"), str(tmp_path / "cost.yaml"), schema("cost").to_dict())
    ]
    assert np.array_equal(fits[0].coef_, fits[1].coef_)
    assert np.array_equal(fits[0].coef_, fits[2].coef_)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"bounds": (0, 1)}, WrongCall, "Leave out bounds="),
        ({"target": None}, WrongCall, "Which column of the schema is explained"),
        ({"target": "costs"}, InvalidSchema, "not declared in the schema"),
        ({"schema": 3}, InvalidSchema, "schema must be"),
        ({"fit_intercept": False}, WrongCall, "always an intercept"),
        ({"target": "ward"}, InvalidSchema, "explains a number"),
    ],
)
def test_what_contradicts_a_schema_is_refused(patients, options, error, words):
    with pytest.raises(error, match=words):
        od.DPLinearRegression(1.0, **{"schema": schema("cost"), "target": "cost"} | options).fit(patients)


def test_no_cell_can_make_it_fail(patients):
    cells = [None, np.nan, float("inf"), "x", -1e300, 2 + 1j, [1], {}, b"y", ""]
    odd = pd.DataFrame({name: [*cells, *patients[name].head(300)] for name in patients}, dtype=object)
    model = od.DPLinearRegression(1.0, schema=schema("cost"), target="cost").fit(odd)
    assert np.isfinite(model.coef_).all()
    assert np.isfinite(model.predict(odd)).all()


def test_weights_of_records_are_refused_with_the_reason(patients):
    model = od.DPLinearRegression(1.0, schema=schema("cost"), target="cost")
    with pytest.raises(WrongCall, match="a record of weight 10 can move the fit ten times as far"):
        model.fit(patients, sample_weight=np.ones(len(patients)))
    model.fit(patients.head(300), sample_weight=None)


# ── around a fit ─────────────────────────────────────────────────────────────────────────────────────────────


def encoder(**options):
    return OneHotEncoder(categories=[["a", "b", "c"]], sparse_output=False, drop="first", **options)


@pytest.mark.parametrize(
    ("encode", "learned"),
    [
        (encoder(handle_unknown="ignore"), None),
        (encoder(), "OneHotEncoder"),  # stops at an undeclared level, and so tells that there is one
        (OneHotEncoder(sparse_output=False, handle_unknown="ignore", drop="first"), "OneHotEncoder"),
        (make_pipeline(FunctionTransformer(), encoder(handle_unknown="ignore")), None),
    ],
)
def test_a_column_transformer_is_covered_where_its_categories_are_declared(patients, encode, learned, recwarn):
    columns = ColumnTransformer([("ward", encode, ["ward"]), ("age", "passthrough", ["age"])])
    bounds = ([0, 0, 18], [1, 1, 98])
    pipeline = make_pipeline(columns, od.DPLinearRegression(1.0, bounds=bounds, response_bound=(0, 12000)))
    if learned is None:
        assert pipeline.fit(patients, patients.cost)[-1].notes_ == ()
        return
    with pytest.warns(NotCovered, match=f"{learned} was fitted on the private data"):
        pipeline.fit(patients, patients.cost)


def test_a_scaler_inside_a_column_transformer_is_named(patients):
    columns = ColumnTransformer([("age", StandardScaler(), ["age"])], remainder="drop")
    pipeline = make_pipeline(columns, od.DPLinearRegression(1.0, bounds=(-3, 3), response_bound=(0, 12000)))
    with pytest.warns(NotCovered, match="StandardScaler was fitted on the private data"):
        pipeline.fit(patients, patients.cost)


# ── a release by itself ──────────────────────────────────────────────────────────────────────────────────────


def test_a_loaded_release_predicts_sums_up_plots_and_reports(line, patients, tmp_path):
    line.release_.save(tmp_path / "release.json")
    release = od.load(tmp_path / "release.json")
    assert release.predict(patients.head(3)).values[:, 0] == pytest.approx(line.predict(patients.head(3)))
    assert str(release.summary()) == str(line.summary())
    assert release.report(tmp_path / "report.html").read_text().count("Categories as a whole") == 1
    assert line.report(tmp_path / "again.html").exists()
    mpl.use("Agg")
    axes = release.plot()
    assert [label.get_text() for label in axes.get_yticklabels()] == ["smoker=yes", "ward=c", "ward=b", "age"]
    assert "across the declared range" in axes.get_xlabel()
    assert line.plot(ax=axes) is axes
    mpl.pyplot.close(axes.figure)


def test_an_edited_file_is_not_loaded(line, tmp_path):
    text = line.certificate_.to_json().replace('"epsilon": 3.0', '"epsilon": 0.3')
    (tmp_path / "edited.json").write_text(text)
    with pytest.raises(CertificateRejected):
        od.load(tmp_path / "edited.json")


def test_a_single_draw_has_its_summary_and_picture_without_intervals(patients):
    model = od.DPLinearRegression(1.0, schema=schema("cost"), target="cost", mechanism="least-squares").fit(patients)
    assert "No interval" in str(model.release_.summary())
    mpl.use("Agg")
    axes = model.plot()
    assert axes.get_title(loc="left").endswith("of cost")
    mpl.pyplot.close(axes.figure)
