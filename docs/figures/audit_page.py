"""Every mechanism of the project, attacked: writes docs/audit-of-every-mechanism.md from the audit's own output.

    python docs/figures/audit_page.py            # audits everything (some minutes), writes the JSON result and the page
    python docs/figures/audit_page.py --render   # writes the page again from the stored result
    python docs/figures/audit_page.py --mechanism perturbed-mode   # audits these anew, keeps what is stored of the others

The exact part of the result comes out the same every time; the attacks on draws are random, and are stored as they fell.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

import onedraw as od
from onedraw.audit.cases import faults, investigation
from onedraw.methods.catalog import YARDSTICK, cases, model_words

DOCS = Path(__file__).parents[1]
RESULT = DOCS / "assets" / "audit-of-every-mechanism.json"
PAGE = DOCS / "audit-of-every-mechanism.md"

EPSILON, DELTA = 1.0, 1e-5
EFFORT = investigation.Effort("page", 40_000, 400.0, ("membership", "bayes"), chains=True, faults=True, thorough=True)

HEAD = """\
# Every mechanism, attacked

<!-- Written by docs/figures/audit_page.py from docs/assets/audit-of-every-mechanism.json. Do not edit. -->

Each mechanism of the library is planned for ε = {epsilon:g}, δ = {delta:g} (pure ε = {epsilon:g} where it needs no δ) and attacked on
the worst pair of neighbouring data sets that is known for it. The law of its draw is written down a second time, from the
papers, in the `audit` module of each method; the package `onedraw.audit` that judges it imports neither mechanisms nor models. `onedraw audit
--model logistic --epsilon 1` runs the same for one model, `onedraw audit release.json` for the numbers of a release. For a
mechanism of your own: [audit the mechanism you added](auditing-your-mechanism.md).

* **ε promised, ε shown**: at the promise's δ, by the theorem and by the exact profile of the pair (quadrature or summation,
  rounded down). A promise would be broken if the second exceeded the first.
* **Gap**: what is promised over what the pair attains, in the promise's own currency (ε, range of the log-ratio, μ, Rényi
  divergence). 1 means that nothing could be promised that is smaller. ε shown may be smaller all the same: where the
  promise is a Rényi curve or a bounded range, its (ε, δ) is a further step that gives some away.
* **Fault caught**: the smallest factor on the records' weight at which the exact audit says "broken", found to 0.2 %.
* **Fits in stages** (perturbed modes, averaged steps, clipped gradients) and draws in measured coordinates: every stage is given the pair that is worst for it, as the promise covers; no single pair
  of tables is all of these at once, and the mode's other records add a constant pull, more than any of them would. So "ε shown"
  is how much of the theorem is attained. The fault is a factor on all noises. Their programs are not attacked by draws but
  replayed.
* **Shown by draws**: the lower bound on ε from the library's own draws, by the Bayes-optimal membership attack (its own
  threshold, and one chosen on held-out rounds) with up to {rounds:,} rounds each, together at confidence {confidence:g}. An attack that shows more than promised is
  repeated with four times the rounds, all new, at confidence 0.9999. ε shown by draws is far below the exact figure, as it must be: at small ε a draw says little.
"""

TABLE = (
    "| mechanism | promise | ε promised | ε shown | gap | fault caught | shown by draws |\n"
    "| --- | --- | ---: | ---: | ---: | ---: | ---: |"
)

FAULTS_HEAD = """\
## The literature's faults, shown

The same auditor on published procedures, each written down as a test double ([errata](errata-of-the-literature.md)):
`onedraw audit literature` computes them.

| row | paper | claim | what is false | shown by | quantity | claimed | measured |
| --- | --- | --- | --- | --- | --- | ---: | ---: |"""

TAIL = """\
## Faults of a program

A theorem is about a density; a release is made by a program. The replay audit (`experiments/program_audit`) runs it with the
same randomness on neighbouring data sets, of 1, 2, 3 and 10 records, with records that are NaN, infinite, enormous or no
numbers at all, and compares everything that can be seen from outside: plan, certificate but for the draw, printed lines,
warnings, error messages, exit codes, ledger events. Planted and caught, each in a test: a clip removed, a bound read from the
data, n that depends on the data, a diagnostic in the certificate, a record that raises. `audit_releases` compares certificates
with the ledger and catches one draw released twice for one spend, and a seed used for two releases. `audit_reading` puts
neighbours into lists, NumPy, pandas, Polars and Arrow containers, where one odd cell changes the type of all others, and
catches a program that reads more than the replaced record differently: labels or numbers read by their type, columns cast as a
whole, rows measured by their commonest length.

`replay_fit` runs a fit stage by stage on two neighbouring tables, writes down every sum that is handed to the noise and every
noise that comes back, and computes all of them a second time from the formulas: column sums, second moments, the gradient of the
perturbed objective where the program stopped, information and variability. `audit_noise` asks whether the noise has the size it
was asked for. Planted and caught: a stage with nine tenths of its noise (by the profile and by the replay), weights forgotten,
half the ridge, a promise with half the sensitivity or without the volume, a stage left out, a tolerance ignored, and rows
shortened where weights are declared, which breaks no promise and is seen by the replay alone.

`replay_steps` does the same for averaged steps: it follows the iterates from the recorded answers, and computes every sum of
scores at the coefficients that the program had reached. Planted and caught: nine tenths of the noise or a longer bound in any part,
a forgotten or an added step, unshortened scores, other sums, and other coefficients.

`replay_clipped` does so for clipped gradients. Planted and caught: nine tenths of the noise in any part, longer gradients, scores or derivatives,
counts that are not squared, an added step, records that count twice, and other coefficients.
"""


def audited(stored: list[dict[str, Any]], mechanism: str | None = None) -> dict[str, Any]:
    """Run everything; or only the cases of one mechanism, and keep the rows of the others. New rows come after those stored."""
    generator, rows, kept = np.random.default_rng(), [], stored if mechanism else []
    known = [title for title in dict.fromkeys(row["title"] for row in stored) if title in (YARDSTICK, *model_words())]
    for model in dict.fromkeys([*known, YARDSTICK, *model_words()]):
        every = cases(model, od.ApproxDP(EPSILON, DELTA))
        places = [row["name"] for row in stored if row["title"] == model]
        order = {name: place for place, name in enumerate(dict.fromkeys([*places, *(case.name for case in every)]))}
        rows_of = [
            row
            for row in kept
            if row["title"] == model
            and row["name"] in {case.name for case in every}
            and not row["key"].startswith(mechanism or "")
        ]
        chosen = [case for case in every if case.key.startswith(mechanism or "")]
        tasks = investigation.tasks_for(chosen, EFFORT) if chosen else []
        found = investigation.investigate(
            tasks, EFFORT, generator=generator, progress=lambda name: print(name, flush=True)
        )
        rows_of += [{"title": model, **trimmed(one.to_dict())} for one in found]
        rows += sorted(rows_of, key=lambda row: order[row["name"]])
    return {
        "epsilon": EPSILON, "delta": DELTA, "confidence": 0.95, "rounds": EFFORT.rounds, "cases": rows,
        "faults": [fault.to_dict() for fault in faults()],
    }  # fmt: skip


def trimmed(row: dict[str, Any]) -> dict[str, Any]:
    """Without the points of every attack."""
    kept = ("method", "epsilon_lower_bound", "accuracy", "rounds0", "rounds1")
    return row | {"attacks": [{name: attack[name] for name in kept} for attack in row["attacks"]]}


def render(result: dict[str, Any]) -> str:
    """The page, from a result."""
    lines = [HEAD.format(**result)]
    for title in dict.fromkeys(row["title"] for row in result["cases"]):
        found = [row for row in result["cases"] if row["title"] == title]
        lines += [f"## {title.replace('-', ' ').capitalize()}\n", TABLE, *map(line, found), "", *reasons(found), ""]
    lines += [
        FAULTS_HEAD,
        *map(fault_line, result["faults"]),
        "",
        TAIL,
    ]
    return "\n".join(lines)


def fault_line(row: dict[str, Any]) -> str:
    words = [row[name] for name in ("row", "paper", "claim", "wrong", "pair", "quantity")]
    return f"| {' | '.join(words)} | {row['claimed']:.4g} | {row['value']:.4g} |"


def line(row: dict[str, Any]) -> str:
    factor, shown = row["smallest_caught_factor"], row["attacked_epsilon"]
    cells = [
        row["name"], row["promise_text"], f"{row['promised_epsilon']:.4g}", f"{row['exact_epsilon']:.4g}", f"{row['gap']:.4g}",
        "none up to × 64" if factor is None else f"× {factor:.4g}", "—" if shown is None else f"{shown:.3g}",
    ]  # fmt: skip
    return f"| {' | '.join(cells)} |"


def reasons(rows: list[dict[str, Any]]) -> list[str]:
    """Why a promise is attained, or by how much it is not: one line for all that share it."""
    said: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        said.setdefault(row["reason"], []).append(row)
    result = []
    for reason, those in said.items():
        loose = [row for row in those if row["gap"] >= 1.01]
        names = ", ".join(dict.fromkeys(row["mechanism"] for row in those))
        gap = f"by a factor of {min(r['gap'] for r in loose):.3g}" if loose else ""
        if loose and f"{max(row['gap'] for row in loose):.3g}" not in gap:
            gap += f" to {max(row['gap'] for row in loose):.3g}"
        result.append(f"* {names}: {'not attained, ' + gap if loose else 'attained'}; {reason}.")
    replayed = [row["name"] for row in rows if row.get("departures") == []]
    if replayed:
        result.append(f"* Replayed on neighbouring tables, every stage as its plan declares: {'; '.join(replayed)}.")
    left_out = {
        f"* No draws of {row['name']}: {why}."
        for row in rows
        if row.get("departures") is None
        for why in row["left_out"]
    }
    return [*result, *sorted(left_out)]


def main() -> None:
    if "--render" not in sys.argv:
        mechanism = sys.argv[sys.argv.index("--mechanism") + 1] if "--mechanism" in sys.argv else None
        stored = json.loads(RESULT.read_text(encoding="utf-8"))["cases"]
        RESULT.write_text(json.dumps(audited(stored, mechanism), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    PAGE.write_text(render(json.loads(RESULT.read_text(encoding="utf-8"))), encoding="utf-8")


if __name__ == "__main__":
    main()
