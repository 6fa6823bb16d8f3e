"""Every constant of a fit, with the public reason for it: nothing here was computed from records, nothing is elsewhere.

Sources: mathematics-3 §1–§3. "Edge" is the spectral edge of the noise in the measured second moments, s√d/n, in units of
squared columns; columns lie in [−1, 1], so a column that fills its range evenly has variance 1/3.
"""

SHARES = {
    "labels": (0.15, 0.14, 0.08), "counts": (0.15, 0.24, 0.03), "measured": (0.17, 0.15, 0.08),
    "quantile": (0.20, 0.30, 0.03), "hinge": (0.15, 0.225, 0.025), "robust classes": (0.15, 0.25, 0.05), "softmax": (0.15, 0.25, 0.0),
}  # fmt: skip
"""Of μ² (of ε for a pure promise): moments, information, variability; the mode has the rest. Numbers need their residual
deviation from the moments as well, hence more. Of counts K is the one that the model expects, a record's share of which is as small
as of H, and little of it is needed: noise is much of their error. More information: their curvature, a rate, differs more between rows.
With ``robust`` labels and counts are shared alike. Of softmax K ⪯ H serves for both. Of several classes the information is a larger matrix, and a record's share of it longer: it needs more.
So do quantiles and hinges, whose curvature is all in a narrow window, a few records' large shares, while slopes stand out anyway."""

PURE_MOMENTS = 0.25
"""Under a pure promise the noise of the moments grows with the number of columns squared: they need more."""

MEAN_SHARE = 0.25
"""Of the moments' share, for the mean: d numbers against d(d+1)/2."""

AMPLE_EDGE, LEAST_MOMENTS = 0.012, 0.5
"""Where the edge is below the first the moments get less, down to this part of their share: they are precise enough, and the
mode has better use for it."""

LEAST_SPREAD, LARGEST_SPREAD = 0.16, 1.0 / 3.0
"""R² for each number column, from a standard deviation of 0.4, a fifth of the range, to that of a column that fills it."""

CATEGORY_SPREAD = 0.5
"""R² for each category: its columns have variance 1 − Σp² together, 0.5 where seven records of ten have one level."""

ROOMY_EDGE = 0.03
"""R grows up to LARGEST_SPREAD while the edge stays below this, a tenth of the variance of a column that fills its range."""

LARGEST_EDGE = 0.2
"""Beyond, the noise drowns the moments of most columns: stage one is left out and the budget goes to the fit. Among 0.1,
0.2 and 0.5 this had the least regret over twelve small tables (mathematics-3 §1)."""

LARGEST_EDGE_OF_NUMBERS = 0.8
"""… for numbers: their moments also give the response's centre and residual deviation, which would have to be guessed."""

LARGEST_MEAN_NOISE = 0.1
"""Beyond this deviation of the mean, in half-ranges, the middle of the range is as good a centre."""

FLOOR = 0.4
"""Eigenvalues of the second moments are raised to this share of the edge: at 0.05 noise directions are blown up."""

INFORMED_FLOOR = 0.8
"""… to this share where the information is measured: the ridge is taken back, and steadier coordinates leave fewer directions
in doubt."""

UNMEASURED_SPREAD = 0.36
"""r² for each column where nothing was measured: a row at 0.6 of its half-range in every column."""

WEIGHT_GROWTH, WEIGHT_PIVOT = 0.4, 0.3
"""r² = c²d + 1, c = max(1, 1 + 0.4·log₁₀(0.3/ϑ)/√d), ϑ = d/(nμ²): with more information rows are shortened less."""

CURVATURE, EFFECT = 0.2, 1.5
"""The curvature of a record in measured coordinates and the norm of the coefficients that the ridge is chosen for: a
predictor of standard deviation 1.5 and the mean of pq·s there."""

UNMEASURED_EFFECT = {"labels": 1.0, "counts": 1.0, "measured": 2.5}
"""Times EFFECT where nothing was measured: there a coefficient is larger by one over a column's deviation, 0.4. Labels are
ordered as well by a shrunk score, numbers are not predicted as well by a shrunk one."""

THRESHOLD = 1.0
"""The threshold of log-cosh, in measured residual deviations: 0.95 efficient for normal residuals."""

THRESHOLDS = ((2.0, 0.826, 0.174), (1.5, 0.745, 0.255), (1.0, 0.606, 0.394), (0.85, 0.546, 0.454), (0.7, 0.476, 0.524))
"""(t, E sech²(e/t), E tanh²(e/t)) of normal residuals e of deviation 1: this threshold, and others that a fit may take.
The variance of a coefficient is t²(K + noise)/H² a record: a smaller t is better where noise is large, a larger one, nearer to least
squares, where it is small. A smaller one leaves less information: it must be measured, and stand out of its noise ROOMY_INFORMATION times
as far as it has to. Where that of the usual threshold does not, it is ROOMY_THRESHOLD: standard errors are a tenth larger, and given more often.
Without standard errors the ridge, which is not taken back, would weigh more under a smaller one."""

ROOMY_INFORMATION, ROOMY_THRESHOLD = 2.0, 1.5

SPARE_ERROR, LARGEST_GROWTH = 0.01, 1.4
"""While noise adds less than the first to the variance of a fit of numbers without standard errors, ½ % of a prediction's error, rows
are shortened less (r² = c²d + 1, c up to the second, beyond which few rows are left to shorten), and then the threshold is ROOMY_THRESHOLD.
Weights and thresholds leave the truth of a model that holds where it is; where the line is only the nearest one, or residuals are skewed, they
move it, and least squares predicts best. With directions that the floor flattened, in which noise matters, less of both is taken."""

FAR_OUT = 3.7
"""Deviations of its Gaussian loss at which a promise of δ = 1e-5 ends: there the corners of a relieved loss are made equally unlikely."""

LEAST_RESIDUAL = 0.05
"""The residual variance is taken to be at least this share of the response's: noise in the moments may say 0 or less."""

UNMEASURED_THRESHOLD = 0.25
"""Where nothing was measured: a quarter of the half-range of the responses."""

QUANTILE_WIDTH = 0.25
"""A quantile's kink is rounded over this many measured residual deviations."""

CLOSING_MU = 1e-3
"""GaussianDP of the closing noise; under a pure promise 1e-3 of ε."""

LARGEST_CLOSING = 0.1
"""The most of a total (of μ, or of ε) that the closing noise takes, where n is so large that what rounding may leave of the gradient
would need more noise than that: beyond some million records."""

CLOSING_SHARE = 0.02
"""The closing noise beside what is there anyway: the mode's own noise, or the sampling error 2/√n, whichever is larger."""

INFORMATIVE = 7.0
"""A direction is trusted if its measured information λ is at least 7 deviations s of its noise, …"""

LARGEST_SWING = 0.5
"""… if a standard error along it moves the scores of the rows it comes from by at most this: their curvature, pq or a rate, has then
moved by an eighth on average, and not by a half …"""

WIDENING, LARGEST_WIDENING = {"labels": 3.0, "counts": 3.0, "measured": 1.0}, 1.2
"""Intervals, not standard errors, reach e^(this many swings beyond the usual direction's, at most so much) times as far along a
direction: whether it is given one depends on the curvature at the estimate, and an estimate that errs towards more of it
is given one more often, and a shorter one. The curvature of log-cosh is about residuals and hardly follows a predictor's error."""

BARELY_TRUSTED, AMPLE_MARGIN = 0.25, 1.65
"""So they do along a direction that is only just trusted, as if by so many swings, less and less until it would be trusted with so
many times less information."""

UNINFORMED_SHARE = 0.05
"""… and for a coefficient if the other directions carry at most this share of its variance."""

SET_ASIDE = 3.0
"""Levels whose published count is at most this many deviations of its noise are set aside: there may be no record of them."""

LARGEST_COEFFICIENT = 3.0
"""Log-odds or log-rate of a level that is counted on where nothing is known: odds of 20 to 1. For numbers it is the
half-range of the responses."""

EDGES, CLASS_EDGES, PLANNED_EDGES = 2.0, 2.25, 3.0
"""… and at least this many times √(2p)·s, to which the noise of a p×p matrix alone reaches: three times for a plan to count on
it, whose expected information is that of a usual direction, not of the weakest. Of several
classes directions differ by themselves, so their swings are not held against the usual one's: there a little more."""

LARGEST_PULL = 0.1
"""… and if the ridge pulled the scores by at most this along the direction, and those of all rows alike: the chance of a class, and
the information with it, has then moved by less than a tenth."""

EXPECTED_INFORMATION = {"labels": 0.15, "counts": 0.5, "measured": 0.5, "quantile": 0.25, "hinge": 0.3}
"""Information of a record in measured coordinates that a plan counts on when it decides whether to measure it at all: pq
at a predictor of standard deviation 1.5, a rate of about one half, log-cosh at its threshold, a density at a quartile, a window of width ½
with a seventh of the records."""
