"""The order inside one time step, by number, because Brian2 breaks ties by the objects' names.

Orders are within Brian2's slot `groups`, but for what comes before rates r = f(x), which Brian2
computes at `before_start`. Hardware acts on a signal right after it has been computed.
"""

NOISE, MEMBRANE = -2, -1
"""At `before_start`: fresh noise for this step; potentials as hardware shows them to f."""
RATES = -16
"""Sums over a layer whose rates are a softmax."""
READ = -15
"""Hardware on rates and on stored weights."""
PREDICT = -14
"""Sums over the layer above: predictions; sums over a row; squares of weights, row by row."""
PRODUCT = -13
"""Hardware on predictions."""
STORE_ERR, DELIVER_ERR = -12, -11
"""Errors go into their delay lines, and late ones come out; sums over a layer or an array."""
READ_ERR = -10
"""Hardware on errors, and on separate feedback weights."""
STORE_FB, DELIVER_FB = -9, -8
"""Delay lines for feedback that is late."""
FEEDBACK = -7
"""Sums over the layer below."""
READ_FB = -6
"""Hardware on feedback."""
PULL = -5
"""What a softmax takes off its feedback, a sum over the layer."""
CHANGE = -4
"""Hardware on dx/dt and on the changes of weights."""
RECORD = -2
"""A monitor here sees states, sums and weights of one instant."""
WEIGHTS = -1
NEURONS = 0
AFTER = 1
"""What is put right after a step, such as the floor of a learned variance."""

OF_SUM = {
    "total_r_post": RATES,
    "mu_post": PREDICT,
    "mu_line_post": PREDICT,
    "drive_post": PREDICT,
    "drive_line_post": PREDICT,
    "basal_post": PREDICT,
    "basal_line_post": PREDICT,
    "inter_in_post": PREDICT,
    "row_power_post": PREDICT,
    "array_power_post": DELIVER_ERR,
    "total_q_post": STORE_ERR,
    "total_p_post": STORE_ERR,
    "mass_post": DELIVER_ERR,
    "mean_ratio_post": DELIVER_ERR,
    "fb_pre": FEEDBACK,
    "fb_line_pre": FEEDBACK,
    "td_pre": FEEDBACK,
    "lateral_pre": FEEDBACK,
    "mean_fb_post": PULL,
}
OF_RING = {"delay_err": (STORE_ERR, DELIVER_ERR), "delay_fb": (STORE_FB, DELIVER_FB)}


def of_sum(name: str) -> int:
    """Return the order of a summed variable; sums of hardware's rows go with the array's own."""
    if name.startswith(("line_", "back_")):
        return FEEDBACK if name.endswith("_pre") else PREDICT
    return OF_SUM[name]
