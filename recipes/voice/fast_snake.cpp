// SPDX-License-Identifier: Apache-2.0
// Anti-aliased SnakeBeta, forward and backward, for training on CPUs: upsample x2 (12 taps), x + sin(ax)^2 / b,
// downsample x2 (12 taps), replicate padding, one row (one channel of one item) at a time so that it stays in the cache.
// Same arithmetic as the engine's reference up to float32 rounding. Build: see fast_snake.py.
#include <cmath>
#include <cstring>
#include <vector>

namespace {

// sin(z) and cos(z) up to a common sign (enough for sin^2 and sin * cos): z - k pi in [-pi/2, pi/2], Taylor to 6e-8.
inline void sine_cosine(float z, float& s, float& c) {
    const float x = z - 3.14159265358979f * __builtin_rintf(z * 0.318309886183791f), q = x * x;
    s = x * (1.f + q * (-1.6666667e-1f + q * (8.3333333e-3f + q * (-1.9841270e-4f + q * (2.7557319e-6f - q * 2.5052108e-8f)))));
    c = 1.f + q * (-0.5f + q * (4.1666667e-2f + q * (-1.3888889e-3f + q * (2.4801587e-5f + q * (-2.7557319e-7f + q * 2.0876757e-9f)))));
}

// Even samples of the upsampled row use odd taps, odd samples even taps. `xp` is x with 3 replicated samples on each side.
inline void upsample(const float* xp, const float* f, int n, float* even, float* odd) {
    for (int m = 0; m < n; ++m) {
        float e = 0.f, o = 0.f;
        for (int j = 0; j < 6; ++j) {
            e += f[2 * j + 1] * xp[m + 5 - j];
            o += f[2 * j] * xp[m + 6 - j];
        }
        even[m] = 2.f * e;
        odd[m] = 2.f * o;
    }
}

inline void replicate(const float* x, int n, int left, int right, float* out) {
    for (int i = 0; i < left; ++i) out[i] = x[0];
    std::memcpy(out + left, x, sizeof(float) * n);
    for (int i = 0; i < right; ++i) out[left + n + i] = x[n - 1];
}

}  // namespace

extern "C" void snake_forward(const float* x, const float* log_a, const float* log_b, const float* f, float* out,
                              int batch, int channels, int n) {
#pragma omp parallel
    {
        std::vector<float> xp(n + 6), ep(n + 5), op(n + 5);
#pragma omp for schedule(static)
        for (int row = 0; row < batch * channels; ++row) {
            const float a = std::exp(log_a[row % channels]), inv_b = 1.f / (std::exp(log_b[row % channels]) + 1e-9f);
            float* even = ep.data() + 2;
            float* odd = op.data() + 3;
            replicate(x + (long)row * n, n, 3, 3, xp.data());
            upsample(xp.data(), f, n, even, odd);
            for (int m = 0; m < n; ++m) {
                float s, t, unused;
                sine_cosine(a * even[m], s, unused);
                sine_cosine(a * odd[m], t, unused);
                even[m] += inv_b * s * s;
                odd[m] += inv_b * t * t;
            }
            const float first = even[0], last = odd[n - 1];
            ep[0] = ep[1] = op[0] = op[1] = op[2] = first;
            ep[n + 2] = ep[n + 3] = ep[n + 4] = op[n + 3] = op[n + 4] = last;
            float* y = out + (long)row * n;
            for (int m = 0; m < n; ++m) {
                float sum = 0.f;
                for (int i = 0; i < 6; ++i) sum += f[2 * i + 1] * ep[m + i] + f[2 * i] * op[m + i];
                y[m] = sum;
            }
        }
    }
}

// dx has the shape of x; da and db are per row [batch * channels], gradients with respect to the logarithms.
extern "C" void snake_backward(const float* x, const float* log_a, const float* log_b, const float* f, const float* dout,
                               float* dx, float* da, float* db, int batch, int channels, int n) {
#pragma omp parallel
    {
        std::vector<float> xp(n + 6), even(n), odd(n), gp(n + 10), de(n + 5), od(n + 5), ue(n + 12), uo(n + 12), dp(n + 6);
#pragma omp for schedule(static)
        for (int row = 0; row < batch * channels; ++row) {
            const float a = std::exp(log_a[row % channels]), b = std::exp(log_b[row % channels]), inv_b = 1.f / (b + 1e-9f);
            replicate(x + (long)row * n, n, 3, 3, xp.data());
            upsample(xp.data(), f, n, even.data(), odd.data());
            std::fill(gp.begin(), gp.end(), 0.f);
            std::memcpy(gp.data() + 5, dout + (long)row * n, sizeof(float) * n);
            for (int q = 0; q < n + 5; ++q) {  // gradient of the padded even and odd samples
                float e = 0.f, o = 0.f;
                for (int i = 0; i < 6; ++i) {
                    e += f[2 * i + 1] * gp[q + 5 - i];
                    o += f[2 * i] * gp[q + 5 - i];
                }
                de[q] = e;
                od[q] = o;
            }
            const float left = de[0] + de[1] + od[0] + od[1] + od[2];
            const float right = de[n + 2] + de[n + 3] + de[n + 4] + od[n + 3] + od[n + 4];
            de[2] += left;
            od[n + 2] += right;
            float ga = 0.f, gb = 0.f;
            std::fill(ue.begin(), ue.end(), 0.f);
            std::fill(uo.begin(), uo.end(), 0.f);
            for (int m = 0; m < n; ++m) {
                const float ge = de[m + 2], go = od[m + 3];
                float se, so, ce, co;
                sine_cosine(a * even[m], se, ce);
                sine_cosine(a * odd[m], so, co);
                ce *= 2.f * se;  // sin(2z)
                co *= 2.f * so;
                ga += ge * ce * even[m] + go * co * odd[m];
                gb += ge * se * se + go * so * so;
                ue[m + 6] = ge * (1.f + inv_b * a * ce);
                uo[m + 6] = go * (1.f + inv_b * a * co);
            }
            da[row] = ga * inv_b * a;
            db[row] = -gb * inv_b * inv_b * b;
            for (int q = 0; q < n + 6; ++q) {
                float sum = 0.f;
                for (int j = 0; j < 6; ++j) sum += f[2 * j + 1] * ue[q + 1 + j] + f[2 * j] * uo[q + j];
                dp[q] = 2.f * sum;
            }
            dp[3] += dp[0] + dp[1] + dp[2];
            dp[n + 2] += dp[n + 3] + dp[n + 4] + dp[n + 5];
            std::memcpy(dx + (long)row * n, dp.data() + 3, sizeof(float) * n);
        }
    }
}
