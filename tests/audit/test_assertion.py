"""``assert_private`` for people who add a mechanism: what passes, what is caught, what is refused, and the report."""

import json
import math
import os
import subprocess
import sys

import numpy as np
import pytest
from scipy import special

import onedraw as od
from onedraw.audit import AuditReport, Box, Finite, NotPrivate, assert_private, tradeoff_figure
from onedraw.errors import CannotWrite, TooFewRounds, WrongCall
from onedraw.privacy.tradeoff import TradeOff

SEED = int(os.environ.get("ONEDRAW_TEST_SEED", "20261115"))
PAIR = (np.array([0.0, 1.0, 1.0]), np.array([1.0, 1.0, 1.0]))
LINE = [(-math.inf, math.inf)]


@pytest.fixture
def generator():
    return np.random.default_rng(SEED)


def laplace_sum(scale):
    def mechanism(dataset, generator, size):
        return dataset.sum() + generator.laplace(scale=scale, size=size)

    return mechanism


def laplace_density(scale):
    return lambda dataset: lambda points: -np.abs(points[:, 0] - dataset.sum()) / scale


def response(factor):
    """Randomised response to the first record at ``factor`` times the promised ε = 1."""
    truth = special.expit(factor)
    return lambda dataset: [truth, 1.0 - truth] if dataset[0] else [1.0 - truth, truth]


# ── passes ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_right_mechanism_passes_by_draws_alone(generator):
    report = assert_private(laplace_sum(1.0), od.PureDP(1.0), pairs=[PAIR], generator=generator)
    assert isinstance(report, AuditReport)
    assert report.passed
    assert 0.6 < report.epsilon_lower_bound <= 1.0
    assert {attack.method for attack in report.findings[0].attacks} == {"histogram", "classifier"}


def test_a_right_mechanism_passes_exactly_and_by_the_optimal_attack(generator):
    report = assert_private(
        laplace_sum(1.0), od.PureDP(1.0), pairs=[PAIR], logdensity=laplace_density(1.0), support=LINE,
        methods=["histogram"], generator=generator,
    )  # fmt: skip
    assert report.epsilon_lower_bound == pytest.approx(1.0, abs=1e-9)
    assert [attack.method for attack in report.findings[0].attacks] == ["histogram", "membership attack, held-out"]


def test_data_sets_may_be_tuples_of_arrays(generator):
    features, labels = np.arange(6.0).reshape(3, 2) / 10.0, np.array([1.0, 0.0, 1.0])

    def mechanism(dataset, generator, size):
        return dataset[1].sum() + generator.laplace(size=size)

    neighbour = features, np.array([1.0, 1.0, 1.0])
    options = {"methods": ["histogram"], "generator": generator}
    assert assert_private(mechanism, od.PureDP(1.0), pairs=[((features, labels), neighbour)], **options).passed
    with pytest.raises(WrongCall, match="differ in 3"):
        assert_private(mechanism, od.PureDP(1.0), pairs=[((features, labels), (features + 1.0, labels))], **options)
    with pytest.raises(WrongCall, match="of the same length"):
        assert_private(mechanism, od.PureDP(1.0), pairs=[((features, labels), (features, labels[:2]))], **options)


def test_without_a_mechanism_the_probabilities_alone_are_audited(generator):
    report = assert_private(
        None, od.PureDP(1.0), domain=Finite([0, 1]), n=2, probabilities=response(1.0), generator=generator
    )
    assert report.epsilon_lower_bound == pytest.approx(1.0, abs=1e-9)


# ── planted faults ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("factor", [1.01, 1.3])
def test_a_weight_too_large_is_caught_exactly(factor, generator):
    with pytest.raises(NotPrivate, match="log-ratio"):
        assert_private(
            None, od.PureDP(1.0), domain=Finite([0, 1]), n=2, probabilities=response(factor), generator=generator
        )


def test_noise_too_small_by_a_third_is_caught_by_draws_alone(generator):
    with pytest.raises(NotPrivate) as caught:
        assert_private(
            laplace_sum(1 / 1.5), od.PureDP(1.0), pairs=[PAIR, PAIR], methods=["histogram"], generator=generator
        )
    message = str(caught.value)
    for part in ("ε = 1", "pair 0", "histogram", "0.999999", "Do not release"):
        assert part in message
    assert caught.value.violation.found > caught.value.violation.promised
    assert not caught.value.report.passed
    assert isinstance(caught.value, AssertionError)


def test_an_implementation_that_does_not_follow_its_density_is_caught(generator):
    """The density keeps the promise, the draws do not: proof right, code wrong."""
    with pytest.raises(NotPrivate, match="with confidence"):
        assert_private(
            laplace_sum(0.5), od.PureDP(1.0), pairs=[PAIR], logdensity=laplace_density(1.0), support=LINE,
            methods=["histogram"], generator=generator,
        )  # fmt: skip


def test_a_missing_clip_is_caught_on_the_pair_that_needs_it(generator):
    """Records are declared in [0, 1], clipping is forgotten, and the mechanism squares what it gets."""

    def unclipped(dataset, generator, size):
        return (2.0 * dataset).sum() + generator.laplace(size=size)

    with pytest.raises(NotPrivate):
        assert_private(unclipped, od.PureDP(1.0), domain=Box(0.0, 1.0), n=3, methods=["histogram"], generator=generator)


def test_a_nan_for_one_data_set_is_caught_and_no_error(generator):
    def fragile(dataset, generator, size):
        draws = dataset.sum() / 10.0 + generator.laplace(size=size)
        return draws if dataset[0] == 0.0 else np.full(size, math.nan)

    with pytest.raises(NotPrivate):
        assert_private(fragile, od.PureDP(1.0), pairs=[PAIR], generator=generator)


def test_one_draw_used_twice_is_caught(generator):
    """Two releases promised to cost ε = 1 together: with the noise shared, their difference is the sum itself."""

    def twice(dataset, generator, size):
        noise = generator.laplace(scale=2.0, size=size)
        return np.stack([dataset.sum() + noise, 2.0 * dataset.sum() + noise], axis=1)

    with pytest.raises(NotPrivate):
        assert_private(twice, od.PureDP(3.0), pairs=[PAIR], generator=generator)


# ── refused ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"promise": None}, "needs the promise"),
        ({"promise": 1.0}, "needs the promise"),
        ({"mechanism": None}, "nothing to audit"),
        ({"pairs": None}, "needs data sets"),
        ({"pairs": []}, "no pairs"),
        ({"pairs": None, "n": 3}, "needs data sets"),
        ({"pairs": [(np.zeros(2), np.zeros(3))]}, "same"),
        ({"pairs": [(np.zeros(2), np.ones(2))]}, "differ in 2"),
        ({"domain": Box(0.0, 0.5)}, "outside the declared domain"),
        ({"domain": Box([0.0, 0.0], [1.0, 1.0])}, "records of 1 numbers"),
        ({"n": 5}, "n = 5"),
        ({"logdensity": laplace_density(1.0)}, "support"),
        ({"methods": []}, "no attack was named"),
        ({"confidence": 1.0}, "strictly between"),
    ],
)
def test_what_cannot_be_audited_is_refused_with_a_reason(changes, message, generator):
    arguments = {"mechanism": laplace_sum(1.0), "promise": od.PureDP(1.0), "pairs": [PAIR], "generator": generator}
    arguments |= changes
    mechanism, promise = arguments.pop("mechanism"), arguments.pop("promise")
    with pytest.raises(WrongCall, match=message) as caught:
        assert_private(mechanism, promise, **arguments)
    assert "0.0" not in str(caught.value).replace("1.0", "")  # never a value of a record


def test_too_few_rounds_for_the_confidence_are_refused_before_anything_runs(generator):
    def never(dataset, generator):
        raise AssertionError("the mechanism was run")

    with pytest.raises(TooFewRounds, match="are needed") as caught:
        assert_private(never, od.PureDP(3.0), pairs=[PAIR], rounds=400, generator=generator)
    assert caught.value.needed > 100


# ── report and figure ──────────────────────────────────────────────────────────────────────────────────────


def test_a_report_prints_goes_to_json_and_makes_a_figure(generator, tmp_path):
    report = assert_private(
        laplace_sum(1.0), od.PureDP(1.0), pairs=[PAIR], logdensity=laplace_density(1.0), support=LINE, rounds=4_000,
        methods=["histogram"], generator=generator,
    )  # fmt: skip
    assert "promise ε = 1" in str(report)
    assert "not broken" in str(report)
    stored = json.loads(report.to_json())
    assert stored["passed"] is True
    assert stored["promise"] == {"kind": "PureDP", "epsilon": 1.0}
    assert stored["findings"][0]["profile"]["largest_log_ratio"] == pytest.approx(1.0)
    target = report.figure(tmp_path / "audit.png")
    assert target.read_bytes().startswith(b"\x89PNG")
    assert target.stat().st_size > 20_000
    with pytest.raises(CannotWrite):
        tradeoff_figure(od.PureDP(1.0), [], tmp_path / "nowhere" / "audit.png")


@pytest.mark.parametrize("promise", [od.GaussianDP(1.0), od.PureDP(1.0), od.ApproxDP(1.0, 0.1), od.ZCDP(0.5)])
def test_the_tradeoff_curve_of_a_promise_never_lies_above_the_true_one(promise):
    alphas = np.linspace(0.0, 1.0, 101)
    curve = TradeOff.of(promise)(alphas)
    assert np.all(np.diff(curve) <= 1e-12)
    assert np.all(curve <= 1.0 - alphas + 1e-12)
    if isinstance(promise, od.GaussianDP):
        truth = special.ndtr(special.ndtri(1.0 - alphas) - 1.0)
        assert np.all(curve <= truth + 1e-9)
        np.testing.assert_allclose(curve, truth, atol=2e-4)
    if isinstance(promise, od.PureDP):
        truth = np.maximum(np.maximum(1.0 - math.e * alphas, (1.0 - alphas) / math.e), 0.0)
        np.testing.assert_allclose(curve, truth, atol=1e-9)


def test_importing_the_room_is_cheap_and_every_name_resolves():
    code = (
        "import sys, onedraw.audit as a; heavy = ['sklearn', 'matplotlib', 'scipy', 'jax']; "
        "print([m for m in heavy if m in sys.modules], all(hasattr(a, n) for n in a.__all__), "
        "[m for m in ('sklearn', 'matplotlib', 'jax') if m in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert result.stdout.strip() == "[] True []"
