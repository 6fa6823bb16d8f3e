"""What is kept of every release that the command line can make: its certificate, the plan in it, and its report, from fixed seeds.

    make golden                                   # write all files under tests/golden/kept anew
    python -m tests.golden.golden_cases mean …    # only those whose names begin so, or `quick` ones

A change that is meant to leave behaviour alone leaves these files alone. One that is not writes them anew and says so in its
commit; `git diff tests/golden/kept` is then what it changed, number by number.

Numbers are compared to a relative `TOLERANCE`, because another processor rounds otherwise in the last digits, and numbers inside
a text to one unit of their last digit. (Tried with the other versions of requirements.lock, those for Python 3.12 and 3.13: all the same,
but for the expected error of `bounded`, a simulation with a chain.) Fields in `VOLATILE` say when and where something ran, and are left out.
"""

from __future__ import annotations

import copy
import json
import math
import os
import re
import sys
import tempfile
import time
from contextlib import redirect_stdout
from dataclasses import dataclass
from html.parser import HTMLParser
from io import StringIO
from pathlib import Path
from typing import Any

from tests.cli.cases import FEATURES, TARGETS
from tests.golden.baseline_cases import BASELINES

HERE = Path(__file__).resolve().parent
KEPT = HERE / "kept"

VOLATILE = frozenset(
    {"prepared_at", "software", "ledger", "engine", "fingerprint", "plan_digest", "schema_digest", "digest", "seconds"}
)
"""Time, versions, the ledger's entry, who added up, digests (of numbers that are compared themselves), durations."""

VOLATILE_WORDS = re.compile(
    r"[0-9a-f]{32,64}|[0-9a-f]{16}…"  # entries and digests
    r"|\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?(?:\+00:00)?(?: UTC)?)?|\d{1,2} [A-Z][a-z]+ \d{4}(?:,? \d\d:\d\d)?"  # times
    r"|(?:onedraw|numpy|scipy|python) \d+[\w.]*|on [^,]+ \(\w+\), JAX \d+[\w.]*"  # versions and devices
    r"|about [\d.,]+ (?:s|seconds|minutes)\b"  # durations
    r"|\S*/golden-\w+/\S*"  # places
)

TOLERANCE = 1e-6

SIMULATED = {"scores": 0.02}
"""Fields with numbers that are simulated after the release: NumPy's stream of variates is another one in another version."""


@dataclass(frozen=True)
class Case:
    """A command without its files; ``quick`` ones run in `make test`, all in `make test-all`."""

    name: str
    words: str
    quick: bool = False

    @property
    def path(self) -> Path:
        return KEPT / f"{self.name}.json"


def column(name: str, words: str, *, target: str, quick: bool = True) -> Case:
    model, _, rest = words.partition(" ")
    return Case(
        name, f"release patients.csv --schema {target}.yaml --target {target} --model {model} --epsilon 2 {rest}", quick
    )


def regression(target: str, model: str, mechanism: str, rest: str = "", *, quick: bool = False) -> Case:
    name = "-".join(filter(None, [model, mechanism, *re.findall(r"--([a-z-]+)", rest)])).replace(" ", "-")
    asked = f"--schema {target}.yaml --target {target} --model {model} --epsilon 4 --mechanism"
    return Case(name, f"release patients.csv {asked} {mechanism.replace(' ', '_')} {rest}", quick)


EVERYDAY = [
    column("proportion", "proportion", target="ill"),
    column("proportion-by-group", "proportion --by ward", target="ill"),
    column("proportion-between", "proportion --between 1000,6000", target="cost"),
    column("proportion-direct", "proportion --mechanism direct --prior 90,60", target="ill"),
    column("proportion-diffused", "proportion --mechanism diffused", target="ill"),
    column("proportion-concentrated", "proportion --mechanism concentrated", target="ill", quick=False),
    column("proportion-renyi", "proportion --mechanism diffused --order 2", target="ill", quick=False),
    column("proportion-prior", "proportion --prior 2,3", target="ill", quick=False),
    column("histogram", "histogram", target="grade"),
    column("histogram-by-two-groups", "histogram --by ward,smoker --delta 0", target="grade"),
    column("histogram-diffused", "histogram --mechanism diffused", target="grade", quick=False),
    column("count", "count", target="ill"),
    column("count-of-a-level", "count --level mid", target="grade"),
    column("count-by-group", "count --by smoker --mechanism gaussian", target="grade", quick=False),
    column("count-between", "count --between 2,5", target="visits"),
    column("mean", "mean", target="cost"),
    column("mean-laplace", "mean --mechanism laplace --delta 0", target="cost"),
    column("mean-gaussian", "mean --mechanism gaussian", target="cost"),
    column("mean-by-group", "mean --by ward", target="cost"),
    column("mean-diffused", "mean --mechanism diffused", target="cost"),
    column("sum", "sum", target="cost"),
    column("sum-by-group", "sum --by smoker", target="visits"),
    column("variance", "variance", target="cost"),
    column("variance-laplace", "variance --mechanism laplace", target="cost"),
    column("rate", "rate", target="visits"),
    column("rate-diffused", "rate --mechanism diffused", target="visits", quick=False),
    column("duration", "duration", target="cost", quick=False),
    column("median", "median", target="cost"),
    column("median-by-group", "median --by smoker", target="cost"),
    Case("describe", "describe patients.csv --schema cost.yaml --epsilon 2 --by smoker"),
    column("median-pure", "median --delta 0", target="visits"),
    column("quantiles", "quantiles", target="cost"),
    column("quantiles-alone", "quantiles --quantiles 0.1,0.9 --no-interval --delta 0", target="cost"),
    Case("covariance", "release patients.csv --schema cost.yaml --model covariance --epsilon 2"),
    Case("covariance-pure", "release patients.csv --schema cost.yaml --model covariance --columns age,cost --epsilon 2 --delta 0", quick=True),
]  # fmt: skip

FITS = [
    regression("ill", "logistic", "fit", quick=True),
    regression("ill", "logistic", "fit", "--delta 0"),
    regression("ill", "logistic", "fit", "--robust"),
    regression("ill", "logistic", "fit", "--prior-scale 0.5"),
    regression("grade", "softmax", "fit"),
    regression("ill", "svc", "fit"),
    regression("ill", "logistic", "clipped-gradients", quick=True),
    regression("grade", "softmax", "clipped-gradients"),
    regression("visits", "poisson", "clipped-gradients"),
    regression("cost", "linear", "fit"),
    regression("cost", "linear", "fit", "--robust"),
    regression("cost", "linear", "fit", "--effects age,smoker"),
    regression("cost", "quantile", "fit"),
    regression("visits", "poisson", "fit"),
]

PADDED = [
    regression("ill", "logistic", "fit", "--timing padded", quick=True),
    regression("ill", "logistic", "bounded", "--timing padded"),
    regression("ill", "logistic", "candidates", "--timing padded"),
]

BY_NAME = {
    ("ill", "logistic"): ["noisy-gradient measured", "noisy-gradient", "noisy-gradient exp-linear", "gdp", "gdp exp-linear", "bounded", "candidates"],
    ("grade", "softmax"): ["noisy-gradient", "gdp", "bounded"],
    ("ill", "svc"): ["noisy-gradient measured", "noisy-gradient", "gdp", "bounded", "candidates", "barker-path"],
    ("cost", "linear"): ["noisy-gradient measured", "least-squares", "least-squares gdp", "noisy-gradient", "noisy-gradient huber", "gdp huber", "bounded huber"],
    ("cost", "huber"): ["noisy-gradient measured", "noisy-gradient", "gdp", "bounded"],
    ("cost", "quantile"): ["noisy-gradient measured", "noisy-gradient", "gdp", "bounded", "barker-path"],
    ("visits", "poisson"): ["noisy-gradient measured"],
}  # fmt: skip

UNPROVEN = [
    regression("ill", "logistic", "beta-divergence", "--accept assumed"),
    regression("cost", "linear", "beta-divergence", "--variance-floor 1e5 --accept assumed"),
    regression("ill", "network-classifier", "beta-divergence", "--hidden 2 --accept assumed"),
    regression("cost", "network-regressor", "beta-divergence", "--hidden 2 --accept assumed"),
]

REGRESSIONS = [
    *FITS,
    *(
        regression(*question, name, "--draws 2" * (name == "gdp"))
        for question, names in BY_NAME.items()
        for name in names
    ),
    regression("ill", "logistic", "bounded", "--delta 0 --radius 0.5", quick=True),
    regression("cost", "linear", "candidates", "--variance-floor 1e5"),
    regression("visits", "negative-binomial", "candidates", "--dispersion 2"),
    *UNPROVEN,
    *PADDED,
]

HELD_OUT = [
    Case("evaluate-classifier", "evaluate logistic.json patients.csv --epsilon 2", quick=True),
    Case("evaluate-regressor", "evaluate linear.json patients.csv --epsilon 2"),
    Case("choose", "choose logistic.json svc.json patients.csv --epsilon 2"),
]
"""Of the releases that other cases keep: logistic-fit, linear-fit and svc-fit."""

PLANS = [
    Case("plan-mean", "plan --schema cost.yaml --target cost --model mean --epsilon 2 --rows 400", quick=True),
    Case("plan-median", "plan --schema cost.yaml --target cost --model median --epsilon 2 --rows 400", quick=True),
    Case("plan-covariance", "plan --schema cost.yaml --model covariance --epsilon 2 --rows 400", quick=True),
    Case("plan-logistic", "plan --schema ill.yaml --target ill --model logistic --epsilon 2 --rows 400"),
    Case("plan-linear", "plan --schema cost.yaml --target cost --model linear --epsilon 2 --rows 400 --for-error 500"),
    Case("plan-poisson", "plan --schema visits.yaml --target visits --model poisson --epsilon 2 --rows 400"),
]

OTHERS = [Case(f"baseline-{name}", f"baseline {name}", quick=True) for name in BASELINES]
"""In Python (`baseline_cases`), not by the command line."""

CASES = [*EVERYDAY, *REGRESSIONS, *HELD_OUT, *PLANS, *OTHERS]


# ── how a case is made ───────────────────────────────────────────────────────────────────────────────────────────


def write_clinic(folder: Path) -> None:
    """400 patients, a schema for each target, and the releases that are evaluated."""
    (folder / "patients.csv").write_bytes((HERE / "patients.csv").read_bytes())
    for target, declared in TARGETS.items():
        (folder / f"{target}.yaml").write_text(f"dataset: clinic\ncolumns:\n  {target}: {declared}\n{FEATURES}")
    for model in ("logistic", "linear", "svc"):
        kept = KEPT / f"{model}-fit.json"
        if kept.exists():
            (folder / f"{model}.json").write_text(json.loads(kept.read_text())["file"])


def made(case: Case) -> dict[str, Any]:
    """In the current folder, which is a clinic: what is to be kept of a case."""
    words = [word.replace("_", " ") if word.count("_") else word for word in case.words.split()]
    if words[0] == "baseline":
        return made_in_python(case.name, BASELINES[words[1]]())
    page, out, ledger = Path(f"{case.name}.html"), Path(f"{case.name}.json"), f"{case.name}.db"
    command(["ledger", "init", ledger, "--dataset", "clinic", "--epsilon", "50", "--delta", "1e-4"])
    planning, choosing = words[0] == "plan", words[0] == "choose"
    files = [] if planning else ["--ledger", ledger, "--seed", "1", "--out", str(out)]
    pages = [] if choosing else ["--report", str(page)]
    shown = json.loads(command([*words, *files, *pages, "--json"]))
    kept: dict[str, Any] = {"command": f"onedraw {case.words}".strip()}
    if planning:
        kept["plan"] = shown
    else:
        kept["certificate"] = json.loads(out.read_text())
        kept["shown"] = {name: value for name, value in shown.items() if name not in kept["certificate"]}
        if case.name in ("logistic-fit", "linear-fit", "svc-fit"):
            kept["file"] = out.read_text()
    if not choosing:
        kept["report"] = lines_of(page.read_text())
    return kept


def made_in_python(name: str, release: Any) -> dict[str, Any]:
    """The same of a release that no command makes."""
    page = lines_of(release.report(f"{name}.html").read_text())
    certificate = json.loads(release.certificate.to_json())
    return {"command": name, "certificate": certificate, "shown": release.summary().to_dicts(), "report": page}


def command(words: list[str]) -> str:
    """What the console script prints on standard output; it has to succeed."""
    from onedraw.cli import application

    sys.argv, printed = ["onedraw", *words], StringIO()
    with redirect_stdout(printed):
        application(words, standalone_mode=False)
    return printed.getvalue()


class _Text(HTMLParser):
    """The words of a page, one line for each piece; what is drawn is there by its labels."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.hidden = 0

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.hidden += tag in ("style", "script")

    def handle_endtag(self, tag: str) -> None:
        self.hidden -= tag in ("style", "script")

    def handle_data(self, data: str) -> None:
        text = " ".join(data.split())
        if text and not self.hidden and not text.startswith('{ "format": '):  # the certificate, kept by itself
            self.lines.append(text)


def lines_of(page: str) -> list[str]:
    reader = _Text()
    reader.feed(page)
    return reader.lines


# ── how two are compared ─────────────────────────────────────────────────────────────────────────────────────────


def differences(kept: Any, now: Any, place: str = "", tolerance: float = TOLERANCE) -> list[str]:
    """Where two documents differ, up to what is volatile and to the last digits of numbers."""
    if isinstance(kept, dict) and isinstance(now, dict):
        names = sorted((kept.keys() | now.keys()) - VOLATILE - {"file"})
        both = [name for name in names if name in kept and name in now]
        found = [f"{place}.{name} is {'gone' if name in kept else 'new'}" for name in names if name not in both]
        for name in both:
            found += differences(kept[name], now[name], f"{place}.{name}", SIMULATED.get(name, tolerance))
        return found
    if isinstance(kept, list) and isinstance(now, list) and len(kept) == len(now):
        pairs = enumerate(zip(kept, now, strict=True))
        return [line for index, pair in pairs for line in differences(*pair, f"{place}[{index}]", tolerance)]
    if isinstance(kept, list) and isinstance(now, list):
        alike = (not differences(*pair) for pair in zip(kept, now, strict=False))
        first = next((index for index, same in enumerate(alike) if not same), min(len(kept), len(now)))
        came, was = now[first : first + 1], kept[first : first + 1]
        return [
            f"{place} has {len(now)} parts instead of {len(kept)}, from [{first}] on: {came!r:.300} instead of {was!r:.300}"
        ]
    if isinstance(kept, str) and isinstance(now, str):
        same = same_text(kept, now)
    else:
        same = same_value(kept, now, tolerance)
    return [] if same else [f"{place} is {now!r:.300} instead of {kept!r:.300}"]


def same_value(kept: Any, now: Any, tolerance: float) -> bool:
    if not all(isinstance(one, float | int) and not isinstance(one, bool) for one in (kept, now)):
        return bool(kept == now)
    return math.isclose(kept, now, rel_tol=tolerance, abs_tol=1e-3 * tolerance)


NUMBER = re.compile(r"\d[\d,\u202f]*(?:\.\d+)?(?:e[-+]?\d+)?…?")
"""With the sign of a cut: one machine's 0.04 is another's 0.04000000000000001, which is shown as 0.040000…"""


def same_text(kept: str, now: str) -> bool:
    """The same words, and numbers that differ by one unit of their last digit at most."""
    kept, now = (VOLATILE_WORDS.sub("…", text) for text in (kept, now))
    if kept == now:
        return True
    if NUMBER.sub("#", kept) != NUMBER.sub("#", now):
        return False
    return all(_near(one, other) for one, other in zip(NUMBER.findall(kept), NUMBER.findall(now), strict=True))


def _near(one: str, other: str) -> bool:
    plain = [re.sub(r"[,\u202f…]", "", text).rstrip(".") for text in (one, other)]
    digits, _, power = plain[0].partition("e")
    unit = 10.0 ** (int(power or 0) - len(digits.partition(".")[2]))
    apart = abs(float(plain[0]) - float(plain[1]))
    return apart <= max(1.01 * unit, 1e-9 * abs(float(plain[0])))  # of seventeen digits a processor decides several


def without_draw(document: dict[str, Any]) -> dict[str, Any]:
    """All but where the draw lies: the chain of a network doubles its last digits with every few steps, so that one seed ends
    elsewhere on another processor."""
    document = copy.deepcopy(document)
    draw, shown = document["certificate"]["draw"], document["shown"]["estimates"]
    draw["values"] = [len(row) for row in draw["values"]]
    for row in shown:
        row["estimate"] = type(row["estimate"]).__name__
    document["report"] = [re.sub(rf"^[−-]?{NUMBER.pattern}$", "#", line) for line in document["report"]]
    return document


# ── writing them ─────────────────────────────────────────────────────────────────────────────────────────────────


def main(*beginnings: str) -> None:
    KEPT.mkdir(exist_ok=True)
    quick = beginnings == ("quick",)
    chosen = [case for case in CASES if (case.quick if quick else case.name.startswith(beginnings or ""))]
    if not beginnings:
        for path in set(KEPT.glob("*.json")) - {case.path for case in CASES}:
            path.unlink()
    with tempfile.TemporaryDirectory(prefix="golden-") as folder:
        os.chdir(folder)
        write_clinic(Path(folder))
        for case in chosen:
            begun = time.perf_counter()
            kept = made(case)
            if "file" in kept or not case.path.exists() or differences(json.loads(case.path.read_text()), kept):
                case.path.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n")
            if "file" in kept:
                Path(f"{case.name.partition('-')[0]}.json").write_text(kept["file"])
            print(f"{case.name}: {time.perf_counter() - begun:.1f} s", flush=True)
        os.chdir(HERE)


if __name__ == "__main__":
    main(*sys.argv[1:])
