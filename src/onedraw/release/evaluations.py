"""Accuracy, ROC curve, calibration, R²: what follows from a released table of scores. Post-processing, it costs nothing.

Figures are computed from the nearest table that n records can have: no count below 0, all together n. Cutting what is impossible
removes most of the noise of cells that hold hardly anybody, and the little bias it brings is part of what follows. Standard
errors and intervals come from a parametric bootstrap: tables of n records are drawn from the released shares, get fresh noise of
the law that was used, and are cut in the same way; how far a figure of theirs is from that of the shares is sampling and
privacy noise together. The seed is public. Shares of records, such as accuracy, are linear in the counts: they are read off the noisy
table as it is, its sum put right, so that nothing is cut and nothing is biased.

Of a regressor the sampling error of a mean of numbers in [0, 1] is at most √(m(1 − m)/n), whatever their law: this is used, so
those intervals are on the safe side.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from onedraw.arrays import Array
from onedraw.errors import WrongCall
from onedraw.models.tables.scores import ClassifierScores, RegressorScores
from onedraw.models.tables.table import STEPS, proportional
from onedraw.plans import Plan
from onedraw.privacy.numbers import confidence_level
from onedraw.release.certificate import Certificate

SIMULATIONS = 2_000
PUBLIC_SEED = 20_261_116
CALIBRATION_BINS = 10


@dataclass(frozen=True)
class Figure:
    """A number with its standard error, and its interval at the level that was asked for."""

    value: float
    error: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.4g} ({self.low:.4g} to {self.high:.4g})"


@dataclass(frozen=True)
class Curve:
    """Points of a curve with a pointwise interval in y; NaN where the counts say nothing."""

    x: Array
    y: Array
    low: Array
    high: Array


@dataclass(frozen=True)
class Scores:
    """What a released table of scores says, at one level of confidence. ``figures`` by name; the others where they exist."""

    level: float
    figures: dict[str, Figure]
    classes: tuple[str, ...] = ()
    confusion: Array | None = None
    """(true, predicted), in records; and the half-width of each cell's interval from the noise alone."""
    confusion_error: float = math.nan
    roc: Curve | None = None
    calibration: Curve | None = None


def scores_of(certificate: Certificate, plan: Plan, level: float = 0.95) -> Scores:
    """The figures of a released evaluation."""
    if not isinstance(plan.model, ClassifierScores | RegressorScores):
        raise WrongCall(
            "This release is no evaluation of a model. Make one with onedraw.evaluate(model, X, y, epsilon=…)."
        )
    level, noisy = confidence_level(level), plan.mechanism.noisy_sums(plan, certificate.draw.stages or {})[0]
    return (_of_classes if isinstance(plan.model, ClassifierScores) else _of_numbers)(noisy, plan, level)


def _of_classes(noisy: Array, plan: Plan, level: float) -> Scores:
    model: ClassifierScores = plan.model
    shape = (-1, len(model.classes), model.columns)
    uncut, tables = (part.reshape(shape) for part in _simulated(noisy, plan))
    confusion = _confusion(tables, model)
    # (true, column): 1 where the prediction is the true class; a column of scores stands for one of two
    correct = _confusion(np.eye(model.columns)[:, None], model)[:, 0].T if model.edges else np.eye(len(model.classes))
    quotient = bool(model.skips)
    figures, roc, calibration = {"accuracy": _share(correct, uncut, tables[0], level, quotient)}, None, None
    if model.edges:
        below, above = (_rates_above(tables[:, label]) for label in (0, 1))
        figures["AUC"] = _figure(_area(tables), level, slack=_slack(tables[0]))
        figures[f"share of {model.classes[1]}"] = _share(np.array([[0.0], [1.0]]), uncut, tables[0], level, quotient)
        roc = Curve(below[0], *_band(above, level))
        calibration = _calibration(tables, model, level)
    cells = np.abs(confusion[1:] - confusion[0]).reshape(-1)
    return Scores(level, figures, model.classes, confusion[0], float(np.quantile(cells, level)), roc, calibration)


def _simulated(noisy: Array, plan: Plan) -> tuple[Array, Array]:
    """(tables, cells): first the released one, then tables of as many records drawn from its shares, with noise; as they are, and cut."""
    generator, n = np.random.default_rng(PUBLIC_SEED), plan.n
    if not plan.model.total_is_public:  # records that count for nobody are in no cell
        n = round(min(max(float(noisy.sum()), 1.0), float(n)))
    released = proportional(noisy, n)
    drawn = generator.multinomial(n, released / released.sum(), size=SIMULATIONS)
    uncut = np.concatenate([noisy[None], drawn + plan.mechanism.simulated_noise(plan, drawn.shape, generator)])
    cut, kept = proportional(uncut, n), noisy.size - plan.model.skips  # records without a class are the last cell
    return uncut[:, :kept], cut[:, :kept]


def _share(chosen: Array, uncut: Array, shares: Array, level: float, quotient: bool) -> Figure:
    """The share of records in the chosen cells, all cells moved alike until the table sums to n: without bias, and of all such
    figures the one with the least noise. The simulated ones err about that of the shares they were drawn from. Where the number of
    records with a class is not public, it is a ``quotient`` of two noisy numbers."""
    n, chosen = max(float(shares.sum()), 1.0), np.broadcast_to(chosen, shares.shape)
    if quotient:
        found = (uncut * chosen).sum(axis=(1, 2)) / np.maximum(uncut.sum(axis=(1, 2)), 1.0)
        return _figure(found, level, about=float((shares * chosen).sum() / n))
    surplus = uncut.sum(axis=(1, 2)) - n
    found = ((uncut * chosen).sum(axis=(1, 2)) - chosen.mean() * surplus) / n
    return _figure(found, level, about=float((shares * chosen).sum() / n))


def _confusion(tables: Array, model: ClassifierScores) -> Array:
    """(tables, true, predicted): a score of a half or more is the second class."""
    if not model.edges:
        return tables
    half = sum(edge < 0.5 for edge in model.edges) + (0.5 in model.edges)
    return np.stack([tables[:, :, :half].sum(axis=2), tables[:, :, half:].sum(axis=2)], axis=2)


def _area(tables: Array) -> Array:
    """P(score of a second-class record > that of a first-class one), half of the ties, and what ties inside bins hide."""
    negatives, positives = tables[:, 0], tables[:, 1]
    below = np.cumsum(negatives, axis=1) - negatives / 2.0
    pairs = np.maximum(negatives.sum(axis=1) * positives.sum(axis=1), 1.0)
    return np.asarray((positives * below + _hidden(tables)).sum(axis=1) / pairs)


def _hidden(tables: Array) -> Array:
    """Of each bin, the pairs that its scores would have put in order beyond the half that ties count.

    If the log-likelihood ratio of the classes rises by t across a bin, those are tanh(t/6)/2 of its pairs, nearly (t/12 for small
    t, a half for large). t is the same for all bins, the slope of the released log-ratios: 1 for calibrated scores, more for
    a model too timid, less for one too sure, 0 for one that knows nothing.
    """
    negatives, positives = tables[:, 0], tables[:, 1]
    places, ratios = np.arange(tables.shape[2]), np.log((positives + 0.5) / (negatives + 0.5))
    weights = positives * negatives / np.maximum(positives + negatives, 1.0) + 1e-9
    centred = places - (weights * places).sum(axis=1, keepdims=True) / weights.sum(axis=1, keepdims=True)
    slope = (weights * centred * ratios).sum(axis=1) / ((weights * centred**2).sum(axis=1) + 1.0)
    return np.asarray(negatives * positives * np.tanh(np.clip(slope, 0.0, None) / 6.0)[:, None] / 2.0)


def _slack(table: Array) -> tuple[float, float]:
    """What the bins may hide beyond what was assumed, below and above: half of it either way; in the two outermost bins, which have
    no width, nothing of it or all that is there."""
    pairs = max(float(table[0].sum() * table[1].sum()), 1.0)
    hidden = _hidden(table[None])[0] / pairs
    ends = table[0, [0, -1]] @ table[1, [0, -1]] / (2.0 * pairs) - hidden[[0, -1]].sum()
    return float(hidden.sum() + hidden[[0, -1]].sum()) / 2.0, float(hidden[1:-1].sum()) / 2.0 + max(float(ends), 0.0)


def _rates_above(counts: Array) -> Array:
    """(tables, thresholds): the share of a class above each edge, from the highest to the lowest, both ends added."""
    above = np.cumsum(counts[:, ::-1], axis=1)[:, :-1] / np.maximum(counts.sum(axis=1, keepdims=True), 1.0)
    return np.concatenate([np.zeros((len(above), 1)), above, np.ones((len(above), 1))], axis=1)


def _calibration(tables: Array, model: ClassifierScores, level: float) -> Curve:
    """Predicted probability against the share of the second class, bins joined to at most ten."""
    ends = np.concatenate([[0.0], model.edges, [1.0]])
    joined = np.array_split(np.arange(model.columns), min(CALIBRATION_BINS, model.columns))
    counts = np.stack([tables[:, :, part].sum(axis=2) for part in joined], axis=2)
    total = counts.sum(axis=1)
    known = total[0] > 3.0 * np.std(total[1:] - total[0], axis=0) + 1.0
    shares = counts[:, 1] / np.maximum(total, 1.0)
    middles, weights = (ends[:-1] + ends[1:]) / 2.0, np.maximum(tables[0].sum(axis=0), 1e-9)
    predicted = np.array([np.average(middles[part], weights=weights[part]) for part in joined])
    y, low, high = (np.where(known, part, np.nan) for part in _band(shares, level))
    return Curve(predicted, y, low, high)


def _of_numbers(noisy: Array, plan: Plan, level: float) -> Scores:
    model: RegressorScores = plan.model
    generator, n = np.random.default_rng(PUBLIC_SEED), model.records(noisy[None], plan.n)
    weights = np.array(model.weights(plan.mechanism.law), dtype=np.float64)
    released, steps = noisy / (n * STEPS), n * STEPS
    noise = plan.mechanism.simulated_noise(plan, (SIMULATIONS, len(weights)), generator) / weights / steps
    # rather too large a spread than too small a one
    means = np.clip(np.abs(released) + np.std(noise, axis=0), 0.0, 1.0)
    spread = np.array([1.0, means[1] * (1.0 - means[1]), means[2] * (1.0 - means[2]), *[0.0] * (len(weights) - 3)])
    sampling = generator.normal(size=(SIMULATIONS, len(weights))) * np.sqrt(spread / n)
    # what the means may have been: the released ones less errors like theirs; figures of those that are possible
    tables = np.concatenate([released[None], released - sampling - noise]) * steps
    values = np.array([model.estimate(table[None], plan.n) for table in tables])
    ends = np.quantile(values[1:], [0.5 - level / 2.0, 0.5 + level / 2.0], axis=0)
    found = [
        Figure(float(values[0, k]), float(np.std(values[1:, k])), float(ends[0, k]), float(ends[1, k])) for k in (0, 1)
    ]
    return Scores(level, {"RMSE": found[0], "R²": found[1]})


def _figure(
    values: Array, level: float, *, about: float | None = None, slack: tuple[float, float] = (0.0, 0.0)
) -> Figure:
    """From (released, simulated …): the released value less the quantiles of the errors, inside [0, 1]. The simulated values err about
    that of the shares they were drawn from, the released one unless another is given."""
    errors = values[1:] - (values[0] if about is None else about)
    low, high = np.quantile(errors, [0.5 - level / 2.0, 0.5 + level / 2.0])
    value, *ends = np.clip([values[0], values[0] - high - slack[0], values[0] - low + slack[1]], 0.0, 1.0)
    return Figure(float(value), float(np.std(errors)), float(ends[0]), float(ends[1]))


def _band(values: Array, level: float) -> tuple[Array, Array, Array]:
    """(value, low, high) of shares, inside [0, 1]."""
    half = NormalDist().inv_cdf(0.5 + level / 2.0) * np.std(values[1:] - values[0], axis=0)
    value, low, high = (np.clip(part, 0.0, 1.0) for part in (values[0], values[0] - half, values[0] + half))
    return value, low, high
