# SPDX-License-Identifier: Apache-2.0
"""Ways to render, by name: what is compared in a study.

A setting is terms with commas between them. A term is ``key=value``, or one of two words::

    exact                        every default: what an exact engine computes
    preset=fast                  steps, solver and guidance-per by name; what else is said goes before it
    solver=euler,steps=7         six evaluations instead of 36
    guidance=0                   the conditional branch alone
    look-ahead=1                 a live stream that sees one block ahead
    window                       the scheme of the public engines, every window a sequence of its own
    dtype=bfloat16,solver=euler  and any mixture

Keys: preset, solver, steps, guidance, guidance-per, sway, look-ahead (blocks, or exact), dtype. A hyphen may be an
underscore.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..engine.arguments import EXACT, LookAhead
from ..engine.build import check_dtype
from ..engine.presets import flow_of
from ..engine.request import Flow, check_guidance
from ..engine.state import stages_of
from ..errors import OptionError
from ..velocity import MIN_GUIDANCE

_EXACT, _WINDOW = "exact", "window"
_KEYS = ("preset", "solver", "steps", "guidance", "guidance-per", "sway", "look-ahead", "dtype")


@dataclass(frozen=True)
class Setting:
    """One way to render.

    Attributes:
        name: as it was asked for.
        flow: solver and time points.
        guidance: weight of classifier-free guidance.
        look_ahead: of a live stream; None: no stream.
        windowed: the scheme of the public engines.
        dtype: of the transformer layers' matrix products.
    """

    name: str
    flow: Flow
    guidance: float = 0.5
    look_ahead: LookAhead | None = None
    windowed: bool = False
    dtype: str = "float32"

    @property
    def evaluations(self) -> int:
        """Evaluations of the velocity in one solve, both branches counted as one."""
        return len(stages_of(self.flow))

    @property
    def branch_evaluations(self) -> int:
        """The same with every branch counted: what a solve costs."""
        if self.guidance < MIN_GUIDANCE:
            return self.evaluations
        return sum(1 + (stage.guidance != 0) for stage in stages_of(self.flow))

    @property
    def options(self) -> dict[str, Any]:
        """Arguments of a model's call or stream."""
        flow = self.flow
        return {
            "steps": flow.steps,
            "sway": flow.sway,
            "solver": flow.solver,
            "guidance": self.guidance,
            "guidance_per": flow.guidance_per,
        }


def parse_setting(text: str) -> Setting:
    """The setting of a text, see above.

    Raises:
        OptionError: an unknown word or key, a key twice, a value outside its range, or a window with look-ahead.
    """
    name = "".join(text.split())
    words, values = _terms(name)
    sway = values.get("sway", "-1")
    flow = flow_of(
        values.get("preset", "exact"),
        _integer(name, values, "steps") if "steps" in values else None,
        None if sway == "none" else _number(name, values | {"sway": sway}, "sway"),
        values.get("solver"),
        values.get("guidance-per"),
    )
    ahead: LookAhead | None = None
    if "look-ahead" in values:
        ahead = EXACT if values["look-ahead"] == EXACT else _integer(name, values, "look-ahead")
        if isinstance(ahead, int) and ahead < 0:
            raise OptionError(f"setting {name!r}: got look-ahead {ahead}, expected a number of blocks >= 0, or {EXACT}")
    if _WINDOW in words and ahead is not None:
        raise OptionError(f"setting {name!r}: got window and look-ahead, expected one of them: each is a way to stream")
    dtype = values.get("dtype", "float32")
    check_dtype(dtype)
    guidance = check_guidance(_number(name, values, "guidance") if "guidance" in values else 0.5)
    return Setting(name, flow, guidance, ahead, _WINDOW in words, dtype)


def _terms(name: str) -> tuple[set[str], dict[str, str]]:
    words: set[str] = set()
    values: dict[str, str] = {}
    for term in name.split(","):
        key, equals, value = term.partition("=")
        key = key.replace("_", "-")
        if not equals and key in (_EXACT, _WINDOW):
            words.add(key)
        elif equals and key in _KEYS and key not in values:
            values[key] = value
        else:
            what = "twice" if key in values else f"expected {_EXACT}, {_WINDOW} or {'=, '.join(_KEYS)}="
            raise OptionError(
                f"setting {name!r}: got {term!r}, {what}; put commas between terms, as solver=euler,steps=7"
            )
    return words, values


def _integer(name: str, values: dict[str, str], key: str) -> int:
    try:
        return int(values[key])
    except ValueError:
        raise OptionError(f"setting {name!r}: got {key} {values[key]!r}, expected an integer") from None


def _number(name: str, values: dict[str, str], key: str) -> float:
    try:
        return float(values[key])
    except ValueError:
        raise OptionError(f"setting {name!r}: got {key} {values[key]!r}, expected a number") from None
