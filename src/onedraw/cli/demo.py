"""`onedraw demo`: a mean by group and a logistic regression of a real medical data set, end to end, with nothing to prepare.

scikit-learn's bundled breast-cancer data play the private file. Of 569 records a mean has an interval at ε = 0.5, a regression at
ε = 1 has none yet, and both say so: plan, release, verify, audit, report.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from onedraw.defaults import DELTA, LEVEL

from .options import AsJson
from .plan import figure_of, show_designs
from .release import show_estimates
from .show import number, show_json, show_lines, waiting

# What a pathologist knows of such slides before seeing any of these, in the units of the measuring program: radii of cell
# nuclei in pixels, texture as the spread of grey values, concave points as a share of the outline. Round numbers, not the
# extremes of the file: those belong to single persons.
SCHEMA = """\
dataset: breast-cancer-demo
columns:
  diagnosis: {kind: binary, levels: [benign, malignant], missing: benign}
  radius: {kind: number, lower: 5, upper: 25, missing: 15}
  texture: {kind: number, lower: 5, upper: 35, missing: 20}
  concave_points: {kind: number, lower: 0, upper: 0.2, missing: 0.05}
"""
COLUMNS = {"radius": "mean radius", "texture": "mean texture", "concave_points": "mean concave points"}

FOLDER = Path("onedraw-demo")
TARGET, MODEL = "diagnosis", "logistic"
EPSILON = 1.0
AVERAGED, AVERAGE_EPSILON = "radius", 0.5
BUDGET = (3.0, 1e-5)

NEW = "radius,texture,concave_points\n11,15,0.02\n20,26,0.12\n"
"""Two made-up patients to score."""


def demo(
    folder: Annotated[Path, typer.Option("--folder", help="Where to write; each run gets its own folder.")] = FOLDER,
    as_json: AsJson = False,
) -> None:
    """A private mean by group and a regression of a real medical data set: plan, release, verify, audit, report."""
    from onedraw.data import Schema
    from onedraw.ledger import Ledger
    from onedraw.planning import Options
    from onedraw.privacy import ApproxDP
    from onedraw.release import verify
    from onedraw.report import write_report

    place = prepare(folder)
    schema = Schema.load(place / "schema.yaml")
    ledger = Ledger.open(place / "ledger.db", create=True)
    ledger.init(str(schema.dataset), ApproxDP(*BUDGET), note="demonstration")
    _, means, _ = released(place, ledger, AVERAGED, "mean", AVERAGE_EPSILON, Options(by=(TARGET,)))
    result, found, planned = released(place, ledger, TARGET, MODEL, EPSILON)
    verified = verify(place / "release.json", ledger=ledger)
    audit = audited(place / "release.json")
    report = {"interval": found, "plan_table": planned.choices, "audit": audit.report}
    write_report(result, place / "report.html", ledger=ledger, **report)
    predictions, right = predicted(place)
    left = ledger.remaining(str(schema.dataset))
    document = {
        "folder": str(place), "means": means.to_dicts(), "means_release": str(place / "means.json"),
        "means_report": str(place / "means.html"), "plan": planned.to_dict()["eligible"], "why": planned.choices.why, "sentence": result.certificate.sentence,
        "may_publish": result.certificate.may_publish("release.json and report.html"),
        "estimates": found.to_dicts(), "why_no_interval": found.reason, "verified": verified.answer,
        "audit": audit.to_dict(), "predictions": predictions, "right": right,
        "epsilon_left": left.epsilon, "delta": left.delta, "report": str(place / "report.html"),
        "release": str(place / "release.json"),
    }  # fmt: skip
    if as_json:
        show_json(document)
    else:
        show(document, place)
    if not audit.passed:
        raise typer.Exit(3)


def prepare(folder: Path) -> Path:
    """A folder of its own, with the schema, the private file and two new records."""
    from onedraw.errors import CannotWrite

    place = folder / datetime.now().strftime("run-%Y%m%d-%H%M%S-%f")
    try:
        place.mkdir(parents=True)
        (place / "schema.yaml").write_text(SCHEMA, encoding="utf-8")
        (place / "new.csv").write_text(NEW, encoding="utf-8")
        (place / "patients.csv").write_text(patients(), encoding="utf-8")
    except OSError as error:
        raise CannotWrite(
            f"The folder {folder} cannot be written ({error.strerror}). Choose another one with --folder."
        ) from error
    return place


def patients() -> str:
    """The private file, as CSV."""
    from sklearn.datasets import load_breast_cancer

    data = load_breast_cancer()
    chosen = [list(data.feature_names).index(name) for name in COLUMNS.values()]
    rows = [
        ",".join(["malignant" if label == 0 else "benign", *(f"{value:g}" for value in values)])
        for label, values in zip(data.target, data.data[:, chosen], strict=True)
    ]
    return "\n".join([",".join([TARGET, *COLUMNS]), *rows]) + "\n"


def released(place: Path, ledger: Any, target: str, model: str, epsilon: float, options: Any = None) -> tuple[Any, ...]:
    """(the release, its estimates, its plan); the mean's with a report of its own."""
    from onedraw.data import Schema, read
    from onedraw.planning import Options, ask
    from onedraw.privacy import ApproxDP
    from onedraw.release import release
    from onedraw.release.estimates import estimates_of
    from onedraw.report import write_report

    asked = ask(Schema.load(place / "schema.yaml"), target, model, options or Options())
    records = read(place / "patients.csv", asked.schema, target=target)
    with waiting("planning, from public numbers"):
        planned = asked.planned(ApproxDP(epsilon, DELTA), n=records.n)
    name = "release" if model == MODEL else "means"
    with waiting("drawing"):
        result = release(planned.plan, records, ledger=ledger, label=asked.label, out=place / f"{name}.json")
    found = estimates_of(result.certificate, planned.plan, LEVEL, reason=planned.why_no_interval)
    if name == "means":
        write_report(result, place / "means.html", ledger=ledger, interval=found)
    return result, found, planned


def audited(path: Path) -> Any:
    """What `onedraw audit release.json --budget demo` finds."""
    from onedraw.audit.cases.investigation import tasks_for

    from .audit import effort_for, from_release, run

    effort, (_, cases, sampler) = effort_for("demo"), from_release(path)
    with waiting("attacking the mechanism"):
        return run(tasks_for(cases, effort, sampler=sampler), effort, confidence=0.95, seed=None)[0]


def predicted(place: Path) -> tuple[list[dict[str, Any]], float]:
    """The two new patients as `onedraw predict` scores them; and what a demonstration may show and a real release may not: how
    often the published model is right in the file."""
    import csv

    from onedraw.release import Release

    model = Release.load(place / "release.json")
    found, labels = model.predict(place / "new.csv"), model.predict(place / "patients.csv").labels
    with (place / "patients.csv").open(encoding="utf-8", newline="") as file:
        right = [row[TARGET] == label for row, label in zip(csv.DictReader(file), labels, strict=True)]
    scored = [
        {"class": label} | dict(zip(found.columns, map(float, values), strict=True))
        for label, values in zip(found.labels, found.values, strict=True)
    ]
    return scored, sum(right) / len(right)


def show(document: dict[str, Any], place: Path) -> None:
    show_estimates(f"1  Release: mean {AVERAGED} by {TARGET}, ε = {AVERAGE_EPSILON:g}", document["means"])
    show_lines("", "2  Plan a regression: how good would it be? (For this no record is read.)")
    for row in document["plan"]:
        show_designs(row)
    show_lines("")
    show_estimates(f"3  Release: log-odds of {TARGET} = malignant", document["estimates"])
    show_lines(document["sentence"], document["may_publish"])
    if document["why_no_interval"]:
        show_lines(f"No interval: {document['why_no_interval'].rstrip('.')}.")
    audit = document["audit"]
    show_lines(
        "", f"4  Verify: {document['verified']}; the promise follows from the certificate's numbers, and the ledger holds it.",
        "", f"5  Audit: {'passed' if audit['passed'] else 'BROKEN'}; the strongest attack we know shows ε = {figure_of(audit['exact_epsilon'])}; "
        f"promised is at most {number(audit['promised_epsilon'])}.",
        "", "6  Predict two new patients:",
        *(f"   {row['class']}, with probability {max(value for name, value in row.items() if name != 'class'):.0%}" for row in document["predictions"]),
        f"   (In the file the published model is right for {document['right']:.0%}; never printed in real use.)",
        "", f"Reports: {document['means_report']}",
        f"         {document['report']}",
        f"Everything is in {place}: the schema, the ledger, the certificate. Try:",
        f"  onedraw ledger show {place / 'ledger.db'}",
        f"  onedraw verify {place / 'release.json'} --ledger {place / 'ledger.db'}",
        f"  onedraw predict {place / 'release.json'} {place / 'new.csv'}",
    )  # fmt: skip
