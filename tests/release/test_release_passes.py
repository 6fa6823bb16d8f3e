"""What reads the records too often, or would have to hold too many of them, is refused before the charge, by public numbers."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

import onedraw as od
from onedraw import baselines
from onedraw.data import Schema, read
from onedraw.data.spark_tables import Spark
from onedraw.data.sums import Local
from onedraw.errors import WrongCall
from onedraw.methods import (
    CenteredNoise,
    ExponentialChoice,
    GroupQuantiles,
    Mechanism,
    Moments,
    PerturbedMode,
    Together,
    calibrate,
)
from onedraw.methods.perturbed_mode.run import MOST_PASSES
from onedraw.models import (
    CategoryTable,
    ColumnQuantiles,
    Columns,
    Gaussian,
    LeastSquares,
    Logistic,
    ModelChoice,
    NumberTable,
    Several,
    schema_features,
)
from onedraw.release.release import MOST_HELD, MOST_READ, check_passes
from onedraw.samplers import HMC, NUTS, LastIterateLangevin, Proximal, default_sampler

N = 300
SCHEMA = Schema.from_dict(
    {
        "dataset": "people",
        "columns": {
            "age": {"kind": "number", "lower": 0, "upper": 100, "missing": 40},
            "ill": {"kind": "binary", "missing": "no"},
        },
    }
)
MODEL = Logistic(**schema_features(SCHEMA, "ill"), scaled=True, loss="exp-linear", prior=Gaussian(scale=1.0))
BUDGET = od.ApproxDP(2.0, 1e-5)
ROW = 8 * 3  # two columns of a row and its response, 8 bytes each


@dataclass(frozen=True)
class Cluster(Local):
    """An engine of which all that matters here is how many passes it makes."""

    name: str = "a cluster"
    most_passes: int | None = 40

    def described(self, records):
        return None


@pytest.fixture(scope="module")
def records():
    generator = np.random.default_rng(0)
    people = {"age": generator.uniform(0, 100, N), "ill": generator.integers(0, 2, N)}
    return read(people, SCHEMA, target="ill")


@pytest.fixture
def ledger(tmp_path):
    ledger = od.Ledger.open(tmp_path / "ledger.db", create=True)
    ledger.init("people", od.ApproxDP(9.0, 1e-4))
    return ledger


def planned(mechanism, n=N, model=MODEL, **options):
    return calibrate(mechanism, model, BUDGET, n=n, **options)


def test_a_chain_is_refused_on_a_cluster_before_the_charge_and_the_fit_is_named(records, ledger):
    with pytest.raises(WrongCall, match=r"memory of one machine.*Nothing was spent. Ask for a fit"):
        od.release(planned(od.Gibbs()), replace(records, engine=Cluster()), ledger=ledger)
    assert ledger.spent("people").epsilon(1e-5) == 0.0


@pytest.mark.parametrize("most", [40, 1000])
def test_noisy_gradients_run_on_a_cluster_if_it_makes_as_many_passes_as_they_have_steps(records, ledger, most):
    plan = planned(od.NoisyGradient(weight=0.1, time=0.2))
    steps = int(plan.parameters["steps"])
    assert 40 < steps <= 1000
    cluster = replace(records, engine=Cluster(most_passes=most))
    if steps <= most:
        assert np.isfinite(od.release(plan, cluster, ledger=ledger).draws).all()
        return
    with pytest.raises(
        WrongCall, match=f"up to {steps} times.*not more than 40 are made. Nothing was spent. Ask for a fit"
    ):
        od.release(plan, cluster, ledger=ledger)
    assert ledger.spent("people").epsilon(1e-5) == 0.0


def test_the_number_of_passes_on_spark_is_one_constant_and_leaves_room_for_a_fit():
    most = Spark().most_passes
    assert (
        f"not more than {most:,} passes" in (Path(__file__).parents[2] / "docs" / "when-data-do-not-fit.md").read_text()
    )
    assert most > MOST_PASSES + 10
    with pytest.raises(WrongCall, match=f"not more than {most:,} are made"):
        check_passes(planned(od.NoisyGradient(weight=0.1, time=0.2)), LastIterateLangevin(most + 1, 0.1), on(Spark()))
    check_passes(planned(od.NoisyGradient(weight=0.1, time=0.2)), LastIterateLangevin(most, 0.1), on(Spark()))


def on(engine, n=N):
    """Records of an engine, none of which is read."""
    return replace(read({"age": [1.0], "ill": [0]}, SCHEMA, target="ill"), n=n, engine=engine)


def test_a_chain_holds_so_many_rows_in_memory_and_no_more():
    most = MOST_HELD // ROW
    for n, fine in ((most, True), (most + 1, False)):
        plan = planned(od.Gibbs(), n=n)
        if fine:
            check_passes(plan, LastIterateLangevin(1000, 1e-12), on(Local(), n))
            continue
        with pytest.raises(WrongCall, match=r"2 GiB that are held there. Nothing was spent. Ask for a fit"):
            check_passes(plan, LastIterateLangevin(1000, 1e-12), on(Local(), n))
        check_passes(plan, LastIterateLangevin(1000, 1e-12), (np.zeros((0, 1)), np.zeros(0)))  # in memory already
        check_passes(
            planned(od.NoisyGradient(weight=1e-9, time=1e-9), n=n), LastIterateLangevin(1, 1e-12), on(Local(), n)
        )


@pytest.mark.parametrize("mechanism", [od.Gibbs(), od.NoisyGradient(weight=1e-9, time=1e-9)])
def test_all_passes_together_read_so_many_bytes_and_no_more(mechanism):
    n = 10**6
    most = MOST_READ // (n * ROW)
    plan = planned(mechanism, n=n)
    for data in (on(Local(), n), (np.zeros((0, 1)), np.zeros(0))):
        check_passes(plan, LastIterateLangevin(most, 1e-12), data)
        with pytest.raises(WrongCall, match=f"up to {most + 1:,} times.*Ask for a fit"):
            check_passes(plan, LastIterateLangevin(most + 1, 1e-12), data)


def test_every_chain_says_how_often_it_reads_the_records():
    gibbs = planned(od.Gibbs(), draws=3)
    assert LastIterateLangevin(7, 0.1).passes(gibbs) == 21
    assert Proximal(iterations=10).passes(gibbs) == 60
    assert HMC(5, leapfrog=4).passes(gibbs) == 60
    assert NUTS(5, 5, doublings=3).passes(gibbs) == 240
    picks = calibrate(od.Candidates(count=9000, rounds=6), MODEL, od.PureDP(1.0), n=N, draws=2)
    assert default_sampler(picks)[0].passes(picks) == 2 * 6 * 2
    inner = planned(od.Measured(of=od.NoisyGradient(weight=0.1, time=0.01), share=0.2))
    assert default_sampler(inner)[0].passes(inner) == 2 + int(inner.parameters["steps"])


def test_a_padded_fit_that_is_too_long_is_not_sent_to_a_fit():
    plan = calibrate(PerturbedMode(), MODEL, BUDGET, n=10**9)
    sampler, _ = default_sampler(plan)
    check_passes(plan, sampler, None)
    with pytest.raises(WrongCall, match='Leave out timing="padded"'):
        check_passes(plan, sampler, None, sampler.padding(plan))


def test_a_model_without_a_fit_is_not_sent_to_one():
    model = od.models.BinaryRegression(1, prior=Gaussian(scale=1.0))
    plan = calibrate(od.BetaDivergence(), model, od.PureDP(1.0), n=N)
    with pytest.raises(WrongCall, match="Use Candidates"):
        check_passes(plan, NUTS(), on(Cluster()))


# ── who still assumes that sums are real ─────────────────────────────────────────────────────────────────────────

CONVEX = Logistic(2, data_norm=1.0, loss="exp-linear", prior=Gaussian(scale=1.0))
SQUARES = LeastSquares(2, data_norm=1.0, response_bound=1.0, prior=Gaussian(scale=1.0, radius=1.0))
SMOOTH = Logistic(2, data_norm=1.0, prior=Gaussian(scale=1.0))
BALL = Logistic(2, data_norm=1.0, prior=Gaussian(scale=1.0, radius=1.0))
SHARE = od.models.BetaBernoulli(prior=(1, 1))


def own(theta, x, y):
    return 0.5 * theta[0] * x[0]


OWN = od.models.ConvexLoss(
    own, 1, features=1, data_norm=1.0, lipschitz=0.5, smoothness=0.1, name="own", prior=Gaussian(scale=1.0)
)

BY_GROUP = ColumnQuantiles((0.5,), 0.0, 100.0, step=1.0, interval=None, by=("ward",), groups=(("a", "b"),))
WHOLE_NUMBERS = {
    "AddedNoise": (od.AddedNoise(), CategoryTable(("a", "b"))),
    "CenteredNoise": (CenteredNoise(), NumberTable(0.0, 1.0, show="variance")),
    "Direct": (od.Direct(), SHARE),
    "Diffused": (od.Diffused(), SHARE),
    "Diffused, squares": (od.Diffused(), SQUARES),
    "Concentrated": (od.Concentrated(), SHARE),
    "Gibbs, squares": (od.Gibbs(), SQUARES),
    "NoisyGradient": (od.NoisyGradient(), CONVEX),
    "Measured": (od.Measured(of=od.NoisyGradient()), CONVEX),
    "Candidates": (od.Candidates(), CONVEX),
    "PerturbedMode": (PerturbedMode(), CONVEX),
    "ExponentialQuantiles": (od.ExponentialQuantiles(), ColumnQuantiles((0.5,), 0.0, 100.0, interval=None)),
    "GroupQuantiles": (GroupQuantiles(), BY_GROUP),
    "Together": (
        Together((od.AddedNoise(), GroupQuantiles()), (1.0, 1.0)),
        Several(("a", "b"), (NumberTable(0.0, 1.0), BY_GROUP)),
    ),
    "ExponentialChoice": (ExponentialChoice(), ModelChoice(("a", "b"))),
    "Moments": (Moments(), Columns(2, bounds=(0.0, 1.0))),
    "SufficientStatistics": (baselines.SufficientStatistics(), SHARE),
    "NoiseAware": (baselines.NoiseAware(), SHARE),
    "OutputPerturbation": (baselines.OutputPerturbation(), SMOOTH),
    "ObjectivePerturbation": (baselines.ObjectivePerturbation(), SMOOTH),
    "AdaSSP": (baselines.AdaSSP(), SQUARES),
    "AdaOPS": (baselines.AdaOPS(), SQUARES),
    "KNG": (baselines.KNG(), CONVEX),
    "AveragedSteps": (od.AveragedSteps(), SMOOTH),
    "ClippedGradients": (od.ClippedGradients(), SMOOTH),
    "BarkerPath": (od.methods.BarkerPath(), CONVEX),
    "Penalty": (baselines.Penalty(), CONVEX),
    "DPHMC": (baselines.DPHMC(), CONVEX),
    "MultiProposal": (baselines.MultiProposal(), CONVEX),
}
FLOATS = {
    "Gibbs": (od.Gibbs(), CONVEX),
    "Diffused, a chain": (od.Diffused(), CONVEX),
    "BetaDivergence": (od.BetaDivergence(), CONVEX),
    "NoisyGradient, a loss of one's own": (od.NoisyGradient(weight=0.1, time=0.1), OWN),
    "Minami": (baselines.Minami(), SMOOTH),
    "OnePosteriorSample": (baselines.OnePosteriorSample(), BALL),
    "DPSGD": (baselines.DPSGD(), SMOOTH),
    "DPSGLD": (baselines.DPSGLD(), SMOOTH),
}


def test_every_mechanism_says_whether_sums_are_assumed_to_be_real():
    named = {case.partition(",")[0] for case in (*WHOLE_NUMBERS, *FLOATS)}
    assert named == {name for name, kind in Mechanism.members().items() if kind.__module__.startswith("onedraw.")}


@pytest.mark.parametrize(("mechanism", "model"), WHOLE_NUMBERS.values(), ids=WHOLE_NUMBERS)
def test_sums_of_whole_numbers_assume_nothing(mechanism, model):
    assert mechanism.sums_exactly(calibrate(mechanism, model, od.ApproxDP(20.0, 1e-5), n=2000))


@pytest.mark.parametrize(("mechanism", "model"), FLOATS.values(), ids=FLOATS)
def test_a_chain_and_a_loss_of_ones_own_assume_that_sums_are_real(mechanism, model):
    assert not mechanism.sums_exactly(calibrate(mechanism, model, BUDGET, n=2000))
