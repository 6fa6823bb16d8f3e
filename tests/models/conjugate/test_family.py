"""Models and laws as values: validation, priors, posteriors, public data, what is known and why."""

from __future__ import annotations

import json
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onedraw.errors import InvalidModel
from onedraw.models import (
    BetaBernoulli,
    DirichletCategorical,
    GammaExponential,
    GammaPoisson,
    GaussianMean,
    Model,
    Summary,
    distributions,
)
from onedraw.privacy import Provenance

MODELS = [
    BetaBernoulli(prior=[2, 3], lower=-1.0, upper=4.0),
    DirichletCategorical(prior=[1, 2, 3], levels=["a", "b", "c"], missing=2),
    GaussianMean(bound=2.0, variance=9.0, prior_count=4.0, prior_mean=0.5, centre=10.0),
    GaussianMean(bound=2.0, variance=9.0, prior_count=4.0, prior_mean=[0.5, -0.5], dim=2, centre=1.0),
    GammaPoisson(prior=(2.0, 3.0), cap=10),
    GammaExponential(prior=(2.0, 3.0), cap=10.0, missing=1.0),
]


def by_name(model):
    return type(model).__name__


def records_for(model):
    generator = np.random.default_rng(5)
    match model:
        case DirichletCategorical():
            return generator.integers(0, len(model.prior), 40)
        case GaussianMean(dim=2):
            return generator.normal(1.0, 1.0, (40, 2))
        case _:
            return generator.uniform(0.0, 9.0, 40)


@pytest.mark.parametrize("model", MODELS, ids=by_name)
def test_a_model_survives_json_pickle_and_hashing(model):
    assert Model.from_dict(json.loads(json.dumps(model.to_dict()))) == model
    assert pickle.loads(pickle.dumps(model)) == model
    assert hash(model) == hash(Model.from_dict(model.to_dict()))


@pytest.mark.parametrize("model", MODELS, ids=by_name)
def test_a_stored_model_is_read_strictly(model):
    stored = model.to_dict()
    for change in ({"colour": 1}, {"model": "Cauchy"}, {"model": None}):
        with pytest.raises(InvalidModel):
            Model.from_dict(stored | change)
    for field in stored:
        with pytest.raises(InvalidModel):
            Model.from_dict({name: value for name, value in stored.items() if name != field})


@pytest.mark.parametrize("model", MODELS, ids=by_name)
def test_public_records_go_into_the_prior(model):
    """A.2: what is public is prior; the posterior given the rest is that of everything together."""
    data = records_for(model)
    public, private = data[:15], data[15:]
    richer = model.with_public(public)
    assert richer.public_records == 15
    assert richer.with_public(public).public_records == 30
    joint, stepwise = model.posterior(model.summarise(data)), richer.posterior(richer.summarise(private))
    assert type(joint) is type(stepwise)
    assert np.hstack(list(vars(stepwise).values())) == pytest.approx(np.hstack(list(vars(joint).values())), rel=1e-12)


@pytest.mark.parametrize("model", MODELS, ids=by_name)
def test_the_prior_scale_is_the_prior_deviation(model):
    assert model.prior_scale == min(model.prior_law.deviation)
    assert model.prior_scale > 0
    assert len(model.parameter_names) == len(model.prior_law.mean)


def test_prior_scales_by_hand():
    assert BetaBernoulli((1, 1)).prior_scale == pytest.approx(math.sqrt(1 / 12))
    assert DirichletCategorical([1, 3]).prior_scale == pytest.approx(math.sqrt(3 / (16 * 5)))
    assert GaussianMean(bound=1.0, variance=4.0, prior_count=9.0).prior_scale == pytest.approx(2 / 3)
    assert GammaPoisson((9.0, 2.0), cap=5).prior_scale == pytest.approx(1.5)


@pytest.mark.parametrize("model", MODELS, ids=by_name)
def test_every_bound_says_where_it_comes_from(model):
    assert {"sensitivity"} < set(model.bounds)
    for bound in model.bounds.values():
        assert bound.provenance in (Provenance.PROVED, Provenance.ENFORCED, Provenance.DECLARED)
        assert bound.why
    with pytest.raises(TypeError):
        model.bounds["sensitivity"] = 0  # read-only


def test_posteriors_by_hand():
    summary = Summary(10, (Fraction(3),))
    assert BetaBernoulli((1, 2)).posterior(summary) == distributions.Beta(4.0, 9.0)
    assert BetaBernoulli((1, 2)).posterior(summary, weight=0.5) == distributions.Beta(2.5, 5.5)
    assert BetaBernoulli((1, 2)).posterior(summary, prior_factor=0.25) == distributions.Beta(7.0, 15.0)
    counts = Summary(6, (Fraction(1), Fraction(2), Fraction(3)))
    assert DirichletCategorical([1, 1, 2]).posterior(counts, weight=0.5) == distributions.Dirichlet((1.5, 2.0, 3.5))
    assert GammaPoisson((2, 3), cap=5).posterior(summary, weight=0.5) == distributions.Gamma(3.5, 8.0)
    assert GammaExponential((2, 3), cap=5.0).posterior(summary, prior_factor=0.5) == distributions.Gamma(14.0, 9.0)


def test_the_gaussian_posterior_by_hand():
    model = GaussianMean(bound=5.0, variance=8.0, prior_count=2.0, prior_mean=1.0, centre=100.0)
    assert model.prior_law == distributions.Normal((101.0,), 4.0)
    assert model.posterior(Summary(6, (Fraction(6),))) == distributions.Normal((101.0,), 1.0)
    assert model.posterior(Summary(6, (Fraction(20),)), prior_factor=0.25) == distributions.Normal((102.0,), 8 / 14)
    assert model.posterior(Summary(4, (Fraction(-4),)), weight=0.5) == distributions.Normal((100.0,), 2.0)


@given(st.integers(0, 10**9), st.floats(0.01, 1.0), st.floats(0.01, 1.0))
def test_posterior_parameters_are_exact(successes, weight, factor):
    law = BetaBernoulli((0.3, 0.7)).posterior(
        Summary(10**9, (Fraction(successes),)), weight=weight, prior_factor=factor
    )
    exact = Fraction(0.3) / Fraction(factor) + Fraction(weight) * successes
    assert law.a == exact


@pytest.mark.parametrize(
    ("law", "mean", "deviation"),
    [
        (distributions.Beta(2.0, 6.0), (0.25,), (math.sqrt(0.25 * 0.75 / 9),)),
        (
            distributions.Dirichlet((1.0, 1.0, 2.0)),
            (0.25, 0.25, 0.5),
            (math.sqrt(0.0375), math.sqrt(0.0375), math.sqrt(0.05)),
        ),
        (distributions.Gamma(4.0, 2.0), (2.0,), (1.0,)),
        (distributions.Normal((1.0, 2.0), 9.0), (1.0, 2.0), (3.0, 3.0)),
    ],
)
def test_moments_of_the_laws(law, mean, deviation):
    assert law.mean == pytest.approx(mean)
    assert law.deviation == pytest.approx(deviation)


@pytest.mark.parametrize(
    "build",
    [
        lambda: BetaBernoulli(prior=(0.0, 1.0)),
        lambda: BetaBernoulli(prior=(1.0, -1.0)),
        lambda: DirichletCategorical([1.0, 0.0, 1.0]),
        lambda: GammaPoisson((0.0, 1.0), cap=3),
        lambda: GammaPoisson((1.0, 0.0), cap=3),
        lambda: GammaExponential((-1.0, 1.0), cap=3.0),
        lambda: GaussianMean(bound=1.0, variance=1.0, prior_count=0.0),
    ],
)
def test_a_prior_that_is_not_normalizable_is_refused(build):
    with pytest.raises(InvalidModel, match="not normalizable"):
        build()


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: BetaBernoulli(prior=(1.0, math.nan)), "finite"),
        (lambda: BetaBernoulli(prior=(1.0, math.inf)), "finite"),
        (lambda: BetaBernoulli(prior=(1.0, 1.0, 1.0)), "2 parameters"),
        (lambda: BetaBernoulli(prior=3.0), "sequence"),
        (lambda: BetaBernoulli(prior="ab"), "real number"),
        (lambda: BetaBernoulli(lower=1.0, upper=1.0), "below upper"),
        (lambda: BetaBernoulli(missing=2.0), "missing"),
        (lambda: BetaBernoulli(public_records=-1), "public_records"),
        (lambda: DirichletCategorical([1.0]), "two categories"),
        (lambda: DirichletCategorical([1.0, 1.0], levels=["a", "a"]), "each once"),
        (lambda: DirichletCategorical([1.0, 1.0], missing=2), "missing"),
        (lambda: GammaPoisson((1.0, 1.0), cap=0), "cap"),
        (lambda: GammaPoisson((1.0, 1.0), cap=2.5), "whole"),
        (lambda: GammaPoisson((1.0, 1.0), cap=2**40), "exact sums"),
        (lambda: GammaPoisson((1.0, 1.0), cap=5, missing=6), "missing"),
        (lambda: GammaExponential((1.0, 1.0), cap=0.0), "cap"),
        (lambda: GammaExponential((1.0, 1.0), cap=math.inf), "finite"),
        (lambda: GammaExponential((1.0, 1.0), cap=1.0, missing=2.0), "missing"),
        (lambda: GaussianMean(bound=-1.0, variance=1.0, prior_count=1.0), "bound"),
        (lambda: GaussianMean(bound=1.0, variance=0.0, prior_count=1.0), "variance"),
        (lambda: GaussianMean(bound=1.0, variance=1.0, prior_count=1.0, dim=0), "dim"),
        (lambda: GaussianMean(bound=1.0, variance=1.0, prior_count=1.0, prior_mean=(1.0, 2.0)), "prior_mean"),
        (lambda: GaussianMean(bound=1.0, variance=1.0, prior_count=1.0, centre=math.nan), "centre"),
    ],
)
def test_impossible_models_are_refused_in_words(build, words):
    with pytest.raises(InvalidModel, match=words):
        build()


def test_categories_can_have_names():
    assert DirichletCategorical([1, 1], levels=["no", "yes"]).parameter_names == ("no", "yes")
    assert DirichletCategorical([1, 1]).parameter_names == ("category 0", "category 1")
