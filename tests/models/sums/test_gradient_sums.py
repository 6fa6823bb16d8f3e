"""Gradients on a lattice: whole numbers in any order, of which one record moves no more than is promised for it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

from onedraw.models import Gaussian, LeastSquares, Logistic
from onedraw.models.fit.losses import FitLoss
from onedraw.models.moments.measured import INSIDE, mallows
from onedraw.models.moments.measured_model import MeasuredModel, WeightedLoss
from onedraw.models.row_model import Encoded
from onedraw.models.sums.exact_sums import share_bits
from onedraw.models.sums.gradient_sums import (
    SEGMENT,
    GradientSums,
    LatticeRows,
    RowLattice,
    rounding,
    row_lattice,
    square_units,
    squares,
    steps_of,
)
from tests.models.convex.cases import MODELS, SEED, by_name

RECORDS = 192
MEASURED = MeasuredModel(
    Logistic(2, data_norm=1.0, prior=Gaussian(scale=1.0)).fit_loss, 2, True, 2.5, Gaussian(scale=1.0)
)


def raw_records(model, generator, n=RECORDS):
    """Encoded records: usual ones, far outside the bounds, at corners, and cells that are no numbers."""
    if isinstance(model, MeasuredModel):
        rows = generator.standard_normal((n, 3)) * 10.0 ** generator.uniform(-3, 6, (n, 1))
        labels = generator.choice([-1.0, 1.0], n)
        return Encoded(n, rows, np.column_stack([labels, mallows(rows, INSIDE * model.row_bound)]))
    rows = generator.standard_normal((n, model.features.count)) * 10.0 ** generator.uniform(-4, 3, (n, 1))
    rows[generator.uniform(size=rows.shape) < 0.02] = np.nan
    answers = generator.choice([-1e9, -1.0, 0.0, 1.0, 2.0, 0.3, 1e9], n)
    if classes := getattr(model, "classes", None):
        answers = generator.choice(np.array(classes), n)
    return model.summarise((rows, answers) if model.features.count else answers)


def on_lattice(model, encoded, n=None):
    lattice = row_lattice(model, n or encoded.n)
    rows = encoded.records.read_as(LatticeRows(lattice, isinstance(model.kernel, WeightedLoss)))
    return rows, GradientSums(model.kernel, lattice), steps_of(lattice)


def one_by_one(model, encoded, theta):
    """Every record's share, in whole steps."""
    rows, sums, steps = on_lattice(model, encoded)
    (block,) = list(rows)
    whole = np.asarray(block.arrays[0])[:, : encoded.n]
    slopes = np.atleast_2d(np.asarray(sums.slopes(block.arrays[0], block.arrays[1], theta)))[:, : encoded.n]
    shares = np.einsum("cn,dn->ncd", slopes, whole).reshape(encoded.n, -1)
    assert np.array_equal(shares.sum(axis=0), rows.sum(sums, theta))
    return shares, steps


KINDS = {by_name(model).replace(" with intercept", ""): model for model in MODELS if "smoothness" in model.bounds}
CASES = [*KINDS.values(), MEASURED]  # of each kind one, with an intercept if there is any


@pytest.mark.parametrize("model", CASES, ids=[*map(by_name, CASES[:-1]), "measured"])
def test_one_record_moves_the_sum_by_no_more_than_its_bound_and_the_rounding_counted(model):
    generator = np.random.default_rng(SEED)
    encoded = raw_records(model, generator)
    for theta in (np.zeros(model.dimension), *(generator.standard_normal((2, model.dimension)) * [[0.3], [30.0]])):
        if model.radius is not None:
            theta = theta * min(1.0, model.radius / max(np.linalg.norm(theta), 1e-9))
        shares, steps = one_by_one(model, encoded, theta)
        assert np.array_equal(shares, np.rint(shares))
        assert np.abs(shares).max() <= row_lattice(model, encoded.n).bound
        moved = shares * steps
        farthest = max(np.linalg.norm(moved - one, axis=1).max() for one in moved)
        allowed = model.bounds["gradient_difference"].value + rounding(model, encoded.n)
        assert farthest <= allowed * (1 + 1e-12)


@pytest.mark.parametrize("model", CASES, ids=[*map(by_name, CASES[:-1]), "measured"])
def test_the_sum_is_the_gradient_of_the_rows_on_the_lattice_up_to_the_rounding_counted(model):
    generator = np.random.default_rng(SEED)
    encoded = raw_records(model, generator)
    theta = generator.standard_normal(model.dimension) * 0.3
    rows, sums, steps = on_lattice(model, encoded)
    found = rows.sum(sums, theta) * steps
    (block,) = list(rows)
    X = (np.asarray(block.arrays[0]) * np.array(sums.lattice.units)[:, None])[:, : encoded.n].T
    if isinstance(model.kernel, WeightedLoss):
        X = X / encoded.y[:, 1:]
    expected = np.asarray(model.kernel.gradient_total(theta, X, encoded.y))
    assert (
        np.linalg.norm(found - expected) <= encoded.n * rounding(model, encoded.n) / 2 + 1e-6 * np.abs(expected).max()
    )


@dataclass(frozen=True)
class Steep:
    """A loss that lies about its slopes, or has none."""

    slopes: float

    def slope(self, predictor, response):
        return predictor * 0.0 + self.slopes


@pytest.mark.parametrize("slope", [1e300, -7.0, math.inf, math.nan])
def test_a_slope_outside_its_interval_is_held_to_it(slope):
    encoded = Encoded(50, np.ones((50, 2)), np.ones(50))
    lattice = RowLattice((2.0**-10, 2.0**-10), 10, 10, (-0.3, 0.7))
    total = encoded.records.read_as(LatticeRows(lattice)).sum(GradientSums(Steep(slope), lattice), np.ones(2))
    share = Fraction(int(total[0]), 50 * 2**10) * Fraction(lattice.slope_unit)
    assert Fraction(-0.3) <= share <= Fraction(0.7)
    assert (share == 0) is math.isnan(slope)


def test_the_integers_do_not_depend_on_the_order_or_the_blocks():
    generator = np.random.default_rng(SEED)
    model = Logistic(5, bounds=([0, -1, 1e-6, -1e6, 99], [120, 1, 2e-6, 1e6, 101]), prior=Gaussian(scale=1.0))
    encoded = raw_records(model, generator, 3000)
    theta = generator.standard_normal(model.dimension)
    rows, sums, _ = on_lattice(model, encoded)
    total = rows.sum(sums, theta)
    order = generator.permutation(3000)
    parts = np.split(order, [1800])
    again = [Encoded(len(part), encoded.X[part], encoded.y[part]) for part in parts]
    pieces = [on_lattice(model, part, 3000) for part in again]
    assert np.array_equal(sum(rows.sum(sums, theta) for rows, sums, _ in pieces), total)


@pytest.mark.parametrize("n", [1, 2, 1000, 2**16, 2**16 + 1, 2**22, 2**22 + 1, 10**9])
def test_products_of_a_segment_add_up_below_2_to_the_53_and_of_all_records_in_64_bits(n):
    model = Logistic(300, data_norm=3.0, prior=Gaussian(scale=1.0))
    lattice = row_lattice(model, n)
    assert lattice.bound * min(n, SEGMENT) <= 2.0**53
    assert lattice.bound * n < 2.0**62
    assert 2.0 ** (lattice.row_bits + lattice.predictor_bits) * len(lattice.units) <= 2.0**53
    assert lattice.predictor_bits >= 20
    assert lattice.units[-1] * 2.0**lattice.row_bits == 1.0  # the intercept's 1 is on the lattice
    assert all(math.frexp(unit)[0] == 0.5 for unit in lattice.units)


def test_columns_of_any_size_keep_their_digits():
    model = Logistic(2, bounds=([-1e-6, -1e6], [1e-6, 1e6]), intercept=False, prior=Gaussian(scale=1.0))
    rows, sums, _ = on_lattice(model, Encoded(2, np.array([[1e-7, 3e5], [-1e-6, 1e6]]), np.ones(2)))
    (block,) = list(rows)
    found = np.asarray(block.arrays[0])[:, :2].T * np.array(sums.lattice.units)
    assert np.allclose(found, [[1e-7, 3e5], [-1e-6, 1e6]], rtol=1e-4, atol=0)


def test_a_fit_loss_is_not_mistaken_for_a_kernel():
    assert isinstance(MEASURED.loss, FitLoss)
    assert row_lattice(MEASURED, 100).slopes == (-MEASURED.loss.slope_bound, MEASURED.loss.slope_bound)


def test_squares_of_rows_on_a_lattice_are_exact_in_any_order():
    generator = np.random.default_rng(SEED)
    model = next(model for model in MODELS if isinstance(model, LeastSquares))
    encoded = raw_records(model, generator, 500)
    units = square_units(model, 500)
    found = squares(encoded, units)
    stacked = np.trunc(np.column_stack([encoded.X, encoded.y]) / np.array(units))
    exact = [[sum(int(a) * int(b) for a, b in zip(i, j, strict=True)) for i in stacked.T] for j in stacked.T]
    assert np.array_equal(found, np.array(exact, dtype=float) * np.outer(units, units))
    assert np.abs(stacked).max() ** 2 <= 2.0 ** share_bits(500)
    order = generator.permutation(500)
    assert np.array_equal(squares(Encoded(500, encoded.X[order], encoded.y[order]), units), found)
    rows = stacked * np.array(units)
    assert np.linalg.norm(rows[:, :-1], axis=1).max() <= model.features.reach
    assert np.abs(rows[:, -1]).max() <= model.response_bound
