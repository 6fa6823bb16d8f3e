"""`onedraw audit`: attack a mechanism, and print the promise and the best lower bound side by side. No data is read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from onedraw.defaults import DELTA

from .options import AsJson
from .show import console, number, progress, show_json, show_lines, show_table

LITERATURE = Path("literature")
FAULTS = ["row", "paper", "claim", "what is false", "shown by", "quantity", "claimed", "measured"]
COLUMNS = ["mechanism", "promise", "ε promised", "ε shown", "gap", "fault caught", "by draws"]


def audit(
    release_file: Annotated[
        Path | None, typer.Argument(metavar="[RELEASE]", help="A release file: its own mechanism and numbers are attacked. Or the word literature: what published papers promise and do not keep.")
    ] = None,
    model: Annotated[str | None, typer.Option("--model", help="Or a model: proportion, histogram, mean, rate, duration, covariance, linear, logistic, hinge, huber, least-squares, gaussian, log-cosh, quantile, counts, classes.")] = None,
    epsilon: Annotated[float | None, typer.Option("--epsilon", help="The promise's ε.")] = None,
    delta: Annotated[float, typer.Option("--delta", help="The promise's δ; 0 means pure.")] = DELTA,
    mechanism: Annotated[str | None, typer.Option("--mechanism", help="Only mechanisms whose name begins so, e.g. gibbs-gdp.")] = None,
    effort: Annotated[str, typer.Option("--effort", help="demo (5 s), quick (a minute) or full (says how long first).")] = "quick",
    rounds: Annotated[int | None, typer.Option("--rounds", min=1, max=10**8, help="Rounds of each attack on draws, instead of the effort's.")] = None,
    confidence: Annotated[float, typer.Option("--confidence", help="With which a bound from draws holds.")] = 0.95,
    seed: Annotated[int | None, typer.Option("--seed", min=0, help="Repeats the attacks exactly; nothing here is private.")] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Also write everything as JSON; must not exist.")] = None,
    figure: Annotated[Path | None, typer.Option("--figure", help="Also draw the closest case's trade-off curve.")] = None,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Attack a mechanism on synthetic worst cases; exit code 3 if a promise is broken.

    `onedraw audit literature` computes the faults of published papers; exit code 3 if one of them cannot be shown.
    """
    from onedraw.audit.cases.investigation import tasks_for
    from onedraw.errors import check_extra
    from onedraw.release import check_writable

    if release_file == LITERATURE:
        return show_literature(as_json=as_json)
    if figure is not None:
        check_extra("figures", "matplotlib", "--figure")
    for target in (out, figure):
        if target is not None:
            check_writable(target)
    level = effort_for(effort)
    subject, cases, sampler = subject_of(release_file, model, mechanism, epsilon, delta)
    tasks = tasks_for(cases, level, rounds=rounds, confidence=confidence, sampler=sampler)
    found = run(tasks, level, confidence=confidence, seed=seed)
    document = {
        **subject, "effort": level.name, "confidence": confidence, "passed": all(one.passed for one in found),
        "cases": [one.to_dict() for one in found],
    }  # fmt: skip
    if out is not None:
        out.write_text(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")
    if figure is not None:
        min(found, key=lambda one: (round(one.gap, 2), not one.attacks)).report.figure(figure)
    if as_json:
        show_json(document)
    else:
        show(document, found, [path for path in (out, figure) if path is not None])
    if not document["passed"]:
        raise typer.Exit(3)


def show_literature(*, as_json: bool) -> None:
    """What papers claim against what the audit measures, each on a pair that anyone can compute again."""
    from onedraw.audit.cases import faults

    found = faults()
    if as_json:
        show_json({"faults": [fault.to_dict() for fault in found]})
    else:
        rows = [
            [one.row, one.paper, one.claim, one.wrong, one.pair, one.quantity, number(one.claimed), number(one.value)]
            for one in found
        ]
        show_table("Published, and false", FAULTS, rows)
        show_lines(
            "",
            "Rows are those of docs/errata-of-the-literature.md. onedraw uses the corrected statements; no record was read.",
        )
    if not all(fault.shown for fault in found):
        raise typer.Exit(3)


def effort_for(name: str) -> Any:
    from onedraw.audit.cases.investigation import EFFORTS
    from onedraw.errors import WrongCall

    if name not in EFFORTS:
        raise WrongCall(f"--effort is one of {', '.join(EFFORTS)}; got {name!r}.")
    return EFFORTS[name]


def subject_of(
    release_file: Path | None, model: str | None, mechanism: str | None, epsilon: float | None, delta: float
) -> tuple[dict[str, Any], list[Any], Any]:
    """What is audited, as words; its cases; and the sampler, where a release names one."""
    from onedraw.errors import WrongCall
    from onedraw.methods import catalog
    from onedraw.privacy import epsilon_delta

    if release_file is not None:
        if model is not None or mechanism is not None or epsilon is not None:
            raise WrongCall(
                "A release file says which model, mechanism and ε are attacked; --model, --mechanism and --epsilon do not go "
                "with it. Leave them out, or leave out the file."
            )
        return from_release(release_file)
    if model is None:
        raise WrongCall(f"There is nothing to attack: pass a release file, or --model with one of {', '.join(catalog.model_words())}.")  # fmt: skip
    if epsilon is None:
        raise WrongCall("An audit needs the promise it is to test: without one nothing can be broken. Pass --epsilon 1, say.")  # fmt: skip
    asked = epsilon_delta(epsilon, delta)
    subject = {"model": model, "mechanism": mechanism, "asked": asked.to_dict(), "title": f"{model}: {asked}"}
    return subject, catalog.cases(model, asked, mechanism=mechanism), None


def from_release(path: Path) -> tuple[dict[str, Any], list[Any], Any]:
    """The certificate is verified, its plan derived again, and attacked with the sampler it names."""
    from onedraw.methods import catalog
    from onedraw.release import load
    from onedraw.samplers.choice import read_sampler

    release = load(path)
    certificate, case = release.certificate, catalog.case_for(release.plan)
    subject = {"release": str(path), "sentence": release.sentence, "plan_digest": release.plan.digest,
               "fingerprint": certificate.fingerprint, "title": f"{path.name}: {release.sentence}"}  # fmt: skip
    return subject, [case], read_sampler(release.plan, certificate.sampler)


def run(tasks: Any, effort: Any, *, confidence: float, seed: int | None) -> list[Any]:
    """The examinations, with a bar that moves by cases: their number and the time stated are public."""
    import numpy as np

    from onedraw.audit.cases.investigation import investigate

    if effort.thorough:
        seconds, most = sum(task.seconds for task in tasks), max(task.rounds for task in tasks)
        about = f"{max(1, round(seconds))} seconds" if seconds < 100 else f"{round(seconds / 60)} minutes"
        console(stderr=True).print(f"{len(tasks)} case(s), up to {most:,} rounds each: about {about}.")
    generator = np.random.default_rng(seed)
    with progress("auditing", total=len(tasks)) as step:
        return list(investigate(tasks, effort, confidence=confidence, generator=generator, progress=step))


def show(document: dict[str, Any], found: list[Any], written: list[Path]) -> None:
    from onedraw.audit.cases.investigation import CONFIRMING_CONFIDENCE, CONFIRMING_ROUNDS, in_words

    show_table(document["title"], COLUMNS, [
        [one.case.name, in_words(one.case.promise), number(one.promised_epsilon), number(one.exact_epsilon), number(one.gap),
         "—" if one.factor is None else f"× {one.factor:.4g}",
         "—" if one.attacked_epsilon is None else number(one.attacked_epsilon)]
        for one in found
    ])  # fmt: skip
    for one in found:
        if one.report.violation is not None:
            show_lines(f"BROKEN: {one.case.name}: {one.report.violation}.")
        for departure in one.departures or ():
            show_lines(f"BROKEN: {one.case.name}: replayed on synthetic tables, {departure}.")
    show_lines(
        "",
        "ε shown: by the exact profile of the worst known pair, at the promise's δ. Gap: what is promised over what that pair "
        "attains, in the promise's own currency; 1 is attained. Fault caught: the smallest factor on the weight that the exact "
        f"audit notices. By draws: ε shown by the library's own draws, at confidence {document['confidence']:g}; "
        f"an attack that shows more than promised is repeated with {CONFIRMING_ROUNDS} times the rounds at {CONFIRMING_CONFIDENCE:g}.",
        *sorted({f"No draws of {one.case.name}: {why}." for one in found for why in one.left_out}),
        *(
            f"Replayed on two neighbouring synthetic tables: every stage of {one.case.name} is what its plan declares."
            for one in found
            if one.departures == ()
        ),
        *(f"Written to {path}." for path in written),
        "Passing is not a proof; no record was read." if document["passed"] else "Do not release with this mechanism.",
    )
