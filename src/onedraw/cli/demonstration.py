"""`onedraw demo`: three releases of a real medical data set, end to end, with nothing to prepare.

scikit-learn's bundled breast-cancer data play the private file. The bounds in the schema are what a clinician would
declare beforehand, not what the file holds.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from .flags import AsJson
from .show import show_json, show_lines, show_table

SCHEMA = """\
dataset: breast-cancer-demo
columns:
  diagnosis: {kind: binary, levels: [benign, malignant], missing: benign}
  texture: {kind: category, levels: [fine, medium, coarse, very coarse], missing: medium}
  radius: {kind: number, lower: 5, upper: 30, missing: 15}
"""

QUESTIONS = (("proportion", "diagnosis"), ("histogram", "texture"), ("mean", "radius"))
EPSILON, DELTA = 1.0, 1e-6


def demo(
    folder: Annotated[Path, typer.Option("--folder", help="Where to write; each run gets a folder of its own.")] = Path(
        "onedraw-demo"
    ),
    as_json: AsJson = False,
) -> None:
    """A proportion, a histogram and a mean of a real medical data set: schema, plan, release, verify, books."""
    from onedraw.data import Schema
    from onedraw.ledger import Ledger
    from onedraw.privacy import ApproxDP

    place = folder / datetime.now().strftime("run-%Y%m%d-%H%M%S-%f")
    place.mkdir(parents=True)
    (place / "schema.yaml").write_text(SCHEMA, encoding="utf-8")
    write_patients(place / "patients.csv")
    schema = Schema.load(place / "schema.yaml")
    ledger = Ledger.open(place / "books.db", create=True)
    ledger.init(str(schema.dataset), ApproxDP(3 * EPSILON, 3 * DELTA), note="demonstration")
    shown = [publish(question, target, place, schema, ledger) for question, target in QUESTIONS]
    left = ledger.remaining(str(schema.dataset))
    if as_json:
        show_json({"folder": str(place), "releases": shown, "epsilon_left": left.epsilon, "delta": left.delta})
        return
    for release in shown:
        show_lines(f"\n{release['question']} of {release['target']}", release["sentence"])
        show_table("", ["", "released", "in the file (never printed in real use)"],
                   [[name, f"{value:.4g}", f"{truth:.4g}"] for name, value, truth in release["table"]])  # fmt: skip
        show_lines(f"verify: {release['verified']}")
    show_lines(
        "",
        f"Spent so far: ε = {left.spent_epsilon:.4g} of {3 * EPSILON:g} at δ = {left.delta:g} (three releases cost less than "
        "three times one: they compose).",
        f"Everything is in {place}: the schema, the books, and one certificate per release. Try:",
        f"  onedraw ledger show {place / 'books.db'}",
        f"  onedraw verify {place / 'proportion.json'} --ledger {place / 'books.db'}",
    )


def publish(question: str, target: str, place: Path, schema: Any, ledger: Any) -> dict[str, Any]:
    import onedraw.release as door
    from onedraw.data import read
    from onedraw.planning import choices, model_for
    from onedraw.privacy import ApproxDP

    records = read(place / "patients.csv", schema, target=target)
    budget = ApproxDP(EPSILON, DELTA)
    model = model_for(schema, target, question=question, n=records.n, budget=budget)
    plan = choices(model, budget, n=records.n).best
    release = door.release(plan, records, ledger=ledger, label=f"{question} of {target}")
    out = place / f"{question}.json"
    release.save(out)
    return {
        "question": question, "target": target, "sentence": release.certificate.sentence, "file": str(out),
        "table": [list(row) for row in zip(release.certificate.draw.names, release.draws[0].tolist(), truths(records, question), strict=True)],
        "verified": door.verify(out, ledger=ledger).answer,
    }  # fmt: skip


def truths(records: Any, question: str) -> list[float]:
    """What the demonstration may show and a real release may not: the same figures without privacy."""
    import numpy as np

    values = np.concatenate(list(records.values()))
    if question == "histogram":
        return [float(share) for share in np.bincount(values, minlength=4) / values.size]
    return [float(values.mean())]


def write_patients(path: Path) -> None:
    from sklearn.datasets import load_breast_cancer

    data = load_breast_cancer()
    column = list(data.feature_names).index
    diagnosis = ["malignant" if label == 0 else "benign" for label in data.target]
    texture = [texture_class(value) for value in data.data[:, column("mean texture")]]
    radius = data.data[:, column("mean radius")]
    rows = [f"{d},{t},{r}" for d, t, r in zip(diagnosis, texture, radius, strict=True)]
    path.write_text("\n".join(["diagnosis,texture,radius", *rows]) + "\n", encoding="utf-8")


def texture_class(value: float) -> str:
    """Public cut points, as a clinic might fix them."""
    return "fine" if value < 15 else "medium" if value < 20 else "coarse" if value < 25 else "very coarse"
