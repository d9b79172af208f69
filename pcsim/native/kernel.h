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
#define BEYOND 88.37f
#define FLOOR floorf
#define CEIL ceilf
#define SQRT sqrtf
#define FABS fabsf
#define FMA __builtin_fmaf
#define COPYSIGN __builtin_copysignf
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
#define BEYOND 709.43
#define FLOOR floor
#define CEIL ceil
#define SQRT sqrt
#define FABS fabs
#define FMA __builtin_fma
#define COPYSIGN __builtin_copysign
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

/* a b + c, rounded once where the processor does so in one instruction */
static inline REAL PLUS(REAL a, REAL b, REAL c)
{
#ifdef __FMA__
    return FMA(a, b, c);
#else
    return a * b + c;
#endif
}

/* a/c for a constant c with the reciprocal r: the quotient, and what its remainder adds to it */
static inline REAL OVER(REAL a, REAL c, REAL r)
{
#ifdef __FMA__
    const REAL quotient = a * r, rest = FMA(-c, quotient, a);
    return rest == rest ? FMA(rest, r, quotient) : quotient; /* none where something is infinite */
#else
    (void)r;
    return a / c;
#endif
}

/* a where all bits are set, b where none is. Compilers turn some conditions into branches, or know
 * none that is alike for all elements, and leave the whole loop scalar: these are vector code. */
static inline REAL PICK(BITS all, REAL a, REAL b)
{
    return of_bits((to_bits(a) & all) | (to_bits(b) & ~all));
}
#define WHERE(condition, a, b) PICK(-(BITS)(condition), a, b)

/* e^r - 1 and 2^k for x = k ln 2 + r; x within the range of exponents, or NaN */
static inline REAL reduced(REAL x, REAL *power)
{
    const REAL shifted = PLUS(x, R(1.4426950408889634), MAGIC);
    const REAL k = shifted - MAGIC;
#ifdef SINGLE
    const REAL r = PLUS(k, 2.12194440e-4f, PLUS(k, -0.693359375f, x));
    REAL p = R(0.0001984126984126984);
#else
    const REAL r = PLUS(k, -1.9082149292705877e-10, PLUS(k, -0.6931471803691238, x));
    REAL p = 1.1470745597729725e-11;
    p = PLUS(p, r, 1.6059043836821613e-10);
    p = PLUS(p, r, 2.08767569878681e-09);
    p = PLUS(p, r, 2.505210838544172e-08);
    p = PLUS(p, r, 2.755731922398589e-07);
    p = PLUS(p, r, 2.7557319223985893e-06);
    p = PLUS(p, r, 2.48015873015873e-05);
    p = PLUS(p, r, 0.0001984126984126984);
#endif
    p = PLUS(p, r, R(0.001388888888888889));
    p = PLUS(p, r, R(0.008333333333333333));
    p = PLUS(p, r, R(0.041666666666666664));
    p = PLUS(p, r, R(0.16666666666666666));
    p = PLUS(p, r, R(0.5));
    p = PLUS(p * r, r, r);
    *power = of_bits((BITS)((UBITS)(to_bits(shifted) - to_bits(MAGIC) + BIAS) << DIGITS));
    return p;
}

static inline REAL EXP(REAL x)
{
    REAL power, inside = x > LARGEST ? LARGEST : x;
    inside = inside < LEAST ? LEAST : inside;
    /* half of the exponent first: 2^128 (2^1024) has no bits of its own */
    const REAL less = inside * R(0.5), p = reduced(less, &power), once = PLUS(p, power, power);
    const REAL value = once * once;
    return x > LARGEST ? (REAL)INFINITY : x < LEAST ? R(0.0) : value;
}

static inline REAL EXPM1(REAL x)
{
    REAL power, inside = x > BEYOND ? BEYOND + R(0.6) : x;
    inside = inside < R(-60.0) ? R(-60.0) : inside;
    const REAL p = reduced(inside, &power);
    return PLUS(p, power, power - R(1.0)); /* beyond, the power is infinite */
}

static inline REAL TANH(REAL x)
{
    REAL power, size = FABS(x);
    size = size > R(22.0) ? R(22.0) : size;
    const REAL p = reduced(size + size, &power), less = PLUS(p, power, power - R(1.0));
    const REAL value = less / (less + R(2.0));
    return COPYSIGN(value, x);
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

/* x^y = e^(y ln |x|), with the sign of an odd whole power; about y ln |x| units in the last place are
 * lost */
static inline REAL POW(REAL x, REAL y)
{
    const REAL size = FABS(x), value = EXP(y * LOG(size));
    const REAL half = y * R(0.5);
    const REAL odd = WHERE(FLOOR(half) == half, value, -value);
    const REAL negative = WHERE(FLOOR(y) == y, odd, (REAL)NAN);
    const REAL power = WHERE(x < R(0.0), negative, value);
    return WHERE(x == R(1.0), R(1.0), WHERE(y == R(0.0), R(1.0), power));
}

static inline REAL SIGN(REAL x)
{
    const REAL one = COPYSIGN(R(1.0), x);
    return FABS(x) > R(0.0) ? one : R(0.0);
}

static inline REAL CLIP(REAL x, REAL low, REAL high)
{
    const REAL above = x < low ? low : x;
    return above > high ? high : above;
}

/* The numbers of some elements, as `fill` gives them; whole vectors of 16. Not part of what calls
 * them: one piece of vector code for all.
 */
#define SOME(name, value)                                                                          \
    static __attribute__((noinline, unused)) void name(uint64_t key, uint64_t step,                \
        uint64_t first, const int32_t *restrict which, int count, REAL *restrict out)              \
    {                                                                                              \
        _Pragma("omp simd") for (int n = 0; n < (count + 15) / 16 * 16; n++)                       \
        {                                                                                          \
            const uint64_t element = first + (uint64_t)which[n], block = element >> 2;             \
            PHILOX(key, step, block)                                                               \
            out[n] = value;                                                                        \
        }                                                                                          \
    }
static inline __attribute__((always_inline)) REAL normal_of(
    uint64_t element, uint32_t radius, uint32_t angle)
{
    REAL cosine, sine;
    TURN(angle, &cosine, &sine);
    const REAL size = SQRT((REAL)-2 * LN(radius));
    return size * (element & 1 ? sine : cosine);
}
SOME(SOME_NORMAL,
    normal_of(element, (uint32_t)(element & 2 ? c : a), (uint32_t)(element & 2 ? d : b)))
SOME(SOME_UNIFORM,
    UNIFORM((uint32_t)(element & 2 ? (element & 1 ? d : c) : (element & 1 ? b : a))))

/* How many n < count have busy[n] == 1 */
static inline int OPEN(const uint8_t *restrict busy, int count)
{
    int found = 0;
    for (int n = 0; n < count; n++)
        found += busy[n];
    return found;
}

/* Where the bits of a byte are set: their numbers from the lowest on, a byte each */
static uint64_t POSITIONS[256];
__attribute__((constructor)) static void positions(void)
{
    for (int bits = 0; bits < 256; bits++)
        for (int m = 0, at = 0; m < 8; m++)
            if (bits >> m & 1)
                POSITIONS[bits] |= (uint64_t)m << (8 * at++);
}

/* Write first + n for every n < count with busy[n] == 1, else 0; return how many. Behind busy and
 * out is room for 8. The last vector of 16 is filled with the first of them: work on it is done in
 * whole vectors.
 */
static inline int INDICES(uint8_t *restrict busy, int count, int first, int32_t *restrict out)
{
    int found = 0;
    memset(busy + count, 0, 8);
    for (int n = 0; n < count; n += 8) {
        uint64_t eight, places;
        memcpy(&eight, busy + n, 8);
        /* the eight bytes as the bits of one, the first byte lowest */
        const unsigned bits = (unsigned)((eight * 0x0102040810204080) >> 56);
        uint8_t place[8];
        places = POSITIONS[bits];
        memcpy(place, &places, 8);
        for (int m = 0; m < 8; m++)
            out[found + m] = first + n + place[m];
        found += __builtin_popcount(bits);
    }
    for (int m = found; m % 16; m++)
        out[m] = out[0];
    return found;
}

/* Products of matrices. What is added up is rounded once where the processor does so in one
 * instruction; nothing depends on how a sum is rounded, only on that it always is so alike.
 */
#define LANES (64 / (int)sizeof(REAL))
typedef REAL VEC __attribute__((vector_size(64), aligned(sizeof(REAL)), may_alias));
typedef REAL HALF __attribute__((vector_size(32)));
typedef REAL QUARTER __attribute__((vector_size(16)));
#ifdef __clang__
#define CONTRACT _Pragma("clang fp contract(fast)")
#else
#define CONTRACT
#pragma GCC push_options
#pragma GCC optimize("fp-contract=fast")
#endif

/* The sum of a vector, half by half. */
static inline REAL TOTAL(VEC v)
{
    HALF half[2];
    memcpy(half, &v, sizeof half);
    const HALF sum = half[0] + half[1];
    QUARTER quarter[2];
    memcpy(quarter, &sum, sizeof quarter);
    const QUARTER four = quarter[0] + quarter[1];
    REAL total = four[0] + four[1];
    for (int n = 2; n < LANES / 4; n++)
        total += four[n];
    return total;
}

/* The sum over n < N of a[n] */
static REAL SUM(int N, const REAL *restrict a)
{
    VEC sum = {0};
    int n = 0;
    for (; n + LANES <= N; n += LANES)
        sum += *(const VEC *)(a + n);
    REAL total = TOTAL(sum);
    for (; n < N; n++)
        total += a[n];
    return total;
}

/* c[m] = sum over k of a[m, k] b[k], for rows of K numbers */
static void ROWS(int M, int K, const REAL *restrict a, const REAL *restrict b, REAL *restrict c)
{
    CONTRACT
    for (int m = 0; m < M; m++) {
        const REAL *row = a + m * K;
        VEC sum = {0}, other = {0};
        int k = 0;
        for (; k + 2 * LANES <= K; k += 2 * LANES) {
            sum += *(const VEC *)(row + k) * *(const VEC *)(b + k);
            other += *(const VEC *)(row + k + LANES) * *(const VEC *)(b + k + LANES);
        }
        for (; k + LANES <= K; k += LANES)
            sum += *(const VEC *)(row + k) * *(const VEC *)(b + k);
        REAL total = TOTAL(sum + other);
        for (; k < K; k++)
            total += row[k] * b[k];
        c[m] = total;
    }
}

/* c[k] = sum over m of b[m] a[m, k], for rows of K numbers */
static void COLUMNS(int M, int K, const REAL *restrict a, const REAL *restrict b, REAL *restrict c)
{
    CONTRACT
    int k = 0;
    for (; k + LANES <= K; k += LANES) {
        VEC sum = {0};
        for (int m = 0; m < M; m++)
            sum += b[m] * *(const VEC *)(a + m * K + k);
        *(VEC *)(c + k) = sum;
    }
    for (; k < K; k++) {
        REAL total = R(0.0);
        for (int m = 0; m < M; m++)
            total += b[m] * a[m * K + k];
        c[k] = total;
    }
}

/* c = a b for a (M, K) with steps am and ak, b (K, N) with rows bk apart, c (M, N) with rows cm */

static inline __attribute__((always_inline)) void TILE(int rows, int columns, int K,
    const REAL *restrict a, int am, int ak, const REAL *restrict b, int bk, REAL *restrict c, int cm)
{
    CONTRACT
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

static void PRODUCT(int M, int N, int K,
    const REAL *restrict a, int am, int ak, const REAL *restrict b, int bk, REAL *restrict c, int cm)
{
    CONTRACT
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
#ifndef __clang__
#pragma GCC pop_options
#endif
