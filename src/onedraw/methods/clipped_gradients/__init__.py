"""Predictors of classes, counts and numbers by averaged steps on clipped gradients; the estimates have no intervals.

The files, in the order in which things happen:

- `responses`: residuals, levels and units of labels, classes, counts and numbers;
- `sizes`: the public numbers (how the budget is shared, how long a gradient may be) and where they come from;
- `mechanism`: the promise and the plan (`ClippedGradients`);
- `sums`: what is asked of the records, as sums of integers;
- `coordinates`: the coordinates that published means and deviations give;
- `steps`: the recursion; `temperature`: how far the scores are drawn back to the level;
- `run`: all stages, each with its noise (`ClippedSteps`); `result`: the estimate that follows.

Theorem and proof: proof.md.
"""

from .mechanism import ClippedGradients

__all__ = ["ClippedGradients"]
