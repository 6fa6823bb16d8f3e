"""Held-out log-likelihood of one Beta–Bernoulli draw (Geumlek et al., A.5), without simulation: every expectation is a sum.

100 records and 100 held out, both Bernoulli(ρ); a draw θ of the (scaled) posterior; −log p(held out | θ) per record, expected over
the records, the draw and what is held out. E log θ of a Beta law is ψ(a) − ψ(a + b), and records enter through their sum alone.
The paper's pairs (x, N) of the prior are Beta(x, N − x).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import special, stats

import onedraw as od
from onedraw.errors import OrderTooHigh, PromiseRefused

RECORDS, ORDER = 100, 15.0
EDGE = 0.05
"""OPS needs a bounded log-likelihood: its parameter is kept in [EDGE, 1 − EDGE]."""

MECHANISMS = {"direct": od.Direct(), "diffused": od.Diffused(), "concentrated": od.Concentrated()}


def run(*, seeds: tuple[int, ...], method: str, prior: str, truth: float, epsilon: float) -> Iterator[dict[str, Any]]:
    """One number: the expected loss of a method whose draw keeps ε at order 15; NaN where it cannot."""
    a, b = PRIORS[prior]
    sums = np.arange(RECORDS + 1)
    chance = stats.binom.pmf(sums, RECORDS, truth)
    if method == "OPS":
        losses = truncated(a, b, sums, truth, weight=bounded_weight(epsilon))
    elif method == "not private":
        losses = beta(a + sums, b + RECORDS - sums, truth)
    else:
        model = od.models.BetaBernoulli(prior=(a, b))
        try:
            plan = od.calibrate(MECHANISMS[method], model, od.RenyiDP.at(ORDER, epsilon), n=RECORDS)
        except (OrderTooHigh, PromiseRefused):
            yield {"loss": math.nan}
            return
        r, m = plan.parameters["r"], plan.parameters["prior_factor"]
        losses = beta(a / m + r * sums, b / m + r * (RECORDS - sums), truth)
    yield {"loss": float(chance @ losses)}


PRIORS = {"informative": (6.0, 12.0), "uniform": (1.0, 1.0)}
"""The paper's (6, 18) and (1, 2)."""


def beta(a: Any, b: Any, truth: float) -> Any:
    """−ρ E log θ − (1 − ρ) E log(1 − θ) for θ ~ Beta(a, b)."""
    total = special.digamma(a + b)
    return truth * (total - special.digamma(a)) + (1.0 - truth) * (total - special.digamma(b))


def bounded_weight(epsilon: float) -> float:
    """Wang, Fienberg, Smola (2015): a log-likelihood in [log EDGE, log(1 − EDGE)] may be multiplied by ε/(2·its range).

    That is pure ε, hence ε at every order. (Replacing a record moves the log-ratio of two draws by 2·logit(1 − EDGE) at most, which is
    what their 4B bounds; this is the weight that is true.)
    """
    return epsilon / (2.0 * float(special.logit(1.0 - EDGE)))


def truncated(a: float, b: float, sums: Any, truth: float, *, weight: float) -> Any:
    """The same loss for the posterior of weight w, at most 1, on [EDGE, 1 − EDGE], by quadrature."""
    w = min(1.0, weight)
    nodes, weights = np.polynomial.legendre.leggauss(400)
    theta = 0.5 + (0.5 - EDGE) * nodes
    logs = (a - 1.0 + w * sums[:, None]) * np.log(theta) + (b - 1.0 + w * (RECORDS - sums[:, None])) * np.log1p(-theta)
    mass = weights * np.exp(logs - logs.max(axis=1, keepdims=True))
    loss = -truth * np.log(theta) - (1.0 - truth) * np.log1p(-theta)
    return (mass @ loss) / mass.sum(axis=1)
