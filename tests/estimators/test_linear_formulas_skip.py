"""Formulas over tables with missing cells: a record that lacks one contributes nothing, as in complete cases."""

import numpy as np
import pandas as pd
import pytest

import onedraw as od
from onedraw.data import Schema, read
from onedraw.planning.formulas import choose_columns
from onedraw.planning.options import Options

N = 6000
EPSILON = 4000.0
COLUMNS = {
    "survived": {"kind": "binary"},
    "age": {"kind": "number", "lower": 0, "upper": 80},
    "pclass": {"kind": "category", "levels": ["1", "2", "3"]},
    "sex": {"kind": "category", "levels": ["female", "male"]},
    "fare": {"kind": "number", "lower": 0, "upper": 300},
    "boarded": {"kind": "date", "first": "1912-01-01", "last": "1912-04-30"},
}


def passengers() -> pd.DataFrame:
    """A table like the Titanic's: a fifth of the ages are missing, more often of those who did not survive."""
    rng = np.random.default_rng(8)
    frame = pd.DataFrame({
        "age": rng.uniform(0, 80, N).round(), "pclass": rng.choice(["1", "2", "3"], N), "sex": rng.choice(["female", "male"], N),
        "boarded": pd.Timestamp("1912-01-01") + pd.to_timedelta(rng.integers(0, 120, N), unit="D"),
    })  # fmt: skip
    days = (frame.boarded - pd.Timestamp("1912-01-01")).dt.days
    odds = 1.5 - 0.03 * frame.age - 0.8 * (frame.pclass == "3") - 1.2 * (frame.sex == "male") + 0.01 * (days - 60)
    frame["survived"] = np.where(rng.uniform(size=N) < 1 / (1 + np.exp(-odds)), "yes", "no")
    frame["fare"] = np.exp(3.0 - 0.5 * (frame.pclass == "3") + 0.01 * frame.age + rng.normal(0, 0.4, N)) - 1
    frame.loc[rng.uniform(size=N) < np.where(frame.survived == "no", 0.3, 0.1), "age"] = np.nan
    frame.loc[rng.uniform(size=N) < 0.05, "pclass"] = None
    frame.loc[rng.uniform(size=N) < 0.05, "boarded"] = pd.NaT
    frame.loc[rng.uniform(size=N) < 0.05, "fare"] = np.nan
    frame.loc[rng.uniform(size=N) < 0.02, "survived"] = None
    return frame


TABLE = passengers()
SURVIVAL, FARE = "survived ~ age + C(pclass) + sex", "log(fare + 1) ~ age + C(pclass) + boarded"
NAMED = {SURVIVAL: ["survived", "age", "pclass", "sex"], FARE: ["fare", "age", "pclass", "boarded"]}


def schema_of(names):
    return {"columns": {name: COLUMNS[name] for name in names}}


def estimator(formula):
    kind = od.DPLogisticRegression if formula == SURVIVAL else od.DPLinearRegression
    return kind(epsilon=EPSILON, schema=schema_of(NAMED[formula]), formula=formula, random_state=3)


@pytest.mark.parametrize("formula", [SURVIVAL, FARE])
def test_a_fit_with_missing_cells_is_that_of_complete_cases(formula):
    frame = TABLE[NAMED[formula]]
    whole = frame.dropna()
    skipped, complete = estimator(formula).fit(frame), estimator(formula).fit(whole)
    assert len(whole) < 0.85 * N
    assert abs(skipped.n_complete_ - len(whole)) <= 3
    found, wanted = (np.append(one.coef_, one.intercept_) for one in (skipped, complete))
    assert np.abs((found - wanted) / complete.bse_).max() < 0.1
    np.testing.assert_allclose(skipped.bse_, complete.bse_, rtol=0.05)
    filled = estimator(formula).set_params(schema=declared_instead(NAMED[formula])).fit(frame)
    assert np.abs((np.append(filled.coef_, filled.intercept_) - wanted) / complete.bse_).max() > 1.0


def declared_instead(names):
    """The same schema, its missing cells being values."""
    values = {"survived": "no", "age": 40, "pclass": "1", "sex": "female", "fare": 30, "boarded": "1912-03-01"}
    return {"columns": {name: {**COLUMNS[name], "missing": values[name]} for name in names}}


@pytest.mark.parametrize("formula", [SURVIVAL, FARE])
def test_every_container_gives_the_same_records(formula, tmp_path):
    frame = TABLE[NAMED[formula]].head(500)
    frame.to_csv(tmp_path / "table.csv", index=False)
    options = Options.named({"formula": formula})
    schema, target, _ = choose_columns(Schema.from_dict(schema_of(NAMED[formula])), None, options)
    sources = [frame, tmp_path / "table.csv", {name: frame[name].to_numpy() for name in frame}]
    found = []
    for source in sources:
        records = read(source, schema, target=target)
        parts = [
            {name: np.asarray(values, dtype=np.float64) for name, values in batch.items()}
            for batch in records.batches()
        ]
        found.append({name: np.concatenate([part[name] for part in parts]) for name in parts[0]})
    lacking = frame.isna().any(axis=1).to_numpy()
    for columns in found:
        for name, values in columns.items():
            np.testing.assert_array_equal(values, found[0][name])
        np.testing.assert_array_equal(~np.isfinite(np.stack(list(columns.values()))).all(axis=0), lacking)


def test_new_records_with_a_missing_cell_are_not_predicted():
    model = estimator(SURVIVAL).fit(TABLE[NAMED[SURVIVAL]])
    new = pd.DataFrame({"age": [30.0, np.nan, 30.0], "pclass": ["1", "1", None], "sex": ["male"] * 3})
    found = model.predict_proba(new)
    assert np.isnan(found).any(axis=1).tolist() == [False, True, True]
    with pytest.warns(UserWarning, match="2 of 3 rows lack a cell"):
        labels = model.predict(new)
    assert set(labels) <= set(model.classes_)
    released = model.release_.predict(new, interval=0.9)
    assert released.labels[1:] == ["", ""]
    assert "No prediction for 2 of 3 rows" in released.note
    assert np.isnan(released.low).any(axis=1).tolist() == [False, True, True]
    assert "2 of 3" not in released.remark
