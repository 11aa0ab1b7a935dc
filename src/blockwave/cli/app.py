# SPDX-License-Identifier: Apache-2.0
"""The commands, each from its own file. Nothing here imports torch: help and completion answer at once."""

from __future__ import annotations

from typing import Annotated

import typer

from .. import __version__
from .bench import bench
from .compare import compare
from .demo import demo
from .doctor import doctor
from .encode import encode
from .exits import EPILOG
from .info import info
from .make_checkpoint import make_checkpoint
from .quality import quality
from .speak import speak
from .streams import put
from .timeline import timeline
from .verify import verify
from .voices import voices

app = typer.Typer(
    help="Speech codes in, sound out: the Token2Wav stage of Qwen2.5-Omni.",
    epilog=EPILOG,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("speak", epilog=EPILOG)(speak)
app.command("demo")(demo)
app.command("encode")(encode)
app.add_typer(voices, name="voices")
app.command("info")(info)
app.command("doctor")(doctor)
app.command("verify")(verify)
app.command("compare")(compare)
app.command("quality")(quality)
app.command("timeline")(timeline)
app.add_typer(bench, name="bench")
app.command("make-checkpoint")(make_checkpoint)


def _print_version(wanted: bool) -> None:
    if wanted:
        put(f"blockwave {__version__}\n")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    pass
