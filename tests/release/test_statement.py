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
    said = meaning(promise, delta, person=False, certain=True)
    assert f"guesses right at most {math.ceil(right)} times in 100 (a coin: 50)" in said
    assert said.endswith("(a coin: 50).")


def test_what_is_not_proven_is_said_with_a_condition():
    assert meaning(od.PureDP(1.0), 0.0, person=True, certain=False).endswith(
        "who knows everybody else's records guesses right at most 74 times in 100 (a coin: 50), if what is not proven holds."
    )


def released(**options):
    plan = od.calibrate(od.Diffused(), od.models.BetaBernoulli(prior=(1, 1)), od.ApproxDP(1.0, 1e-6), n=100)
    return od.release(plan, np.arange(100) % 2, **options).certificate


def test_a_seeded_release_says_nothing_of_guesses():
    assert "guesses" not in released(random_state=1).sentence


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


PERSONS = """
dataset: visits
person: patient
max_records: {}
columns:
  stay: {{kind: number, lower: 0, upper: 9, missing: 0}}
"""


def stated(tmp_path, records):
    """A mean of a column whose schema names persons with so many records, or none."""
    schema = PERSONS.format(records or 1)
    if records is None:
        schema = schema.replace("person: patient\n", "").replace("max_records: 1\n", "")
    (tmp_path / "schema.yaml").write_text(schema)
    (tmp_path / "visits.csv").write_text("patient,stay\n" + "".join(f"p{k},{k % 9}\n" for k in range(60)))
    planned = od.plan(tmp_path / "schema.yaml", "stay", "mean", epsilon=1.0, n=60)
    return planned.release(tmp_path / "visits.csv").certificate


@pytest.mark.finding("newcomer S8", commit="8a7c0fb")
def test_certificate_speaks_of_a_person_only_if_the_schema_names_one(tmp_path):
    certificate = stated(tmp_path, None)
    said = [certificate.sentence, certificate.unit, *(one.statement for one in certificate.assumptions)]
    assert not [words for words in said if "person" in words.lower()]
    assert "if two values of a record are equally likely beforehand" in certificate.sentence.lower()
    assert certificate.unit == "one record"


@pytest.mark.parametrize(
    ("records", "who", "verb"), [(1, "one person's record", "is"), (3, "one person's up to 3 records", "are")]
)
def test_certificate_names_the_person_of_the_schema(tmp_path, records, who, verb):
    certificate = stated(tmp_path, records)
    assert f"when {who} among n = 60 {verb} replaced" in certificate.sentence
    assert "who knows everybody else's records guesses right" in certificate.sentence
    assert certificate.unit.startswith("one person, who contributes")
    assert od.verify(certificate).answer == "consistent"
