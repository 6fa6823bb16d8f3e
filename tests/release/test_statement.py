"""What a certificate says to people: what the promise means for a person, and what may be published."""

import math

import numpy as np
import pytest

import onedraw as od
from onedraw.release.statement import meaning


@pytest.mark.parametrize(
    ("promise", "delta", "right"),
    [
        (od.PureDP(0.1), 0.0, 100 / (1 + math.exp(-0.1))),
        (od.PureDP(1.0), 0.0, 100 / (1 + math.exp(-1.0))),
        (od.ApproxDP(1.0, 0.02), 0.02, 100 * (1 - 0.98 / (1 + math.e))),
        (od.GaussianDP(1.0), 1e-6, 69.146),
    ],
)
def test_the_figure_is_the_best_guess_rounded_up(promise, delta, right):
    said = meaning(promise, delta, unit=1, certain=True)
    assert f"guesses right at most {math.ceil(right)} times in 100 which of two values a person's record has" in said
    assert said.endswith("(a coin: 50).")


def test_what_is_not_proven_is_said_with_a_condition():
    assert meaning(od.PureDP(1.0), 0.0, unit=3, certain=False).endswith(
        "a person's records have (a coin: 50), if what is not proven holds."
    )


def released(**options):
    plan = od.calibrate(od.Diffused(), od.models.BetaBernoulli(prior=(1, 1)), od.ApproxDP(1.0, 1e-6), n=100)
    return od.release(plan, np.arange(100) % 2, **options).certificate


def test_a_seeded_release_says_nothing_of_a_person():
    assert "For a person" not in released(random_state=1).sentence


@pytest.mark.parametrize(
    ("mechanism", "words"),
    [(od.AddedNoise("laplace"), "as OpenDP draws it"), (od.Diffused(), "ChaCha20")],
)
def test_a_certificate_says_what_drew_its_noise(mechanism, words):
    model = od.models.CategoryTable(("a", "b")) if isinstance(mechanism, od.AddedNoise) else od.models.BetaBernoulli()
    plan = od.calibrate(mechanism, model, od.ApproxDP(1.0, 1e-6), n=4)
    found = od.release(plan, [0, 1, 1, 0])
    assert found.certificate.randomness.startswith("operating system entropy")
    assert words in found.certificate.randomness
    assert od.verify(found.certificate)
