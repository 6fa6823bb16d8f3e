"""Regression coefficients with intervals, by averaged noisy Newton steps.

The files, in the order in which things happen:

- `kinds`: the constants of each kind of response; `scores` and `class_scores`: what a record adds to the estimating equations, for
  numbers, labels, counts, quantiles, margins, several classes, and robust lines of all of them;
- `sizes`: the public numbers (how the budget is shared, how long a score may be) and why these;
- `mechanism`: the promise and the plan (`AveragedSteps`);
- `sums`: what is asked of the records, as sums of integers;
- `coordinates`: the coordinates and the starting point that published moments give, and a declared prior in them;
- `steps`: the recursion; `run`: all stages, each with its noise (`FitBySteps`);
- `published`, `result`: what leaves; estimate, standard errors, intervals, and what is estimated;
- `prediction`: what predictions keep of the slopes.

Theorem and proof: proof.md.
"""

from .mechanism import AveragedSteps

__all__ = ["AveragedSteps"]
