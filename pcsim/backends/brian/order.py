"""The order inside one time step, by number, because Brian2 breaks ties by the objects' names.

All orders are within Brian2's slot `groups`. Rates r are computed before it, at `before_start`.
"""

PREDICT = -8
"""Sums over the layer above: predictions; squares of weights, row by row."""
STORE_ERR, DELIVER_ERR = -7, -6
"""Errors go into their delay lines, and late ones come out; sums over a layer or an array."""
STORE_FB, DELIVER_FB = -5, -4
"""The same for feedback that is late."""
FEEDBACK = -3
"""Sums over the layer below."""
RECORD = -2
"""A monitor here sees states, sums and weights of one instant."""
WEIGHTS = -1
NEURONS = 0
AFTER = 1
"""What is put right after a step, such as the floor of a learned variance."""

OF_SUM = {
    "mu_post": PREDICT,
    "drive_post": PREDICT,
    "basal_post": PREDICT,
    "inter_in_post": PREDICT,
    "row_power_post": PREDICT,
    "array_power_post": DELIVER_ERR,
    "total_q_post": STORE_ERR,
    "total_p_post": STORE_ERR,
    "mean_ratio_post": DELIVER_ERR,
    "fb_pre": FEEDBACK,
    "td_pre": FEEDBACK,
    "lateral_pre": FEEDBACK,
}
OF_RING = {"delay_err": (STORE_ERR, DELIVER_ERR), "delay_fb": (STORE_FB, DELIVER_FB)}
