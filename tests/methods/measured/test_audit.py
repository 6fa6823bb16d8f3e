"""Draws in measured coordinates: the promise is attained, every planted fault is caught, the program is replayed."""

import dataclasses

import numpy as np
import pytest

import onedraw as od
from onedraw import models
from onedraw.audit.cases import examine, smallest_caught_factor
from onedraw.methods import Measured
from onedraw.methods.catalog import case_for, cases
from onedraw.methods.measured import run as measured_first
from onedraw.methods.measured.audit import measured_case
from onedraw.methods.measured.replay import replay_measured
from onedraw.models.moments.measured_model import MeasuredTarget
from onedraw.models.row_model import Encoded
from tests.methods.cases import FITTED, ROWS

MODELS = {name: model for name, model in FITTED.items() if name != "logistic"} | {
    "huber": models.HuberRegression(**ROWS, threshold=0.7)
}
BUDGETS = (od.ApproxDP(1.0, 1e-5), od.ZCDP(0.05), od.GaussianDP(0.5))


def planned(name="exp-linear", budget=BUDGETS[0], **options):
    return od.calibrate(Measured(**{"categories": ((2, 3),), **options}), MODELS[name], budget, n=3000)


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
@pytest.mark.parametrize("name", MODELS)
def test_the_promise_holds_and_nothing_of_it_is_left_over(name, budget):
    found = examine(case_for(planned(name, budget)), thorough=False)
    assert found.passed
    assert found.gap == pytest.approx(1.0, abs=1e-3)


FAULTS = {
    "noise of the mean a tenth smaller": {"mean_noise": 0.9},
    "noise of the moments a tenth smaller": {"moments_noise": 0.9},
    "rows a tenth longer than declared": {"row_bound": 1.1},
    "rows of the moments a tenth longer than declared": {"moment_radius": 1.1},
    "records a twentieth heavier": {"weight": 1.05},
    "a tenth more steps": {"steps": 1.1},
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_caught(fault):
    case = measured_case(planned())
    assert not examine(case.running(**FAULTS[fault]), thorough=True).passed


def test_an_inner_mechanism_that_spends_the_whole_budget_is_caught():
    """The moments are measured as planned, and the draw is calibrated as if they had cost nothing."""
    plan = planned()
    alone = plan.mechanism.of.calibrate(dataclasses.replace(plan.request, model=plan.mechanism.inner(plan).model))
    ran = {name: alone.parameters[name] for name in ("weight", "steps", "step_size")}
    case = dataclasses.replace(measured_case(plan), ran=tuple(ran.items()))
    assert not examine(case, thorough=True).passed


def test_the_smallest_fault_that_is_caught_is_small():
    case = measured_case(planned())
    assert 1.0 < smallest_caught_factor(case, case.pairs[0]) < 1.01


@pytest.mark.parametrize("name", MODELS)
def test_the_program_is_the_one_that_the_plan_declares(name):
    assert replay_measured(planned(name)) == []
    assert replay_measured(planned(name, share=0.0)) == []


def with_records(law, rows, responses):
    """The same law of other rows, each with weight 1."""
    return dataclasses.replace(law, encoded=Encoded(len(rows), rows, np.column_stack([responses, np.ones(len(rows))])))


def test_a_program_that_forgets_the_weights_is_caught(monkeypatch):
    def without_weights(self, where):
        law = whole(self, where)
        return with_records(law, law.encoded.X, law.encoded.y[:, 0])

    whole = MeasuredTarget.within
    monkeypatch.setattr(MeasuredTarget, "within", without_weights)
    assert "a row is longer than the plan declares" in replay_measured(planned())


def test_a_program_that_shortens_rows_instead_is_caught(monkeypatch):
    """No promise breaks; the estimate would not be what is declared."""

    def shortened(self, where):
        law = whole(self, where)
        return with_records(law, law.encoded.X * law.encoded.y[:, 1:], law.encoded.y[:, 0])

    whole = MeasuredTarget.within
    monkeypatch.setattr(MeasuredTarget, "within", shortened)
    assert replay_measured(planned()) == ["the draw follows another gradient than the plan declares"]


def test_a_program_with_less_noise_in_the_moments_is_caught(monkeypatch):
    whole = measured_first.measure

    def quieter(total, n, columns, numbers, noise):
        return whole(total, n, columns, {**numbers, "moments_noise": 0.9 * numbers["moments_noise"]}, noise)

    monkeypatch.setattr(measured_first, "measure", quieter)
    assert replay_measured(planned()) == ["the moments got noise of another size than the plan's"]


def test_the_catalogue_has_cases_by_name():
    found = cases("logistic", BUDGETS[0], mechanism="measured")
    assert [case.mechanism for case in found] == ["measured noisy-gradient"]


@pytest.mark.slow
def test_draws_of_the_whole_program_do_not_break_the_promise_on_odd_neighbours():
    """End to end, by draws: one record replaced by the oddest there is. The same attack must tell a table of other records apart."""
    model = models.Logistic(1, bounds=(-1, 1), scaled=True, loss="exp-linear", prior=od.Gaussian(scale=1.0))
    plan = od.calibrate(Measured(share=0.4), model, od.ApproxDP(0.5, 1e-3), n=24)
    sampler, _ = od.samplers.default_sampler(plan)
    generator, runs = np.random.default_rng(5), 1200

    def draws(rows, labels):
        target = plan.target(model.summarise((rows, labels)))
        return np.array([
            np.concatenate(list(sampler.run(target, generator).stages.values())) for _ in range(runs)
        ])  # fmt: skip

    def excess(first, second):
        """The largest P(A) − e^ε·P(B) − δ over cuts of a linear score learnt on the first half."""
        half = runs // 2
        apart = first[:half].mean(axis=0) - second[:half].mean(axis=0)
        spread = np.cov(np.vstack([one[:half] - one[:half].mean(axis=0) for one in (first, second)]).T)
        scores = [one[half:] @ np.linalg.solve(spread, apart) for one in (first, second)]
        cuts = np.quantile(np.concatenate(scores), np.linspace(0.05, 0.95, 19))
        shares = [np.array([(score > cut).mean() for cut in cuts]) for score in scores]
        return max((shares[0] - np.exp(0.5) * shares[1]).max(), (shares[1] - np.exp(0.5) * shares[0]).max()) - 1e-3

    rows, labels = [[-0.2]] * 24, [0, 1] * 12
    ordinary = draws(rows, labels)
    room = 4.0 * np.sqrt(0.25 / (runs // 2)) * (1.0 + np.exp(0.5))
    assert excess(ordinary, draws([*rows[:-1], [np.inf]], [*labels[:-1], 0])) <= room
    assert excess(ordinary, draws([[1.0]] * 24, [1] * 24)) > room
