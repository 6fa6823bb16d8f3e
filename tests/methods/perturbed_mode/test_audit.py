"""Fits in stages: their laws against other ways to compute them, every stage's planted fault caught, the program replayed."""

import dataclasses
import math

import numpy as np
import pytest
from experiments.program_audit.noise import audit_noise

import onedraw as od
from onedraw import audit, models
from onedraw.audit.cases import examine, smallest_caught_factor
from onedraw.audit.cases.case import Pair
from onedraw.audit.cases.laws import MatrixNoise, Own, mode, moved, shifted
from onedraw.audit.cases.laws import Noise as Law
from onedraw.audit.cases.losses import slope_of
from onedraw.methods import PerturbedMode
from onedraw.methods.catalog import case_for
from onedraw.methods.perturbed_mode import run as fitting
from onedraw.methods.perturbed_mode.audit import STAGES, bare_modes, fit_case, fit_cases, strong_ridge
from onedraw.methods.perturbed_mode.replay import replay_fit
from onedraw.methods.perturbed_mode.run import Stages
from onedraw.models.fit import problem as fit_problem
from onedraw.models.fit.problem import FitTarget
from onedraw.models.sums.exact_sums import drawn_matrices
from onedraw.privacy.conversions import gaussian_delta
from onedraw.samplers.noise import Noise
from tests.methods.cases import FITTED, ROWS

MODELS = FITTED | {"several classes": models.Softmax(**ROWS, classes=("a", "b", "c"))}
BUDGET = od.PureDP(1.0)


def planned(name="exp-linear", budget=BUDGET, *, n=10_000, **options):
    chosen = {"measured": True, "intervals": True, **options}
    return od.calibrate(PerturbedMode(**chosen), MODELS[name], budget, n=n)


def best(case):
    return examine(case, thorough=True)


@pytest.fixture(scope="module")
def without_volume():
    """All stages, with so strong a ridge that the pull is the whole promise of the mode."""
    return fit_case(strong_ridge(planned()))


@pytest.fixture(scope="module")
def usual():
    return fit_case(planned())


# ── the laws, computed in other ways ───────────────────────────────────────────────────────────────────────


def law_of_w(loss, own, row, ridge, sigma, reach):
    """The density of one data set's mode for the quadrature of `audit`: −x²/2σ² + log volume."""

    def density(points):
        w = points[:, 0]
        u = np.full_like(w, -1e9) if own.bends_at is None else own.direction * row / ridge * (w - own.direction * reach)
        x = w + own.direction * row * loss.slope(u)
        return -0.5 * (x / sigma) ** 2 + np.log1p(loss.curvature(u) * row**2 / ridge)

    return density


@pytest.mark.parametrize("name", MODELS)
def test_the_grid_agrees_with_the_quadrature_of_the_auditor(name):
    loss, row, ridge, sigma = slope_of(MODELS[name]), 1.3, 4.0, 3.0
    first, second = Own(1, 1.5), Own(-1)
    reach = loss.steepest * row + 1.5 * sigma
    end = 10.0 * sigma + 2.0 * reach
    law = mode(loss, first, second, row=row, ridge=ridge, noise=Law(sigma, 4, False)).profile()
    exact = audit.exact_profile(
        *(law_of_w(loss, own, row, ridge, sigma, reach) for own in (first, second)), (-end, end)
    )
    for epsilon in (0.0, 0.3, 1.0):
        assert law.delta(epsilon) == pytest.approx(exact.delta(epsilon), rel=2e-3, abs=1e-9)


def test_two_real_rows_at_a_small_angle_far_out_have_the_law_of_a_line():
    """The plane: rows r(cos α, ± sin α) with opposite labels, ridge, and a constant pull far along the second axis."""
    loss, row, ridge, sigma, angle, depth = slope_of(MODELS["exp-linear"]), 1.0, 2.0, 2.0, 0.01, 40.0
    place = loss.steepest * row + 1.0 * sigma
    rows = row * np.array([[math.cos(angle), math.sin(angle)], [-math.cos(angle), math.sin(angle)]])
    # on the plane u = ±θ₁·r·cos α + θ₂·r·sin α: the pull's place makes the first bend where the line's does
    offsets = (-place * row / ridge, -depth)

    def density(index):
        def of(points):
            u = points @ rows[index] / ridge + offsets[index]
            x = points + loss.slope(u)[:, None] * rows[index]
            return -0.5 * (x**2).sum(axis=1) / sigma**2 + np.log1p(loss.curvature(u) * row**2 / ridge)

        return of

    end = 9.0 * sigma + 1.0
    plane = audit.exact_profile(density(0), density(1), ((-end, end), (-end, end)), tolerance=1e-6)
    line = mode(loss, Own(1, 1.0), Own(-1), row=row, ridge=ridge, noise=Law(sigma, 2, False)).profile()
    for epsilon in (0.0, 0.5, 1.0):
        assert line.delta(epsilon) == pytest.approx(plane.delta(epsilon), rel=0.01, abs=1e-6)


def test_a_gaussian_stage_has_the_gaussian_profile_and_stages_add_up():
    one, other = shifted(0.4, Law(1.0, 7, False)), shifted(0.6, Law(2.0, 3, False))
    both = (one * other).profile()
    for epsilon in (0.0, 0.3, 0.9):
        assert one.profile().delta(epsilon) == pytest.approx(gaussian_delta(0.4, epsilon), rel=1e-3)
        assert both.delta(epsilon) == pytest.approx(gaussian_delta(0.5, epsilon), rel=1e-3)


@pytest.mark.parametrize("entries", [1, 2, 10, 300])
def test_pure_noise_on_a_sum_gives_away_its_distance_and_draws_agree(entries):
    """The log-ratio of e^{−‖v‖}: at most the distance and attained; δ against draws of the norm and the direction."""
    law = shifted(0.8, Law(1.0, entries, True)).profile()
    assert law.largest_log_ratio == pytest.approx(0.8, rel=1e-3)
    generator, size = np.random.default_rng(5), 200_000
    normal = generator.standard_normal(size)
    across = np.sqrt(generator.chisquare(entries - 1, size)) if entries > 1 else np.zeros(size)
    length = generator.gamma(entries, 1.0, size)
    x, rest = length * normal / np.hypot(normal, across), length * across / np.hypot(normal, across)
    loss = np.hypot(x + 0.8, rest) - np.hypot(x, rest)
    for epsilon in (0.0, 0.3):
        seen = np.maximum(0.0, 1.0 - np.exp(epsilon - loss))
        assert law.delta(epsilon) == pytest.approx(seen.mean(), abs=5.0 * seen.std() / math.sqrt(size) + 2e-4)


@pytest.mark.parametrize("size", [2, 5, 30])
def test_pure_noise_on_a_matrix_gives_away_its_distance_and_draws_agree(size):
    """T = A₀₀ − A₁₁ of c(U − U'): no more than the distance and nearly attained; δ against draws of whole matrices."""
    law = moved(0.8, size * (size + 1) // 2, size).profile()
    assert 0.99 * 0.8 < law.largest_log_ratio < 0.8
    drawn = drawn_matrices(np.random.default_rng(5), 1.0, size, 20_000 if size < 10 else 4000, pure=True)
    density, x = MatrixNoise(size).log, drawn[:, 0, 0] - drawn[:, 1, 1]
    loss = density(x, None) - density(x + 1.6, None)
    for epsilon in (0.0, 0.2):
        seen = np.maximum(0.0, 1.0 - np.exp(epsilon - loss))
        assert law.delta(epsilon) == pytest.approx(seen.mean(), abs=5.0 * seen.std() / math.sqrt(len(x)) + 2e-4)


# ── promises hold, and planted faults do not ───────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", MODELS)
def test_the_default_plan_of_every_model_has_a_case_that_passes(name):
    found = examine(case_for(planned(name, n=3000, measured=None, intervals=None)), thorough=False)
    assert found.passed
    assert 1.0 - 1e-6 <= found.gap < 2.2


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_plans_of_a_mode_alone_with_and_without_a_strong_ridge_have_cases_that_pass(name):
    plan = planned(name, n=3000, measured=False, intervals=False)
    assert examine(fit_case(plan), thorough=True).passed
    assert examine(fit_case(strong_ridge(plan)), thorough=True).passed
    assert all(examine(case).gap < 1.01 for case in bare_modes(MODELS["counts"], BUDGET))


def test_without_volume_all_stages_together_attain_the_promise(without_volume):
    found = best(without_volume)
    assert found.passed
    assert found.gap < 1.002


@pytest.mark.parametrize("stage", ["mean", "moments", "mode", "information", "variability"])
def test_a_stage_with_nine_tenths_of_its_noise_is_caught(without_volume, usual, stage):
    for case, pair in ((without_volume, without_volume.pairs[0]), (usual, usual.pairs[-1])):
        assert case.profile(pair).breaks(case.promise) is None
        faulty = case.running(**{f"{stage}_noise": 0.9})
        assert faulty.profile(pair).breaks(case.promise) is not None, stage


def test_each_stage_alone_stays_within_the_promise_and_all_of_them_count(without_volume):
    pair = without_volume.pairs[0]
    whole = without_volume.profile(pair).largest_log_ratio
    for stage in STAGES[:-1]:
        rest = dataclasses.replace(without_volume, stages=tuple(name for name in STAGES if name != stage))
        assert rest.profile(pair).largest_log_ratio < 0.97 * whole, stage


def test_forgotten_weights_are_caught(without_volume, usual):
    """A row a tenth longer than r enters in full: in the gradient, and squared in the information."""
    for case, pair in ((without_volume, without_volume.pairs[0]), (usual, usual.pairs[-1])):
        assert case.running(row_bound=1.1).profile(pair).breaks(case.promise) is not None


@pytest.mark.parametrize("name", ["exp-linear", "hinge", "quantile"])
def test_half_the_ridge_is_caught_where_a_record_bends_while_it_is_steep(name):
    case = fit_case(planned(name))
    found = best(case)
    assert found.passed
    assert found.gap < 1.001
    assert case.running(ridge=0.5).profile(found.pair).breaks(case.promise) is not None


def promising(case, epsilon):
    guarantee = dataclasses.replace(case.plan.guarantee, promise=od.PureDP(epsilon))
    return dataclasses.replace(case, plan=dataclasses.replace(case.plan, guarantee=guarantee))


def test_a_promise_that_forgets_a_record_s_pull_or_its_volume_is_broken(without_volume):
    """Half the sensitivity: the pull of one record where two are exchanged."""
    for case, name in ((without_volume, "exp-linear"), (fit_case(planned("hinge")), "hinge")):
        numbers, promised = case.plan.parameters, case.promise.stated_epsilon
        pull = slope_of(MODELS[name]).steepest * numbers["row_bound"] / numbers["mode_noise"]
        assert examine(case).passed
        assert not examine(promising(case, promised - pull)).passed
    assert not examine(promising(case, promised - numbers["kappa"])).passed


def test_the_smallest_fault_that_is_caught_is_found(without_volume):
    found = best(without_volume)
    assert 1.0 < smallest_caught_factor(without_volume, found.pair, gap=found.gap) < 1.01


def test_a_fault_reaches_the_numbers_of_the_program_and_not_the_promise(without_volume):
    faulty = without_volume.faulty(1.5)
    assert faulty.guarantee == without_volume.plan.guarantee
    changed = {name for name, value in faulty.parameters.items() if value != without_volume.plan.parameters[name]}
    assert changed == {f"{stage}_noise" for stage in STAGES}


def test_records_of_one_person_are_audited_as_one_record():
    plan = od.calibrate(PerturbedMode(), MODELS["exp-linear"], BUDGET, n=5000, records_per_person=3)
    assert examine(case_for(plan), thorough=False).passed


@pytest.mark.parametrize("name", ["exp-linear", "hinge"])
def test_one_pure_noise_for_two_modes_gives_away_the_common_norm_of_their_pulls_and_no_more(name):
    """Two modes of one parameter, records that bend anywhere: |log-ratio| ≤ η·2√2·Lr + 2κ, nearly attained; without √2 it is not a bound."""
    generator, loss, largest, without_root = np.random.default_rng(11), slope_of(MODELS[name]), 0.0, 0.0
    for _ in range(40):
        eta, ridge = np.exp(generator.uniform(-2.0, 2.0, 2))
        axis = np.linspace(-60.0, 60.0, 201) / eta
        w = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1)
        bends, kappa = generator.uniform(0.0, 20.0, 2) / eta, math.log1p(loss.most / ridge)
        laws = []
        for direction in (1.0, -1.0):
            u = direction * (w - bends) / ridge if direction > 0 else np.full_like(w, -1e9)
            x = w + direction * loss.slope(u)
            laws.append(-eta * np.linalg.norm(x, axis=-1) + np.log1p(loss.curvature(u) / ridge).sum(axis=-1))
        seen = float(np.abs(laws[0] - laws[1]).max())
        largest = max(largest, seen / (2.0 * math.sqrt(2.0) * loss.steepest * eta + 2.0 * kappa))
        without_root = max(without_root, seen / (2.0 * loss.steepest * eta + 2.0 * kappa))
    assert 0.9 < largest <= 1.0 + 1e-12
    assert without_root > 1.1


@pytest.mark.parametrize("name", ["exp-linear", "several classes"])
def test_the_closing_noise_hides_where_the_optimiser_stopped(name):
    """A mode t/Λ from its minimum, whatever its size; charged is a hundredth of what volume leaves of ε."""
    plan = planned(name)
    left = 1.0 - plan.parameters["kappa"]
    distance, *_ = fit_case(plan).moves(plan.parameters)["closing"]
    assert 0.999e-2 * left < distance / plan.parameters["closing_noise"] <= 1e-2 * left


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.1, 5.0, 20.0])
def test_no_fit_breaks_its_promise_at_other_budgets(epsilon):
    for name, model in MODELS.items():
        for case in fit_cases(model, od.PureDP(epsilon)):
            found = examine(case, thorough=True)
            assert found.passed, (name, case.name, found.violation)


@pytest.mark.slow
def test_random_places_and_numbers_never_break_a_promise():
    """Bends anywhere, of either record, at any ridge and noise: at most what the plan says."""
    generator = np.random.default_rng()
    for _ in range(150):
        name = str(generator.choice(sorted(MODELS)))
        plan = planned(name, od.PureDP(float(np.exp(generator.uniform(-2, 3)))))
        numbers = dict(plan.parameters)
        numbers["ridge"] *= float(np.exp(generator.uniform(-3, 3)))
        numbers["mode_noise"] *= float(np.exp(generator.uniform(-1.5, 1.5)))
        generous = dataclasses.replace(plan.request, budget=od.PureDP(1000.0))
        case = dataclasses.replace(fit_case(plan.mechanism.plan(generous, numbers)), stages=("mode", "mean"))
        places = [None if generator.uniform() < 0.3 else float(generator.uniform(-6, 6)) for _ in range(2)]
        pair = Pair(f"{name} {places} {numbers}", Own(1, places[0]), Own(int(generator.choice([-1, 1])), places[1]))
        assert case.profile(pair).breaks(case.promise) is None, pair.name


# ── the program, replayed ──────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def small():
    """Two columns: what is compiled here serves every test below."""
    model = models.Logistic(2, bounds=(-1, 1), scaled=True, loss="exp-linear", prior=od.Gaussian(scale=1.0))
    return od.calibrate(PerturbedMode(measured=True, intervals=True), model, BUDGET, n=5000)


def changed(**times):
    """The program, with other numbers than its plan's."""

    def program(target, noise):
        numbers = {name: times.get(name, 1.0) * value for name, value in target.problem.numbers.items()}
        return Stages(FitTarget(dataclasses.replace(target.problem, numbers=numbers), target.encoded), noise)

    return program


def test_the_program_does_what_its_plan_declares(small):
    assert replay_fit(small) == []


@pytest.mark.parametrize("stage", ["mean", "moments", "mode", "information", "variability"])
def test_a_program_with_less_noise_in_a_stage_is_caught(small, stage):
    assert replay_fit(small, program=changed(**{f"{stage}_noise": 0.9})) == [
        f"the {stage} got noise of another size than the plan's"
    ]


def test_a_program_with_less_closing_noise_or_half_the_ridge_or_other_rows_is_caught(small):
    assert replay_fit(small, program=changed(closing_noise=0.9)) == [
        "the closing noise has another size than the plan's"
    ]
    minimum = "the mode is not the minimum of the declared objective, to its tolerance"
    assert minimum in replay_fit(small, program=changed(ridge=0.5))
    assert "the moments is not the sum that the plan declares" in replay_fit(small, program=changed(moment_radius=1.5))


def test_a_program_that_forgets_the_weights_is_caught(small):
    found = replay_fit(small, program=changed(row_bound=1e3))
    assert "the mode is not the minimum of the declared objective, to its tolerance" in found
    assert "the information is not the sum that the plan declares" in found


@dataclasses.dataclass(frozen=True)
class ShortenedRows(fit_problem.FitRows):
    """The planted fault: rows longer than r are shortened where weights are declared. No promise is broken by it."""

    def block(self, X, y, weight, mean, root, stretch, row_bound, scaling):
        z, a, response = super().block(X, y, weight, mean, root, stretch, row_bound, scaling)
        return z * a**0.5, a * 0.0 + 1.0, response


def test_a_program_that_shortens_rows_where_weights_are_declared_is_caught(small, monkeypatch):
    monkeypatch.setattr(fit_problem, "FitRows", ShortenedRows)
    assert "the mode is not the minimum of the declared objective, to its tolerance" in replay_fit(small)


def test_a_program_that_ignores_its_tolerance_is_caught(small, monkeypatch):
    declared = fitting.Stages._objective

    def lax(stages, *given):
        return declared(stages, *given)._replace(certified=1e6 * stages.target.problem.numbers["tolerance"])

    monkeypatch.setattr(fitting.Stages, "_objective", lax)
    assert replay_fit(small) == ["the mode is not the minimum of the declared objective, to its tolerance"]


def test_a_program_that_measures_squared_slopes_where_the_expected_ones_are_declared_is_caught(small, monkeypatch):
    monkeypatch.setattr(fitting, "measured_of", lambda robust: ("information", "squares"))
    assert replay_fit(small) == ["the variability is not the sum that the plan declares"]


def test_a_program_that_leaves_out_a_stage_or_adds_one_is_caught(small):
    assert "other stages ran than the plan's" in replay_fit(small, program=changed(variability_noise=0.0))


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_every_fit_does_what_its_plan_declares(name):
    for options in ({}, {"robust": True}, {"measured": False}):
        assert replay_fit(planned(name, **options)) == []


@pytest.mark.slow
def test_fits_of_categories_and_of_rows_in_a_ball_do_what_their_plans_declare():
    coded = PerturbedMode(categories=((1, 3),), measured=True, intervals=True)
    assert replay_fit(od.calibrate(coded, MODELS["exp-linear"], BUDGET, n=10_000)) == []
    ball = models.Logistic(3, data_norm=2.0, loss="exp-linear", prior=od.Gaussian(scale=1.0))
    assert replay_fit(od.calibrate(PerturbedMode(measured=True, intervals=True), ball, BUDGET, n=10_000)) == []


class Less(Noise):
    """The planted fault: nine tenths of the noise that was asked for, in one of its three forms."""

    form = ""

    def real(self, size, noise):
        return super().real(size, 0.9 * noise if self.form == "real" else noise)

    def vector(self, sums, steps, noise, *weights):
        return super().vector(sums, steps, 0.9 * noise if self.form == "vector" else noise, *weights)

    def triangle(self, sums, steps, noise):
        return super().triangle(sums, steps, 0.9 * noise if self.form == "triangle" else noise)


@pytest.mark.statistical
@pytest.mark.parametrize("pure", [False, True], ids=["Gaussian", "pure"])
def test_noise_of_the_right_size_is_accepted_and_nine_tenths_of_it_is_not(pure):
    """At a level of 1e-6; a thousand vectors of four and more numbers tell 1 from 0.9."""
    seed = int(np.random.SeedSequence().generate_state(1)[0])
    print(f"seed {seed}")
    generator = np.random.default_rng(seed)
    assert audit_noise(Noise(generator, pure=pure), draws=1500) == []
    for form, name in (("vector", "a noisy sum"), ("triangle", "a noisy matrix"), ("real", "a real vector")):
        faulty = Less(generator, pure=pure)
        faulty.form = form
        assert f"{name} has noise that is too small" in audit_noise(faulty, draws=1500)
