"""A whole census table: how good is a fit of all its columns, and how long does it take?

    python benchmarks/adult_fit.py        # writes benchmarks/results/adult_fit.md; about a minute

Logistic regression of income on all columns of the UCI table "Adult" but the sampling weight, every category with all its
levels (schemas/adult.yaml; and without education, which education_num repeats, and native_country: 43 columns), 26,000 records to fit and the rest to score, five splits, ε ∈ {0.5, 1, 5}, δ = 1e-5, beside a fit
without privacy. Then signs: of the coefficients whose 95 % interval excludes 0, how many have another sign than without
privacy.
"""

from __future__ import annotations

import gzip
import io
import itertools
import os
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.csv
from scipy import special
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

import onedraw as od
from onedraw.models.fit import constants as constant
from onedraw.models.fit.result import FitResult, least_information
from onedraw.models.row_model import Encoded
from onedraw.planning import choose
from onedraw.planning.options import Options
from onedraw.planning.regression import regression_for
from onedraw.release import release
from onedraw.release.estimates import fit_of
from onedraw.samplers.fit import Stages
from onedraw.samplers.noise import Noise

FOLDER = Path(os.environ.get("ONEDRAW_DATA", Path(__file__).parents[2] / "shared" / "data"))
SCHEMA = Path(__file__).parent / "schemas" / "adult.yaml"
RESULT = Path(__file__).parent / "results" / "adult_fit.md"
SPLITS, FITTED, DELTA = 5, 26_000, 1e-5


def main() -> None:
    schema = od.Schema.load(SCHEMA)
    with gzip.open(FOLDER / "adult_train.csv.gz") as packed:
        table = pyarrow.csv.read_csv(io.BytesIO(packed.read()))
    positive = np.array([value == ">50K" for value in table["income"].to_pylist()])
    lines = []
    for left_out, epsilon in itertools.product(((), ("education", "native_country")), (0.5, 1.0, 5.0)):
        kept = {name: column for name, column in schema.columns.items() if name not in left_out}
        narrow = od.Schema(columns=kept, dataset=schema.dataset)
        rows = [one(narrow, table.drop_columns(list(left_out)), positive, epsilon, seed) for seed in range(SPLITS)]
        ours, plain, seconds, given, wrong = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
        spread = ours.std(ddof=1) / np.sqrt(SPLITS)
        lines.append(
            f"| {43 if left_out else 99} | {epsilon:g} | {ours.mean():.4f} ± {spread:.4f} | {plain.mean():.4f} | {(ours - plain).mean():+.4f} | "
            f"{seconds.mean():.1f} | {given.mean():.0f} | {wrong.sum():.0f} |"
        )
        print(lines[-1], flush=True)
    head = "| columns | ε | AUC | not private | difference | CPU seconds, plan and release | intervals that exclude 0 | of those, sign wrong in five fits |"
    text = [
        "# Adult, all columns",
        "",
        (__doc__ or "").split("\n\n")[2].replace("\n", " "),
        "",
        head,
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    RESULT.write_text(
        "\n".join([*text, *lines, "", *why_none(schema, table), "", *larger(schema, table), ""]), encoding="utf-8"
    )


def why_none(schema, table):
    """How much less noise the information would need for a coefficient to be given an interval: measured without any, so for study only."""
    yield from ("## Why no interval is given", "")
    yield (
        "A direction is trusted if its information is at least 2√(2p) deviations s of its noise, p directions; a coefficient is given an interval if directions that are not "
        "trusted carry at most 5 % of its variance. The information itself, without noise, at the mode of one fit of 26,000 records that measures it: how many times less noise it "
        f"would take for the first coefficient, and for ten, to be given. The information has {constant.SHARES['labels'][1]:.0%} of the budget: all of it would bring "
        f"{constant.SHARES['labels'][1] ** -0.5:.1f} times less, and leave nothing to the fit."
    )
    yield from ("", "| columns | ε | s | needed of a direction | the largest has | the median one | times less noise for one coefficient | for ten |")  # fmt: skip
    yield "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |"
    for left_out, epsilon in itertools.product(((), ("education", "native_country")), (1.0, 5.0)):
        kept = {name: column for name, column in schema.columns.items() if name not in left_out}
        narrow, rows = od.Schema(columns=kept, dataset=schema.dataset), table.drop_columns(list(left_out))
        yield f"| {43 if left_out else 99} | {epsilon:g} | {shortfall(narrow, rows, epsilon)} |"


class WithoutNoise(Stages):
    """Information and scatter as they are."""

    def _outer(self, of, records, mode, noise):
        return super()._outer(of, records, mode, 1e-6 * noise)


def shortfall(schema, table, epsilon):
    question = regression_for(schema, "income", model="logistic", options=Options())
    plan = choose(question, od.ApproxDP(epsilon, DELTA), n=FITTED).best
    plan = replace(plan.mechanism, intervals=True).calibrate(plan.request)
    train = np.random.default_rng(0).permutation(table.num_rows)[:FITTED]
    target = plan.target(plan.model.summarise(od.read(table.take(train), schema, target="income")))
    noise = Noise(np.random.default_rng(1), pure=target.problem.pure)
    fit = FitResult.of(target.problem, WithoutNoise(target, noise).run())
    found, axes = fit._known.found, fit._known.axes
    needed = least_information(len(found), constant.EDGES) * fit._known.noise
    carried = (fit.change @ axes) ** 2 / np.maximum(found, 1e-9) ** 2
    share = np.cumsum(carried, axis=1) / carried.sum(axis=1, keepdims=True)  # of the weakest directions first
    weakest = np.sort(found[(share <= constant.UNINFORMED_SHARE).sum(axis=1)])[::-1]
    return " | ".join(f"{value:,.0f}" for value in (fit._known.noise, needed, found[-1], np.median(found))) + (
        f" | {needed / weakest[0]:.1f} | {needed / weakest[9]:.0f}"
    )


LARGER = ((130_000, 1.0), (400_000, 1.0), (1_200_000, 1.0), (130_000, 5.0), (400_000, 5.0))
"""Records and ε at which the 43 columns are looked at again."""


def larger(schema, table):
    """When would there be intervals? Rows of the table drawn again and again, responses from a model with a known truth."""
    kept = {name: column for name, column in schema.columns.items() if name not in ("education", "native_country")}
    schema = od.Schema(columns=kept, dataset=schema.dataset)
    question = regression_for(schema, "income", model="logistic", options=Options())
    encoded = choose(question, od.ApproxDP(1.0, DELTA), n=table.num_rows).best.model.summarise(
        od.read(table.drop_columns(["education", "native_country"]), schema, target="income")
    )
    X, y = np.asarray(encoded.X), np.asarray(encoded.y)
    truth = LogisticRegression(C=1.0, solver="newton-cholesky", fit_intercept=False).fit(X, y > 0.0).coef_[0]
    yield from ("## When there would be intervals", "")
    yield (
        "At n = 26,000 the information of 43 or 99 columns is measured with a noise that reaches as far as itself, and every coefficient depends a little on "
        "directions whose information does not stand out of it. So none is given, and no sign can be wrong. More records change "
        "that slowly: a coefficient is given only when the last of its directions is trusted. The 43 columns again, with rows drawn from the table, responses from a "
        "fitted model and its coefficients as the truth, one fit each:"
    )
    yield from ("", "| n | ε | directions trusted | coefficients given | of those covered at 95 % | that exclude 0 | sign wrong | smallest doubtful share (at most 0.05 to be given) |")  # fmt: skip
    yield "| ---: | --- | --- | --- | --- | --- | --- | --- |"
    for n, epsilon in LARGER:
        yield simulated(question, X, truth, n, epsilon)


def simulated(question, X, truth, n, epsilon):
    rng = np.random.default_rng(n)
    plan = choose(question, od.ApproxDP(epsilon, DELTA), n=n).best
    rows = X[rng.integers(0, len(X), n)]
    labels = np.where(rng.uniform(size=n) < special.expit(rows @ truth), 1.0, -1.0)
    target = plan.target(Encoded(n, rows, labels))
    fit = FitResult.of(target.problem, Stages(target, Noise(rng, pure=target.problem.pure)).run())
    if not fit.informed:
        return f"| {n:,} | {epsilon:g} | information not measured | 0 | – | – | – | – |"
    low, high = fit.conf_int(0.95).T
    covered, apart = (low <= truth) & (truth <= high), (low > 0.0) | (high < 0.0)
    wrong = int((np.sign(fit.estimate) != np.sign(truth))[apart].sum())
    return (
        f"| {n:,} | {epsilon:g} | {fit.trust.trusted.sum()} of {len(fit.trust.trusted)} | {fit.given.sum()} of {len(truth)} | {covered[fit.given].sum()} | {apart.sum()} | "
        f"{wrong} | {fit.doubtful_shares.min():.2f} |"
    )


def one(schema, table, positive, epsilon, seed):
    order = np.random.default_rng(seed).permutation(len(positive))
    train, test = order[:FITTED], order[FITTED:]
    began = time.process_time()
    question = regression_for(schema, "income", model="logistic", options=Options())
    plan = choose(question, od.ApproxDP(epsilon, DELTA), n=FITTED).best
    found = release(plan, od.read(table.take(train), schema, target="income"))
    seconds = time.process_time() - began
    X_train = found.predictor.rows(table.take(train))
    X_test = found.predictor.rows(table.take(test))
    usual = LogisticRegression(C=1e6, solver="newton-cholesky", fit_intercept=False).fit(X_train, positive[train])
    ours = roc_auc_score(positive[test], X_test @ found.draws[0])
    plain = roc_auc_score(positive[test], X_test @ usual.coef_[0])
    return ours, plain, seconds, *signs(found, plan, usual.coef_[0])


def signs(found, plan, usual):
    """How many coefficients have an interval that excludes 0, and how many of those another sign than without privacy."""
    fit = fit_of(found.certificate, plan)
    if not fit.informed:
        return 0, 0
    low, high = fit.conf_int(0.95).T
    apart = np.isfinite(low) & ((low > 0.0) | (high < 0.0))
    in_columns = plan.model.in_column_units(usual)
    return int(apart.sum()), int((np.sign(fit.estimate) != np.sign(in_columns))[apart].sum())


if __name__ == "__main__":
    main()
