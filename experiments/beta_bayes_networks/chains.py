"""Are the chains of the network figures long enough? As many draws by chains of the figures' length as by chains four times as long.

Both kinds begin at other draws of the prior, on the same split. What is compared is the predictive distribution of one draw: its
score on the test rows, and its prediction at three of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from experiments.beta_bayes_networks import networks, tables

FACTOR = 4
ROWS = 3
"""Test rows at which predictions are compared."""


def run(
    *, seeds: tuple[int, ...], task: str, data: str, n: int, features: int, method: str, epsilon: float
) -> Iterator[dict[str, Any]]:
    """A row for each seed, which is a chain of either length."""
    split = tables.split(data, task, 0, n=n, features=features, spread=1.0)
    methods = networks.draw_methods(task, data, n, split.X.shape[1])
    (plan,) = (one.plan for one in methods if one.name == method and (one.epsilon == epsilon or method == "posterior"))
    net = networks.model_of(task, split.X.shape[1])
    rows = net.summarise((split.X_test, split.y_test)).X
    ours = networks.EFFORT
    efforts = {"ours": ours, "long": ours._replace(warmup=FACTOR * ours.warmup, steps=FACTOR * ours.steps)}
    for shift, (length, effort) in enumerate(efforts.items()):
        own = [seed + 500_000 * shift for seed in seeds]
        for seed, (theta,) in zip(
            seeds, networks.sampled(task, [split] * len(seeds), own, [plan], effort), strict=True
        ):
            found = networks.predicted(net, theta, rows)
            at = {f"prediction {place}": found[place] for place in range(ROWS)}
            yield {"seed": seed, "length": length, "score": networks.score(task, found, split.y_test), **at}
