"""Every constant of a release of moments, with the public reason for it: nothing here was computed from records.

Chosen in trials on eleven simulated designs (even, narrow, skewed, off-centre, heavy-tailed, rare, nearly equal columns),
n from 500 to 20,000, ε from 0.5 to 5: benchmarks/results/moments_coverage.md.
"""

SHARES = {False: (0.45, 0.40, 0.15), True: (0.40, 0.40, 0.20)}
"""Of μ² (of ε for a pure promise): means with squares, standardised products, fourth moments. The last are only for the
errors of the others, and matter where those are small; pure noise falls with the share itself, not with its root."""

ALONE = {False: (0.80, 0.0, 0.20), True: (0.75, 0.0, 0.25)}
"""… of one column, which has nothing to go together with."""

CLEAR = 3.0
"""A variance below so many deviations of its noise is raised to that before columns are standardised: otherwise noise alone
would stretch a column until its rows are cut."""

REACH = 4.0
"""R² for each column in its standard deviations: rows of normal columns reach it once in a hundred, and what skewed and
heavy-tailed ones lose is measured (`lost`)."""

QUIET = 0.7
"""R² grows until the noise of a standardised second moment is so many times the sampling error 1/√n of a correlation, whose own
noise is then half of it: an interval an eighth wider buys rows that are hardly cut."""

FOURTH_REACH = 9.0
"""U² for each column: squares of normal columns have Σ z⁴ = 3 on average."""

FOURTH_NOISE = 0.5
"""U² grows until the noise of a fourth moment is this, beside 3 for a normal column."""

GIVEN = 6.0
"""A correlation is given if the standardised second moment of both columns is at least so many deviations of its noise."""

LARGEST_GIVEN = 0.8
"""… and none if that many deviations are more than this share of a standardised column's usual second moment, 1: then only
luck would carry one beyond, and what luck has carried is biased."""

AHEAD = 0.5
"""What was cut off goes together more than the rest, between r and ±1 in every trial. It is taken to have r·(2 − |r|), half
of the way there for r = ½ and none for r = 0. Intervals allow for all of the way, (1 − |r|)² more, and at least for this share
of 1 − |r|."""
