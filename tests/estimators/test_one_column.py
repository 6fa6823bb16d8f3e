"""Estimators of one column with plain noise: what they publish, as a whole and within groups."""

import math

import numpy as np
import pandas as pd
import pytest

import onedraw as od
from onedraw.errors import InvalidModel

N = 3000
_G = np.random.default_rng(8)
TABLE = pd.DataFrame(
    {
        "age": _G.normal(45.0, 15.0, N),
        "visits": _G.poisson(3.0, N),
        "sex": _G.choice(["F", "M"], N),
        "school": _G.choice(["low", "mid", "high"], N),
        "smoker": _G.choice(["no", "yes"], N, p=[0.8, 0.2]),
    }
)
SEX = {"by": {"sex": ["F", "M"]}}
ASKED = {
    "smoker": (lambda **o: od.DPProportion(2.0, classes=["no", "yes"], random_state=1, **o), "proportion_", 0.05),
    "school": (lambda **o: od.DPCount(2.0, levels=["low", "mid", "high"], random_state=1, **o), "counts_", 30),
    "age": (lambda **o: od.DPMean(2.0, bounds=(0, 100), random_state=1, **o), "mean_", 2.0),
    "visits": (lambda **o: od.DPRate(2.0, bounds=(0, 20), random_state=1, **o), "rate_", 0.4),
}


def truth(column, group):
    part = TABLE if group is None else TABLE[TABLE.sex == group]
    if column == "smoker":
        return float((part.smoker == "yes").mean())
    if column == "school":
        return [int((part.school == level).sum()) for level in ("low", "mid", "high")]
    return float(part[column].clip(0, 100).mean())


@pytest.mark.parametrize("column", ASKED)
def test_an_estimate_is_near_the_truth_as_a_whole_and_in_every_group(column):
    make, name, near = ASKED[column]
    assert getattr(make().fit(TABLE[column]), name) == pytest.approx(truth(column, None), abs=near)
    grouped = make(**SEX).fit(TABLE[["sex", column]])
    assert grouped.groups_ == ["sex=F", "sex=M"]
    for place, group in enumerate(("F", "M")):
        assert getattr(grouped, name)[place] == pytest.approx(truth(column, group), abs=near)
    assert od.verify(grouped.certificate_)
    assert "may leave one cell and enter another" in str(grouped.guarantee_.assumptions)


def test_sums_and_variances_are_what_their_names_say():
    total = od.DPSum(2.0, bounds=(0, 100), random_state=1).fit(TABLE["age"])
    assert total.sum_ == pytest.approx(TABLE.age.clip(0, 100).sum(), abs=1000)
    variance = od.DPVariance(2.0, bounds=(0, 100), random_state=1).fit(TABLE["age"])
    assert variance.variance_ == pytest.approx(TABLE.age.clip(0, 100).var(), abs=15)
    low, high = variance.conf_int()[0]
    assert low < variance.variance_ < high
    grouped = od.DPSum(2.0, bounds=(0, 100), random_state=1, **SEX).fit(TABLE[["age", "sex"]])
    assert grouped.sum_.sum() == pytest.approx(TABLE.age.clip(0, 100).sum(), abs=2000)
    assert grouped.records_.sum() == N


def test_frames_rows_and_arrays_of_a_column_and_its_group_are_read_alike():
    make = ASKED["age"][0]
    frame = make(**SEX).fit(TABLE[["age", "sex"]])
    rows = make(**SEX).fit(TABLE[["age", "sex"]].to_numpy().tolist())
    array = make(**SEX).fit(TABLE[["age", "sex"]].to_numpy())
    assert frame.mean_.tolist() == rows.mean_.tolist() == array.mean_.tolist()


def test_a_cross_table_is_whole_and_its_margins_are_those_of_its_cells():
    groups = {"sex": ["F", "M"], "smoker": ["no", "yes"]}
    table = od.DPCount(1.0, levels=["low", "mid", "high"], missing="low", by=groups).fit(
        TABLE[["school", "sex", "smoker"]]
    )
    assert table.counts_.shape == (4, 3)
    assert table.counts_.sum() == N
    assert (table.counts_ == np.rint(table.counts_)).all()
    low, high = table.conf_int(0.99).T
    assert ((low <= table.counts_.reshape(-1)) & (table.counts_.reshape(-1) <= high)).all()


def test_public_groups_cost_no_more_than_one_group_and_say_so():
    sizes = [int((TABLE.sex == group).sum()) for group in ("F", "M")]
    public = od.DPCount(1.0, levels=["no", "yes"], level="yes", missing="no", group_sizes=sizes, **SEX).fit(
        TABLE[["smoker", "sex"]]
    )
    assert public.choice_.best.parameters["scale"] == 1.0
    assert "is public" in str(public.guarantee_.assumptions)
    with pytest.raises(InvalidModel, match="sizes declares"):
        od.DPCount(1.0, levels=["no", "yes"], group_sizes=[1, 2], **SEX).fit(TABLE[["smoker", "sex"]])


def test_auto_takes_plain_noise_and_says_why_and_posteriors_stay_by_name():
    column = TABLE["smoker"]
    auto = od.DPProportion(1.0, classes=["no", "yes"], missing="no").fit(column)
    assert auto.certificate_.mechanism.name == "AddedNoise"
    assert "A draw from a posterior would be off by at least" in auto.choice_.why
    named = od.DPProportion(1.0, classes=["no", "yes"], mechanism="concentrated", missing="no").fit(column)
    assert named.certificate_.mechanism.name == "Concentrated"
    prior = od.DPProportion(1.0, classes=["no", "yes"], prior=(1, 1), missing="no").fit(column)
    assert prior.certificate_.mechanism.name != "AddedNoise"
    gaussian = od.DPProportion(1.0, classes=["no", "yes"], mechanism="gaussian").fit(column)
    assert gaussian.choice_.best.mechanism.law == "gaussian"


def test_a_pure_budget_gives_a_mean():
    model = od.DPMean(1.0, delta=0, bounds=(0, 100)).fit(TABLE["age"])
    assert str(model.guarantee_.promise) == "ε = 1"


def test_numbers_within_public_ends_are_counted_as_a_whole_and_by_group():
    young = (TABLE.age >= 18) & (TABLE.age <= 30)
    counted = od.DPCount(2.0, between=(18, 30), random_state=1).fit(TABLE["age"])
    assert counted.count_ == pytest.approx(young.sum(), abs=6)
    low, high = counted.conf_int()[0]
    assert low <= counted.count_ <= high
    assert list(counted.levels_) == ["other", "between 18 and 30"]
    assert "between 18 and 30" in str(counted.summary())
    share = od.DPProportion(2.0, between=(None, 30), random_state=1).fit(TABLE["age"])
    assert share.proportion_ == pytest.approx((TABLE.age <= 30).mean(), abs=0.01)
    grouped = od.DPCount(2.0, between=(18, 30), random_state=1, **SEX).fit(TABLE[["age", "sex"]])
    assert grouped.count_ == pytest.approx([(young & (TABLE.sex == sex)).sum() for sex in ("F", "M")], abs=10)
    assert od.verify(grouped.certificate_)


def test_what_is_no_finite_number_is_counted_outside():
    odd = [20.0, None, float("nan"), float("inf"), -float("inf"), "many", "25", 10**400, [20], np.nan, 1e300]
    plain = [20.0, 99, 99, 99, 99, 99, 25.0, 99, 99, 99, 99]
    fit = {"between": (18, None), "random_state": 1}
    expected = [20.0, -99, -99, -99, -99, -99, 25.0, -99, -99, -99, 99]
    assert od.DPCount(1.0, **fit).fit(odd).count_ == od.DPCount(1.0, **fit).fit(expected).count_
    closed = {"between": (18, 30), "random_state": 1}
    assert od.DPCount(1.0, **closed).fit(odd).count_ == od.DPCount(1.0, **closed).fit(plain).count_


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"between": (30, 18)}, "low at most high"),
        ({"between": (None, None)}, "count everybody"),
        ({"between": (-np.inf, np.inf)}, "count everybody"),
        ({"between": (np.nan, 3)}, "finite"),
        ({"between": ("a", 3)}, "real number"),
        ({"between": 18}, "None for an open one"),
        ({"between": (1, 2, 3)}, "None for an open one"),
        ({"between": (1, 2), "levels": [0, 1]}, "two ways"),
        ({"between": (1, 2), "level": 1}, "Leave it out"),
    ],
)
def test_a_condition_that_makes_no_sense_is_refused_in_words(options, words):
    with pytest.raises(InvalidModel, match=words):
        od.DPCount(1.0, **options).fit([1.0, 2.0])


@pytest.mark.parametrize("by", [{}, SEX])
def test_a_publicly_known_deviation_narrows_the_interval_of_a_mean(by):
    rows = TABLE[["age", "sex"]][:80] if by else TABLE["age"][:80]
    ends = [
        od.DPMean(2.0, bounds=(0, 100), noise=noise, random_state=1, **by).fit(rows).conf_int()[0]
        for noise in (None, 15.0, 5.0)
    ]
    widths = [high - low for low, high in ends]
    assert widths[0] > widths[1] > widths[2]
    covered = [
        low <= 45.0 <= high
        for low, high in (
            od.DPMean(2.0, bounds=(0, 100), noise=15.0, random_state=seed)
            .fit(np.random.default_rng(seed).normal(45.0, 15.0, 80))
            .conf_int(0.9)[0]
            for seed in range(100)
        )
    ]
    assert sum(covered) >= 80  # of 90 expected; three standard errors


def test_an_interval_of_a_count_can_be_about_the_population():
    model = od.DPCount(1.0, levels=["no", "yes"], level="yes").fit(TABLE["smoker"])
    (records,), (population,) = model.conf_int(), model.conf_int(of="population")
    assert population[1] - population[0] > 3 * (records[1] - records[0])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"by": ["sex"]}, "by names one to three columns"),
        ({"by": {"sex": ["F"]}}, "at least two different"),
        ({"by": {"a": [1, 2], "b": [1, 2], "c": [1, 2], "d": [1, 2]}}, "by names one to three columns"),
        ({"by": {"ward": ["F", "M"]}}, "lacks 'ward'"),
        ({"group_sizes": [1, 2]}, "by names none"),
        ({"mechanism": "magic"}, "magic"),
        ({"prior": (1, 1), "by": {"sex": ["F", "M"]}}, "prior"),
    ],
)
def test_what_is_not_declared_is_refused_in_words(options, words):
    with pytest.raises(InvalidModel, match=words):
        od.DPMean(1.0, bounds=(0, 100), **options).fit(TABLE[["age", "sex"]] if "by" in options else TABLE["age"])


def test_odd_groups_and_cells_count_as_declared():
    odd = [[1.0, "F"], ["x", None], [None, "unheard of"], [float("inf"), ["M"]], ["short"], 7] * 20
    plain = [[1.0, "F"], [5.0, "F"], [5.0, "F"], [5.0, "F"], [5.0, "F"], [5.0, "F"]] * 20
    fits = [
        od.DPMean(1.0, bounds=(0, 10), missing=5, random_state=2, **SEX).fit(rows).mean_.tolist()
        for rows in (odd, plain)
    ]
    assert fits[0] == fits[1]


MISSING = pd.DataFrame(
    {"age": [30.0, None, 50.0, "x", math.inf, 40.0] * 100, "sex": ["F", "F", "M", None, "M", "unheard of"] * 100}
)


@pytest.mark.parametrize("sizes", [None, (200, 400)])
def test_missing_cells_contribute_nothing_and_are_counted(sizes):
    whole = od.DPMean(2.0, bounds=(0, 100), random_state=1).fit(MISSING["age"])
    assert whole.mean_ == pytest.approx(40.0, abs=1.0)
    assert whole.n_missing_ == pytest.approx(300, abs=15)
    low, high = whole.n_missing_interval_
    assert low <= 300 <= high
    assert "of 600 cells are missing" in whole.summary().note
    grouped = od.DPMean(2.0, bounds=(0, 100), random_state=1, group_sizes=sizes, **SEX).fit(MISSING[["age", "sex"]])
    assert grouped.mean_.tolist() == pytest.approx(
        [30.0, 50.0], abs=3.0
    )  # groups that are missing, or not declared, are missing too
    if sizes is None:
        assert grouped.n_missing_ == pytest.approx(400, abs=15)
    filled = od.DPMean(2.0, bounds=(0, 100), missing=0, random_state=1).fit(MISSING["age"])
    assert filled.mean_ == pytest.approx(20.0, abs=1.0)
    assert not hasattr(filled, "n_missing_")


def test_too_few_known_cells_give_no_estimate_by_a_rule_on_noisy_numbers():
    for make in (od.DPMean, od.DPVariance, od.DPQuantile):
        nothing = make(1.0, bounds=(0, 100)).fit(["text"] * 500)
        (row,) = nothing.summary()
        assert math.isnan(row.estimate)
        assert math.isnan(row.low)
        assert nothing.n_missing_ == pytest.approx(500, abs=80)
    shares = od.DPHistogram(1.0, levels=["a", "b"]).fit(pd.Series(pd.date_range("2019-03-01", periods=300)))
    assert np.isnan(shares.shares_).all()
    assert "no estimate is given" in shares.summary().reason


def test_a_declared_value_is_checked_and_draws_ask_for_one():
    with pytest.raises(InvalidModel, match="between 0 and 100"):
        od.DPMean(1.0, bounds=(0, 100), missing=101).fit([1.0, 2.0])
    with pytest.raises(InvalidModel, match="one of no, yes"):
        od.DPProportion(1.0, classes=["no", "yes"], missing="maybe").fit(["no", "yes"])
    with pytest.raises(InvalidModel, match="missing=55"):
        od.DPMean(1.0, bounds=(0, 100), prior=(50, 1)).fit([1.0, 2.0])
    with pytest.raises(InvalidModel, match="'other'"):
        od.DPCount(1.0, between=(1, 2), missing=0).fit([1.0, 2.0])
