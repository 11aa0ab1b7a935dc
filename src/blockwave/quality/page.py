# SPDX-License-Identifier: Apache-2.0
"""One page to listen to all pairs side by side: a single file that asks nothing of the network."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from string import Template
from typing import Any

from ..audio import FORMATS, encode
from .figures import FIGURES, show
from .study import Trial

# RFC 9639, 7845 and 3003; wav as browsers name it.
_TYPES = {"flac": "audio/flac", "wav": "audio/wav", "opus": "audio/ogg", "mp3": "audio/mpeg"}
PAGE_FORMATS = tuple(_TYPES)
_TEMPLATE = Path(__file__).with_name("page.html")
_NEAR_PLAYER = ("log_mel", "log_mel_worst_block", "si_sdr_db", "pesq")


def player(trial: Trial, format: str) -> str:
    """A trial as HTML: its sound inside a data URL, its name and what was measured.

    Raises:
        AudioError, MissingExtraError: the format cannot be written here.
    """
    data = base64.b64encode(encode(trial.sound.samples, trial.sound.rate, FORMATS[format])).decode()
    name = f"{trial.setting.name} (reference)" if trial.is_reference else trial.setting.name
    told = [f"{FIGURES[key].title} {show(key, trial.figures[key])}" for key in _NEAR_PLAYER if key in trial.figures]
    if trial.errors is not None and trial.errors.word_errors:
        told.append(f"heard: {trial.heard}")
    told += trial.faults
    lines = "".join(f"<small>{escape(line)}</small>" for line in told)
    return (
        f'<figure><audio controls preload="none" src="data:{_TYPES[format]};base64,{data}"></audio>'
        f"<figcaption>{escape(name)}{lines}</figcaption></figure>"
    )


def page(content: Mapping[str, Any], texts: Sequence[str | None], players: Mapping[int, Sequence[str]]) -> str:
    """The whole page.

    Args:
        content: of :func:`~.report.report`.
        texts: what the sentences say.
        players: of every sentence, in the order they stand in.
    """
    sections = (
        f'<section><p>{i + 1}. {escape(texts[i] or "(no text)")}</p><div class="row">{"".join(found)}</div></section>'
        for i, found in players.items()
    )
    about = f"{content['sentences']} sentences, {content['audio_s']} s; the reference is {content['against']}."
    return Template(_TEMPLATE.read_text(encoding="utf-8")).substitute(
        title="Settings side by side",
        about=escape(about),
        table=_table(content),
        sentences="\n".join(sections),
    )


def _table(content: Mapping[str, Any]) -> str:
    rows = content["rows"]
    keys = [key for key in FIGURES if any(row["figures"].get(key) for row in rows)]
    lines = [
        ("setting", *(row["setting"] for row in rows)),
        ("evaluations of a branch", *(str(r["branch_evaluations"]) for r in rows)),
    ]
    lines.append((f"speed, times {content['against']}", *(_cell(row["speed"], ".2f") for row in rows)))
    for key in keys:
        lines.append((FIGURES[key].title, *(_cell(row["figures"].get(key), FIGURES[key].form) for row in rows)))
    for key, title in (("words", "word errors, %"), ("characters", "character errors, %")):
        if key in content["reference"]:
            its = _cell(content["reference"][key]["percent"], ".2f")
            lines.append((f"{title}; reference {its}", *(_cell(row[key]["percent"], ".2f") for row in rows)))
            lines.append((f"{title}, added to the reference's", *(_cell(r[key]["percent_added"], ".2f") for r in rows)))
    head, *body = ("".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in line) for tag, line in _tagged(lines))
    return f"<table><tr>{head}</tr>{''.join(f'<tr>{line}</tr>' for line in body)}</table>"


def _tagged(lines: Sequence[Sequence[str]]) -> list[tuple[str, Sequence[str]]]:
    return [("td" if i else "th", line) for i, line in enumerate(lines)]


def _cell(value: Mapping[str, float] | None, form: str) -> str:
    if value is None:
        return "-"
    return f"{value['value']:{form}} ({value['low']:{form}} to {value['high']:{form}})"
