"""Joint tests of a release: one for each declared category of more than two levels."""

from types import SimpleNamespace

import pytest

import onedraw as od
from onedraw.data import Category, Number, Schema
from onedraw.methods import PerturbedMode
from onedraw.models import Logistic, Softmax
from onedraw.release.estimates import Estimate, Estimates, Joint, joint_tests

SCHEMA = Schema(
    columns={
        "age": Number(lower=0.0, upper=90.0, missing=40.0),
        "smoker": Category(levels=("no", "yes"), missing="no"),
        "ward": Category(levels=("a", "b", "c"), missing="a"),
        "ill": Category(levels=("no", "yes"), missing="no"),
    }
)


def joint_of(model, mechanism=None, informed=True):
    mechanism = mechanism or PerturbedMode(categories=((1, 2), (2, 4)))
    fit = SimpleNamespace(informed=informed, wald=lambda places: (float(places.start), len(places), float(places.stop)))
    certificate = SimpleNamespace(data=SimpleNamespace(declared=SCHEMA.to_dict(), target="ill"))
    return joint_tests(fit, certificate, SimpleNamespace(model=model, mechanism=mechanism))


def test_category_of_three_levels_is_tested_and_one_of_two_is_not():
    (only,) = joint_of(Logistic(4, data_norm=1.0, prior=od.Gaussian(scale=1.0)))
    assert (only.term, only.label, only.degrees) == ("ward", "", 2)
    assert (only.statistic, only.p_value) == (2.0, 4.0)  # columns 2 and 3


def test_category_is_tested_once_for_each_class():
    model = Softmax(4, data_norm=1.0, classes=("x", "y", "z"), prior=od.Gaussian(scale=1.0))
    found = joint_of(model)
    assert [(one.label, one.statistic) for one in found] == [("x", 2.0), ("y", 7.0), ("z", 12.0)]


@pytest.mark.parametrize("options", [{"mechanism": od.Gibbs()}, {"informed": False}])
def test_release_without_standard_errors_has_no_joint_test(options):
    assert joint_of(Logistic(4, data_norm=1.0, prior=od.Gaussian(scale=1.0)), **options) == ()


def test_a_summary_has_html_and_latex_views_of_its_words():
    rows = [Estimate("wage_in_%", "a<b", 1.5, 1.0, 2.0, 0.2, 0.1, 0.0004), Estimate("age", "", 2.0)]
    table = Estimates(rows, level=0.95, joint=[Joint("ward", "", 7.0, 2, 0.03)], remarks=["One & two."])
    page, text = table._repr_html_(), table.to_latex()
    assert page == table.to_html()
    assert "a&lt;b" in page
    assert "<td>1 to 2</td>" in page
    assert "One &amp; two." in page
    assert r"wage\_in\_\% & a$<$b & 1.5 & 1 to 2" in text
    assert r"One \& two." in text
    assert text.count(r"\\") == 4
    assert r"\begin{tabular}{lrrrrr}" in text
