# SPDX-License-Identifier: Apache-2.0
"""From speech to its place, and what is said about it."""

from __future__ import annotations

from typing import Any

from ..audio import encode, is_silent
from ..codes import CodeClock
from ..speech import Speech
from .existing import is_whole
from .jobs import Job
from .streams import note, put, put_json


def deliver(job: Job, speech: Speech, json: bool) -> None:
    """Writes one result and reports it, as JSON on standard output or as a line on standard error."""
    silent = is_silent(speech.samples)
    if job.target is None:
        put(encode(speech.samples, speech.sample_rate, job.format))
    else:
        speech.save(job.target, job.format.name)
    if silent:
        note(f"warning: {job.output}: the sound is silent; check the codes and the voice")
    if speech.num_codes_cut:
        note(f"{job.output}: --max-duration cut {speech.num_codes_cut} codes")
    if json:
        put_json(_report(job, speech, silent))
        return
    said = f"{speech.duration_s:.2f} s, voice {speech.voice}, seed {speech.seed}, RTF {speech.timings.rtf:.2f}"
    note(f"{job.output}: {said}")


def keep(job: Job, num_codes: int, clock: CodeClock, json: bool) -> bool:
    """Whether an earlier run left this result whole; says so."""
    samples = clock.num_samples(num_codes)
    if not job.resumes or job.target is None or not is_whole(job.target, job.format, samples):
        return False
    if json:
        put_json(_base(job, num_codes, samples, clock.sample_rate) | {"kept": True})
    else:
        note(f"{job.output}: kept, it is whole, whatever its voice and seed; --force writes it anew")
    return True


def _base(job: Job, num_codes: int, samples: int, sample_rate: int) -> dict[str, Any]:
    return {
        "input": job.source,
        "path": str(job.target),
        "format": job.format.name,
        "codes": num_codes,
        "samples": samples,
        "sample_rate": sample_rate,
        "seconds": samples / sample_rate,
    }


def _report(job: Job, speech: Speech, silent: bool) -> dict[str, Any]:
    timings = speech.timings
    return _base(job, speech.num_codes, len(speech.samples), speech.sample_rate) | {
        "kept": False,
        "voice": speech.voice,
        "seed": speech.seed,
        "ended": speech.ended,
        "cut": speech.num_codes_cut,
        "silent": silent,
        "batch": timings.batch_requests,
        "rtf": timings.rtf,
        "timings": {
            "condition_s": timings.condition_s,
            "flow_s": timings.flow_s,
            "vocoder_s": timings.vocoder_s,
            "batch_audio_s": timings.batch_audio_s,
        },
    }
