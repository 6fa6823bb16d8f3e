"""Writes noise.json: σ of every DP-SGD training of the network figures, and its ε for one record replaced.

    python -m experiments.beta_bayes_networks.noise

Apart from the cells, so that these need no accountant. "replace-one" is the library's own calibration; "add/remove" finds σ for one
record left out with the same accountant, as the paper counts, and states what that σ promises when one is replaced.
"""

from __future__ import annotations

import json

from experiments.beta_bayes_networks.training import DELTA, NOISE, batch_size, steps

from onedraw.privacy.sampled_gaussian import least_multiplier, sampled_gaussian_epsilon


def main() -> None:
    from experiments.beta_bayes_networks.run import settings

    found: dict[str, dict[str, tuple[float, float]]] = {"replace-one": {}, "add/remove": {}}
    for n, epsilon in settings():
        for relation, multiplier in (("replace-one", replaced), ("add/remove", left_out)):
            sigma = multiplier(n, epsilon)
            found[relation][f"{n} {epsilon:g}"] = (round(sigma, 6), round(true_epsilon(n, epsilon, sigma), 5))
    NOISE.write_text(json.dumps(found, indent=0) + "\n", encoding="utf-8")


def replaced(n: int, epsilon: float) -> float:
    """σ with which one record may be replaced."""
    sigma = least_multiplier(epsilon, DELTA, rate=batch_size(n) / n, steps=steps(n, epsilon))
    assert sigma is not None
    return sigma


def left_out(n: int, epsilon: float) -> float:
    """σ with which one record may be left out, by bisection to five digits."""
    low, high = 0.2, 200.0
    while high / low > 1.00001:
        middle = (low * high) ** 0.5
        low, high = (low, middle) if left_out_epsilon(n, epsilon, middle) <= epsilon else (middle, high)
    return high


def left_out_epsilon(n: int, epsilon: float, sigma: float) -> float:
    from dp_accounting import dp_event
    from dp_accounting.pld import pld_privacy_accountant

    batch = dp_event.PoissonSampledDpEvent(batch_size(n) / n, dp_event.GaussianDpEvent(sigma))
    accountant = pld_privacy_accountant.PLDAccountant(value_discretization_interval=1e-3)
    return float(accountant.compose(batch, steps(n, epsilon)).get_epsilon(DELTA))


def true_epsilon(n: int, epsilon: float, sigma: float) -> float:
    return sampled_gaussian_epsilon(sigma, rate=batch_size(n) / n, steps=steps(n, epsilon), delta=DELTA)


if __name__ == "__main__":
    main()
