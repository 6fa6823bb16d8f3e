"""DPQuantile: quantiles, inter-quartile range, intervals, and what it refuses."""

import numpy as np
import pytest
from sklearn.base import clone

import onedraw as od
from onedraw.errors import InvalidModel, PromiseRefused


@pytest.fixture(scope="module")
def fitted():
    column = np.random.default_rng(1).lognormal(3.0, 1.0, 5000)
    return od.DPQuantile(2.0, quantiles=[0.25, 0.5, 0.75], bounds=(0, 1000), random_state=0).fit(column), column


def test_quantiles_come_with_intervals_a_range_and_their_rank_error(fitted):
    model, column = fitted
    assert model.quantiles_ == pytest.approx(np.quantile(column, [0.25, 0.5, 0.75]), rel=0.1)
    assert model.iqr_ == pytest.approx(model.quantiles_[2] - model.quantiles_[0])
    low, high = model.conf_int().T
    assert (low <= model.quantiles_).all()
    assert (model.quantiles_ <= high).all()
    assert model.conf_int(0.8) == pytest.approx(model.conf_int())
    assert (model.rank_error_ < 0.01).all()
    assert "median" in str(model.summary())
    assert od.verify(model.certificate_)


def test_the_inter_quartile_range_has_an_interval_from_those_of_both_quartiles(fitted):
    model, column = fitted
    low, high, level = model.iqr_interval_
    ends = model.conf_int()
    assert (low, high) == pytest.approx((ends[2, 0] - ends[0, 1], ends[2, 1] - ends[0, 0]))
    assert level == pytest.approx(0.9)
    assert low < np.subtract(*np.quantile(column, [0.75, 0.25])) < high
    few = od.DPQuantile(2.0, quantiles=[0.25, 0.75], bounds=(0, 1000), interval=None, random_state=0).fit(column)
    assert few.iqr_ > 0.0
    assert few.iqr_interval_ is None


def test_without_an_interval_all_goes_to_the_quantile_and_the_reason_is_said(fitted):
    _, column = fitted
    model = od.DPQuantile(2.0, bounds=(0, 1000), interval=None, random_state=0).fit(column.reshape(-1, 1))
    assert "no interval was asked for" in model.interval_reason_
    with pytest.raises(PromiseRefused, match=r"interval=0\.95"):
        model.conf_int()
    assert np.isnan(model.iqr_)
    few = od.DPQuantile(0.1, bounds=(0, 1000)).fit(column[:40])
    assert "declared bounds" in few.interval_reason_
    with pytest.raises(PromiseRefused, match="planned before"):
        fitted[0].conf_int(0.99)


def test_it_is_cloned_and_charged_like_any_estimator(tmp_path, fitted):
    ledger = od.Ledger.open(tmp_path / "ledger.db", create=True)
    ledger.init("p", od.PureDP(1.0))
    model = clone(od.DPQuantile(1.0, delta=0.0, bounds=(0, 1000), ledger=ledger, dataset="p")).fit(fitted[1])
    assert ledger.remaining("p").spent_epsilon == pytest.approx(1.0, rel=1e-4)
    assert model.certificate_.draw.names == ["median"]


@pytest.mark.parametrize(
    ("options", "words"),
    [({}, "needs bounds"), ({"bounds": (0, 1), "quantiles": [1.0]}, "strictly between"), ({"bounds": (0, 1), "quantiles": "half"}, "levels such as")],
)  # fmt: skip
def test_what_is_not_declared_is_refused(options, words):
    with pytest.raises(InvalidModel, match=words):
        od.DPQuantile(1.0, **options).fit([0.5])
