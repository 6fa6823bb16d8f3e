"""What left: a draw or a fit with its certificate, and all that follows from it for nothing.

Whoever holds the file can read it, predict with it, draw from its posterior and write its report: post-processing of published
numbers, which no record has to be asked for.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from inspect import signature
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from onedraw.arrays import Array
from onedraw.data import Schema
from onedraw.errors import WrongCall
from onedraw.methods.base import NoisyCount
from onedraw.methods.comparisons import Comparison
from onedraw.models import Gaussian
from onedraw.models.moments.result import MomentsResult
from onedraw.models.normal_estimates import NormalEstimates
from onedraw.plain_text import shown_as_html
from onedraw.plans import Plan

from . import estimates
from .certificate import Certificate, read_certificate, rebuild_plan
from .description import TableOne, table_one
from .files import check_writable, write_whole
from .predictions import Predictions, Predictor
from .statement import sentence_of

MOST_SHOWN = 60
"""Numbers in a notebook's table of a release, at most."""


@dataclass(frozen=True, repr=False)
class Release:
    """What leaves: the draw and its certificate. ``diagnostics`` does not leave; it is for the curator's eyes."""

    certificate: Certificate
    diagnostics: dict[str, Any] = field(default_factory=dict, compare=False)

    def __reduce__(self) -> tuple[type[Release], tuple[Certificate]]:
        """Pickled or copied without the diagnostics, which stay where they were made."""
        return Release, (self.certificate,)

    @property
    def draws(self) -> Array:
        """All draws, one row each."""
        return np.array(self.certificate.draw.values, dtype=np.float64)

    @property
    def draw(self) -> Any:
        """The first draw: a float where the model has one parameter, otherwise an array."""
        first = self.draws[0]
        return float(first[0]) if first.size == 1 else first

    def named(self) -> dict[str, float]:
        """The estimate by parameter name, in the units of the columns: a fit's, or the mean of the draws, as everywhere it is shown."""
        values = estimates.values_of(self.certificate, self.plan)
        return dict(zip(self.certificate.draw.names, values.tolist(), strict=True))

    @property
    def sentence(self) -> str:
        """The certificate's first line; if it is in another wording than this version's, the one that its numbers give."""
        return sentence_of(self.certificate, self.plan)

    def __repr__(self) -> str:
        drawn = self.certificate.draw
        return f"<Release of {len(drawn.names)} {self.plan.model.quantity}. {self.sentence}>"

    def _repr_html_(self) -> str:
        rows = [(name, f"{value:.6g}") for name, value in islice(self.named().items(), MOST_SHOWN)]
        left = len(self.certificate.draw.names) - len(rows)
        more = f"and {left:,} more. " if left else ""
        head = ("parameter", "released")
        return shown_as_html(self.sentence, head, rows, more=f"{more}save(path) writes the certificate.")

    @cached_property
    def plan(self) -> Plan:
        """What it was made by: mechanism, model, n, draws and the calibrated numbers; of a file, derived from the certificate."""
        return rebuild_plan(self.certificate)

    def conf_int(self, level: float = 0.95) -> Array:
        """(parameters, 2): intervals for sampling and privacy noise together, in the units of the columns.

        `PromiseRefused` with the reason where none can be vouched for, as for a single draw of a regression.
        """
        found = estimates.interval_of(self.certificate, self.plan, level)
        return np.column_stack([found.low, found.high])

    @cached_property
    def fit(self) -> NormalEstimates:
        """Of a fit: estimate, standard errors, intervals and tests in the units of the columns; free post-processing."""
        return estimates.fit_of(self.certificate, self.plan)

    @property
    def missing(self) -> NoisyCount | None:
        """How many cells, or records of a regression, were skipped because they are missing: a number with noise, released within
        the same spend. None where a missing cell was read as a declared value."""
        found: NoisyCount | None = self.plan.mechanism.missing_of(self.plan, self.certificate.draw.stages or {})
        return found

    @property
    def moments(self) -> MomentsResult:
        """Of a release of means and correlations: all of them with errors, in the units of the columns; free post-processing."""
        return estimates.moments_of(self.certificate, self.plan)

    def summary(self, level: float = 0.95, *, base: str = "declared") -> estimates.Estimates:
        """Estimates with intervals, standard errors and tests where the release gives them, in the units of the columns, and
        the test of each category as a whole; ``pandas.DataFrame`` takes it.

        ``base="commonest"`` compares levels with the commonest one, by the published noisy shares, instead of the first one
        declared: if few records have that one, all its category's coefficients are uncertain. It costs nothing.
        """
        return estimates.estimates_of(self.certificate, self.plan, level, base=base)

    def compare(self, level: float = 0.95) -> Comparison:
        """Return the differences between released groups with intervals and tests, and one test of all groups together, or the test
        of a cross table. It costs nothing. `WrongCall` for a release without groups."""
        found = estimates.comparison_of(self.certificate, self.plan, level)
        if found is None:
            raise WrongCall(
                f"This release of {self.certificate.draw.quantity} has no groups to compare: means, shares of one level and medians by "
                "group have differences, and a cross table has a test. Release with by=…, of private groups."
            )
        return found

    def table_one(self, level: float = 0.95) -> TableOne:
        """Return the first table of a paper, of a description (`onedraw.describe`)."""
        return table_one(self.certificate, self.plan, level)

    @property
    def joint(self) -> tuple[estimates.Joint, ...]:
        """Of a fit by a schema, the test of each category as a whole; empty where there is nothing to test."""
        fitted = self.plan.mechanism.publishes_fit
        return estimates.joint_tests(self.fit, self.certificate, self.plan) if fitted else ()

    def report(
        self, path: str | os.PathLike[str], *, level: float = 0.95, ledger: Any = None, overwrite: bool = False
    ) -> Path:
        """Write the report, one HTML page, with all the intervals the release gives; ``ledger`` adds what is spent and left."""
        from onedraw.report import write_report  # above this package: a convenience, named as such among the contracts

        return write_report(self, path, interval=self.summary(level), ledger=ledger, overwrite=overwrite)

    def plot(self, *, level: float = 0.95, ax: Any = None) -> Any:
        """Draw the released numbers with their intervals on matplotlib's axes, and return these."""
        from onedraw.report import forest  # as above

        return forest(self, self.summary(level), ax=ax)

    @property
    def predictor(self) -> Predictor:
        """The released model, for encoded rows."""
        return Predictor(self.certificate, self.plan)

    def predict(self, source: Any, *, interval: float | None = None, schema: Schema | None = None) -> Predictions:
        """Probabilities, means or rates for new records: a data frame, a file, or what `onedraw.read` takes.

        ``interval=0.95`` gives each an interval, where the release is a fit with standard errors; NaN for rows that rest on what
        the records say too little about, and the result's ``remark`` says so. No private record is read.
        """
        return self.predictor.predict(source, schema=schema, level=interval)

    def posterior(self, size: int, *, prior: Gaussian | None = None, random_state: int | None = None) -> Array:
        """(size, parameters): draws from the posterior that was published, in the units of the columns: a fit's normal one, or
        that of noisy sums. They cost nothing and may be as many as anybody wants: whoever holds the file can make them.

        A fit's prior is flat (but for one that it was made with), or a ``prior`` chosen now, in the units of the columns.
        """
        generator = np.random.default_rng(random_state)
        found = estimates.posterior_of(self.certificate, self.plan)
        if found is None or prior is not None:
            return self.fit.posterior(size, generator, prior=prior)
        return estimates.readable_draws(self.certificate, self.plan.model, found.draw(size, generator))

    def to_arviz(self, size: int = 4000, *, prior: Gaussian | None = None, random_state: int | None = None) -> Any:
        """The `posterior` as ArviZ has it, one variable for each coefficient; needs ArviZ to be installed."""
        try:
            arviz = import_module("arviz")
        except ImportError:
            raise WrongCall(
                "ArviZ is not installed. Install it (pip install arviz), or take the same draws as an array from "
                "posterior(size)."
            ) from None
        draws = self.posterior(size, prior=prior, random_state=random_state)
        named = {name: draws[np.newaxis, :, place] for place, name in enumerate(self.certificate.draw.names)}
        if "posterior" in signature(arviz.from_dict).parameters:  # ArviZ before 1.0
            return arviz.from_dict(posterior=named)
        return arviz.from_dict({"posterior": named})

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the certificate with its draw as JSON: whole or not at all. Safer still: ``release(…, out=path)``."""
        target = Path(path)
        check_writable(target, overwrite=overwrite)
        write_whole(target, self.certificate.to_json(), "release", overwrite=overwrite)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Release:
        """From its file; `onedraw.load` verifies it too."""
        return cls(read_certificate(path))
