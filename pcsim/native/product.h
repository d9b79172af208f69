/* c = [c +] alpha a b for matrices of many rows, in tiles of packed panels.
 *
 * a is (M, K) with steps am and ak, b (K, N) with steps bk and bn, c (M, N) with rows cm apart.
 * `lower`: only what lies below or on the diagonal is asked for, in whole tiles. Every sum is taken
 * in the order of k, whatever the sizes are.
 */
#ifdef __AVX512F__
#define TALL 8
#define BROAD 2
#else
#define TALL 6
#define BROAD 1
#endif
#define PANEL (BROAD * LANES)
#define DEPTH 512
#define PACKED(M, K) (((M) + TALL - 1) / TALL * TALL * ((K) < DEPTH ? (K) : DEPTH))
#ifndef __clang__
#pragma GCC push_options
#pragma GCC optimize("fp-contract=fast")
#endif

static inline __attribute__((always_inline)) void PATCH(int K, const REAL *restrict a,
    const REAL *restrict b, REAL alpha, int add, REAL *restrict c, int cm, int rows)
{
    CONTRACT
    VEC sum[TALL][BROAD];
    for (int m = 0; m < TALL; m++)
        for (int v = 0; v < BROAD; v++)
            sum[m][v] = (VEC){0};
    for (int k = 0; k < K; k++) {
        VEC right[BROAD];
        for (int v = 0; v < BROAD; v++)
            right[v] = *(const VEC *)(b + k * PANEL + v * LANES);
        for (int m = 0; m < TALL; m++)
            for (int v = 0; v < BROAD; v++)
                sum[m][v] += a[k * TALL + m] * right[v];
    }
    for (int m = 0; m < TALL; m++)
        if (m < rows)
            for (int v = 0; v < BROAD; v++) {
                VEC *const to = (VEC *)(c + (int64_t)m * cm + v * LANES);
                if (add)
                    *to += alpha * sum[m][v];
                else
                    *to = alpha * sum[m][v];
            }
}

/* room: PACKED(M, K) numbers for a, then DEPTH * PANEL for b */
static void MATRICES(int M, int N, int K, const REAL *restrict a, int am, int ak,
    const REAL *restrict b, int bk, int bn, REAL alpha, int add, REAL *restrict c, int cm, int lower,
    REAL *restrict room)
{
    REAL *const left = room, *const right = room + PACKED(M, K);
    for (int k0 = 0; k0 < K; k0 += DEPTH) {
        const int depth = K - k0 < DEPTH ? K - k0 : DEPTH;
        for (int m0 = 0; m0 < M; m0 += TALL) {
            REAL *const to = left + (int64_t)m0 * depth;
            const REAL *const from = a + (int64_t)m0 * am + (int64_t)k0 * ak;
            if (m0 + TALL <= M) {
                for (int k = 0; k < depth; k++)
                    for (int m = 0; m < TALL; m++)
                        to[k * TALL + m] = from[(int64_t)m * am + (int64_t)k * ak];
                continue;
            }
            for (int k = 0; k < depth; k++)
                for (int m = 0; m < TALL; m++)
                    to[k * TALL + m] = m0 + m < M ? from[(int64_t)m * am + (int64_t)k * ak] : R(0.0);
        }
        for (int n0 = 0; n0 < N; n0 += PANEL) {
            const int wide = N - n0 < PANEL ? N - n0 : PANEL;
            const REAL *const from = b + (int64_t)k0 * bk + (int64_t)n0 * bn;
            if (bn == 1 && wide == PANEL) {
                for (int k = 0; k < depth; k++)
                    memcpy(right + k * PANEL, from + (int64_t)k * bk, PANEL * sizeof(REAL));
            } else {
                if (wide < PANEL)
                    memset(right, 0, (size_t)depth * PANEL * sizeof(REAL));
                for (int n = 0; n < wide; n++)
                    for (int k = 0; k < depth; k++)
                        right[k * PANEL + n] = from[(int64_t)k * bk + (int64_t)n * bn];
            }
            for (int m0 = lower ? n0 / TALL * TALL : 0; m0 < M; m0 += TALL) {
                const int rows = M - m0 < TALL ? M - m0 : TALL;
                const REAL *const panel = left + (int64_t)m0 * depth;
                REAL *const to = c + (int64_t)m0 * cm + n0;
                if (wide == PANEL) {
                    PATCH(depth, panel, right, alpha, add || k0, to, cm, rows);
                    continue;
                }
                REAL part[TALL * PANEL];
                PATCH(depth, panel, right, alpha, 0, part, PANEL, TALL);
                for (int m = 0; m < rows; m++)
                    for (int n = 0; n < wide; n++) {
                        REAL *const each = to + (int64_t)m * cm + n;
                        *each = add || k0 ? *each + part[m * PANEL + n] : part[m * PANEL + n];
                    }
            }
        }
    }
}
#ifndef __clang__
#pragma GCC pop_options
#endif

/* The part of a square above its diagonal, from that below */
static inline void MIRROR(int N, REAL *restrict c)
{
    for (int m = 0; m < N; m++)
        for (int n = m + 1; n < N; n++)
            c[m * N + n] = c[n * N + m];
}
