"""Builders for the continuous-time laws, and right-hand sides written out a second time in numpy.

The right-hand sides know one chip and take plain arrays; nothing of pcsim's kernels is used.
"""

from itertools import pairwise

import numpy as np
import torch
from scipy.integrate import solve_ivp

from pcsim.backends.continuous import Continuous
from pcsim.circuit import Circuit

F64 = torch.float64


def engine(network, params, dt, solver="euler", *, mode="supervised", fast=True, **circuit):
    """Return chips in motion; what `Continuous` takes itself is passed on to it."""
    own = {
        name: circuit.pop(name)
        for name in ("tau_x_each", "tau_w_each", "draw", "scale", "seeds")
        if name in circuit
    }
    renamed = {"tau_x_each": "tau_x", "tau_w_each": "tau_w"}
    own = {renamed.get(name, name): value for name, value in own.items()}
    setting = Circuit(**{"tau_w": 5.0, **circuit})
    return Continuous(
        network, params, setting, dt=dt, solver_name=solver, mode=mode, fast=fast, **own
    )


def stir(chips, size=0.5, seed=0):
    """Set every moving state to random numbers."""
    generator = torch.Generator().manual_seed(seed)
    for state in chips.flow.moving().values():
        state.copy_(size * torch.randn(state.shape, generator=generator, dtype=F64))


def largest(difference):
    return float(np.abs(np.asarray(difference)).max())


def read(chips):
    """Return all states and weights of the first chip as one vector."""
    chips.flow.settle_weights()
    parts = [state[0] for state in chips.flow.moving().values()]
    parts += [array[0] for array in chips.flow.weights]
    return np.concatenate([part.detach().numpy().ravel() for part in parts])


def split(vector, chips):
    """Undo `read`: states by name, and one flat vector per weight array."""
    named, at = {}, 0
    for name, state in chips.flow.moving().items():
        shape = state.shape[1:]
        named[name] = vector[at : at + shape.numel()].reshape(shape)
        at += shape.numel()
    arrays = []
    for array in chips.flow.weights:
        arrays.append(vector[at : at + array.shape[1]])
        at += array.shape[1]
    return named, arrays


def unflatten(flat, sizes, bias=True):
    """Return [(w, b), …] from the datum upwards; `sizes` runs from the datum to the top."""
    layers, at = [], 0
    for n_out, n_in in pairwise(sizes):
        w = flat[at : at + n_out * n_in].reshape(n_out, n_in)
        at += w.size
        b = flat[at : at + n_out] if bias else np.zeros(n_out)
        at += n_out if bias else 0
        layers.append((w, b))
    assert at == len(flat)
    return layers


def flatten(layers, bias=True):
    return np.concatenate([part.ravel() for w, b in layers for part in ((w, b) if bias else (w,))])


def integrate(rhs, start, t):
    """Integrate to time t by an adaptive method of high order."""
    solution = solve_ivp(rhs, (0, t), start, method="DOP853", rtol=1e-11, atol=1e-11)
    assert solution.success
    return solution.y[:, -1]


class Layers:
    """States of one chip in a tanh chain with a clamped, untransformed input."""

    def __init__(self, named, clamps):
        top = len(clamps) - 1
        self.x = [named[f"x{k}"] if c is None else c[0].numpy() for k, c in enumerate(clamps)]
        self.L = top

    def f(self, k):
        return self.x[k] if k == self.L else np.tanh(self.x[k])

    def slope(self, k):
        return 1 - np.tanh(self.x[k]) ** 2

    def eps(self, layers):
        return [self.x[k] - self.f(k + 1) @ w.T - b for k, (w, b) in enumerate(layers)]


def error_rhs(chips, clamps, sizes, variances=None, feedback=None):
    """ẋ, ė, θ̇ of the circuits `algebraic` and `error_units`; `feedback` is a fixed B, or "sign"."""
    c = chips.circuit
    free = [k for k, clamp in enumerate(clamps) if clamp is None]

    def rhs(t, vector):
        named, arrays = split(vector, chips)
        s = Layers(named, clamps)
        layers = unflatten(arrays[0], sizes)
        var = variances or [1.0] * len(layers)
        back = [w for w, _ in layers]
        if c.transport == "kolen_pollack":
            back = [w for w, _ in unflatten(arrays[1], sizes)]
        elif c.transport == "sign":
            back = [np.sign(w) * np.linalg.norm(w) / np.sqrt(w.size) for w in back]
        elif feedback is not None:
            back = feedback
        eps, out = s.eps(layers), {}
        xi = [e / v for e, v in zip(eps, var, strict=True)]
        if c.kind == "error_units":
            for k, e in enumerate(eps):
                out[f"err{k}"] = (e - var[k] * named[f"err{k}"]) / c.tau_err
                xi[k] = named[f"err{k}"] + c.look_err * out[f"err{k}"]
        for k in free:
            pulled = s.slope(k) * (xi[k - 1] @ back[k - 1]) if k else 0.0
            out[f"x{k}"] = (pulled - xi[k]) / c.tau_x
        grads = [(x.T @ s.f(k + 1), x.sum(0)) for k, x in enumerate(xi)]
        rates = []
        for array in arrays:
            held = unflatten(array, sizes)
            parts = [
                ((gw - c.weight_decay * w) / c.tau_w, gb / c.tau_w)
                for (gw, gb), (w, _) in zip(grads, held, strict=True)
            ]
            rates.append(flatten(parts))
        return np.concatenate([out[n].ravel() for n in chips.flow.moving()] + rates)

    return rhs


def dendritic_rhs(chips, clamps, sizes, feedback=None):
    """The microcircuit in its physical units: W_B, W_I, lags, look-ahead, κ, nudging."""
    c, g = chips.circuit, chips.circuit.conductances
    lam, a_D = g.nudging, g.g_D / (g.g_lk + g.g_D)
    G = [g.g_lk + g.g_B] + [g.g_lk + g.g_B + g.g_A] * (len(sizes) - 1)
    a_B, a_A = [g.g_B / total for total in G], g.g_A / G[1]
    free = [k for k, clamp in enumerate(clamps) if clamp is None]

    def rhs(t, vector):
        named, arrays = split(vector, chips)
        s = Layers(named, clamps)
        basal = unflatten(arrays[0], sizes)
        inter = unflatten(arrays[1], sizes) if c.inter_learned else None
        theta = [(a_B[k] * w, a_B[k] * b) for k, (w, b) in enumerate(basal)]
        back = [w for w, _ in theta]
        if c.transport == "kolen_pollack":
            back = [w for w, _ in unflatten(arrays[-1], sizes)]
        elif c.transport == "sign":
            back = [np.sign(w) * np.linalg.norm(w) / np.sqrt(w.size) for w in back]
        elif feedback is not None:
            back = feedback
        eps, out, taught = s.eps(theta), {}, {}
        for k in free:
            v_B = s.f(k + 1) @ basal[k][0].T + basal[k][1]
            current = -g.g_lk * s.x[k] + g.g_B * (v_B - s.x[k])
            if k:
                if inter:
                    v_hat = a_D * (s.f(k) @ inter[k - 1][0].T + inter[k - 1][1])
                else:
                    v_hat = s.f(k) @ theta[k - 1][0].T + theta[k - 1][1]
                i = (1 - lam) * v_hat + lam * s.x[k - 1]
                if c.tau_inter:
                    out[f"inter{k}"] = (i - named[f"inter{k}"]) / c.tau_inter
                    i = named[f"inter{k}"] + c.look_inter * out[f"inter{k}"]
                taught[k - 1] = (i - v_hat) / lam if lam else s.x[k - 1] - v_hat
                w_F = back[k - 1] / (a_A * (1 - lam))
                v_A = s.x[k - 1] @ w_F - c.inhibition * (i @ w_F)
                if c.tau_apical:
                    out[f"apical{k}"] = (v_A - named[f"apical{k}"]) / c.tau_apical
                    v_A = named[f"apical{k}"] + c.look_apical * out[f"apical{k}"]
                current = current + g.g_A * (s.slope(k) * v_A - s.x[k])
            out[f"x{k}"] = current / (c.tau_x * G[k])
        grad = [(e.T @ s.f(k + 1), e.sum(0)) for k, e in enumerate(eps)]
        rates = [
            flatten(
                [
                    ((gw / a_B[k] - c.weight_decay * basal[k][0]) / c.tau_w, gb / a_B[k] / c.tau_w)
                    for k, (gw, gb) in enumerate(grad)
                ]
            )
        ]
        if inter:
            parts = []
            for k, (w, b) in enumerate(inter):
                e = taught.get(k)  # no interneuron predicts for a layer without an apical dendrite
                gain = c.inter_rate / a_D / c.tau_w
                parts.append(
                    (0 * w, 0 * b)
                    if e is None
                    else (gain * e.T @ s.f(k + 1) - c.weight_decay * w / c.tau_w, gain * e.sum(0))
                )
            rates.append(flatten(parts))
        if c.transport == "kolen_pollack":
            parts = [
                ((gw - c.weight_decay * w) / c.tau_w, 0 * gb)
                for (gw, gb), w in zip(grad, back, strict=True)
            ]
            rates.append(flatten(parts))
        return np.concatenate([out[n].ravel() for n in chips.flow.moving()] + rates)

    return rhs


def sacramento_rhs(chips, target, source, sizes):
    """Potentials of pyramidal cells and interneurons, and the four plasticities."""
    c, g = chips.circuit, chips.circuit.conductances
    L, C = len(sizes) - 1, c.tau_x * (g.g_lk + g.g_B + g.g_A)
    phi = np.tanh

    def rhs(t, vector):
        named, arrays = split(vector, chips)
        up, ip, pi, down = ([w for w, _ in unflatten(a, sizes, bias=False)] for a in arrays)
        u = [named[f"x{k}"] for k in range(L)] + [source]
        r = [phi(v) for v in u[:-1]] + [source]
        out, d_up, d_ip, d_pi, d_down = {}, [], [], [], []
        for k in range(L):
            v_B = r[k + 1] @ up[k].T
            hat = v_B * g.g_B / (g.g_lk + g.g_B + (g.g_A if k else 0))
            current = -g.g_lk * u[k] + g.g_B * (v_B - u[k])
            if k == 0 and target is not None:
                current = current + g.g_som * (target - u[0])
            if k:
                u_I = named[f"inter{k}"]
                v_A = r[k - 1] @ down[k - 1] + phi(u_I) @ pi[k - 1]
                current = current + g.g_A * (v_A - u[k])
                v_I = r[k] @ ip[k - 1].T
                rest = (g.g_D * v_I + g.g_som * u[k - 1]) / (g.g_lk + g.g_D + g.g_som)
                tau = c.tau_inter or C / (g.g_lk + g.g_D + g.g_som)
                out[f"inter{k}"] = (rest - u_I) / tau
                v_hat = v_I * g.g_D / (g.g_lk + g.g_D)
                d_ip.append(c.eta_inter * (phi(u_I) - phi(v_hat)).T @ r[k])
                d_pi.append(-c.eta_apical * phi(u_I).T @ v_A)
                d_down.append(c.eta_down * r[k - 1].T @ (r[k] - phi(r[k - 1] @ down[k - 1])))
            out[f"x{k}"] = current / C
            d_up.append((phi(u[k]) - phi(hat)).T @ r[k + 1] - c.weight_decay * up[k])
        still = [np.zeros_like(up[-1])]
        rates = [
            np.concatenate([w.ravel() for w in arrays]) / c.tau_w
            for arrays in (d_up, d_ip + still, d_pi + still, d_down + still)
        ]
        return np.concatenate([out[n].ravel() for n in chips.flow.moving()] + rates)

    return rhs


def equilibrium_rhs(chips, target, source, sizes, bias=True):
    """Leaky somas with symmetric weights, a nudged output, and weights by the product rule."""
    c, L = chips.circuit, len(sizes) - 1
    pulls = 0.0 if target is None else c.beta
    plastic = c.plastic == "always" or target is not None

    def rhs(t, vector):
        named, (flat,) = split(vector, chips)
        layers = unflatten(flat, sizes, bias)
        x = [named[f"x{k}"] for k in range(L)]
        r = [x[0], *(np.tanh(v) for v in x[1:]), source]
        moving = []
        for k, (w, b) in enumerate(layers):
            current = r[k + 1] @ w.T + b - x[k]
            current += (
                r[k - 1] @ layers[k - 1][0]
                if k
                else pulls * (0 if target is None else target - x[0])
            )
            moving.append(current / c.tau_x)
        fast = [d * (1 - r[k] ** 2 if k else 1) * c.tau_x for k, d in enumerate(moving)]
        fast.append(np.zeros_like(source))
        rates = []
        for k, (w, _) in enumerate(layers):
            both = fast[k].T @ r[k + 1] + r[k].T @ fast[k + 1]
            hebb = plastic * both / c.beta - c.weight_decay * w
            rates.append((hebb / c.tau_w, plastic * fast[k].sum(0) / c.beta / c.tau_w))
        return np.concatenate([d.ravel() for d in moving] + [flatten(rates, bias)])

    return rhs


def jacobian(chips):
    """Return d(ds/dt)/ds over all moving states; exact, since these flows are linear."""

    def rates():
        named = {force.name: force.value / force.tau for force in chips.flow.forces()}
        return torch.cat([named[name].ravel() for name in chips.flow.moving()])

    base, columns = rates(), []
    for state in chips.flow.moving().values():
        flat = state.view(-1)
        for index in range(len(flat)):
            flat[index] += 1.0
            columns.append(rates() - base)
            flat[index] -= 1.0
    return torch.stack(columns, 1).numpy()
