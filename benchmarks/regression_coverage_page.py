"""Write the page of the coverage study from its cells (regression_coverage.py)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from few_records import least_wide_of_samples, rows_needed

from onedraw.methods.fit.sizes import TAIL_TARGET
from onedraw.privacy.conversions import gaussian_mu

RESULTS = Path(__file__).parent / "results" / "regression_coverage.md"
MODELS = ("linear", "median", "logistic", "poisson")
GROUPS = ("fresh", "fresh-other", "derive", "hold-out", "given", "simulated")
DELTA = 1e-6

MIN_USED_SHARE = 0.2
"""Share of the samples that must be given and reached, for a coefficient's coverage to be counted."""

LOW = 0.88
"""Coverage below which a slope fails, if by more than two standard errors."""

TOO_WIDE = 1.25
"""Printed over realized standard error from which intervals are called too wide."""

CPS_EDUCATION = ("cps_log_wage_3", "linear", 50_000)
CPS_EPSILONS = (0.3, 1.0, 10.0, 100.0)


class Figure(NamedTuple):
    """A slope of a cell."""

    cell: dict[str, Any]
    number: int

    def get(self, name: str) -> float:
        value = self.cell[name][self.number] if name in self.cell else None
        return math.nan if value is None else float(value)

    @property
    def used_share(self) -> float:
        return self.get("used") / float(self.cell["samples"])

    @property
    def low_line(self) -> float:
        """Return 88% less two standard errors of a share of 88%."""
        return low_line(self.get("used"))

    @property
    def fails(self) -> bool:
        """Return whether the slope is judged and covers less than that."""
        return self.used_share >= MIN_USED_SHARE and self.get("coverage") < self.low_line


def low_line(samples: float) -> float:
    """Return 88% less two standard errors of a share of 88%."""
    return LOW - 2.0 * math.sqrt(LOW * (1.0 - LOW) / max(samples, 1.0))


def list_slopes(cells: Iterable[dict[str, Any]]) -> list[Figure]:
    """Return one figure for each slope of each cell that was not refused."""
    return [Figure(cell, number) for cell in cells if "refused" not in cell for number in range(cell["d"])]


def summarize(cells: Sequence[dict[str, Any]], note: str = "", deciding: Mapping[str, Any] | None = None) -> str:
    """Return the page of results, with a note on how they were measured; ``deciding`` says which rows decide each slope."""
    lines = ["# Coverage of averaged steps on tables", "", *_head(cells), *(["", note] if note else [])]
    for group in GROUPS:
        chosen = [cell for cell in cells if cell["group"] == group]
        if chosen:
            lines += ["", f"## Group {group}", "", *_group_table(chosen)]
    lines += ["", "## Where coverage fails", "", *_failures(cells, deciding or {})]
    lines += ["", "## Where intervals are too wide", "", *_too_wide(cells)]
    lines += ["", "## What is withheld or named", "", *_withheld(cells)]
    lines += ["", "## Education in the CPS of 2024", "", *_education(cells)]
    return "\n".join(lines) + "\n"


def _head(cells: Sequence[dict[str, Any]]) -> list[str]:
    samples = sorted({cell["samples"] for cell in cells})
    return [
        "Made by `benchmarks/regression_coverage.py`. A cell is a population, a model, a number of records and ε, with",
        f"δ = {DELTA:g} and {' or '.join(map(str, samples))} samples with replacement. The parameter is the fit of the whole table.",
        "",
        "- given, reached: share of (slope, sample) with an interval, and of samples whose estimand is the plain one. It is not where",
        "  single records are limited, or rare levels counted with the first one.",
        "- coverage: of 95% intervals that are given, in samples that are reached. Mean over slopes.",
        "- below 92%: share of slopes with such a coverage. Below 88%: by more than two standard errors. Both of slopes with",
        f"  at least {100 * MIN_USED_SHARE:.0f}% of the samples given and reached (`judged`).",
        "- coverage given: the same, reached or not, for slopes that are given in at least that share of the samples.",
        "- printed/realized: median printed standard error over the root mean squared error, 10, 50 and 90% quantiles.",
        "- distance: root mean squared distance to the same sample's fit without privacy, in its robust standard errors.",
    ]  # fmt: skip


def _group_table(cells: Sequence[dict[str, Any]]) -> list[str]:
    lines = [
        "| model | n | ε | cells (refused) | slopes | given | reached | judged | coverage | below 92% | below 88% | coverage given | printed/realized | distance 50%, 90% | printed/plain |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- | --- | ---: |",
    ]
    keys = sorted({(MODELS.index(cell["model"]), cell["n"], cell["epsilon"]) for cell in cells})
    for model, n, epsilon in keys:
        chosen = [cell for cell in cells if (cell["model"], cell["n"], cell["epsilon"]) == (MODELS[model], n, epsilon)]
        refused = sum("refused" in cell for cell in chosen)
        slopes = list_slopes(chosen)
        if not slopes:
            lines.append(f"| {MODELS[model]} | {n:,} | {epsilon:g} | {len(chosen)} ({refused}) | | | | | | | | | | | |")
            continue
        judged = [slope for slope in slopes if slope.used_share >= MIN_USED_SHARE]
        coverage = np.array([slope.get("coverage") for slope in judged])
        low = np.array([slope.low_line for slope in judged])
        reached = np.mean([cell["share_reached"] for cell in chosen if "refused" not in cell])
        lines.append(
            f"| {MODELS[model]} | {n:,} | {epsilon:g} | {len(chosen)} ({refused}) | {len(slopes)} "
            f"| {np.mean([slope.get('share_given') for slope in slopes]):.2f} | {reached:.2f} | {len(judged)} "
            f"| {_number(coverage.mean() if judged else math.nan, 3)} "
            f"| {_percent(coverage < 0.92)} | {_percent(coverage < low)} | {_number(_mean_of(slopes, 'coverage_given'), 3)} "
            f"| {_quantiles(judged, 'printed_over_realized', (0.1, 0.5, 0.9))} | {_quantiles(slopes, 'distance', (0.5, 0.9))} "
            f"| {_quantiles(judged, 'printed_over_plain', (0.5,))} |"
        )
    return lines


FEW = 0.01
"""Share of a sample that few records are at most."""

CAUSES = ("without privacy too", "few records", "other", "not looked for")


class Decided(NamedTuple):
    """How few records decide a slope of a cell."""

    records: float
    """The fewest that account for the bias, expected in a sample."""
    passed: float
    """About how many scores this fit lets exceed the length that it shortens them to."""
    least: float
    """The share of intervals that any release of this promise must make longer than half of these are, to cover 88% here and without
    those rows."""


def decided_by(slope: Figure, deciding: Mapping[str, Any]) -> Decided | None:
    """Return how few records decide a slope; None if that was not looked for."""
    cell = slope.cell
    entry = deciding.get(f"{cell['population']} {cell['model']}")
    if entry is None:
        return None
    side, usual = ("up" if slope.get("bias") > 0.0 else "down"), slope.get("plain_error")
    mu, per_row = gaussian_mu(cell["epsilon"], DELTA), cell["n"] / entry["rows"]
    records = per_row * rows_needed(entry, slope.number, side, abs(slope.get("bias")) * usual)
    printed = slope.get("printed") if "printed" in cell else slope.get("median_error")
    rows = rows_needed(entry, slope.number, side, 2.0 * 1.96 * printed)
    least = 0.0
    if math.isfinite(rows):
        least = least_wide_of_samples(rows / entry["rows"], cell["n"], mu, 1.0 - LOW, given=slope.used_share)
    return Decided(records, TAIL_TARGET * math.sqrt(cell["d"] + 1) / mu, least)


def cause_of(slope: Figure, decided: Decided | None) -> str:
    """Return why a slope fails, as far as the table itself says it."""
    if slope.get("coverage_plain") < low_line(slope.cell["samples"]):
        return CAUSES[0]
    if decided is None:
        return CAUSES[3]
    biased = abs(slope.get("bias")) >= slope.get("spread_over_plain")
    few = decided.records <= min(decided.passed, FEW * slope.cell["n"])
    return CAUSES[1] if biased and few else CAUSES[2]


def _failures(cells: Sequence[dict[str, Any]], deciding: Mapping[str, Any]) -> list[str]:
    lines = [
        "Slopes that are judged and cover less than 88% by more than two standard errors. Bias, printed and spread in plain",
        "standard errors.",
        "",
        "- without privacy: coverage of the same samples' intervals from the fit without privacy and its robust standard errors.",
        "- records: how few, left out, account for the bias (few_records.py), in a sample of n. In brackets how many scores the fit lets",
        "  exceed the length that it shortens them to.",
        "- cause: *without privacy too*, if that coverage fails by the same measure; else *few records*, if bias is at least the spread",
        f"  and they are no more than the number in brackets and {100 * FEW:.0f}% of the records; else *other*.",
        "- must be longer: share of intervals that any release of this promise would have to make longer than half of these are, to",
        "  cover 88% here and on the table without those rows (few_records.md). From one half on nothing private covers both so shortly.",
        "",
    ]  # fmt: skip
    failing = [(slope, decided_by(slope, deciding)) for slope in list_slopes(cells) if slope.fails]
    if not failing:
        return ["None."]
    lines += ["| group | judged | " + " | ".join(CAUSES) + " |", "| --- | ---: |" + " ---: |" * len(CAUSES)]
    for group in GROUPS:
        causes = [cause_of(*pair) for pair in failing if pair[0].cell["group"] == group]
        judged = sum(s.used_share >= MIN_USED_SHARE and s.cell["group"] == group for s in list_slopes(cells))
        if judged:
            lines.append(f"| {group} | {judged:,} | " + " | ".join(str(causes.count(cause)) for cause in CAUSES) + " |")
    lines += [
        "",
        "| group | population | model | n | ε | slope | coverage | samples | without privacy | bias | printed | spread | specification | limited | records | must be longer | cause |",
        "| --- | --- | --- | ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |",
    ]
    return lines + [_failure(slope, decided) for slope, decided in failing]


def _failure(slope: Figure, decided: Decided | None) -> str:
    cell = slope.cell
    few = f"{decided.records:.0f} ({decided.passed:.0f}) | {decided.least:.2f}" if decided else "- | -"
    return (
        f"| {cell['group']} | {cell['population']} | {cell['model']} | {cell['n']:,} | {cell['epsilon']:g} | {cell['names'][slope.number]} "
        f"| {slope.get('coverage'):.2f} | {slope.get('used'):.0f} | {_number(slope.get('coverage_plain'), 2)} | {slope.get('bias'):+.2f} "
        f"| {slope.get('printed_over_plain'):.2f} | {slope.get('spread_over_plain'):.2f} | {cell['specification']:.1f} "
        f"| {cell['limited']:.2f} | {few} | {cause_of(slope, decided)} |"
    )


def _too_wide(cells: Sequence[dict[str, Any]]) -> list[str]:
    lines = [
        f"Share of judged slopes whose printed standard error exceeds the realized one by a factor above {TOO_WIDE}.",
        "",
        "| model | n | ε | share | populations with the most |",
        "| --- | ---: | ---: | ---: | --- |",
    ]
    keys = sorted({(MODELS.index(cell["model"]), cell["n"], cell["epsilon"]) for cell in cells})
    for model, n, epsilon in keys:
        chosen = [
            slope
            for slope in list_slopes(cells)
            if (slope.cell["model"], slope.cell["n"], slope.cell["epsilon"]) == (MODELS[model], n, epsilon)
            and slope.used_share >= MIN_USED_SHARE
        ]
        wide = [slope for slope in chosen if slope.get("printed_over_realized") > TOO_WIDE]
        counts: dict[str, int] = {}
        for slope in wide:
            counts[slope.cell["population"]] = counts.get(slope.cell["population"], 0) + 1
        most = ", ".join(f"{name} ({count})" for name, count in sorted(counts.items(), key=lambda pair: -pair[1])[:4])
        if chosen:
            lines.append(f"| {MODELS[model]} | {n:,} | {epsilon:g} | {len(wide) / len(chosen):.2f} | {most} |")
    return lines


def _withheld(cells: Sequence[dict[str, Any]]) -> list[str]:
    lines = [
        "Cells of n = 10,000 that are refused, whose estimand is named in at least a fifth of the samples, or in which at least a",
        "fifth of the intervals of a slope are withheld; at ε = 1, counts at ε = 3.",
        "",
        "| group | population | model | n | ε | named | slopes withheld (share of samples) |",
        "| --- | --- | --- | ---: | ---: | ---: | --- |",
    ]
    shown = [
        cell
        for cell in cells
        if cell["n"] == 10_000 and cell["epsilon"] == (3.0 if cell["model"] == "poisson" else 1.0)
    ]
    for cell in sorted(shown, key=lambda cell: (cell["group"], cell["model"], cell["population"])):
        head = f"| {cell['group']} | {cell['population']} | {cell['model']} | {cell['n']:,} | {cell['epsilon']:g} "
        if "refused" in cell:
            lines.append(f"{head}| refused | all |")
            continue
        withheld = {cell["names"][index]: 1.0 - cell["share_given"][index] for index in range(cell["d"])}
        withheld = {name: share for name, share in withheld.items() if share >= 0.2}
        if withheld or cell["share_reached"] <= 0.8:
            slopes = ", ".join(f"{name} {share:.2f}" for name, share in withheld.items())
            lines.append(f"{head}| {1.0 - cell['share_reached']:.2f} | {slopes} |")
    return lines if len(lines) > 5 else ["Nothing."]


def _education(cells: Sequence[dict[str, Any]]) -> list[str]:
    name, model, n = CPS_EDUCATION
    chosen = {
        cell["epsilon"]: cell
        for cell in cells
        if (cell["population"], cell["model"], cell["n"]) == CPS_EDUCATION and "refused" not in cell
    }
    if not any(epsilon in chosen for epsilon in CPS_EPSILONS):
        return [
            f"Not run: `--only {name} --models {model} --n {n} --epsilon {' '.join(f'{e:g}' for e in CPS_EPSILONS)}`."
        ]
    lines = [
        f"Slope of log wage in years of education ({name}, n = {n:,}), the same samples at each ε. Distances, bias and printed",
        "standard errors in standard errors of the same sample's OLS. Agreement: share of the samples in which the estimate is",
        "within 1.96 standard errors of the privacy noise of both estimates from that of the largest ε.",
        "",
        "| ε | distance | bias | printed | printed for privacy | coverage | agreement |",
        "| ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    samples = min(len(cell["education"]["estimate"]) for cell in chosen.values())
    last = {part: values[:samples] for part, values in chosen[max(chosen)]["education"].items()}
    for epsilon, cell in sorted(chosen.items()):
        slope = Figure(cell, cell["names"].index("educ_years"))
        values = {part: np.array(cell["education"][part][:samples]) for part in cell["education"]}
        noise = np.hypot(values["privacy"], np.array(last["privacy"]))
        agreement = np.mean(np.abs(values["estimate"] - np.array(last["estimate"])) <= 1.96 * noise)
        lines.append(
            f"| {epsilon:g} | {slope.get('distance'):.2f} | {slope.get('bias'):+.2f} | {slope.get('printed_over_plain'):.2f} "
            f"| {slope.get('privacy_over_plain'):.2f} | {slope.get('coverage_given'):.2f} | {agreement:.2f} |"
        )
    return lines


def _quantiles(slopes: Sequence[Figure], name: str, levels: Sequence[float]) -> str:
    values = np.array([slope.get(name) for slope in slopes])
    values = values[np.isfinite(values)]
    return ", ".join(f"{value:.2f}" for value in np.quantile(values, levels)) if len(values) else "-"


def _mean_of(slopes: Sequence[Figure], name: str) -> float:
    values = np.array([slope.get(name) for slope in slopes if slope.get("share_given") >= MIN_USED_SHARE])
    values = values[np.isfinite(values)]
    return float(values.mean()) if len(values) else math.nan


def _number(value: float, digits: int) -> str:
    return f"{value:.{digits}f}" if math.isfinite(value) else "-"


def _percent(marks: np.ndarray) -> str:
    return f"{100.0 * marks.mean():.1f}%" if len(marks) else "-"
