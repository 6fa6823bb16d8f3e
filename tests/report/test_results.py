"""The report of a fit: interval, standard error and p of each coefficient, and which columns go together."""

import re

import numpy as np
import pytest
from scipy import stats

import onedraw as od
from onedraw.models.sums.exact_sums import matrix_deviation
from onedraw.planning import Regression, rank_plans
from onedraw.report import report_html, tables
from onedraw.report.pictures import STRONGEST, heat_map
from onedraw.report.tables import Correlations, correlation_words, correlations
from tests.report.cases import Page, outside_loads
from tests.report.test_style import SCHEMES, colours, contrast


@pytest.fixture(scope="module")
def pages(fits):
    return {kind: report_html(fit, interval=fit.summary()) for kind, fit in fits.items()}


@pytest.mark.parametrize("kind", ["logistic", "linear"])
def test_a_fit_has_its_report_and_it_loads_nothing(kind, pages):
    page = Page(pages[kind])
    assert outside_loads(pages[kind]) == []
    assert "Proven" in page.text
    assert page.titled("Which columns go together")
    assert "<script>" not in pages[kind]


def test_every_coefficient_has_its_standard_error_and_p(fits, pages):
    fit, page = fits["logistic"].fit, Page(pages["logistic"])
    assert "Std err p Sampling sd" in page.text
    assert "< 0.001" in page.text
    for error in fit.standard_errors:
        assert f"{error:.3g}" in page.text


def test_the_bars_are_those_of_the_fit(fits):
    fit, table = fits["logistic"].fit, fits["logistic"].summary()
    assert np.allclose([(row.low, row.high) for row in table], fit.conf_int(0.95))
    assert np.allclose([row.std_err for row in table], fit.standard_errors)
    assert np.allclose([row.p_value for row in table], fit.p_values)


def test_what_the_interval_is_for_is_said(pages):
    text = Page(pages["linear"]).text
    assert "model that fit best, as the fit weighs the records" in text
    assert "centre" in text  # of the responses, not their mean


def test_the_plan_s_figure_does_not_stand_beside_standard_errors(fits):
    question = Regression("logistic", 3, bounds=(-1.0, 1.0))
    chosen = rank_plans(question, od.ApproxDP(3.0, 1e-6), n=4000)
    with_errors = report_html(fits["logistic"], interval=fits["logistic"].summary(), plan_table=chosen)
    assert "Expected error" not in Page(with_errors).text
    assert "Why this mechanism" in Page(with_errors).text
    without = Page(report_html(fits["logistic"], interval="it was not measured", plan_table=chosen)).text
    assert "What could be expected, before any record was read" in without
    assert "numbers fill a quarter of their declared range" in without


def test_correlations_are_those_of_the_columns_up_to_the_noise(fits):
    found = correlations(fits["logistic"].certificate, fits["logistic"].plan)
    assert found.names[:2] == ("age", "dose")
    assert 0.0 < found.noise < 0.1
    assert abs(found.values[1][0] - 0.6) < 6 * found.noise
    assert abs(found.values[2][0]) < 6 * found.noise + 0.05


def test_the_response_is_the_last_row_where_it_was_measured(fits):
    found = correlations(fits["linear"].certificate, fits["linear"].plan)
    assert found.names[-1] == "response"
    assert found.values[3][0] > 0.7  # it is mostly age
    assert len(found.values[3]) == 3


def test_a_release_that_measured_nothing_has_no_heat_map(releases):
    assert not Page(report_html(releases["one logistic"])).titled("Which columns go together")


def test_noise_cannot_make_a_correlation_larger_than_1_or_of_a_negative_variance(fits):
    found = rare_levels(fits["logistic"], [100.0, 300.0, 400.0, 100.0, 100.0, -10.0])
    assert found.values[1][0] == 1.0
    assert np.isnan(found.values[2]).all()
    words = correlation_words(Correlations(("a", "b", "c"), ((), (1.0,), (float("nan"), -0.25)), 0.1))
    assert words["lines"][2]["values"] == ["unknown", "−0.25"]
    assert words["strongest"] == "The strongest is +1.00, of a and b."


def rare_levels(fit, moments):
    """The correlations of a fit whose second moments are these, in units of their noise."""
    problem = fit.plan.mechanism.problem(fit.plan)
    noise = matrix_deviation(problem.numbers["moments_noise"], 3, pure=problem.pure)
    stages = {**fit.certificate.draw.stages, "moments": [noise * entry for entry in moments]}
    draw = fit.certificate.draw.model_copy(update={"stages": stages})
    return correlations(fit.certificate.model_copy(update={"draw": draw}), fit.plan)


@pytest.mark.finding("newcomer S6", commit="8a7c0fb")
def test_headline_is_a_correlation_that_exceeds_its_own_noise(fits):
    """Of rare levels the noise may be all of it: 0.44 with noise 0.23, beside 0.30 with noise 0.05."""
    found = rare_levels(fits["logistic"], [100.0, 6.0, 4.0, 0.0, 1.5, 2.9])
    assert found.values[1][0] == pytest.approx(0.30, abs=0.01)
    assert found.values[2][1] == pytest.approx(0.44, abs=0.01)
    assert f"{found.names[0]} and {found.names[1]}" in correlation_words(found)["strongest"]


def test_doubtful_correlations_are_blank_and_have_their_noise(fits):
    words = correlation_words(rare_levels(fits["logistic"], [100.0, 6.0, 4.0, 0.0, 1.5, 2.9]))
    assert words["lines"][2]["values"] == ["+0.00 ± 0.04", "+0.44 ± 0.23"]
    assert words["lines"][2]["picture"].count("unknown") == 2
    assert "unknown" not in words["lines"][1]["picture"]


@pytest.mark.finding("newcomer S6", commit="8a7c0fb")
def test_column_whose_variance_may_be_noise_has_no_correlation(fits):
    found = rare_levels(fits["logistic"], [100.0, 6.0, 4.0, 0.0, 1.5, 1.5])
    assert np.isnan(found.values[2]).all()
    assert correlation_words(rare_levels(fits["logistic"], [1.0] * 6))["strongest"].startswith("No correlation")


@pytest.mark.parametrize("pure", [True, False])
def test_independent_rare_levels_are_named_at_most_once_in_twenty(pure):
    generator, named, runs = np.random.default_rng(2), 0, 200
    variances = np.geomspace(3.0, 100.0, 8)
    for _ in range(runs):
        noise = generator.normal(size=(8, 8))
        second = np.diag(variances) + np.tril(noise, -1) / np.sqrt(2.0) + np.diag(np.diag(noise))
        found = tables.noisy_correlations(tuple("abcdefgh"), second + np.tril(second, -1).T, 1.0, 10**6, pure=pure)
        named += not correlation_words(found)["strongest"].startswith("No")
    assert stats.binom.sf(named - 1, runs, 0.05) > 1e-4


def test_a_strip_has_a_cell_for_each_column_before_it_with_its_sign():
    strips = heat_map([(), (0.5,), (-0.25, 0.001)]).pictures
    assert [len(re.findall("<rect", strip)) for strip in strips] == [1, 2]
    assert "cell down" in strips[1]
    assert "−.25" in strips[1]
    assert "−.00" not in strips[1]


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("colour", ["sampling", "privacy"])
def test_numbers_on_the_strongest_cell_can_be_read(scheme, colour):
    palette = colours(scheme)
    parts = [[int(palette[name][k : k + 2], 16) for k in (1, 3, 5)] for name in (colour, "paper")]
    mixed = [round(STRONGEST * front + (1 - STRONGEST) * back) for front, back in zip(*parts, strict=True)]
    assert contrast(palette["ink"], "#" + "".join(f"{channel:02x}" for channel in mixed)) >= 4.5
