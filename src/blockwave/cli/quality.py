# SPDX-License-Identifier: Apache-2.0
"""``blockwave quality``: what a shortcut does to the sound."""

from __future__ import annotations

from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import options
from .jobs import check_writable
from .progress import progress
from .streams import note, put_json, put_table

if TYPE_CHECKING:
    from ..codes_file import CodesFile
    from ..config import Token2WavConfig

_SETTING_HELP = (
    "A way to render, to be said once for each: exact, window, or solver=, steps=, guidance=, sway=, look-ahead=, "
    "dtype= with commas between, as solver=euler,steps=7."
)


def quality(
    setting: Annotated[list[str], typer.Option(help=_SETTING_HELP)],
    against: Annotated[str, typer.Option(help="The setting that the others are measured against.")] = "exact",
    model: options.Model = None,
    codes: Annotated[Path | None, typer.Option(help="Folder of codes files; else the package's sentences.")] = None,
    voice: Annotated[str | None, typer.Option(help="A voice by name, or a voice file.")] = None,
    sentences: Annotated[int | None, typer.Option(help="Only so many, spread over the set; else all.")] = None,
    words: Annotated[bool, typer.Option("--words", help="Count word and character errors of a recogniser.")] = False,
    recogniser: Annotated[
        Path | None, typer.Option(help="Whisper model in CTranslate2's format, for --words; else tiny.en.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="The result as JSON in a file.")] = None,
    html: Annotated[Path | None, typer.Option(help="One page to listen to all pairs, without the network.")] = None,
    sound: Annotated[str | None, typer.Option(help="Sound in the page: flac, wav, opus or mp3; else flac.")] = None,
    device: Annotated[str, typer.Option(help="Where to compute.")] = "cpu",
    threads: Annotated[int | None, typer.Option(help="CPU threads; else torch's choice.")] = None,
    json: options.Json = False,
) -> None:
    """Render sentences by each setting and by a reference from the same noise: differences in sound, speed beside.

    Means over sentences with 95 % intervals; differences are paired, sentence by sentence. Times are taken in turn, so
    that a busy moment of the machine meets all settings alike.
    """
    from ..audio import FORMATS, check_encoder
    from ..errors import OptionError
    from ..quality.page import PAGE_FORMATS, page, player
    from ..quality.recognition import Recogniser
    from ..quality.report import report
    from ..quality.settings import parse_setting
    from ..quality.study import Study, Trial, spread
    from .doctor import examine

    asked, reference = [parse_setting(text) for text in setting], parse_setting(against)
    _check_target("out", out, ".json")
    _check_target("html", html, ".html")
    if sound is not None and (html is None or sound not in PAGE_FORMATS):
        raise OptionError(f"sound: got {sound!r}, expected one of {', '.join(PAGE_FORMATS)}, together with --html")
    if recogniser is not None and not words:
        raise OptionError("recogniser: got it without --words, expected both")
    options.set_threads(threads)
    environment = examine(device, "float32")
    folder, config = options.open_checkpoint(model)
    format = sound or "flac"
    if html is not None:
        check_encoder(FORMATS[format], config.sample_rate)
    chosen = spread(_sentences(codes, config), sentences)
    speaker = None if voice is None else options.find_voice(voice, folder, config)
    listens = Recogniser(recogniser, threads or 1) if words else None
    study = Study(asked, reference, chosen, folder, speaker, device, listens)
    trials: list[Trial] = []
    players: dict[int, list[str]] = {}
    with progress(len(chosen)) as advance:
        for trial in study.trials():
            if html is not None:
                players.setdefault(trial.sentence, []).append(player(trial, format))
            trials.append(trial)
            if len(trials) % (1 + len(asked)) == 0:
                advance(1)
    content = {"checkpoint": str(folder), "environment": environment, **report(study, trials)}
    if out is not None:
        _write(out, dumps(content, ensure_ascii=False, allow_nan=False, indent=1) + "\n")
    if html is not None:
        _write(html, page(content, [sentence.text for sentence in chosen], players))
    for message in content["missing"].values():
        note(message)
    if json:
        put_json(content, indent=2)
    else:
        _put_tables(content)


def _check_target(name: str, path: Path | None, suffix: str) -> None:
    """Told before hours of work, not after."""
    from ..errors import OptionError

    if path is None:
        return
    if path.suffix != suffix or path.is_dir():
        raise OptionError(f"{name}: got {str(path)!r}, expected the name of a file that ends in {suffix}")
    check_writable(path.parent)


def _sentences(codes: Path | None, config: Token2WavConfig) -> list[CodesFile]:
    """The files of --codes by name, or the package's sentences where they are the checkpoint's."""
    from ..codes_file import SUFFIXES, load_codes
    from ..embedded import held_out, is_embedded_family
    from ..errors import CodesError, OptionError

    if codes is None:
        if not is_embedded_family(config.family.name):
            raise OptionError(
                "codes: got none, expected --codes DIR with codes of this checkpoint; the package's sentences are the "
                "embedded voice's"
            )
        return held_out()
    if not codes.is_dir():
        raise CodesError(f"{codes}: got no folder, expected one with files of codes ({', '.join(SUFFIXES)})")
    found = sorted(path for path in codes.iterdir() if path.suffix.lower() in SUFFIXES)
    if not found:
        raise CodesError(f"{codes}: got no files of codes, expected some that end in {', '.join(SUFFIXES)}")
    return [load_codes(path) for path in found]


def _write(path: Path, text: str) -> None:
    from ..voice import write_atomically

    data = text.encode()
    write_atomically(path, data)
    note(f"{path}: {len(data) / 1000:.0f} kB")


def _put_tables(content: dict[str, Any]) -> None:
    for row in (content["reference"], *content["rows"]):
        is_reference = row is content["reference"]
        title = f"{row['setting']}, {'the reference' if is_reference else 'against ' + content['against']}"
        title += f"; evaluations: {row['evaluations']}"
        if row["faults"]:
            title += f"; FAULTS: {row['faults']}"
        put_table(title, _lines(row, is_reference), ("figure", "mean", "95 %", "sentences"))


def _lines(row: dict[str, Any], is_reference: bool) -> list[tuple[str, str, str, str]]:
    from ..quality.figures import FIGURES

    lines = [_line(FIGURES[key].title, found, FIGURES[key].form) for key, found in row["figures"].items() if found]
    for key in ("words", "characters"):
        if key in row:
            lines.append(_line(f"{key} wrong, %", row[key]["percent"]))
            if not is_reference:
                lines.append(_line(f"{key} wrong, added to the reference's", row[key]["percent_added"]))
    lines.append(_line("RTF, compute / audio", row["rtf"]))
    if not is_reference:
        lines.append(_line("speed, times the reference's", row["speed"]))
    return lines


def _line(title: str, found: dict[str, float], form: str = ".2f") -> tuple[str, str, str, str]:
    spread = f"{found['least']:{form}} to {found['most']:{form}}" if "least" in found else ""
    return title, f"{found['value']:{form}}", f"{found['low']:{form}} to {found['high']:{form}}", spread
