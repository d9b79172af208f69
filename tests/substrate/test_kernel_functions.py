"""Functions and products of compiled steps against NumPy, in both precisions."""

import ctypes

import numpy as np
import pytest

from pcsim.native import library
from pcsim.native.writer import prelude

CALLS = """
void functions(int count, const REAL *x, REAL *out)
{
    for (int n = 0; n < count; n++) {
        out[n] = EXP(x[n]);
        out[count + n] = EXPM1(x[n]);
        out[2 * count + n] = TANH(x[n]);
        out[3 * count + n] = SIGN(x[n]);
    }
}
void powers(int count, const REAL *x, const REAL *y, REAL *out)
{
    for (int n = 0; n < count; n++) out[n] = POW(x[n], y[n]);
}
void quotients(int count, const REAL *x, REAL c, REAL *out)
{
    for (int n = 0; n < count; n++) out[n] = OVER(x[n], c, R(1.0) / c);
}
void products(int M, int K, const REAL *a, const REAL *right, const REAL *left, REAL *rows,
              REAL *columns, REAL *sum)
{
    ROWS(M, K, a, right, rows);
    COLUMNS(M, K, a, left, columns);
    *sum = SUM(M * K, a);
}
int indices(uint8_t *busy, int count, int first, int32_t *out)
{
    return INDICES(busy, count, first, out);
}
"""
PRECISIONS = [np.float32, np.float64]


def compiled(precision):
    single = "#define SINGLE 1\n" if precision == np.float32 else ""
    return library(single + prelude() + CALLS).code


def called(function, *given):
    function(*(ctypes.c_void_p(g.ctypes.data) if isinstance(g, np.ndarray) else g for g in given))


@pytest.mark.parametrize("precision", PRECISIONS)
def test_functions_are_good_to_the_last_places_and_keep_infinities(precision):
    inf = np.inf
    edge = 88.5 if precision == np.float32 else 709.6
    x = np.concatenate(
        [
            np.linspace(-edge, edge, 4001),
            np.geomspace(1e-30, 1, 300),
            -np.geomspace(1e-30, 1, 300),
            [0.0, -0.0, inf, -inf, 2 * edge, -2 * edge, np.nan],
        ]
    ).astype(precision)
    out = np.empty((4, len(x)), precision)
    called(compiled(precision).functions, len(x), x, out)
    exact = x.astype(np.longdouble)
    with np.errstate(all="ignore"):
        true = [np.exp(exact), np.expm1(exact), np.tanh(exact), np.sign(exact)]
        expected = [row.astype(precision) for row in true]
    ends = np.abs(x) > edge - 1
    for row, true in zip(out, expected, strict=True):
        close = np.isclose(row, true, rtol=3 * np.finfo(precision).eps, atol=0)
        alike = close | (np.isnan(row) & np.isnan(x)) | ((np.isnan(x)) & (row == 0))
        beyond = ends & (x > 0) & np.isposinf(row)  # the last exponent may be infinity already
        tiny = (x < 2 - edge) & (np.abs(row) < 1e-37) & (np.abs(true) < 1e-37)
        assert np.all(alike | beyond | tiny), x[~(alike | beyond | tiny)][:5]
    assert not np.isnan(out[:, :-1]).any()


@pytest.mark.parametrize("precision", PRECISIONS)
def test_powers_lose_places_as_their_logarithm_is_large(precision):
    rng = np.random.default_rng(2)
    special = [0.0, 0.5, 1.0, -1.0, -2.5, 3.0, np.inf, np.nan]
    powers = [0.0, 1.0, -1.0, 2.0, 3.0, -3.0, 0.5, -0.65, 7.0]
    grid = np.meshgrid(special, powers)
    x = np.concatenate([rng.lognormal(0, 2, 5000), grid[0].ravel()]).astype(precision)
    y = np.concatenate([rng.normal(0, 2, 5000), grid[1].ravel()]).astype(precision)
    out = np.empty_like(x)
    called(compiled(precision).powers, len(x), x, y, out)
    with np.errstate(all="ignore"):
        exact = np.power(x.astype(np.longdouble), y.astype(np.longdouble))
        places = 3 + 2 * np.abs(y * np.log(np.abs(x))).astype(float)
        wrong = np.abs(out - exact) / np.abs(exact)
    finite = np.isfinite(exact) & (exact != 0)
    bad = ~(wrong < places * np.finfo(precision).eps) & finite & ~np.isnan(places)
    assert not bad.any(), (x[bad], y[bad], out[bad], exact[bad])
    np.testing.assert_array_equal(out[~finite], exact[~finite].astype(precision))


@pytest.mark.parametrize("precision", PRECISIONS)
def test_quotients_by_a_constant_are_those_of_a_division(precision):
    rng = np.random.default_rng(0)
    wrong = count = 0
    for c in (3.0, 0.1, 1.5 / 31.5, 7e-6, 1e12):
        levels = (np.arange(-64, 64) + 0.5).astype(precision) * precision(c)
        x = np.concatenate([rng.normal(size=5000) * c, levels, [0, np.inf, -np.inf, np.nan]])
        x = x.astype(precision)
        out = np.empty_like(x)
        real = ctypes.c_float if precision == np.float32 else ctypes.c_double
        called(compiled(precision).quotients, len(x), x, real(c), out)
        expected = x / precision(c)
        np.testing.assert_allclose(out, expected, rtol=np.finfo(precision).eps)
        wrong += int((out[:-1] != expected[:-1]).sum())
        count += len(x)
    assert wrong < 1e-3 * count, "nearly always the nearest number"


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("shape", [(1, 1), (10, 32), (7, 100), (33, 17)])
def test_products_and_sums(precision, shape):
    rng = np.random.default_rng(1)
    a, left, right = (rng.normal(size=s).astype(precision) for s in (shape, shape[0], shape[1]))
    rows, columns, total = (np.empty(n, precision) for n in (*shape, 1))
    called(compiled(precision).products, *shape, a, right, left, rows, columns, total)
    near = {"rtol": 0, "atol": 100 * np.finfo(precision).eps}
    np.testing.assert_allclose(rows, a.astype(float) @ right, **near)
    np.testing.assert_allclose(columns, left @ a.astype(float), **near)
    np.testing.assert_allclose(total[0], a.astype(float).sum(), **near)


@pytest.mark.parametrize("share", [0.0, 0.03, 0.5, 1.0])
@pytest.mark.parametrize("count", [1, 7, 64, 1003])
def test_what_is_busy_is_found_in_order_and_vectors_are_whole(count, share):
    rng = np.random.default_rng(count)
    busy = np.full(count + 8, 1, np.uint8)  # what stands behind the last one is not looked at
    busy[:count] = rng.random(count) < share
    expected = 5 + np.flatnonzero(busy[:count])
    out = np.full(count + 16, -1, np.int32)
    call = compiled(np.float32).indices
    found = call(ctypes.c_void_p(busy.ctypes.data), count, 5, ctypes.c_void_p(out.ctypes.data))
    assert found == len(expected)
    np.testing.assert_array_equal(out[:found], expected)
    if found:
        np.testing.assert_array_equal(out[found : -(-found // 16) * 16], expected[0])
