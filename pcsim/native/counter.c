/* Random numbers as a function of (key, step, element): Philox 4x32-10 (Salmon et al., SC 2011).
 *
 *   block(key, step, b)   four 32-bit words from the counter (b, step) under a 64-bit key
 *   element e             word e mod 4 of block e div 4
 *   uniform               (word + 1/2) / 2^32, for float from the upper 24 bits, inside (0, 1)
 *   normal                Box-Muller from the words 0, 1 (elements 0, 1) and 2, 3 (elements 2, 3)
 *
 * Logarithm, sine and cosine are polynomials of our own, in operations that IEEE 754 rounds exactly:
 * every processor, vector width and engine gives the same bits. The text is C and C++.
 */
#include <math.h>
#include <stdint.h>
#include <string.h>

#define CHUNK 64

/* One round; 32-bit words stand in 64-bit lanes, where processors multiply them side by side. */
#define ROUND                                                                                      \
    {                                                                                              \
        const uint64_t p = a * 0xD2511F53u, q = c * 0xCD9E8D57u;                                   \
        a = (q >> 32) ^ b ^ k0;                                                                    \
        c = (p >> 32) ^ d ^ k1;                                                                    \
        b = (uint32_t)q;                                                                           \
        d = (uint32_t)p;                                                                           \
        k0 += 0x9E3779B9u;                                                                         \
        k1 += 0xBB67AE85u;                                                                         \
    }
#define PHILOX(key, step, block)                                                                   \
    uint64_t a = (uint32_t)(block), b = (block) >> 32, c = (uint32_t)(step), d = (step) >> 32;     \
    uint32_t k0 = (uint32_t)(key), k1 = (uint32_t)((key) >> 32);                                   \
    ROUND ROUND ROUND ROUND ROUND ROUND ROUND ROUND ROUND ROUND

static void words(uint64_t key, uint64_t step, uint64_t first, int blocks, uint32_t out[4][CHUNK])
{
    for (int i = 0; i < blocks; i++) {
        const uint64_t block = first + (uint64_t)i;
        PHILOX(key, step, block)
        out[0][i] = (uint32_t)a;
        out[1][i] = (uint32_t)b;
        out[2][i] = (uint32_t)c;
        out[3][i] = (uint32_t)d;
    }
}

static inline double ln_double(uint32_t word) /* ln((word + 1/2)/2^32) */
{
    const double v = (double)word + 0.5;
    int64_t bits;
    memcpy(&bits, &v, 8);
    const int64_t k = (bits - 0x3FE6A09E667F3BCD) >> 52; /* v = m 2^k, m in [sqrt(1/2), sqrt(2)) */
    bits -= k * 0x10000000000000;
    double m;
    memcpy(&m, &bits, 8);
    const double s = (m - 1.0) / (m + 1.0), z = s * s;
    double p = 1.0 / 21.0;
    p = p * z + 1.0 / 19.0;
    p = p * z + 1.0 / 17.0;
    p = p * z + 1.0 / 15.0;
    p = p * z + 1.0 / 13.0;
    p = p * z + 1.0 / 11.0;
    p = p * z + 1.0 / 9.0;
    p = p * z + 1.0 / 7.0;
    p = p * z + 1.0 / 5.0;
    p = p * z + 1.0 / 3.0;
    p = p * z + 1.0;
    return (double)(k - 32) * 0.6931471805599453 + 2.0 * s * p;
}

static inline float ln_float(uint32_t word)
{
    const float v = (float)word + 0.5f;
    int32_t bits;
    memcpy(&bits, &v, 4);
    const int32_t k = (bits - 0x3F3504F3) >> 23;
    bits -= k * 0x800000;
    float m;
    memcpy(&m, &bits, 4);
    const float s = (m - 1.0f) / (m + 1.0f), z = s * s;
    float p = 1.0f / 9.0f;
    p = p * z + 1.0f / 7.0f;
    p = p * z + 1.0f / 5.0f;
    p = p * z + 1.0f / 3.0f;
    p = p * z + 1.0f;
    return (float)(k - 32) * 0.6931472f + 2.0f * s * p;
}

/* What the square of a normal number from this word cannot exceed, whatever its angle:
 * -2 ln(v/2^32) <= 2 ln 2 (32 - n) for v >= 2^n, and 2 ln 2 < 1.39, by far more than round-off */
static inline double reach_double(uint32_t word)
{
    const double v = (double)word + 0.5;
    int64_t bits;
    memcpy(&bits, &v, 8);
    return 1.39 * (double)(1023 + 32 - (bits >> 52));
}

static inline float reach_float(uint32_t word)
{
    const float v = (float)word + 0.5f;
    int32_t bits;
    memcpy(&bits, &v, 4);
    return 1.39f * (float)(127 + 32 - (bits >> 23));
}

/* cos and sin of a turn word/2^32: the nearest quarter turn is exact, the rest is within pi/4 */
static inline void turn_double(uint32_t word, double *c, double *s)
{
    const uint32_t quarter = (word + 0x20000000u) >> 30;
    const double f = (double)(int32_t)(word - (quarter << 30)) * 1.4629180792671596e-09;
    const double z = f * f;
    double sine = -1.0 / 1307674368000.0;
    sine = sine * z + 1.0 / 6227020800.0;
    sine = sine * z - 1.0 / 39916800.0;
    sine = sine * z + 1.0 / 362880.0;
    sine = sine * z - 1.0 / 5040.0;
    sine = sine * z + 1.0 / 120.0;
    sine = sine * z - 1.0 / 6.0;
    sine = (sine * z + 1.0) * f;
    double cosine = 1.0 / 20922789888000.0;
    cosine = cosine * z - 1.0 / 87178291200.0;
    cosine = cosine * z + 1.0 / 479001600.0;
    cosine = cosine * z - 1.0 / 3628800.0;
    cosine = cosine * z + 1.0 / 40320.0;
    cosine = cosine * z - 1.0 / 720.0;
    cosine = cosine * z + 1.0 / 24.0;
    cosine = cosine * z - 1.0 / 2.0;
    cosine = cosine * z + 1.0;
    const double even = (quarter & 1u) ? sine : cosine, odd = (quarter & 1u) ? cosine : sine;
    *c = ((quarter + 1u) & 2u) ? -even : even;
    *s = (quarter & 2u) ? -odd : odd;
}

static inline void turn_float(uint32_t word, float *c, float *s)
{
    const uint32_t quarter = (word + 0x20000000u) >> 30;
    const float f = (float)(int32_t)(word - (quarter << 30)) * 1.46291808e-09f;
    const float z = f * f;
    float sine = 1.0f / 362880.0f;
    sine = sine * z - 1.0f / 5040.0f;
    sine = sine * z + 1.0f / 120.0f;
    sine = sine * z - 1.0f / 6.0f;
    sine = (sine * z + 1.0f) * f;
    float cosine = -1.0f / 3628800.0f;
    cosine = cosine * z + 1.0f / 40320.0f;
    cosine = cosine * z - 1.0f / 720.0f;
    cosine = cosine * z + 1.0f / 24.0f;
    cosine = cosine * z - 1.0f / 2.0f;
    cosine = cosine * z + 1.0f;
    const float even = (quarter & 1u) ? sine : cosine, odd = (quarter & 1u) ? cosine : sine;
    *c = ((quarter + 1u) & 2u) ? -even : even;
    *s = (quarter & 2u) ? -odd : odd;
}

#define FILL(REAL, LN, REACH, TURN, ROOT, UNIFORM)                                                 \
    static void normals_##REAL(uint32_t in[4][CHUNK], int blocks, REAL *out)                       \
    {                                                                                              \
        for (int i = 0; i < blocks; i++) {                                                         \
            REAL c, s, r;                                                                          \
            r = ROOT((REAL)-2 * LN(in[0][i]));                                                     \
            TURN(in[1][i], &c, &s);                                                                \
            out[4 * i] = r * c;                                                                    \
            out[4 * i + 1] = r * s;                                                                \
            r = ROOT((REAL)-2 * LN(in[2][i]));                                                     \
            TURN(in[3][i], &c, &s);                                                                \
            out[4 * i + 2] = r * c;                                                                \
            out[4 * i + 3] = r * s;                                                                \
        }                                                                                          \
    }                                                                                              \
    static void uniforms_##REAL(uint32_t in[4][CHUNK], int blocks, REAL *out)                      \
    {                                                                                              \
        for (int i = 0; i < blocks; i++)                                                           \
            for (int lane = 0; lane < 4; lane++)                                                   \
                out[4 * i + lane] = UNIFORM(in[lane][i]);                                          \
    }                                                                                              \
    static void reaches_##REAL(uint32_t in[4][CHUNK], int blocks, REAL *out)                       \
    {                                                                                              \
        for (int i = 0; i < blocks; i++) {                                                         \
            out[4 * i] = out[4 * i + 1] = ROOT(REACH(in[0][i]));                                   \
            out[4 * i + 2] = out[4 * i + 3] = ROOT(REACH(in[2][i]));                               \
        }                                                                                          \
    }                                                                                              \
    /* law: 0 uniform, 1 normal, 2 what the size of each normal number cannot exceed.              \
     * out: chips rows of `count` numbers, for the elements first, first + 1, ... of each key */   \
    void fill_##REAL(REAL *out, const uint64_t *keys, int64_t chips, int64_t count, uint64_t step, \
                     uint64_t first, int law)                                                      \
    {                                                                                              \
        uint32_t raw[4][CHUNK];                                                                    \
        REAL made[4 * CHUNK];                                                                      \
        for (int64_t chip = 0; chip < chips; chip++) {                                             \
            REAL *row = out + chip * count;                                                        \
            uint64_t block = first / 4;                                                            \
            int64_t skip = (int64_t)(first % 4), done = 0;                                         \
            while (done < count) {                                                                 \
                int64_t take = 4 * CHUNK - skip;                                                   \
                if (take > count - done)                                                           \
                    take = count - done;                                                           \
                /* whole vectors: a few numbers more than asked for cost nothing */                \
                const int blocks = (int)((skip + take + 31) / 32 * 8);                             \
                words(keys[chip], step, block, blocks, raw);                                       \
                if (law == 1)                                                                      \
                    normals_##REAL(raw, blocks, made);                                             \
                else if (law)                                                                      \
                    reaches_##REAL(raw, blocks, made);                                             \
                else                                                                               \
                    uniforms_##REAL(raw, blocks, made);                                            \
                memcpy(row + done, made + skip, (size_t)take * sizeof(REAL));                      \
                done += take;                                                                      \
                block += CHUNK;                                                                    \
                skip = 0;                                                                          \
            }                                                                                      \
        }                                                                                          \
    }

#define UNIFORM_DOUBLE(word) (((double)(word) + 0.5) * (1.0 / 4294967296.0))
#define UNIFORM_FLOAT(word) (((float)((word) >> 8) + 0.5f) * (1.0f / 16777216.0f))

FILL(double, ln_double, reach_double, turn_double, sqrt, UNIFORM_DOUBLE)
FILL(float, ln_float, reach_float, turn_float, sqrtf, UNIFORM_FLOAT)

void philox_words(uint64_t key, uint64_t step, uint64_t block, uint32_t out[4])
{
    uint32_t raw[4][CHUNK];
    words(key, step, block, 1, raw);
    for (int lane = 0; lane < 4; lane++)
        out[lane] = raw[lane][0];
}
