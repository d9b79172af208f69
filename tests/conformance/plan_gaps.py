"""What has no equations in a plan, and so no engine that runs plans."""

from adapter import Gap

PLAN_GAPS = (
    Gap.of("f gelu", reason="network.f 'gelu' has no elementwise"),
    Gap.of("circuit dendritic", "f softmax", reason="unit alone"),
    Gap.of("circuit dendritic", "mode associative", reason="mode 'associative'.*in part"),
    Gap.of("circuit dendritic", "variance", reason="energy.variance: a dendritic layer has unit"),
    Gap.of("circuit dendritic", "convention post", reason="network.convention 'post'"),
    Gap.of("circuit equilibrium", "mode generative", reason="mode 'generative'.*at most a target"),
    Gap.of("circuit equilibrium", "convention post", reason="use 'pre'"),
    Gap.of("circuit equilibrium", "variance", reason="has unit variance"),
    Gap.of("circuit equilibrium", "hardware at error", reason="has no site 'error'"),
    Gap.of("circuit sacramento", "biases", reason="network.bias true"),
    Gap.of("circuit sacramento", "mode generative", reason="mode 'generative'"),
    Gap.of("circuit spiking", "mode generative", reason="mode 'generative'.*clamped input"),
    Gap.of("circuit spiking", "convention post", reason="neurons are potentials"),
    Gap.of("circuit spiking", "variance", reason="of unit variance"),
    Gap.of("circuit spiking", "prior", reason="network.prior"),
    Gap.of("circuit spiking", "hardware at tau_w", reason="hardware effects are not available"),
    Gap.of("circuit error_units", "categorical datum", reason="energy categorical.*x − μ"),
    Gap.of("delay_err", "categorical datum", reason="energy categorical.*x − μ"),
    Gap.of("delay_err", "learned variance", reason="energy.learned.*fixed variance"),
)
