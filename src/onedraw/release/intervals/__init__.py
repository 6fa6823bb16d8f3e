"""What released numbers say of their own uncertainty: post-processing of what was published, it costs nothing.

| published | file | what it rests on |
| --- | --- | --- |
| several draws of a regression | `replicated` | their spread, calibrated by the law of a draw (`moments`) on public designs (`models.design`) |
| one draw of a conjugate posterior | `replicated` | the draw's law, inverted by the family (`models.conjugate.family`) |
| sums with plain noise | `tables` | the noise's law (`noise_law`) |
| quantiles | `quantiles` | ends released with them |
| counts of scores | `evaluations` | a parametric bootstrap |
"""
