# SPDX-License-Identifier: Apache-2.0
"""Every section of the streaming benchmark runs, on a tiny checkpoint, and its page is that of its JSON."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import numpy as np
import pytest

from benchmarks import machine
from benchmarks.streaming import first_audio, late_joiner, look_ahead, page, playback, plots, tables, throughput
from benchmarks.streaming.talker import Talker
from blockwave import Token2Wav
from blockwave.weights.make import make_checkpoint

FLOW = {"solver": "euler", "steps": 4, "guidance": 0.5}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Token2Wav:
    return Token2Wav.from_pretrained(make_checkpoint(tmp_path_factory.mktemp("bench") / "checkpoint", "tiny"))


def test_look_ahead(model: Token2Wav):
    found = look_ahead.run(model, [np.arange(1, 97)], FLOW)
    rows = {row["scheme"]: row for row in found["rows"]}
    assert rows["look-ahead 1"]["log_mel_l1"] > 0
    assert rows["look-ahead 0"]["log_mel_l1"] > 10 * rows["look-ahead 1"]["log_mel_l1"]
    assert rows["look-ahead exact"]["largest"] < 1e-4
    assert rows["look-ahead exact"]["work"] == rows["look-ahead 0"]["work"] == 1
    # 8 blocks: emissions of 3, 3 and 2, with one more block computed for each of the first two; windows of 4, 6 and 4.
    assert rows["look-ahead 1"]["work"] == pytest.approx(10 / 8)
    assert rows["window 48 + 72 + 24"]["work"] == pytest.approx(14 / 8)


def test_first_audio(model: Token2Wav):
    plan = first_audio.Plan((FLOW,), rates=(2000,), lengths=(60, 120), first_blocks=(2,), repeats=2)
    rows = first_audio.run(model, plan)["rows"]
    assert [row["codes"] for row in rows] == [60, 120]
    assert {row["needed_codes"] for row in rows} == {36}
    assert all(taken >= 36 for row in rows for taken in row["taken_codes"])
    assert all(seconds > 0 for row in rows for seconds in row["compute_s"])


def test_playback(model: Token2Wav):
    cases = [playback.Case(FLOW, 2), playback.Case(FLOW, 2, driver="asyncio"), playback.Case(FLOW, 1, 3, 1)]
    found = playback.run(model, playback.Plan(cases, num_codes=60, codes_per_s=500))
    for row in found["rows"]:
        assert row["smallest_delay_worst_s"] >= 0
        assert row["first_audio_median_s"] > row["first_chunk_codes"] / 500
        assert row["blocks_per_batch"] >= 2
    assert list(found["holds"]) == ["euler 3, guidance 0.5"]


def test_throughput(model: Token2Wav):
    row = throughput.run(model, [throughput.Case(FLOW, 4, (12, 25), 1)])["rows"][0]
    assert row["difference"] <= throughput.BOUND
    assert row["one_by_one"]["ratio"] == 1
    assert row["together"]["latency_p95_s"] == row["together"]["latency_p50_s"] == row["together"]["total_s"]
    assert row["audio_s"] == pytest.approx(sum(round(n) for n in np.linspace(12, 25, 4)) / 50)


def test_late_joiner(model: Token2Wav):
    plan = late_joiner.Plan(FLOW, 144, 24, call_requests=2, streams=2, after_batches=1)
    rows = late_joiner.run(model, plan)["rows"]
    assert len(rows) == 5
    assert all(row["running_waits_before"] == 0 <= row["running_waits"] for row in rows)


async def _taken(talker: Talker) -> list[np.ndarray]:
    return [piece async for piece in talker.pieces_async()]


def test_a_talker_says_all_in_order():
    codes = np.arange(50)
    for pieces in (list(Talker(codes, 2000).pieces()), asyncio.run(_taken(Talker(codes, 2000)))):
        assert np.concatenate(pieces).tolist() == codes.tolist()
    slow = Talker(codes, 500)
    next(slow.pieces())
    assert 1 <= slow.taken < 50


def test_the_page_is_that_of_its_json():
    results = json.loads((machine.RESULTS / "streaming.json").read_text(encoding="utf-8"))
    text = page.PAGE.read_text(encoding="utf-8")
    assert all(f"<!-- {name} -->" in text for name in tables.TABLES)
    assert tables.with_tables(text, results) == text, "say make plots"
    assert set(re.findall(r"images/streaming-([\w-]+)\.svg", text)) == set(plots.PICTURES)


def test_pictures(tmp_path: Path):
    results = json.loads((machine.RESULTS / "streaming.json").read_text(encoding="utf-8"))
    paths = plots.draw_all(results, tmp_path)
    assert len(paths) == len(plots.PICTURES)
    for path in paths:
        assert 5_000 < path.stat().st_size < 60_000
    again = [path.read_bytes() for path in paths]
    assert [path.read_bytes() for path in plots.draw_all(results, tmp_path)] == again
