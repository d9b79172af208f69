"""C++ that lets a standalone program stream: commands from a file, executed at their time steps.

The file `stream.bin` holds the number of steps, then commands (step, which, numbers …) in order of
time: `which` ≥ 0 writes the array with that number, −1 is the feed-forward pass, and below that
membranes start where their units stand. At the last step, what moves is written to `before.bin`, as
it is when errors are known and nothing has moved yet.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pcsim.backends.brian.build import Parts
from pcsim.backends.brian.cpp_text import number_type, pointer
from pcsim.backends.brian.initial_weights import basal_gain
from pcsim.circuit import Circuit
from pcsim.circuits.page import no
from pcsim.circuits.shared import rate
from pcsim.native.c_text import in_c

FORWARD_PASS, MEMBRANE = -1, -2
"""Commands that write no array; the membranes of layer k start by MEMBRANE − k."""


def refuse_stream(circuit: Circuit) -> None:
    """Refuse circuits of which a program that is called again would forget something."""
    for name in ("delay_err", "delay_fb"):
        if getattr(circuit, name):
            raise no(
                f"circuit.{name} with target 'standalone'",
                "the program is called again and again, and what is on its way would be lost",
            )
    if circuit.transport == "sign" and circuit.tau_apical:
        raise no(
            "circuit.transport 'sign' with circuit.tau_apical and target 'standalone'",
            "the forward pass of the program does not know this rest of the apical dendrites",
        )


def stream_code(parts: Parts, circuit: Circuit, chips: int, writable: list[Any]) -> str:
    """Return the function that is called at the start of every time step."""
    real = number_type(parts.layers[0].variables["x"].dtype)
    cases = "\n".join(
        f"        case {n}: size = {v.size}; return {pointer(v)};" for n, v in enumerate(writable)
    )
    return f"""
{_forward_pass(parts, circuit, chips, real)}
static {real}* pcsim_array(long long which, size_t& size) {{
    switch (which) {{
{cases}
    }}
    std::exit(4);
}}
static void pcsim_membrane(long long layer) {{
{_membranes(parts)}
}}
static std::FILE* pcsim_file = NULL;
static long long pcsim_step = 0, pcsim_steps = 0, pcsim_next[2];
static void pcsim_read_next() {{
    if (std::fread(pcsim_next, sizeof(long long), 2, pcsim_file) != 2) pcsim_next[0] = -1;
}}
double pcsim_stream(double unused) {{
    if (pcsim_file == NULL) {{
        pcsim_file = std::fopen((brian::results_dir + "stream.bin").c_str(), "rb");
        if (pcsim_file == NULL || std::fread(&pcsim_steps, sizeof(long long), 1, pcsim_file) != 1)
            std::exit(3);
        pcsim_read_next();
    }}
    while (pcsim_next[0] == pcsim_step) {{
        if (pcsim_next[1] == {FORWARD_PASS}) {{
            pcsim_forward_pass();
        }} else if (pcsim_next[1] <= {MEMBRANE}) {{
            pcsim_membrane({MEMBRANE} - pcsim_next[1]);
        }} else {{
            size_t size = 0;
            {real}* array = pcsim_array(pcsim_next[1], size);
            if (std::fread(array, sizeof({real}), size, pcsim_file) != size) std::exit(5);
        }}
        pcsim_read_next();
    }}
    if (++pcsim_step == pcsim_steps) Network::_globally_stopped = true;  // after this step
    return unused;
}}
"""


def before_code(moving: list[Any]) -> str:
    """Return the function that keeps the states from which the last step is taken."""
    writes = "\n".join(
        f"    std::fwrite({pointer(v)}, {np.dtype(v.dtype).itemsize}, {v.size}, file);"
        for v in moving
    )
    return f"""
double pcsim_before(double unused) {{
    if (!Network::_globally_stopped) return unused;
    std::FILE* file = std::fopen((brian::results_dir + "before.bin").c_str(), "wb");
{writes}
    std::fclose(file);
    return unused;
}}
"""


def _forward_pass(parts: Parts, circuit: Circuit, chips: int, real: str) -> str:
    """Return the same pass as `forward_pass.ForwardPass`, in C++."""
    groups = parts.plan.groups
    lines = [
        f"""
static void pcsim_drive(const {real}* w, const {real}* b, const {real}* rate, int post, int pre,
                        double gain, {real}* out) {{
    for (int c = 0; c < {chips}; c++)
        for (int i = 0; i < post; i++) {{
            const size_t n = (size_t)c * post + i;
            double sum = 0;
            for (int j = 0; j < pre; j++) sum += w[n * pre + j] * rate[(size_t)c * pre + j];
            out[n] = gain * (b == NULL ? sum : sum + b[n]);
        }}
}}
static void pcsim_forward_pass() {{"""
    ]
    for k in reversed(range(len(parts.maps))):
        lines.append(_drive(parts, k, "w", "b", basal_gain(circuit, k), real))
        x, size = pointer(parts.layers[k].variables["x"]), len(parts.layers[k])
        gate = ""
        if "free" in parts.layers[k].variables:
            gate = f"if ({pointer(parts.layers[k].variables['free'])}[n] > 0) "
        value = _cpp(groups[k].layer.g, "value[n]")
        lines.append(f"    for (int n = 0; n < {size}; n++) {gate}{x}[n] = {value};\n    }}")
    for k, layer in enumerate(parts.layers):
        if "err" in layer.equations.diff_eq_names:
            err = pointer(layer.variables["err"])
            lines.append(f"    for (int n = 0; n < {len(layer)}; n++) {err}[n] = 0;")
        if "u" in layer.variables:
            lines.append(f"    {_copy(layer)}")
        lagged = "inter" in layer.equations.diff_eq_names or circuit.tau_apical
        if groups[k].layer.interneurons and lagged:
            lines.append(_rest(parts, k, circuit, real))
    return "\n".join([*lines, "}"])


def _normalised(chips: int, units: int, real: str) -> str:
    """Return what makes exponentials a softmax over the layer of every chip."""
    return f"""    for (int chip = 0; chip < {chips}; chip++) {{
        {real} total = 0;
        for (int n = 0; n < {units}; n++) total += rate[chip * {units} + n];
        for (int n = 0; n < {units}; n++) rate[chip * {units} + n] /= total;
    }}"""


def _cpp(f: str, x: str) -> str:
    """Return f(x) in C++."""
    return in_c(rate(f, "x"), {"x": x})


def _copy(layer: Any) -> str:
    """Return a loop that lets membranes start where their units stand."""
    u, x = pointer(layer.variables["u"]), pointer(layer.variables["x"])
    return f"for (int n = 0; n < {len(layer)}; n++) {u}[n] = {x}[n];"


def _membranes(parts: Parts) -> str:
    return "\n".join(
        f"    if (layer == {k}) {_copy(layer)}"
        for k, layer in enumerate(parts.layers)
        if "u" in layer.variables
    )


def _drive(parts: Parts, k: int, w: str, b: str, gain: float, real: str) -> str:
    """Return the start of a block in which `value` is gain·(W f(x) + b) onto layer k."""
    groups, above, layer = parts.plan.groups, parts.layers[k + 1], parts.layers[k]
    f = groups[k + 1].layer.f
    assert f is not None
    bias = pointer(layer.variables[b]) if groups[k].layer.bias else "NULL"
    shared, units = groups[k + 1].layer.shares_rates, groups[k + 1].units
    return f"""    {{
    std::vector<{real}> rate({len(above)}), value({len(layer)});
    for (int n = 0; n < {len(above)}; n++) {{
        const {real} x = {pointer(above.variables["x"])}[n];
        rate[n] = {"std::exp(x)" if shared else _cpp(f, "x")};
    }}
{_normalised(len(above) // units, units, real) if shared else ""}
    pcsim_drive({pointer(parts.maps[k].variables[w])}, {bias}, rate.data(), {groups[k].units},
                {groups[k + 1].units}, {gain!r}, value.data());"""


def _rest(parts: Parts, k: int, circuit: Circuit, real: str) -> str:
    """Return a block that puts lagged interneurons and the apical dendrites above to rest."""
    groups, layer, above = parts.plan.groups, parts.layers[k], parts.layers[k + 1]
    if "w_inter" in parts.maps[k].variables:
        gain = groups[k].constants["a_D"]
        lines = [_drive(parts, k, "w_inter", "b_inter", gain, real)]
    else:
        lines = [_drive(parts, k, "w", "b", basal_gain(circuit, k), real)]
    x, nudging = pointer(layer.variables["x"]), circuit.conductances.nudging
    lines.append(
        f"    for (int n = 0; n < {len(layer)}; n++) value[n] += {nudging!r} * ({x}[n] - value[n]);"
    )
    if "inter" in layer.equations.diff_eq_names:
        inter = pointer(layer.variables["inter"])
        lines.append(f"    for (int n = 0; n < {len(layer)}; n++) {inter}[n] = value[n];")
    if circuit.tau_apical:
        back = "w_fb" if "w_fb" in parts.maps[k].variables else "w"
        w, apical = pointer(parts.maps[k].variables[back]), pointer(above.variables["v_apical"])
        post, pre = groups[k].units, groups[k + 1].units
        lines.append(f"""    for (int n = 0; n < {len(above)}; n++) {apical}[n] = 0;
    for (int n = 0; n < {len(layer)}; n++) {{
        const {real} seen = {groups[k + 1].constants["gain_td"]!r}
                          * ({x}[n] - {circuit.inhibition!r} * value[n]);
        {real}* to = {apical} + (size_t)(n / {post}) * {pre};
        for (int j = 0; j < {pre}; j++) to[j] += seen * {w}[(size_t)n * {pre} + j];
    }}""")
    return "\n".join([*lines, "    }"])
