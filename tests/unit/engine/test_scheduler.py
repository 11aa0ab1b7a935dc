# SPDX-License-Identifier: Apache-2.0
"""Blocks of many streams in shared batches give what each gives alone, and streams with look-ahead what is promised."""

from __future__ import annotations

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from blockwave.engine import Flow
from blockwave.engine.emissions import Emissions
from blockwave.engine.executor import Executor
from blockwave.engine.scheduler import Scheduler
from blockwave.engine.state import stages_of
from blockwave.engine.track import Track
from blockwave.mel.solver import integrate
from blockwave.testing import EXACT, random_dit, random_request, relative_error, request_condition, sized_config

CONFIGS = {
    "tiny": {},
    "one segment": {"look_ahead_layers": [], "look_backward_layers": [1]},
    "ahead at once": {"look_ahead_layers": [0, 1], "look_backward_layers": [3]},
    "both at one layer": {"look_ahead_layers": [2], "look_backward_layers": [0, 2]},
    "own blocks only": {"look_ahead_layers": [], "look_backward_layers": []},
    "blocks of 7": {"block_size": 7},
}
EXACT_AT_ONCE = Emissions(1, 3, None)


@pytest.fixture(scope="module", params=CONFIGS)
def dit(request):
    return random_dit(sized_config("tiny", **CONFIGS[request.param]))


@pytest.fixture(scope="module")
def usual():
    return random_dit(sized_config("tiny"))


def request_of(dit, num_codes, seed):
    return random_request(dit.config, num_codes, 20 + seed % 7, seed)


@torch.inference_mode()
def alone(dit, request, guidance, flow, codes=None):
    """The whole sequence, or its first codes, by the plain offline loop."""
    if codes is not None:
        request = request | {"codes": request["codes"][:codes], "x": request["x"][: codes * dit.config.repeats]}
    guided, bare = (dit.pack([request_condition(dit, request, weight)]) for weight in (guidance, 0.0))
    grid, times = dit.time_grid(flow.times), []

    def velocity(x, t):
        """Guidance once a step is worth the whole step where the step's weight is largest."""
        stage, weights = len(times) % len(flow.tableau.weights), flow.tableau.weights
        times.append(t)
        if flow.guidance_per == "evaluation":
            return dit(x, guided, grid, grid.row(t))
        alone = dit(x, bare, grid, grid.row(t))
        if stage != max(i for i, weight in enumerate(weights) if weight == max(weights)):
            return alone
        return alone + (dit(x, guided, grid, grid.row(t)) - alone) / weights[stage]

    return integrate(velocity, request["x"], flow.points, flow.tableau)


def track_of(dit, scheduler, request, guidance, flow, emissions):
    voice = dit.voice_rows(request["xvector"], request["reference_mel"])
    return Track(dit, scheduler.shape, stages_of(flow), dit.time_grid(flow.times), voice, guidance, emissions)


def feed(track, request, start, stop):
    repeats = track.dit.config.repeats
    track.add(track.rows_of(request["codes"][start:stop]), request["x"][start * repeats : stop * repeats])


def mel_of(track):
    return torch.cat([emission.mel for emission in track.finished])


def run(scheduler):
    while scheduler.step():
        pass


@pytest.mark.parametrize("room", [340, 7, 2])
@torch.inference_mode()
def test_streams_of_every_kind_share_batches(dit, room):
    """Lengths, voices, guidance, solvers, steps and emissions differ; batches from everything to one block."""
    scheduler = Scheduler(Executor(dit), room)
    jobs = [
        (119, 0.5, Flow(3), EXACT_AT_ONCE),
        (50, 0.0, Flow(4, None), Emissions(1, 2, None, 30)),
        (3, 3.0, Flow(3), Emissions(2, 1, None)),
        (1, 0.5, Flow(2), EXACT_AT_ONCE),
        (100, 0.5, Flow(5, -1.0, "euler"), Emissions(1, 3, None, 9)),
        (70, 0.5, Flow(4, -1.0, "midpoint", guidance_per="step"), Emissions(1, 2, None, 20)),
        (60, 0.5, Flow(3, guidance_per="step"), EXACT_AT_ONCE),
        (80, 0.7, Flow(3, -1.0, "rk2", guidance_per="step"), Emissions(1, 3, None, 15)),
    ]
    tracks = []
    for i, (codes, guidance, flow, emissions) in enumerate(jobs):
        request = request_of(dit, codes, i)
        track = track_of(dit, scheduler, request, guidance, flow, emissions)
        scheduler.add(track)
        feed(track, request, 0, codes)
        track.close()
        tracks.append((track, alone(dit, request, guidance, flow)))
    run(scheduler)
    for track, expected in tracks:
        assert track.is_done
        assert relative_error(mel_of(track), expected) <= EXACT
        assert not track.solve.kept
        assert not track.solve.blocks


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.tuples(st.integers(1, 90), st.sampled_from([0.0, 0.5])), min_size=1, max_size=4),
    st.integers(2, 40),
    st.randoms(use_true_random=False),
)
def test_any_arrival_any_cut_any_cancellation(usual, jobs, room, random):
    """Codes come in pieces of 0..50, streams join late and leave early; what stays equals its lone run."""
    flow = Flow(3)
    with torch.inference_mode():
        scheduler, live, done = Scheduler(Executor(usual), room), [], []
        waiting = list(enumerate(jobs))
        while waiting or live:
            if waiting and (not live or random.random() < 0.3):
                i, (codes, guidance) = waiting.pop()
                request = request_of(usual, codes, i)
                track = track_of(usual, scheduler, request, guidance, flow, Emissions(1, 3, None, 20))
                scheduler.add(track)
                live.append([track, request, guidance, 0])
            for entry in list(live):
                track, request, _, fed = entry
                count = len(request["codes"])
                if fed < count:
                    entry[3] = min(count, fed + random.randint(0, 50))
                    feed(track, request, fed, entry[3])
                elif not track.is_closed:
                    track.close()
                elif track.is_done:
                    done.append(entry)
                    live.remove(entry)
                    scheduler.remove(track)
                if random.random() < 0.03:
                    scheduler.remove(track)
                    live = [other for other in live if other is not entry]
            for _ in range(random.randint(0, 4)):
                scheduler.step()
        for track, request, guidance, _ in done:
            assert relative_error(mel_of(track), alone(usual, request, guidance, flow)) <= EXACT
        assert len(scheduler) == 0


@pytest.mark.parametrize("look_ahead", [0, 1, 2])
@pytest.mark.parametrize("codes", [5, 48, 61, 118])
@torch.inference_mode()
def test_an_emission_sees_exactly_its_look_ahead(usual, look_ahead, codes):
    """However codes are cut: each emission equals the end of a shorter sequence, continued from what was emitted."""
    flow, emissions = Flow(3), Emissions(1, 3, look_ahead)
    request = request_of(usual, codes, 3)
    results = []
    for piece in (1, 7, 50, codes):
        scheduler = Scheduler(Executor(usual))
        track = track_of(usual, scheduler, request, 0.5, flow, emissions)
        scheduler.add(track)
        for start in range(0, codes, piece):
            feed(track, request, start, min(codes, start + piece))
            run(scheduler)
        track.close()
        run(scheduler)
        assert track.is_done
        results.append(mel_of(track))
    for result in results[1:]:
        assert relative_error(result, results[0]) <= EXACT
    # The first emission is what a sequence that ends after its look-ahead would be.
    first = min(codes, 12 * (1 + look_ahead))
    expected = alone(usual, request, 0.5, flow, first)[:24]
    assert relative_error(results[0][: len(expected)], expected) <= EXACT
    # With all blocks in sight the look-ahead is no approximation.
    if codes <= 12 * (1 + look_ahead):
        assert relative_error(results[0], alone(usual, request, 0.5, flow)) <= EXACT


@torch.inference_mode()
def test_more_look_ahead_is_nearer(usual):
    flow, request = Flow(4), request_of(usual, 144, 0)
    exact, errors = alone(usual, request, 0.5, flow), []
    for look_ahead in (0, 1, 2, 3):
        scheduler = Scheduler(Executor(usual))
        track = track_of(usual, scheduler, request, 0.5, flow, Emissions(1, 3, look_ahead))
        scheduler.add(track)
        feed(track, request, 0, 144)
        track.close()
        run(scheduler)
        errors.append(relative_error(mel_of(track), exact))
        emitted, evaluations = 12, 9 * len(stages_of(flow)) // 9
        per_block = track.evaluated_blocks / (emitted * evaluations)
        assert per_block <= 1 + look_ahead / 3 + 0.2
    assert errors[0] > 10 * EXACT
    assert errors == sorted(errors, reverse=True)


@torch.inference_mode()
def test_state_does_not_grow_with_length(usual):
    """The wavefront: blocks under way and what they keep stay bounded while codes keep coming."""
    flow = Flow(3)
    scheduler = Scheduler(Executor(usual))
    request = request_of(usual, 1200, 1)
    track = track_of(usual, scheduler, request, 0.5, flow, Emissions(1, 3, None, 20))
    scheduler.add(track)
    sizes = []
    for start in range(0, 1200, 60):
        feed(track, request, start, start + 60)
        run(scheduler)
        sizes.append((len(track.solve.blocks), len(track.solve.kept), len(track._noise)))
    assert max(sizes[10:]) <= max(sizes[2:10])
    assert track.evaluated_blocks <= 100 * len(stages_of(flow))


@torch.inference_mode()
def test_a_started_stream_goes_first_and_nobody_starves(usual):
    flow = Flow(3)
    scheduler = Scheduler(Executor(usual), max_blocks=2)
    tracks = []
    for i in range(3):
        request = request_of(usual, 240, i)
        track = track_of(usual, scheduler, request, 0.5, flow, EXACT_AT_ONCE)
        scheduler.add(track)
        feed(track, request, 0, 240)
        track.close()
        tracks.append(track)
        if i == 0:
            scheduler.step()
    for _ in range(Scheduler.PATIENCE):
        scheduler.step()
    assert [track.evaluated_blocks > 0 or bool(track._pass.progress) for track in tracks] == [True, False, False]
    for _ in range(4):
        scheduler.step()
    assert all(track._pass.progress for track in tracks)
