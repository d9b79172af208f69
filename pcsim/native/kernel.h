/* What generated steps call, for one precision: functions of numbers, and products of matrices.
 *
 * exp, log and tanh are polynomials of our own, free of branches, so that loops over them become
 * vector code; they are good to about two units in the last place, and keep NaN and infinities.
 */
#ifdef SINGLE
typedef float REAL;
typedef int32_t BITS;
typedef uint32_t UBITS;
#define R(x) x##f
#define DIGITS 23
#define BIAS 127
#define MAGIC 12582912.0f
#define HALF_ROOT 0x3F3504F3
#define SMALLEST 1.17549435e-38f
#define LARGEST 88.72284f
#define LEAST -87.33654f
#define FLOOR floorf
#define CEIL ceilf
#define SQRT sqrtf
#define FABS fabsf
#define POW powf
#define LN ln_float
#define TURN turn_float
#define UNIFORM UNIFORM_FLOAT
#define FILL_REAL fill_float
#else
typedef double REAL;
typedef int64_t BITS;
typedef uint64_t UBITS;
#define R(x) x
#define DIGITS 52
#define BIAS 1023
#define MAGIC 6755399441055744.0
#define HALF_ROOT 0x3FE6A09E667F3BCD
#define SMALLEST 2.2250738585072014e-308
#define LARGEST 709.782712893384
#define LEAST -708.3964185322641
#define FLOOR floor
#define CEIL ceil
#define SQRT sqrt
#define FABS fabs
#define POW pow
#define LN ln_double
#define TURN turn_double
#define UNIFORM UNIFORM_DOUBLE
#define FILL_REAL fill_double
#endif

static inline REAL of_bits(BITS bits)
{
    REAL value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline BITS to_bits(REAL value)
{
    BITS bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* e^r - 1 and 2^k for x = k ln 2 + r; x within the range of exponents, or NaN */
static inline REAL reduced(REAL x, REAL *power)
{
    const REAL shifted = x * R(1.4426950408889634) + MAGIC;
    const REAL k = shifted - MAGIC;
#ifdef SINGLE
    const REAL r = (x - k * 0.693359375f) - k * -2.12194440e-4f;
    REAL p = R(0.0001984126984126984);
#else
    const REAL r = (x - k * 0.6931471803691238) - k * 1.9082149292705877e-10;
    REAL p = 1.1470745597729725e-11;
    p = p * r + 1.6059043836821613e-10;
    p = p * r + 2.08767569878681e-09;
    p = p * r + 2.505210838544172e-08;
    p = p * r + 2.755731922398589e-07;
    p = p * r + 2.7557319223985893e-06;
    p = p * r + 2.48015873015873e-05;
    p = p * r + 0.0001984126984126984;
#endif
    p = p * r + R(0.001388888888888889);
    p = p * r + R(0.008333333333333333);
    p = p * r + R(0.041666666666666664);
    p = p * r + R(0.16666666666666666);
    p = p * r + R(0.5);
    p = p * r * r + r;
    *power = of_bits((BITS)((UBITS)(to_bits(shifted) - to_bits(MAGIC) + BIAS) << DIGITS));
    return p;
}

static inline REAL EXP(REAL x)
{
    REAL power, inside = x > LARGEST ? LARGEST : x;
    inside = inside < LEAST ? LEAST : inside;
    /* half of the exponent first: 2^128 (2^1024) has no bits of its own */
    const REAL less = inside * R(0.5), once = reduced(less, &power) * power + power;
    const REAL value = once * once;
    return x > LARGEST ? (REAL)INFINITY : x < LEAST ? R(0.0) : value;
}

static inline REAL EXPM1(REAL x)
{
    REAL power, inside = x > LARGEST - R(1.0) ? LARGEST - R(1.0) : x;
    inside = inside < R(-60.0) ? R(-60.0) : inside;
    const REAL p = reduced(inside, &power);
    return x > LARGEST - R(1.0) ? (REAL)INFINITY : p * power + (power - R(1.0));
}

static inline REAL TANH(REAL x)
{
    REAL power, size = FABS(x);
    size = size > R(22.0) ? R(22.0) : size;
    const REAL p = reduced(size + size, &power), less = p * power + (power - R(1.0));
    const REAL value = less / (less + R(2.0));
    return x < R(0.0) ? -value : value;
}

static inline REAL LOG(REAL x)
{
    const int tiny = x < SMALLEST;
#ifdef SINGLE
    const REAL whole = tiny ? x * 16777216.0f : x, lost = tiny ? -24.0f : 0.0f;
#else
    const REAL whole = tiny ? x * 18014398509481984.0 : x, lost = tiny ? -54.0 : 0.0;
#endif
    BITS bits = to_bits(whole);
    const BITS k = (bits - HALF_ROOT) >> DIGITS;
    bits -= (BITS)((UBITS)k << DIGITS);
    const REAL m = of_bits(bits), s = (m - R(1.0)) / (m + R(1.0)), z = s * s;
#ifdef SINGLE
    REAL p = 1.0f / 9.0f;
#else
    REAL p = 1.0 / 21.0;
    p = p * z + 1.0 / 19.0;
    p = p * z + 1.0 / 17.0;
    p = p * z + 1.0 / 15.0;
    p = p * z + 1.0 / 13.0;
    p = p * z + 1.0 / 11.0;
    p = p * z + 1.0 / 9.0;
#endif
    p = p * z + R(0.14285714285714285);
    p = p * z + R(0.2);
    p = p * z + R(0.3333333333333333);
    p = p * z + R(1.0);
    const REAL value = ((REAL)k + lost) * R(0.6931471805599453) + R(2.0) * s * p;
    const REAL below = x == R(0.0) ? -(REAL)INFINITY : (REAL)NAN;
    return x > R(0.0) ? (x < (REAL)INFINITY ? value : x) : below;
}

static inline REAL SIGN(REAL x) { return (x > R(0.0) ? R(1.0) : R(0.0)) - (x < R(0.0) ? R(1.0) : R(0.0)); }

static inline REAL CLIP(REAL x, REAL low, REAL high)
{
    const REAL above = x < low ? low : x;
    return above > high ? high : above;
}

/* The number of one element, as `fill` gives it. */
static inline REAL NORMAL_AT(uint64_t key, uint64_t step, uint64_t element)
{
    const uint64_t block = element >> 2;
    PHILOX(key, step, block)
    const uint32_t radius = (uint32_t)(element & 2 ? c : a), angle = (uint32_t)(element & 2 ? d : b);
    REAL cosine, sine;
    TURN(angle, &cosine, &sine);
    const REAL size = SQRT((REAL)-2 * LN(radius));
    return size * (element & 1 ? sine : cosine);
}

static inline REAL UNIFORM_AT(uint64_t key, uint64_t step, uint64_t element)
{
    const uint64_t block = element >> 2;
    PHILOX(key, step, block)
    const uint64_t low = element & 1 ? b : a, high = element & 1 ? d : c;
    return UNIFORM((uint32_t)(element & 2 ? high : low));
}

/* Write first + n for every n < count with busy[n] != 0; return how many. Behind busy is room.
 * The last vector of 16 is filled with the first of them: work on it is done in whole vectors.
 */
static inline int INDICES(uint8_t *restrict busy, int count, int first, int32_t *restrict out)
{
    int found = 0;
    memset(busy + count, 0, 8);
    for (int n = 0; n < count; n += 8) {
        uint64_t eight;
        memcpy(&eight, busy + n, 8);
        for (int m = 0; eight && m < 8; m++) {
            out[found] = first + n + m;
            found += busy[n + m];
        }
    }
    for (int m = found; m % 16; m++)
        out[m] = out[0];
    return found;
}

/* c = a b for a (M, K) with steps am and ak, b (K, N) with rows bk apart, c (M, N) with rows cm */
#define LANES (64 / (int)sizeof(REAL))
typedef REAL VEC __attribute__((vector_size(64), aligned(sizeof(REAL)), may_alias));

static inline __attribute__((always_inline)) void TILE(int rows, int columns, int K,
    const REAL *restrict a, int am, int ak, const REAL *restrict b, int bk, REAL *restrict c, int cm)
{
    VEC sum[4][2];
    for (int m = 0; m < rows; m++)
        for (int v = 0; v < columns; v++)
            sum[m][v] = (VEC){0};
    for (int k = 0; k < K; k++)
        for (int v = 0; v < columns; v++) {
            const VEC right = *(const VEC *)(b + k * bk + v * LANES);
            for (int m = 0; m < rows; m++)
                sum[m][v] += a[m * am + k * ak] * right;
        }
    for (int m = 0; m < rows; m++)
        for (int v = 0; v < columns; v++)
            *(VEC *)(c + m * cm + v * LANES) = sum[m][v];
}

static inline __attribute__((always_inline)) void PRODUCT(int M, int N, int K,
    const REAL *restrict a, int am, int ak, const REAL *restrict b, int bk, REAL *restrict c, int cm)
{
    int n = 0;
    for (; n + 2 * LANES <= N; n += 2 * LANES) {
        int m = 0;
        for (; m + 4 <= M; m += 4)
            TILE(4, 2, K, a + m * am, am, ak, b + n, bk, c + m * cm + n, cm);
        for (; m < M; m++)
            TILE(1, 2, K, a + m * am, am, ak, b + n, bk, c + m * cm + n, cm);
    }
    for (; n + LANES <= N; n += LANES) {
        int m = 0;
        for (; m + 4 <= M; m += 4)
            TILE(4, 1, K, a + m * am, am, ak, b + n, bk, c + m * cm + n, cm);
        for (; m < M; m++)
            TILE(1, 1, K, a + m * am, am, ak, b + n, bk, c + m * cm + n, cm);
    }
    for (int m = 0; n < N && m < M; m++) {
        for (int j = n; j < N; j++)
            c[m * cm + j] = R(0.0);
        for (int k = 0; k < K; k++) {
            const REAL left = a[m * am + k * ak];
            for (int j = n; j < N; j++)
                c[m * cm + j] += left * b[k * bk + j];
        }
    }
}
