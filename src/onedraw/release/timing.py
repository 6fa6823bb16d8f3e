"""What a certificate says of running time: that it is not covered, or what a draw together with its work promises.

Unpadded, every certificate says that running time is not covered: whoever can time a draw may learn from it. With
``timing="padded"`` the sampler does a public amount of work whatever the records are, except with probability γ₂, and the
draw together with its work is (ε, δ + (1 + e^ε)γ₂)-DP (samplers/padding.md). The draw and its own promise are untouched. A ledger
is charged for both: its total is never less than what the certificates promise.
"""

from __future__ import annotations

from collections.abc import Mapping

from onedraw.errors import PromiseRefused, WrongCall
from onedraw.plain_text import round_up
from onedraw.plans import Plan
from onedraw.privacy import Promise
from onedraw.samplers.choice import read_sampler
from onedraw.samplers.padding import PADDED, PASSES, Padding, pair_delta
from onedraw.samplers.sampler import Sampler

from .certificate import PROSE, WORDING, Certificate, TimingStatement, differences, is_under, reject
from .earlier import FirstCertificate

UNCOVERED = (
    "Running time is not covered: how long this took may depend on the records. Whoever may see it should not be able to "
    "time it."
)
NOT_COVERED = TimingStatement(sentence=UNCOVERED)
"""Of every draw that is not padded."""

ONE_PASS = "pass over the records"

SILENT = "It says nothing of running time, which is then not covered. It is of format 1, where the line may be missing."
OPEN = "Running time is not covered, as it says."
FOLLOWS = (
    "The public work it states, and how rarely more was needed, follow from its numbers. That the work was done is the word of "
    "whoever released it: a draw does not show it."
)
"""What `verify` finds of a statement about time."""

NOT_TIME = "How long one of these takes is not covered: constant work is not constant time."


def padding_of(plan: Plan, sampler: Sampler, timing: str) -> Padding:
    """The public work that was asked for; refused where the sampler proves none."""
    if timing != PADDED:
        raise WrongCall(f"timing takes {PADDED!r}, or None for a draw as quick as it comes; got {timing!r}.")
    return sampler.padding(plan)


def timing_statement(plan: Plan, padding: Padding, *, epsilon: float) -> TimingStatement:
    """``epsilon`` is the promise's at the δ it is quoted for."""
    delta = round_up(pair_delta(epsilon, plan.budget.quoted_delta, padding.gamma))
    stated = f"(ε = {round_up(epsilon, 5):.6g}, δ = {round_up(delta, 5):.6g})"
    counts = [f"{count:,} {name}" for name, count in padding.work.items() if name != PASSES]
    among = f" ({', '.join(counts)})" if counts else ""
    missed = f", but with probability γ₂ = {round_up(padding.gamma, 5):.6g}" if padding.gamma else ""
    sentence = (
        f"Padded: what the first line says holds of the draw together with its work, with {stated}. The work is "
        f"{padding.passes:,} {PASSES if padding.passes > 1 else ONE_PASS}{among}, whatever the records are{missed}. {NOT_TIME}"
    )
    return TimingStatement(sentence=sentence, work=dict(padding.work), gamma=padding.gamma, delta=delta)


def check_payable(gamma: float, budget: Promise) -> None:
    """γ₂, of a ledger's budget, before it is charged beside the draw's promise."""
    if not budget.total_variation():
        raise PromiseRefused(
            f"Padded work is a public number but with probability γ₂ = {gamma:.3g}, which only a δ can pay for, and the ledger's "
            f'budget is {budget}. Nothing was spent. Leave out timing="{PADDED}", use a mechanism whose work is constant '
            "(NoisyGradient, BarkerPath, Moments), or charge a dataset whose budget has a δ."
        )


def check_timing(certificate: Certificate, plan: Plan) -> str:
    """Whether what is said of time follows from the certificate's other numbers, in a sentence; rejected where it contradicts them."""
    stated, again = certificate.timing, derived_timing(certificate, plan)
    if (stated is None or again is None) and isinstance(certificate, FirstCertificate):
        return SILENT
    if stated is None or again is None:
        raise reject("it says nothing of running time")
    if again.work is not None and stated.work != again.work:
        raise reject(
            f"it states {_counted(stated.work)}, its plan and sampler take {_counted(again.work)} where padded"
        )
    for where in differences(stated.model_dump(mode="json"), again.model_dump(mode="json"), "timing"):
        if certificate.wording == WORDING or not is_under(where, PROSE):
            raise reject(f"{where} is not what its plan gives")
    return OPEN if again.work is None else FOLLOWS


def derived_timing(certificate: Certificate, plan: Plan) -> TimingStatement | None:
    """Return what the certificate's numbers give: of padded work all of it, of other work that time is not covered."""
    if certificate.timing is None:
        return None
    if certificate.timing.work is None:
        return NOT_COVERED
    padding = read_sampler(plan, certificate.sampler).padding(plan)
    return timing_statement(plan, padding, epsilon=certificate.promise.epsilon)


def _counted(work: Mapping[str, int] | None) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in (work or {}).items()) or "no work"
