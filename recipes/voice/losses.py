# SPDX-License-Identifier: Apache-2.0
"""Losses of the vocoder that do not depend on phase: magnitudes, mels, and periodicity in bands."""

from __future__ import annotations

import torch
from corpus import WAVE_RATE
from mel_filters import mel_filters
from torch import Tensor, nn

STFTS = ((256, 64), (512, 128), (1024, 240), (2048, 480))


class SpectralLoss(nn.Module):
    """Log-magnitude L1, spectral convergence, and log-mel L1 with 40 and 80 bins, on four resolutions.

    Yamamoto et al., 2020, Parallel WaveGAN, arXiv 1910.11480, equations 5 to 7; the magnitude is raised by 1e-3 before
    the logarithm, so that inaudible detail does not count, and the convergence has one norm per batch, so that a silent
    segment does not blow it up.
    """

    def __init__(self) -> None:
        super().__init__()
        for n_fft, _ in STFTS:
            self.register_buffer(f"w{n_fft}", torch.hann_window(n_fft))
        self.mels = {512: mel_filters(WAVE_RATE, 512, 40, 12000), 1024: mel_filters(WAVE_RATE, 1024, 80, 12000)}

    def magnitudes(self, wave: Tensor) -> dict[int, Tensor]:
        out = {}
        for n_fft, hop in STFTS:
            spec = torch.stft(wave, n_fft, hop, window=getattr(self, f"w{n_fft}"), return_complex=True)
            out[n_fft] = (spec.real**2 + spec.imag**2 + 1e-8).sqrt()
        return out

    def forward(self, fake: Tensor, real: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Waves [B, L] at 24 kHz to log_l1, converge, mel40, mel80."""
        a = self.magnitudes(fake)
        with torch.no_grad():
            b = self.magnitudes(real)
        n_ffts = [n for n, _ in STFTS]
        log_l1 = sum((torch.log(a[n] + 1e-3) - torch.log(b[n] + 1e-3)).abs().mean() for n in n_ffts) / len(n_ffts)
        converge = sum((a[n] - b[n]).norm() / b[n].norm().clamp_min(10) for n in n_ffts) / len(n_ffts)
        mel40, mel80 = (
            (torch.log(f @ a[n] + 1e-5) - torch.log(f @ b[n] + 1e-5)).abs().mean() for n, f in self.mels.items()
        )
        return log_l1, converge, mel40, mel80


class PeriodicityLoss(nn.Module):
    """Distance between the short-time autocorrelations of two waves, band by band: 50 ms windows, lags 2.5 to 15 ms.

    A vowel's bands above 1 kHz repeat at multiples of the pitch period; a vocoder that has learnt only the envelope
    repeats at multiples of the frame (10 ms) instead. Log-magnitude losses hardly see the difference, since it lies in
    many weak bins; the autocorrelation gathers a whole band in a few numbers. By the Wiener-Khinchin theorem it is the
    Fourier transform of the band's power spectrum, so phase does not enter and level is divided out.
    """

    WINDOW, N_FFT, HOP = 1200, 2048, 240
    EDGES = (700, 1500, 2300, 3100, 4000, 5000, 6200, 7600, 9500, 12000)  # Hz
    QUIET = 1e-3  # power of a band in a window below which it does not count

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("window", torch.hann_window(self.WINDOW))
        lags = torch.arange(2.5e-3, 15e-3, 0.35e-3)
        hertz = torch.arange(self.N_FFT // 2 + 1) * WAVE_RATE / self.N_FFT
        self.bands = []
        for low, high in zip(self.EDGES[:-1], self.EDGES[1:], strict=True):
            inside = (hertz >= low) & (hertz < high)
            first, count = int(inside.nonzero()[0]), int(inside.sum())
            # Relative to the middle of the band: the same numbers up to a rotation, without rounding of large angles.
            angle = 2 * torch.pi * lags[:, None] * (hertz[inside] - (low + high) / 2)[None]
            self.bands.append((first, count, torch.cat((angle.cos(), angle.sin()))))

    def power(self, wave: Tensor) -> Tensor:
        spec = torch.stft(wave, self.N_FFT, self.HOP, self.WINDOW, self.window, return_complex=True)
        return spec.real**2 + spec.imag**2

    def forward(self, fake: Tensor, real: Tensor) -> Tensor:
        """Waves [B, L] at 24 kHz to one number; 0 for equal waves."""
        a = self.power(fake)
        with torch.no_grad():
            b = self.power(real)
        total, weight = 0.0, 0.0
        for first, count, matrix in self.bands:
            x, y = a[:, first : first + count], b[:, first : first + count]
            sum_x, sum_y = x.sum(1), y.sum(1)
            r = (matrix @ x) / (sum_x + self.QUIET)[:, None] - (matrix @ y) / (sum_y + self.QUIET)[:, None]
            gate = sum_y / (sum_y + 10 * self.QUIET)
            total = total + (gate * (r.square().mean(1) + 1e-6).sqrt()).sum()
            weight = weight + gate.sum()
        return total / (weight + 1e-3)


class AlignedLoss(nn.Module):
    """Coherence of two waves, band by band, in windows of 40 ms whose pulses have been laid on each other.

    What a mel does not determine is where the pulses of a voice fall: one number per window. It is looked for by
    cross-correlation within +-5 ms, low bands first because they agree first; what then remains, the phase of every
    harmonic relative to the pulses, follows from the mel and can be learnt without an adversary. Bands in which the
    source does not repeat itself have no such phase and do not count.
    """

    WINDOW, HOP, N_FFT, REACH = 960, 240, 2048, 120
    EDGES = (100, 500, 1000, 1500, 2000, 2600, 3200, 4000, 5000, 6200, 8000)  # Hz

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("window", torch.hann_window(self.WINDOW))
        hertz = torch.arange(self.N_FFT // 2 + 1) * WAVE_RATE / self.N_FFT
        edges = torch.tensor(self.EDGES, dtype=torch.float32)
        inside = (hertz[:, None] >= edges[:-1]) & (hertz[:, None] < edges[1:])
        self.register_buffer("bands", inside.float())  # [bins, bands]
        self.used = int(inside.any(1).nonzero()[-1]) + 1
        lags = torch.arange(2.5e-3, 8e-3, 0.25e-3)
        angle = 2 * torch.pi * hertz[: self.used, None] * lags
        self.register_buffer("turns", torch.polar(torch.ones_like(angle), angle))

    def spectra(self, windows: Tensor) -> Tensor:
        return torch.fft.rfft(windows, self.N_FFT)[..., : self.used]

    def forward(self, fake: Tensor, real: Tensor) -> Tensor:
        """Waves [B, L] at 24 kHz to one number: 0 for equal waves, 1 for unrelated ones."""
        bands = self.bands[: self.used]
        inner = fake[:, self.REACH : fake.shape[1] - self.REACH]
        spectrum = self.spectra(inner.unfold(1, self.WINDOW, self.HOP) * self.window)  # [B, W, bins]
        power = spectrum.abs().square() @ bands
        with torch.no_grad():
            wide = real.unfold(1, self.WINDOW + 2 * self.REACH, self.HOP)
            lag = self.lag(inner.unfold(1, self.WINDOW, self.HOP) * self.window.square(), wide)
            index = lag[..., None] + torch.arange(self.WINDOW)
            there = self.spectra(wide.gather(-1, index) * self.window)
            there_squared = there.abs().square()
            there_power = there_squared @ bands
            # How far each band of the source repeats itself at the best of the pitch lags.
            repeats = torch.stack(
                [(there_squared * bands[:, b]).to(self.turns.dtype) @ self.turns for b in range(bands.shape[1])], -2
            ).abs().amax(-1) / (there_power + 1e-3)
            gate = ((repeats - 0.3) / 0.4).clamp(0, 1)
        cross = (spectrum * there.conj()).real @ bands
        coherence = cross / ((power + 1e-4) * (there_power + 1e-4)).sqrt()
        return (gate * (1 - coherence)).sum() / (gate.sum() + 1e-3)

    def lag(self, fake: Tensor, wide: Tensor) -> Tensor:
        """Where in ``wide`` [B, W, WINDOW + 2 REACH] the windows ``fake`` [B, W, WINDOW] fit best: int64 [B, W]."""
        bands = self.bands[: self.used]
        a, b = self.spectra(fake), self.spectra(wide)
        product = a.conj() * b
        scale = ((a.abs().square() @ bands) * (b.abs().square() @ bands) + 1e-6).rsqrt()
        weights = scale @ bands.T  # each band counts by its coherence, not by its power
        correlation = torch.fft.irfft(product * weights, self.N_FFT)[..., : 2 * self.REACH + 1]
        return correlation.argmax(-1)
