# SPDX-License-Identifier: Apache-2.0
"""What each shortcut does to the sound of the embedded voice, and how much faster it is.

    python -m benchmarks.quality [--sentences 6] [--threads 1] [--name NAME] [--html PAGE.html]

Held-out sentences, each rendered exactly and by every setting from the same noise, in turn: figures of
blockwave.quality with intervals, word errors of a recogniser, times side by side. Needs the extras quality and pesq.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import torch

from benchmarks import machine
from blockwave.embedded import held_out
from blockwave.quality.figures import FIGURES, missing_figures, show
from blockwave.quality.page import page, player
from blockwave.quality.recognition import Recogniser
from blockwave.quality.report import report
from blockwave.quality.settings import parse_setting
from blockwave.quality.study import Study, Trial, spread
from blockwave.voice import write_atomically

SETTINGS = (
    "exact",  # again: what two equal renderings differ by, and how steady the clock is
    "preset=fast",
    "preset=faster",
    "solver=rk2,steps=5",
    "solver=midpoint,steps=5",
    "solver=midpoint,steps=5,guidance-per=step",
    "solver=euler,steps=10",
    "solver=euler,steps=7",
    "solver=euler,steps=5",
    "guidance=0",
    "look-ahead=0",
    "look-ahead=1",
    "look-ahead=2",
    "window",
)
SHOWN = ("log_mel", "log_mel_worst_block", "si_sdr_db", "stoi", "pesq", "level_db")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sentences", type=int, help="spread over the set; default all")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--name", default="quality-embedded", help="name of the JSON")
    parser.add_argument("--html", type=Path, help="also a page to listen to all pairs")
    arguments = parser.parse_args()
    for message in missing_figures().values():
        raise SystemExit(message)
    torch.set_num_threads(arguments.threads)
    sentences = spread(held_out(), arguments.sentences)
    recogniser = Recogniser(threads=arguments.threads)
    study = Study([parse_setting(text) for text in SETTINGS], parse_setting("exact"), sentences, recogniser=recogniser)
    about = {"what": "settings against the exact rendering, embedded voice", "recogniser": recogniser.name}
    about["machine"] = machine.describe()  # its load, before this run adds to it
    trials: list[Trial] = []
    players: dict[int, list[str]] = {}
    for trial in study.trials():
        trials.append(trial)
        if arguments.html is not None:
            players.setdefault(trial.sentence, []).append(player(trial, "flac"))
        if len(trials) % (1 + len(SETTINGS)) == 0:
            print(f"{len(trials) // (1 + len(SETTINGS))} of {len(sentences)} sentences", flush=True)
    content = report(study, trials, details=False)
    print(markdown(content))
    if arguments.html is not None:
        write_atomically(arguments.html, page(content, [s.text for s in sentences], players).encode())
    print(machine.write(arguments.name, about | content))


def markdown(content: dict[str, Any]) -> str:
    """The table of docs/quality.md."""
    lines = [["setting", "branches", "speed", *(FIGURES[key].title for key in SHOWN), "words wrong, %"]]
    lines.append(["---"] * len(lines[0]))
    for row in (content["reference"], *content["rows"]):
        cells = [row["setting"], str(row["branch_evaluations"]), f"{row['speed']['value']:.2f}"]
        for key in SHOWN:
            found = row["figures"].get(key)
            cells.append(show(key, found["value"]) if found else "")
        lines.append([*cells, f"{row['words']['percent']['value']:.1f}"])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    main()
