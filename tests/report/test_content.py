"""What a report says, for every kind of release, and what it must not say."""

import re
from html import escape
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

import onedraw as od
from onedraw import errors
from onedraw.planning import choices
from onedraw.privacy import Assumption, Provenance
from onedraw.release import Certificate, Estimates, Release
from onedraw.report import AuditFinding, report_html
from tests.report.cases import Page, outside_loads
from tests.report.conftest import estimates

NASTY = """<script>alert("x")</script> & 'age'"""

TITLES = {
    "proportion": "Proportion",
    "average": "Average",
    "histogram": "Histogram",
    "mean": "Mean",
    "rate": "Rate of counts",
    "logistic": "Logistic regression",
    "one logistic": "Logistic regression",
    "linear": "Linear regression",
    "softmax": "Multiclass logistic regression",
    "many": "Logistic regression",
    "network": "Neural network",
    "seeded": "Proportion",
}
SECTIONS = [
    "The promise",
    "What was released",
    "What the best possible attacker could do",
    "What the promise rests on",
    "The budget",
    "How it was made",
    "How to verify",
    "Words used here",
]


@pytest.fixture(scope="session")
def pages(releases):
    return {kind: report_html(release) for kind, release in releases.items()}


@pytest.mark.parametrize("kind", TITLES)
def test_every_kind_of_release_has_its_report(kind, releases, pages):
    page, certificate = Page(pages[kind]), releases[kind].certificate
    assert page.headings[0] == (1, TITLES[kind])
    sections = [text for level, text in page.headings if level == 2]
    assert [text for text in sections if text != "Read this first"] == SECTIONS
    for words in (certificate.sentence, certificate.mechanism.theorem, certificate.digest, certificate.second_opinion):
        assert words in page.text
    for name in certificate.draw.names:
        assert " ".join(name.split()) in page.text
    for assumption in certificate.assumptions:
        assert assumption.provenance in page.text


@pytest.mark.parametrize("kind", TITLES)
def test_headings_go_down_one_step_at_a_time(kind, pages):
    levels = [level for level, _ in Page(pages[kind]).headings]
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


@pytest.mark.parametrize("kind", TITLES)
def test_a_report_loads_and_runs_nothing(kind, pages):
    assert outside_loads(pages[kind]) == []
    assert "default-src 'none'" in pages[kind]


@pytest.mark.parametrize(
    "planted",
    [
        '<img src="https://example.org/x.png">',
        '<link rel="stylesheet" href="theme.css">',
        "<script>1</script>",
        '<p onclick="x()">',
        '<svg><image xlink:href="a.png"/></svg>',
    ],
)
def test_a_planted_load_is_caught(planted, pages):
    assert outside_loads(pages["mean"].replace("</main>", planted + "</main>"))


def test_names_of_columns_levels_and_data_sets_are_escaped(releases, ledger, table, pages):
    html = report_html(releases["logistic"], ledger=ledger, interval=table)
    assert NASTY not in html
    assert (
        html.count(escape(NASTY, quote=False).replace('"', "&#34;").replace("'", "&#39;")) == 2
    )  # in the picture and in the table
    assert "patients &lt;2026&gt;" in html
    assert "patients <2026>" not in html
    assert "&lt;mid&gt;" in pages["histogram"]
    assert "<mid>" not in pages["histogram"]


def test_the_numbers_are_in_the_units_of_the_columns(releases, pages):
    release = releases["one logistic"]
    age, smoker, other, _ = release.draws[0] / (50.0, 0.5, 1000.0, 1.0)  # declared from 0 to 100, 0 to 1, −1000 to 1000
    values = re.findall(r'class="number c-value"[^>]*>([^<]*)<', pages["one logistic"])
    assert values[:3] == [f"{value:.3g}".replace("-", "−") for value in (age, smoker, other)]
    average = 10.0 + 10.0 * releases["average"].draw
    assert f"{average:.3g}" in Page(pages["average"]).text


def test_sampling_and_privacy_are_drawn_apart_in_their_proportion(releases, table):
    """Parts of 3 and 4 make 5: the thick part is three fifths of the whole bar."""
    html = report_html(releases["logistic"], interval=table)
    bars = {
        kind: [float(width) for width in re.findall(rf'class="{kind}" x="[\d.]+%" y="\d+" width="([\d.]+)%"', html)]
        for kind in ("sampling", "privacy")
    }
    assert len(bars["sampling"]) == len(bars["privacy"]) == 3
    assert np.allclose(np.divide(bars["sampling"], bars["privacy"]), 0.6, atol=0.005)
    page = Page(html)
    assert "95 % interval" in page.text
    assert "thick part is what sampling alone would leave" in page.text
    assert f"{table[1].low:.3g} to {table[1].high:.3g}".replace("-", "−") in page.text


@pytest.mark.finding("S3")
def test_the_bar_for_sampling_alone_is_as_long_as_the_deviation_beside_it_says(releases):
    """An interval ten times as long as both noises ask for: the rest is an allowance, named, and no part of sampling."""
    ones = np.ones(4)
    table = estimates("abcd", ones, ones - 20.0, ones + 20.0, 0.95, ones, ones)
    html = report_html(releases["logistic"], interval=table)
    page, bars = Page(html), {}
    for kind in ("allowance", "privacy", "sampling"):
        found = re.findall(rf'class="{kind}" x="[\d.]+%" y="[\d.]+" width="([\d.]+)%"', html)
        bars[kind] = float(found[0]) if found else None
    assert bars["sampling"] / bars["allowance"] == pytest.approx(1.96 / 20.0, abs=0.002)
    assert bars["privacy"] / bars["allowance"] == pytest.approx(1.96 * 2**0.5 / 20.0, abs=0.002)
    assert "allowance for few draws and odd designs" in page.text
    assert "17.2" in page.text  # 20 − 1.96·√2, in the table


@pytest.mark.finding("F2")
def test_a_coefficient_without_an_interval_has_its_sentence(releases):
    nan, remark = float("nan"), "for 'a', since the draws do not show it"
    errors_of = [nan, 0.1, 0.1, 0.1]
    table = estimates("abcd", [1.0] * 4, [nan, 0, 0, 0], [nan, 2, 2, 2], 0.95, errors_of, errors_of)
    table.reason = remark
    text = Page(report_html(releases["logistic"], interval=table)).text
    assert f"No interval is given {remark}." in text


def test_columns_of_different_units_are_compared_across_their_ranges(releases, table):
    assert "across a column's whole declared range" in report_html(releases["logistic"], interval=table)
    first = table[0]._replace(estimate=1e-4 * table[0].estimate, low=-1.0)
    tiny = Estimates([first, *table[1:]], level=table.level)
    across = report_html(releases["logistic"], interval=tiny)
    assert "across a column's whole declared range" in across
    assert "scale of its own" not in across, "a small effect is a finding, not a reason for another scale"
    alike = estimates("abc", [1, 2, 3], [0, 1, 2], [2, 3, 4], 0.9, [0.5] * 3, [0.5] * 3)
    other = estimates("abc", [1, 2, 3000], [0, 1, 2], [2, 3, 4000], 0.9, [0.5] * 3, [0.5] * 3)
    constant = estimates("abc", [0, 2, 3], [0, 1, 2], [0, 3, 4], 0.9, [0.0, 0.5, 0.5], [0.0, 0.5, 0.5])
    assert "scale of its own" not in report_html(releases["logistic"], interval=alike)
    assert "scale of its own" not in report_html(releases["logistic"], interval=constant)
    assert "scale of its own" in report_html(releases["logistic"], interval=other)


def test_without_an_interval_the_report_says_why(releases, pages):
    assert "No interval is given: this is one draw" in Page(pages["one logistic"]).text
    assert "8 draws share the budget" in Page(pages["logistic"]).text
    assert pages["logistic"].count('class="draw"') == 8 * 3 + 1


def test_the_reason_why_there_is_no_interval_is_quoted(releases):
    text = Page(report_html(releases["logistic"], interval="The prior's pull would stretch it <8> times.")).text
    assert "No interval is given. The prior's pull would stretch it <8> times. 8 draws share the budget" in text


@pytest.mark.parametrize("kind", ["proportion", "average", "histogram", "mean", "rate"])
def test_a_release_gives_its_own_intervals_in_the_units_of_the_column(kind, releases):
    release, table = releases[kind], releases[kind].summary(0.9)
    shift, scale = (10.0, 10.0) if kind == "average" else (0.0, 1.0)
    assert np.allclose([row.estimate for row in table], shift + scale * release.draws.mean(axis=0))
    assert np.array_equal(release.conf_int(0.9), [(row.low, row.high) for row in table])
    assert all(row.low < row.estimate < row.high for row in table)
    page = Page(report_html(release, interval=table))
    assert "90 % intervals under the model" in page.text
    assert "without an interval" not in page.text


def test_intervals_of_coefficients_are_those_of_the_columns(releases, monkeypatch):
    """The functionals handed to planning map the draws as drawn to the numbers that are shown."""
    from onedraw.methods.draws import replicated
    from onedraw.methods.intervals import Interval

    def draws_only(draws, plan, level, *, functional, **sizes):
        shown = np.array(draws) @ functional.T
        ones = np.ones(shown.shape[1])
        return Interval(shown.mean(0), shown.min(0), shown.max(0), ones, ones, ones)

    monkeypatch.setattr(replicated, "interval", draws_only)
    release = releases["logistic"]
    table = release.summary()
    assert np.allclose([row.estimate for row in table[:2]], release.draws.mean(axis=0)[:2] / (50.0, 0.5))
    assert table.names == tuple(release.certificate.draw.names)


def test_an_interval_that_does_not_exist_is_said_not_drawn(releases):
    table = estimates(["a", "b"], [1.0, 2.0], [0.0, -np.inf], [2.0, np.inf], 0.9, [1.0, np.nan], [1.0, np.nan])
    page = Page(report_html(releases["logistic"], interval=table))
    assert "none" in page.text
    assert "inf" not in page.text.split("What the best possible attacker")[0]


@pytest.mark.finding("S13")
def test_many_coefficients_are_listed_unfolded(pages):
    assert '<details class="numbers" open><summary>All 41 numbers' in pages["many"]


def test_many_parameters_are_folded_away(pages):
    assert "All 41 numbers" in pages["many"]
    assert "Single weights of a network mean nothing" in pages["network"]
    assert "All 21 numbers" in pages["network"]
    assert 'class="plot"' not in pages["network"]


def test_a_sound_release_in_the_ledger_needs_no_warning(releases, ledger):
    page = Page(report_html(releases["proportion"], ledger=ledger))
    assert not page.titled("Read this first")
    assert "Verified against the ledger" in page.text


@pytest.mark.parametrize(
    ("kind", "title"),
    [
        ("seeded", "Not private: drawn from a fixed seed"),
        ("network", "Assumed, not proven"),
        ("network", "Not verified"),
        ("mean", "Not recorded in any ledger"),
    ],
)
def test_what_weakens_the_promise_stands_above_it(kind, title, pages):
    headings = [text for _, text in Page(pages[kind]).headings]
    assert headings.index(title) < headings.index("The promise")


def test_a_calibration_as_published_is_called_not_proven(unproven):
    model = od.models.GaussianRegression(2, variance_floor=0.01)
    plan = od.calibrate(od.BetaDivergence("jewson", as_published=True), model, od.PureDP(1.0), n=50)
    data = np.zeros((50, 2)), np.zeros(50)
    page = Page(report_html(od.release(plan, data, sampler=unproven(plan), accept="assumed")))
    assert page.titled("Not proven, as published")
    assert "hold only if what is not proven above is true" in page.text


def test_an_inferred_schema_and_the_target_are_named(tmp_path):
    columns = {"in<come": {"kind": "number", "lower": 0, "upper": 10, "missing": 5}}
    schema = od.Schema.model_validate({"inferred_from": "census <1>.csv", "columns": columns})
    file = tmp_path / "private.csv"
    file.write_text("in<come\n" + "3\n" * 50, encoding="utf-8")
    model = od.models.GaussianMean(bound=5.0, variance=60.0, prior_count=1.0, centre=5.0)
    plan = od.calibrate(od.Diffused(), model, od.ApproxDP(1.0, 1e-6), n=50)
    page = Page(report_html(od.release(plan, od.read(file, schema, target="in<come"))))
    assert page.headings[0] == (1, "Mean of in<come")
    assert page.titled("The schema was inferred")
    assert "census <1>.csv" in page.text


def test_what_the_caller_could_not_vouch_for_stands_above_the_promise():
    """Notes of the caller that are assumed, such as a choice made on the private data."""
    model = od.models.GaussianMean(bound=5.0, variance=60.0, prior_count=1.0)
    plan = od.calibrate(od.Diffused(), model, od.ApproxDP(1.0, 1e-6), n=50)
    notes = (Assumption("hyper-parameters chosen on the private data: not covered", Provenance.ASSUMED),)
    page = Page(report_html(od.release(plan, np.zeros(50), notes=notes)))
    headings = [text for _, text in page.headings]
    assert headings.index("Not covered by the promise") < headings.index("The promise")
    assert page.text.count("yper-parameters chosen on the private data: not covered") >= 2


def test_the_budget_is_what_the_ledger_says_and_no_more(releases, ledger):
    html = report_html(releases["proportion"], ledger=ledger)
    left = ledger.remaining("patients <2026>")
    page = Page(html)
    spent = float(re.search(r"ε = ([\d.]+) spent", page.text)[1])
    room = float(re.search(r"release with ε = ([\d.]+) is sure", page.text)[1])
    assert left.spent_epsilon <= spent <= left.spent_epsilon * 1.001
    assert left.epsilon * 0.999 <= room <= left.epsilon
    assert "by 2 releases" in page.text
    assert "a private label" not in html
    assert "a note for the curator" not in html


def test_an_audit_stands_beside_the_promise_and_above_it_when_it_breaks_it(releases):
    fine = Page(report_html(releases["mean"], audit=AuditFinding(0.01, 1e-6, 0.95, 5000, "threshold")))
    assert "ε is at least 0.01 at δ = 10⁻⁶, with 95 % confidence" in fine.text
    assert not fine.titled("An audit contradicts the promise")
    found = SimpleNamespace(epsilon_lower_bound=4.0, delta=1e-6, confidence=0.95, rounds0=10, rounds1=10)
    assert Page(report_html(releases["mean"], audit=found)).titled("An audit contradicts the promise")
    report = SimpleNamespace(
        epsilon_lower_bound=0.0,
        delta=1e-6,
        confidence=0.95,
        passed=False,
        findings=[SimpleNamespace(method="exact <profile>")],
    )
    broken = Page(report_html(releases["mean"], audit=report))
    assert broken.titled("An audit contradicts the promise")
    assert "An attack on the mechanism (exact <profile>)" in broken.text
    with pytest.raises(errors.WrongCall, match="epsilon_lower_bound"):
        report_html(releases["mean"], audit="fine")


def test_the_plan_is_quoted_with_what_was_refused(releases):
    model, budget = od.models.BetaBernoulli(prior=(1, 1)), od.ApproxDP(1.0, 1e-6)
    table = choices(model, budget, n=600)
    text = Page(report_html(releases["proportion"], plan_table=table)).text
    for choice in table.eligible:
        assert choice.plan.heading in text
    for reason in table.refused.values():
        assert " ".join(reason.split()) in text


def test_diagnostics_never_appear(releases):
    release = releases["network"]
    assert release.diagnostics == {"acceptance": 0.123456789}
    assert "acceptance" not in report_html(release)
    assert report_html(release) == report_html(Release(release.certificate)) == report_html(release.certificate)


@pytest.mark.parametrize(("field", "value"), [("epsilon", 0.5), ("native", {"kind": "GaussianDP", "mu": 0.001})])
def test_a_certificate_that_does_not_hold_gets_no_report(field, value, releases):
    document = releases["mean"].certificate.model_dump(mode="json")
    document["promise"][field] = value
    if field == "epsilon":
        document["promise"]["epsilon"] = releases["mean"].certificate.promise.epsilon / 2
    with pytest.raises(errors.CertificateRejected):
        report_html(Certificate.model_validate(document))


def test_a_certificate_the_ledger_does_not_hold_gets_no_report(releases, ledger):
    certificate = releases["proportion"].certificate
    draw = certificate.draw.model_copy(update={"values": [[0.5]]})
    with pytest.raises(errors.CertificateRejected, match="digest"):
        report_html(certificate.model_copy(update={"draw": draw}), ledger=ledger)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"level": 95}, "level is a probability"),
        ({"low": (9.0, 9.0)}, "lies above its upper end"),
        ({"sampling": (-1.0, 1.0)}, "not negative"),
    ],
)
def test_a_table_that_means_nothing_is_refused(change, words):
    good = {
        "names": "ab",
        "centre": (1, 2),
        "low": (0, 1),
        "high": (2, 3),
        "level": 0.9,
        "sampling": (1, 1),
        "privacy": (1, 1),
    }
    with pytest.raises(errors.WrongCall, match=words):
        estimates(**good | change)
    with pytest.raises(ValueError, match="than argument 1"):  # one entry per name in every column
        estimates(**good | {"centre": (1.0,)})


def test_an_interval_of_another_shape_is_refused_with_the_remedy(releases):
    with pytest.raises(errors.WrongCall, match="summary"):
        report_html(releases["mean"], interval=(0.0, 1.0))
