"""The picture of an audit: a promise and what the attacks made of it, in two views.

Left, the trade-off: below the promise's curve no attack may come. Each attack is a point, (false alarms, misses), with
a box that reaches to its upper confidence limits; a box that lies below the curve altogether breaks the promise. An
exact profile is a curve of its own. Right, the same as δ at each ε: above the promise's curve nothing may come.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from onedraw.audit.profiles import Profile
from onedraw.audit.results import AttackResult, promise_of
from onedraw.errors import CannotWrite, check_extra
from onedraw.privacy.promises import Promise
from onedraw.privacy.tradeoff import TradeOff, shown_delta

_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_SMALLEST_DELTA = 1e-7
_TAIL = np.geomspace(1e-6, 0.5, 200)
_ALPHAS = np.unique(np.concatenate([[0.0, 1.0], _TAIL, 1.0 - _TAIL, np.linspace(0, 1, 201)]))


def tradeoff_figure(
    promise: Promise, results: Sequence[AttackResult | Profile], path: str | Path, *, title: str | None = None
) -> Path:
    """Draw ``results`` against the promise and write the picture to ``path`` (the suffix names the format)."""
    check_extra("figures", "matplotlib", "A picture of an audit")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    curve = TradeOff.of(promise_of(promise))
    figure = Figure(figsize=(10.0, 5.0), layout="constrained")
    FigureCanvasAgg(figure)
    tradeoff, deltas = figure.subplots(1, 2)
    _draw_promise(tradeoff, deltas, curve)
    for index, result in enumerate(results):
        colour = _COLOURS[index % len(_COLOURS)]
        if isinstance(result, Profile):
            _draw_profile(tradeoff, deltas, result, colour, curve)
        else:
            _draw_attack(tradeoff, deltas, result, colour, curve)
    tradeoff.set(
        xlim=(0.0, 1.0), ylim=(0.0, 1.0), aspect="equal", xlabel="false positive rate: draws of D taken for D'",
        ylabel="false negative rate: draws of D' taken for D",
    )  # fmt: skip
    tradeoff.set_title("trade-off; thin lines as counted, boxes with confidence", fontsize=9)
    deltas.set(yscale="log", ylim=(_SMALLEST_DELTA, 1.0), xlabel="ε", ylabel="δ")
    deltas.margins(x=0.0)
    deltas.set_title("δ at each ε: promised (black), and surely given away", fontsize=9)
    handles, labels = tradeoff.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, fontsize=8, frameon=False)
    figure.suptitle(title or f"What the promise {promise} allows, and what was found", fontsize=11)
    target = Path(path)
    try:
        figure.savefig(target, dpi=150)
    except (OSError, ValueError) as problem:
        raise CannotWrite(f"the picture cannot be written to {target}: {problem}") from None
    return target


def _draw_promise(tradeoff: Any, deltas: Any, curve: TradeOff) -> None:
    style = {"color": "black", "linewidth": 1.6, "zorder": 3}
    tradeoff.plot(_ALPHAS, curve(_ALPHAS), label="promise: no attack may come below", **style)
    tradeoff.fill_between(_ALPHAS, 0.0, curve(_ALPHAS), color="0.9", linewidth=0)
    tradeoff.plot([0.0, 1.0], [1.0, 0.0], color="0.6", linewidth=0.8, linestyle=":", label="guessing")
    visible = np.maximum(curve.deltas, _SMALLEST_DELTA / 10.0)
    deltas.plot(curve.epsilons, visible, **style)
    deltas.fill_between(curve.epsilons, visible, 1.0, color="0.9", linewidth=0)


def _draw_profile(tradeoff: Any, deltas: Any, profile: Profile, colour: str, curve: TradeOff) -> None:
    style = {"color": colour, "linewidth": 1.4, "linestyle": "--", "zorder": 4}
    tradeoff.plot(_ALPHAS, profile.tradeoff(_ALPHAS), label="exact, this pair of data sets", **style)
    epsilons = curve.epsilons[:: max(1, len(curve.epsilons) // 128)]
    deltas.plot(epsilons, [max(profile.delta(float(epsilon)), _SMALLEST_DELTA / 10.0) for epsilon in epsilons], **style)


def _draw_attack(tradeoff: Any, deltas: Any, result: AttackResult, colour: str, curve: TradeOff) -> None:
    from matplotlib.patches import Rectangle

    rates, limits = result.rates, result.limits
    if result.roc:
        tradeoff.plot(*np.array(result.roc).T, color=colour, linewidth=0.8, alpha=0.7)
    box = Rectangle(rates, limits[0] - rates[0], limits[1] - rates[1], facecolor=colour, alpha=0.35, edgecolor=colour)
    tradeoff.add_patch(box)
    sure = f"{100.0 * result.confidence:.8g} %"
    label = f"{result.method}: ε ≥ {result.epsilon_lower_bound:.3g} at δ = {result.delta:g} ({sure})"
    tradeoff.plot(*rates, marker="o", markersize=4, color=colour, linestyle="none", label=label, zorder=5)
    shown = np.maximum(shown_delta(curve.epsilons, *limits), _SMALLEST_DELTA / 10.0)
    deltas.plot(curve.epsilons, shown, color=colour, linewidth=1.2)
