"""Running time on a certificate: not covered, or covered by a second line that follows from its numbers."""

from unittest.mock import patch

import numpy as np
import pytest

import onedraw as od
from onedraw import errors
from onedraw.ledger import events
from onedraw.ledger.events import EARLIER_FIELDS
from onedraw.methods import PerturbedMode
from onedraw.models import Gaussian, Logistic
from onedraw.plans import digest_of
from onedraw.release.certificate import Certificate
from onedraw.release.timing import FOLLOWS, OPEN, UNCOVERED
from tests.release.cases import edited, edits, paths

N = 40


def logistic(**prior):
    return Logistic(2, data_norm=1.0, prior=Gaussian(scale=1.0, **prior))


def labelled(n=N):
    generator = np.random.default_rng(3)
    return 0.5 * generator.standard_normal((n, 2)), generator.integers(0, 2, n).astype(float)


@pytest.fixture(scope="module")
def path():
    plan = od.calibrate(od.NoisyGradient(), logistic(), od.ApproxDP(1.0, 1e-6), n=N)
    return {timing: od.release(plan, labelled(), timing=timing, random_state=7) for timing in (None, "padded")}


def test_a_draw_that_is_not_padded_says_that_running_time_is_not_covered(path):
    assert "Running time is not covered" in UNCOVERED
    assert path[None].certificate.timing.sentence == UNCOVERED
    assert set(path[None].certificate.model_dump(mode="json")["timing"]) == {"sentence"}


def test_constant_work_is_said_and_costs_nothing(path):
    certificate, plan = path["padded"].certificate, path["padded"].plan
    timing = certificate.timing
    assert timing.work == {"passes over the records": int(plan.parameters["steps"])}
    assert (timing.gamma, timing.delta) == (0.0, 1e-6)
    for words in ("the draw together with its work", "whatever the records are.", "constant work is not constant time"):
        assert words in timing.sentence
    assert od.verify(certificate).timing == FOLLOWS
    assert "the word of whoever released it" in FOLLOWS


def test_padding_changes_no_draw_and_no_first_line(path):
    one, other = (path[timing].certificate for timing in (None, "padded"))
    assert one.draw == other.draw
    assert one.sentence == other.sentence
    assert one.promise == other.promise


@pytest.mark.parametrize("timing", [None, "padded"])
def test_every_edit_of_what_is_said_of_time_is_caught(path, timing):
    certificate = path[timing].certificate
    document = certificate.model_dump(mode="json")
    for where, value in paths(document["timing"], ("timing",)):
        for other in edits(value):
            if other != value:
                with pytest.raises((errors.CertificateRejected, ValueError)):
                    od.verify(Certificate.model_validate(edited(document, where, other)))
    if timing is None:  # and a second line that nobody earned
        forged = {"sentence": path["padded"].certificate.timing.sentence}
        with pytest.raises(errors.CertificateRejected, match="timing"):
            od.verify(Certificate.model_validate(document | {"timing": forged}))


def test_what_is_said_of_time_has_an_answer_of_its_own(path):
    """Whether it is left open or follows: whoever reads the answer is not told more than the certificate shows."""
    document = path["padded"].certificate.model_dump(mode="json")
    silent = {name: value for name, value in document.items() if name != "timing"}
    with pytest.raises(ValueError, match="timing"):
        Certificate.model_validate(silent)
    open_ = document | {"timing": {"sentence": UNCOVERED}}
    found = [od.verify(Certificate.model_validate(one)) for one in (open_, document)]
    assert [one.timing for one in found] == [OPEN, FOLLOWS]
    assert {one.answer for one in found} == {"consistent"}
    assert "not covered" in OPEN
    assert od.verify(path[None]).timing == OPEN


def test_public_work_that_is_not_the_plans_is_named_with_both_numbers(path):
    """Another plan's honest second line, word for word: work, γ₂, δ and sentence agree with each other, and not with the plan."""
    longer = od.calibrate(od.NoisyGradient(time=2.0), logistic(), od.ApproxDP(1.0, 1e-6), n=N)
    other = od.release(longer, labelled(), timing="padded", random_state=7).certificate
    mine = path["padded"].certificate
    assert other.timing.work != mine.timing.work
    stated, planned = (f"{one.timing.work['passes over the records']:,} passes" for one in (other, mine))
    with pytest.raises(
        errors.CertificateRejected, match=rf"it states {stated} .*, its plan and sampler take {planned}"
    ):
        od.verify(mine.model_copy(update={"timing": other.timing}))


def test_with_the_ledger_neither_a_line_taken_out_nor_one_put_in_is_authentic(plans, ledger):
    for timing, other in ((None, "padded"), ("padded", None)):
        issued = release(plans["path"], ledger, timing=timing).certificate
        stranger = od.release(plans["path"], labelled(), timing=other).certificate
        assert od.verify(issued, ledger=ledger).answer == "authentic"
        with pytest.raises(errors.CertificateRejected, match="says nothing of running time"):
            od.verify(issued.model_copy(update={"timing": None}))
        forged = issued.model_copy(update={"timing": stranger.timing})
        assert od.verify(forged).answer == "consistent"
        with pytest.raises(errors.CertificateRejected, match="digest"):
            od.verify(forged, ledger=ledger)


def test_a_second_line_of_a_sampler_that_cannot_pad_is_caught(path):
    plan = od.calibrate(od.Diffused(), od.models.BetaBernoulli(prior=(1, 1)), od.ApproxDP(1.0, 1e-6), n=N)
    document = od.release(plan, np.zeros(N)).certificate.model_dump(mode="json")
    forged = path["padded"].certificate.model_dump(mode="json")["timing"]
    with pytest.raises(errors.CertificateRejected, match="cannot pad"):
        od.verify(Certificate.model_validate(document | {"timing": forged}))


def test_another_word_is_refused_before_anything_is_read():
    plan = od.calibrate(od.NoisyGradient(), logistic(), od.ApproxDP(1.0, 1e-6), n=N)
    with pytest.raises(errors.WrongCall, match="timing takes 'padded'"):
        od.release(plan, None, timing="constant")


@pytest.mark.parametrize(
    ("model", "mechanism", "refused"),
    [
        (od.models.BetaBernoulli(prior=(1, 1)), od.Diffused(), "Exact"),
        (od.models.GammaPoisson(prior=(1.0, 1.0), cap=5.0), od.Diffused(), "Exact"),
    ],
)
def test_a_sampler_without_padding_refuses_and_names_those_with(model, mechanism, refused):
    plan = od.calibrate(mechanism, model, od.ApproxDP(1.0, 1e-6), n=N)
    with pytest.raises(errors.ExactnessRefused, match=rf"{refused}\(\) cannot pad .* PerturbedMode .* Candidates"):
        od.release(plan, np.zeros(N), timing="padded")


def test_a_normal_law_is_drawn_by_constant_work():
    model = od.models.GaussianMean(bound=1.0, variance=4.0, prior_count=1.0)
    plan = od.calibrate(od.Diffused(), model, od.ApproxDP(1.0, 1e-6), n=N)
    assert od.release(plan, np.zeros(N), timing="padded").certificate.timing.gamma == 0.0


def test_an_estimator_hands_it_on():
    X, y = labelled(200)
    options = {
        "epsilon": 2.0,
        "data_norm": 1.0,
        "classes": [0.0, 1.0],
        "mechanism": "noisy-gradient",
        "missing": "middle",
        "random_state": 1,
    }
    found = od.DPLogisticRegression(**options, timing="padded").fit(X, y)
    assert found.certificate_.timing.work is not None
    assert od.DPLogisticRegression(**options).fit(X, y).certificate_.timing.work is None


# ── the ledger: work is charged, and an attempt is what it was asked to be ────────────────────────────────────────────


@pytest.fixture
def ledger(tmp_path):
    ledger = od.Ledger.open(tmp_path / "ledger.db", create=True)
    ledger.init("patients", od.ApproxDP(9.0, 1e-5))
    return ledger


@pytest.fixture(scope="module")
def plans():
    scaled = Logistic(2, bounds=(-np.ones(2), np.ones(2)), scaled=True, prior=Gaussian(scale=1.0))
    fit = od.calibrate(PerturbedMode(), scaled, od.PureDP(4.0), n=N)
    return {"fit": fit, "path": od.calibrate(od.NoisyGradient(), logistic(), od.ApproxDP(1.0, 1e-6), n=N)}


def release(plan, ledger, **options):
    return od.release(plan, labelled(), ledger=ledger, dataset="patients", **options)


def kinds(ledger):
    return [event.kind for event in ledger.events("patients")][1:]


def interrupted(plan, ledger, **options):
    """The entry of a release that was charged, and whose machine failed when the draw was to be made."""
    with patch.object(od.Plan, "target", side_effect=RuntimeError), pytest.raises((RuntimeError, errors.Unfinished)):
        release(plan, ledger, **options)
    return next(event.entry for event in reversed(ledger.events("patients")) if event.kind == "reserved")


def test_a_ledger_is_charged_no_less_than_a_certificate_promises(plans, ledger):
    certificate = release(plans["fit"], ledger, timing="padded").certificate
    assert ledger.events("patients")[1].payload["timing"] == certificate.timing.gamma == 1e-12
    total, stated = ledger.spent("patients"), certificate.promise.epsilon
    assert total.delta(stated) >= certificate.timing.delta * (1.0 - 1e-9) > 0.0
    assert od.verify(certificate, ledger=ledger).answer == "authentic"


def test_a_draw_that_is_not_padded_is_charged_as_ever(plans, ledger):
    release(plans["fit"], ledger)
    assert ledger.events("patients")[1].payload["timing"] is None
    assert ledger.spent("patients").gamma == 0.0


@pytest.mark.parametrize("name", ["fit", "path"])
@pytest.mark.parametrize("first", [None, "padded"])
def test_a_release_is_resumed_with_its_timing_and_no_other(plans, ledger, name, first):
    entry, other = interrupted(plans[name], ledger, timing=first), "padded" if first is None else None
    with pytest.raises(errors.LedgerError, match="paid for another release: timing differ"):
        release(plans[name], ledger, resume=entry, timing=other)
    begun = ["attempted"] if (name, first) == ("fit", "padded") else []  # constant work is never missed
    assert kinds(ledger) == ["reserved", *begun]
    certificate = release(plans[name], ledger, resume=entry, timing=first).certificate
    assert (certificate.timing.work is None) == (first is None)
    assert od.verify(certificate, ledger=ledger).answer == "authentic"
    assert kinds(ledger) == ["reserved", *begun, *begun, "settled"]


def test_every_attempt_at_a_padded_draw_spends_its_work_before_it_draws(plans, ledger, tmp_path):
    plan, out = plans["fit"], tmp_path / "out.json"
    entry = interrupted(plan, ledger, timing="padded", out=out)
    for _ in range(2):
        interrupted(plan, ledger, timing="padded", out=out, resume=entry)
    release(plan, ledger, timing="padded", out=out, resume=entry)
    assert kinds(ledger) == ["reserved", *["attempted"] * 4, "settled"]
    assert ledger.spent("patients").gamma == pytest.approx(4e-12, rel=1e-12)
    assert ledger.spent("patients").epsilon(1e-6) == pytest.approx(4.0)  # the draw is paid for once
    release(
        plan, ledger, timing="padded", out=out, resume=entry
    )  # what is whole is not drawn again, and nothing is spent
    assert kinds(ledger)[-2:] == ["attempted", "settled"]


def test_an_attempt_that_the_budget_does_not_cover_is_not_made(plans, tmp_path):
    ledger = od.Ledger.open(tmp_path / "ledger.db", create=True)
    ledger.init("patients", od.ApproxDP(4.0, 6e-11))  # one attempt takes 5.6e-11
    entry = interrupted(plans["fit"], ledger, timing="padded")
    with pytest.raises(errors.BudgetSpent, match="padded work"):
        release(plans["fit"], ledger, timing="padded", resume=entry)
    assert kinds(ledger) == ["reserved", "attempted"]


def test_a_budget_without_a_delta_pays_for_constant_work_alone(plans, tmp_path):
    ledger = od.Ledger.open(tmp_path / "ledger.db", create=True)
    ledger.init("patients", od.PureDP(9.0))
    with pytest.raises(errors.PromiseRefused, match=r"only a δ can pay for.*\n?.*Nothing was spent"):
        release(plans["fit"], ledger, timing="padded")
    assert kinds(ledger) == []
    release(plans["fit"], ledger)
    mean = od.models.GaussianMean(bound=1.0, variance=4.0, prior_count=1.0)
    ledger.init("means", od.GaussianDP(1.0))
    constant = od.calibrate(od.Diffused(), mean, od.GaussianDP(0.5), n=N)
    od.release(constant, np.zeros(N), ledger=ledger, dataset="means", timing="padded")
    assert ledger.events("means")[1].payload["timing"] == 0.0


def test_a_reservation_from_before_timing_was_charged_is_finished_without_padding(plans, ledger, monkeypatch):
    written = events.new_event

    def before(after, kind, *, content, **where):
        if kind == "reserved":  # as format 2 wrote it
            content = {name: value for name, value in content.items() if name in EARLIER_FIELDS["reserved"][1]}
            content["plan"] = digest_of(plans["fit"].to_dict())
        return written(after, kind, content=content, **where)

    with monkeypatch.context() as earlier:
        earlier.setattr("onedraw.ledger.ledger.new_event", before)
        entry = interrupted(plans["fit"], ledger)
    assert "timing" not in ledger.events("patients")[1].payload
    with pytest.raises(errors.LedgerError, match="timing differ"):
        release(plans["fit"], ledger, resume=entry, timing="padded")
    certificate = release(plans["fit"], ledger, resume=entry).certificate
    assert od.verify(certificate, ledger=ledger).answer == "authentic"
