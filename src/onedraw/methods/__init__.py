"""Methods, one folder each: how a method is calibrated, what runs, what it estimates, and why it is private.

`fit` estimates regressions with intervals by averaged noisy Newton steps. `clipped_gradients`
predicts classes, counts and numbers, without intervals. The other methods still lie in `mechanisms`,
`samplers` and `release`.
"""
