"""The literature's methods beside ours, on the same records, for the same promise: what the page on baselines shows.

    python benchmarks/baselines.py             # runs every method, writes its results and docs/baselines.md; 3 minutes
    python benchmarks/baselines.py --missing   # runs the methods of the table that have no stored result
    python benchmarks/baselines.py --render    # writes the page again from the stored results

20 simulated tables of n = 2,000 people, and three questions about each: a share, a logistic and a linear regression.
Every method answers once for each table under (ε = 1, δ = 1e-6); what keeps a pure ε keeps ε = 1. The page's second
table, AdaSSP and our fit on other designs, is `ada_ssp.py`, which keeps its results in the same file.

Errors are root mean squares over the tables: of a share, of the predicted log-odds, of the predicted responses, beside
the truth. Seeds are fixed, so that the file can be made again; no number here is a private release.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import onedraw as od
from onedraw import baselines, methods, models

ROOT = Path(__file__).resolve().parents[1]
RESULT, PAGE = ROOT / "benchmarks" / "results" / "baselines.json", ROOT / "docs" / "baselines.md"

N, TABLES, FEATURES = 2000, 20, 3
FURTHER = 1000
"""The first of ten more tables, on which a learning rate or a ridge is chosen where a method has one."""

BUDGET, PURE = od.ApproxDP(1.0, 1e-6), od.PureDP(1.0)
SLOPES, ODDS, NOISE = np.array([0.5, -0.3, 0.2, 0.1]), np.array([1.5, -1.0, 0.5, -0.4]), 0.2

# ── the methods ──────────────────────────────────────────────────────────────────────────────────────────────────────

BOX: dict[str, Any] = {"features": FEATURES, "bounds": (-1, 1), "scaled": True}
WIDE, BALL = od.Gaussian(scale=3.0), od.Gaussian(scale=1.0, radius=2.0)
LOGISTIC = models.Logistic(**BOX, prior=WIDE)
LOGISTIC_BALL = models.Logistic(**BOX, prior=od.Gaussian(scale=3.0, radius=3.0))
SQUARES = models.LeastSquares(**BOX, response_bound=2.0, prior=BALL)
SQUARES_WIDE = models.LeastSquares(**BOX, response_bound=2.0, prior=od.Gaussian(scale=1.0, radius=1e3))
ROBUST = models.LogCoshRegression(**BOX, response_bound=2.0, prior=WIDE)
ORDINARY = models.OrdinaryLeastSquares(**BOX, response_bound=2.0, prior=WIDE)
NORMAL = models.GaussianRegression(
    **BOX, variance_floor=1e-3, prior=od.NormalInverseGamma(scale=3.0, shape=2.0, rate=0.05)
)
SHARE = models.BetaBernoulli()
FEW = models.Logistic(features=2, bounds=(-1, 1), scaled=True, prior=od.Gaussian(scale=2.0))
FEW_BENT = models.Logistic(features=2, bounds=(-1, 1), scaled=True, loss="exp-linear", prior=od.Gaussian(scale=2.0))


class Method(NamedTuple):
    """One line of the table."""

    question: str
    name: str
    source: str
    releases: str
    when: str
    mechanism: Any
    model: Any
    budget: Any = BUDGET
    sampler: Any = None
    setting: str = ""
    """A field of the mechanism that is chosen among ``tried`` on further tables of the same law."""
    tried: tuple[float, ...] = ()


OURS = "ours"
RIDGES, RATES = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0), (0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
METHODS = (
    Method("share", "`Concentrated`", "Geumlek et al. 2017; ours", "one draw", "one draw, "
           "where the prior may be strengthened", methods.Concentrated(), SHARE),
    Method("share", "`Diffused`", "Geumlek et al. 2017; ours", "one draw", "one draw, "
           "where the prior must stay as it is", methods.Diffused(), SHARE),
    Method("share", "`AddedNoise`", OURS, "a noisy count, with errors", "a share is all that is asked",
           methods.AddedNoise(), models.CategoryTable(levels=("no", "yes"), show="shares")),
    Method("share", "`SufficientStatistics`", "Foulds et al. 2016", "a posterior that ignores the noise",
           "n·ε so large that the noise is nothing beside the posterior", baselines.SufficientStatistics(), SHARE),
    Method("share", "`NoiseAware`", "Bernstein, Sheldon 2018", "a posterior that counts the noise",
           "many draws or honest credible intervals for one spend", baselines.NoiseAware(), SHARE),
    Method("logistic", "fit, `AveragedSteps`", OURS, "an estimate with standard errors", "always first",
           od.AveragedSteps(), LOGISTIC),
    Method("logistic", "`Gibbs()`, rule gdp", OURS, "one draw", "a posterior draw is wanted", od.Gibbs(), LOGISTIC),
    Method("logistic", "`NoisyGradient`", OURS, "one draw", "the better draw for most convex losses",
           od.NoisyGradient(), LOGISTIC),
    Method("logistic", "`Minami`", "Minami et al. 2016", "one draw",
           "to reproduce a figure; false from ε ≈ 9 on", baselines.Minami(), LOGISTIC),
    Method("logistic", "`OnePosteriorSample`", "Wang et al. 2015", "one draw",
           "never: `Gibbs(\"bounded\")` has twice the weight and more", baselines.OnePosteriorSample(), LOGISTIC_BALL),
    Method("logistic", "`OutputPerturbation`", "Chaudhuri et al. 2011", "an estimate",
           "the solver is somebody else's", baselines.OutputPerturbation(), LOGISTIC, BUDGET, None, "regularisation",
           RIDGES),
    Method("logistic", "`ObjectivePerturbation`", "Chaudhuri et al. 2011", "an estimate",
           "to compare; the fit is the same idea with less noise", baselines.ObjectivePerturbation(), LOGISTIC, PURE),
    Method("logistic", "`ObjectivePerturbation(\"kifer\")`", "Kifer et al. 2012, corrected", "an estimate",
           "the same", baselines.ObjectivePerturbation("kifer"), LOGISTIC),
    Method("logistic", "`DPSGD`, η = 0.01", "Abadi et al. 2016; Opacus", "an estimate", "never with this rate, "
           "which published code has", baselines.DPSGD(epochs=10, batch_size=200), LOGISTIC, BUDGET,
           baselines.Training("jax")),
    Method("logistic", "`DPSGD`", "Abadi et al. 2016; Opacus", "an estimate", "networks, "
           "and losses with no theorem of their own", baselines.DPSGD(epochs=10, batch_size=200), LOGISTIC, BUDGET,
           baselines.Training("jax"), "learning_rate", RATES),
    Method("logistic", "`BarkerPath`", OURS, "the last state of a path", "a loss with a kink; no floating point to trust",
           methods.BarkerPath(), LOGISTIC),
    Method("logistic", "`Penalty`", "Yıldırım, Ermiş 2019", "the last state of a path", "never: `BarkerPath`",
           baselines.Penalty(), LOGISTIC),
    Method("logistic", "`MultiProposal`", "Tjelmeland 2004; Calderhead 2014", "the last state of a path",
           "never: `BarkerPath`", baselines.MultiProposal(), LOGISTIC),
    Method("logistic", "`DPHMC`", "Räisä et al. 2021", "the last state of a path", "never: `NoisyGradient`",
           baselines.DPHMC(), LOGISTIC),
    Method("logistic", "`DPSGLD`", "Wang et al. 2015; Li et al. 2019", "the last iterate of a path",
           "n so large that full passes are dear", baselines.DPSGLD(), LOGISTIC),
    Method("few", "fit, `PerturbedMode`", OURS, "an estimate with standard errors", "always first",
           methods.PerturbedMode(), FEW_BENT, PURE),
    Method("few", "`Candidates(BetaDivergence())`", OURS, "one draw", "a draw under a pure ε",
           od.Candidates(), FEW, PURE),
    Method("few", "`KNG`", "Reimherr, Awan 2019", "an estimate",
           "up to three coefficients, whole numbers throughout", baselines.KNG(), FEW_BENT, PURE),
    Method("linear", "fit, `AveragedSteps`", OURS, "an estimate with standard errors", "always first",
           od.AveragedSteps(), ORDINARY),
    Method("linear", "`Gibbs()`, rule gdp", OURS, "one draw", "a posterior draw is wanted", od.Gibbs(), SQUARES),
    Method("linear", "`Gibbs(\"bounded\")`", OURS, "one draw", "an exact draw under a pure ε",
           od.Gibbs("bounded"), SQUARES, PURE),
    Method("linear", "`NoisyGradient`", OURS, "one draw", "the better draw for most convex losses",
           od.NoisyGradient(), ROBUST),
    Method("linear", "`AdaSSP`", "Wang 2018", "noisy sums, an estimate",
           "XᵀX and Xᵀy are wanted for other ends too", baselines.AdaSSP(), SQUARES),
    Method("linear", "`AdaOPS`", "Wang 2018, corrected", "one draw", "to compare; nearer than `Gibbs()`, "
           "behind `NoisyGradient`", baselines.AdaOPS(), SQUARES),
    Method("linear", "`OnePosteriorSample`", "Wang et al. 2015", "one draw", "never: `Gibbs(\"bounded\")`",
           baselines.OnePosteriorSample(), SQUARES, PURE),
    Method("linear", "`NoiseAware`", "Bernstein, Sheldon 2019", "a posterior that counts the noise",
           "few columns, and credible intervals are wanted", baselines.NoiseAware(response_bound=2.0), NORMAL),
    Method("linear", "`OutputPerturbation`", "Chaudhuri et al. 2011", "an estimate",
           "the solver is somebody else's", baselines.OutputPerturbation(), SQUARES_WIDE, BUDGET, None,
           "regularisation", RIDGES),
    Method("linear", "`DPSGD`, η = 0.01", "Abadi et al. 2016; Opacus", "an estimate", "never with this rate, "
           "which published code has", baselines.DPSGD(epochs=10, batch_size=200), SQUARES_WIDE, BUDGET,
           baselines.Training("jax")),
    Method("linear", "`DPSGD`", "Abadi et al. 2016; Opacus", "an estimate", "networks, "
           "and losses with no theorem of their own", baselines.DPSGD(epochs=10, batch_size=200), SQUARES_WIDE, BUDGET,
           baselines.Training("jax"), "learning_rate", RATES),
)  # fmt: skip

QUESTIONS = {
    "share": "a share",
    "logistic": "log-odds, three columns",
    "few": "log-odds, two columns, δ = 0",
    "linear": "a line, three columns",
}

USED = {"few": [0, 1, FEATURES]}
"""Which entries of a row a question is about, where it is not all."""


# ── one table for all ────────────────────────────────────────────────────────────────────────────────────────────────


def table(seed: int) -> dict[str, Any]:
    generator = np.random.default_rng(seed)
    X = generator.uniform(-1.0, 1.0, (N, FEATURES))
    rows = np.column_stack([X, np.ones(N)])
    ill = (generator.uniform(size=N) < 1.0 / (1.0 + np.exp(-rows @ ODDS))).astype(int)
    y = rows @ SLOPES + NOISE * generator.standard_normal(N)
    odds = rows[:, USED["few"]] @ ODDS[USED["few"]]
    few = (generator.uniform(size=N) < 1.0 / (1.0 + np.exp(-odds))).astype(int)
    return {"X": X, "rows": rows, "ill": ill, "y": y, "few": few}


def records(method: Method, people: dict[str, Any]) -> Any:
    if method.question == "share":
        return people["ill"]
    if method.question == "few":
        return people["X"][:, :2], people["few"]
    return people["X"], people["ill"] if method.question == "logistic" else people["y"]


def squared_error(question: str, found: Any, people: dict[str, Any]) -> float:
    """Beside the truth: the share that the law of the table has, the log-odds or the line of each person."""
    found = np.asarray(found, dtype=np.float64).ravel()
    if question == "share":
        return float((found[-1] - share_of_all()) ** 2)
    used = USED.get(question, list(range(FEATURES + 1)))
    away = people["rows"][:, used] @ (found[: len(used)] - (SLOPES if question == "linear" else ODDS)[used])
    return float(np.mean(away**2))


def share_of_all() -> float:
    X = np.column_stack([np.random.default_rng(0).uniform(-1.0, 1.0, (1_000_000, FEATURES)), np.ones(1_000_000)])
    return float(np.mean(1.0 / (1.0 + np.exp(-X @ ODDS))))


def without_privacy(question: str, people: dict[str, Any]) -> Any:
    rows = people["rows"]
    if question == "share":
        return [people["ill"].mean()]
    if question == "linear":
        return np.linalg.lstsq(rows, people["y"], rcond=None)[0]
    rows, labels = (rows[:, USED["few"]], people["few"]) if question == "few" else (rows, people["ill"])
    theta = np.zeros(rows.shape[1])
    for _ in range(20):
        chance = 1.0 / (1.0 + np.exp(-rows @ theta))
        bent = rows.T @ (rows * (chance * (1.0 - chance))[:, None])
        theta += np.linalg.solve(bent, rows.T @ (labels - chance))
    return theta


def missing(stored: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The stored lines, and those that are not among them."""
    known, people = {(one["question"], one["name"]): one for one in stored}, [table(seed) for seed in range(TABLES)]
    found = []
    for question in QUESTIONS:
        found.append(known[question, "without privacy"])
        methods = (method for method in METHODS if method.question == question)
        found += [known.get((question, method.name)) or measured(method, people) for method in methods]
    return found


def side_by_side() -> list[dict[str, Any]]:
    people = [table(seed) for seed in range(TABLES)]
    found = []
    for question in QUESTIONS:
        errors = [squared_error(question, without_privacy(question, one), one) for one in people]
        found.append({"question": question, "name": "without privacy", "source": "", "promise": "ε = ∞", "ours": False,
                      "releases": "an estimate", "when": "never of private records", "chosen": {},
                      "error": math.sqrt(np.mean(errors))})  # fmt: skip
        found += [measured(method, people) for method in METHODS if method.question == question]
    return found


def measured(method: Method, people: list[dict[str, Any]]) -> dict[str, Any]:
    started, chosen = time.perf_counter(), {}
    if method.tried:
        others = [table(seed) for seed in range(FURTHER, FURTHER + 10)]
        chosen = {method.setting: min(method.tried, key=lambda one: error_of(method, others, {method.setting: one}))}
    error = error_of(method, people, chosen)
    print(f"{method.question} {method.name} {chosen}: {error:.4g} ({time.perf_counter() - started:.1f} s)", flush=True)
    promise = type(calibrated(method, chosen).guarantee.promise).__name__
    return {
        "question": method.question, "name": method.name, "source": method.source, "promise": promise, "chosen": chosen,
        "releases": method.releases, "when": method.when, "error": error, "ours": OURS in method.source,
    }  # fmt: skip


def calibrated(method: Method, chosen: dict[str, float]) -> Any:
    return od.calibrate(replace(method.mechanism, **chosen), method.model, method.budget, n=N)


def error_of(method: Method, people: list[dict[str, Any]], chosen: dict[str, float]) -> float:
    """Root mean square over the tables, one release of each."""
    plan, options = calibrated(method, chosen), {} if method.sampler is None else {"sampler": method.sampler}
    released = (od.release(plan, records(method, one), random_state=seed, **options) for seed, one in enumerate(people))
    errors = [squared_error(method.question, one.draw, table) for one, table in zip(released, people, strict=True)]
    return math.sqrt(np.mean(errors))


# ── the page ─────────────────────────────────────────────────────────────────────────────────────────────────────────

HEAD = """\
# The literature's methods, side by side

<!-- Written by benchmarks/baselines.py from benchmarks/results/baselines.json. Do not edit. -->

`onedraw.baselines` has the other methods of the field under the interface of our own: `calibrate`, `release`, a
certificate that verifies, a ledger that is charged. Nothing here is chosen by `auto` or `onedraw plan`. Each has its
theorem beside its code, with a line on when anybody should still use it; where a published promise is false there is a
corrected one, and `as_published=True`, which is marked NOT PROVEN and which no ledger takes ([where the literature is
wrong](errata-of-the-literature.md)).

```python
import numpy as np
import onedraw as od
from onedraw import baselines, models

generator = np.random.default_rng(0)
X = generator.uniform(-1, 1, (2000, 3))
y = X @ [0.5, -0.3, 0.2] + 0.1 + 0.2 * generator.standard_normal(2000)

model = models.LeastSquares(features=3, bounds=(-1, 1), response_bound=2.0, prior=od.Gaussian(scale=1.0, radius=2.0))
plan = od.calibrate(baselines.AdaSSP(), model, od.ApproxDP(1.0, 1e-6), n=2000)
release = od.release(plan, (X, y), random_state=1)
print(release.draw)
print(release.certificate.sentence)
```
"""

TABLE = """
## All of them on the same people

20 simulated tables of 2,000 people, three columns that fill their declared ranges, one release of each method for each
table, under (ε = 1, δ = 10⁻⁶); a method that keeps a pure ε keeps ε = 1, which is stronger. One record is replaced, n
is public. The error is a root mean square beside the truth: of the share, of everybody's log-odds, of everybody's
expected response. Bold: the smallest of each question with a promise.

| question | method | source | promise | what it releases | error | when anybody should still use it |
| --- | --- | --- | --- | --- | --- | --- |
"""

COMPARED = """
## AdaSSP and our fit of a linear regression

Root mean squared residuals over the table, medians of 20 releases, δ = 10⁻⁶; the public tables' bounds were declared
from what their columns are. Bold: the nearer one of the two.

| table | ε | a constant | least squares, ε = ∞ | AdaSSP | fit |
| --- | --- | --- | --- | --- | --- |
"""

TAIL = """
A draw is a draw: its error holds the posterior's own spread, which an estimate does not have. The fit's error includes
what it spends on standard errors, which no other line of the table has but those that publish a posterior. DP-SGD has
ten epochs of batches of 200 and a clip of 1. `BarkerPath`, `Penalty`, `MultiProposal`, `DPHMC` and `DPSGLD` are paths of
three relaxation times and no posterior draws; for a smooth convex loss nothing among them is nearer than `NoisyGradient`
by more than chance, and Barker's test is the nearest of those that decide. A learning rate η or a ridge λ in brackets was chosen among six, by the
smallest error on ten further tables of the same law: a help that the others do not have, and that private records would
have to pay for.
"""


def render(results: dict[str, Any]) -> str:
    lines = [HEAD, TABLE.rstrip("\n")]
    best = {
        question: min(
            one["error"] for one in results["side_by_side"] if one["question"] == question and one["promise"] != "ε = ∞"
        )
        for question in QUESTIONS
    }
    for one in results["side_by_side"]:
        error = f"{one['error']:.3g}"
        error = f"**{error}**" if one["error"] == best[one["question"]] else error
        cells = (
            QUESTIONS[one["question"]],
            one["name"] + chosen_words(one["chosen"]),
            one["source"],
            one["promise"],
            one["releases"],
            error,
            one["when"],
        )
        lines.append("| " + " | ".join(cells) + " |")
    lines.append(COMPARED.rstrip("\n"))
    for one in results["ada_ssp"]:
        pair = [f"{one[name]:.3g}" for name in ("ada_ssp", "fit")]
        nearer = 0 if one["ada_ssp"] <= one["fit"] else 1
        pair[nearer] = f"**{pair[nearer]}**"
        cells = (one["design"], f"{one['epsilon']:g}", f"{one['constant']:.3g}", f"{one['least_squares']:.3g}", *pair)
        lines.append("| " + " | ".join(cells) + " |")
    lines += ["", verdict(results["ada_ssp"]), TAIL]
    return "\n".join(lines)


def chosen_words(chosen: dict[str, float]) -> str:
    letters = {"regularisation": "λ", "learning_rate": "η"}
    return "".join(f" ({letters[name]} = {value:g})" for name, value in chosen.items())


def verdict(lines: list[dict[str, Any]]) -> str:
    """Which wins, counted."""
    won = [one for one in lines if one["ada_ssp"] <= one["fit"]]
    worse = [one for one in lines if min(one["ada_ssp"], one["fit"]) > one["constant"]]
    beyond = f" In {len(worse)} of them neither is better than a constant." if worse else ""
    return f"AdaSSP is the nearer one in {len(won)} of {len(lines)} lines, the fit in {len(lines) - len(won)}.{beyond}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--render", action="store_true")
    parser.add_argument("--missing", action="store_true")
    options = parser.parse_args()
    results = json.loads(RESULT.read_text(encoding="utf-8")) if RESULT.exists() else {}
    if options.missing:
        results["side_by_side"] = missing(results["side_by_side"])
    elif not options.render:
        results["side_by_side"] = side_by_side()
    if not options.render:
        RESULT.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    PAGE.write_text(render(results), encoding="utf-8")


if __name__ == "__main__":
    main()
