# SPDX-License-Identifier: Apache-2.0
"""English text as the words that are spoken: lower case, no punctuation, numbers written out.

What is said and what a recogniser writes differ in form only, "25" for "twenty-five"; forms must not count as errors.
"""

from __future__ import annotations

import re

_SMALL = [
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"),
    *("ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
]
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_SCALES = ((10**9, "billion"), (10**6, "million"), (1000, "thousand"), (100, "hundred"))
_IRREGULAR_ORDINALS = {
    "one": "first",
    "two": "second",
    "three": "third",
    "five": "fifth",
    "eight": "eighth",
    "nine": "ninth",
    "twelve": "twelfth",
}
_TITLES = {"mr": "mister", "mrs": "missus", "ms": "miz", "dr": "doctor", "prof": "professor", "st": "saint"}
_CURRENCIES = {"$": ("dollar", "cent"), "£": ("pound", "pence"), "€": ("euro", "cent")}
_LARGEST = 10**12

_MONEY = re.compile(r"([$£€])(\d[\d,]*)(?:\.(\d\d))?")
_TIME = re.compile(r"\b(\d{1,2}):(\d\d)\b")
_ORDINAL = re.compile(r"\b(\d[\d,]*)(?:st|[nr]d|th)\b")
_DECIMAL = re.compile(r"\b(\d[\d,]*)\.(\d+)")
_GROUPED = re.compile(r"\b\d{1,3}(?:,\d{3})+\b")
_YEAR = re.compile(r"\b(1[1-9]|20)(\d\d)\b")
_INTEGER = re.compile(r"\d+")


def spoken_words(text: str) -> str:
    """The words of English text, one space between them: "In 1969, $3" -> "in nineteen sixty nine three dollars".

    Four digits from 1100 to 2099 without a comma are read as a year, hyphens part numbers ("7-0-4" is three digits),
    and what begins with a zero is read digit by digit. Letters beyond a to z are dropped.
    """
    text = text.lower().replace("’", "'").replace("%", " percent")
    text = re.sub(r"\b(\w+)\.(?=\s)", lambda match: _TITLES.get(match[1], match[0]), text)
    text = re.sub(r"\b([ap])\.\s?m\b\.?", r"\1m", text)
    text = _MONEY.sub(_money, text)
    text = _TIME.sub(_time, text)
    text = _ORDINAL.sub(lambda match: _ordinal(_integer(match[1])), text)
    text = _DECIMAL.sub(lambda match: f"{_cardinal(_integer(match[1]))} point {_digits(match[2])}", text)
    text = _GROUPED.sub(lambda match: _cardinal(_integer(match[0])), text)
    text = _YEAR.sub(lambda match: _year(int(match[1]), int(match[2])), text)
    text = _INTEGER.sub(_plain, text)
    return " ".join(re.sub(r"[^a-z' ]", " ", text).split())


def _plain(match: re.Match[str]) -> str:
    # Spaces: what stands beside a number is another word, as in "48h".
    number = match[0]
    if len(number) > 1 and number[0] == "0":
        return f" {_digits(number)} "
    return f" {_cardinal(int(number))} "


def _integer(digits: str) -> int:
    return int(digits.replace(",", ""))


def _digits(number: str) -> str:
    return " ".join(_SMALL[int(digit)] for digit in number)


def _cardinal(number: int) -> str:
    if number >= _LARGEST:
        return _digits(str(number))
    if number < 20:
        return _SMALL[number]
    if number < 100:
        tens, ones = divmod(number, 10)
        return _TENS[tens - 2] + (f" {_SMALL[ones]}" if ones else "")
    size, name = next(scale for scale in _SCALES if number >= scale[0])
    count, rest = divmod(number, size)
    return f"{_cardinal(count)} {name}" + (f" {_cardinal(rest)}" if rest else "")


def _ordinal(number: int) -> str:
    *before, last = _cardinal(number).split()
    regular = f"{last[:-1]}ieth" if last.endswith("y") else f"{last}th"
    return " ".join([*before, _IRREGULAR_ORDINALS.get(last, regular)])


def _year(century: int, rest: int) -> str:
    if century == 20 and rest < 10:
        return _cardinal(2000 + rest)
    if rest == 0:
        return f"{_cardinal(century)} hundred"
    return f"{_cardinal(century)} {'oh ' * (rest < 10)}{_cardinal(rest)}"


def _money(match: re.Match[str]) -> str:
    unit, part = _CURRENCIES[match[1]]
    whole = _integer(match[2])
    said = f"{_cardinal(whole)} {unit}{'s' * (whole != 1)}"
    if match[3] and int(match[3]):
        cents = int(match[3])
        said += f" and {_cardinal(cents)} {part}{'s' * (cents != 1 and part != 'pence')}"
    return said


def _time(match: re.Match[str]) -> str:
    hour, minute = int(match[1]), int(match[2])
    if minute == 0:
        return _cardinal(hour)
    return f"{_cardinal(hour)} {'oh ' * (minute < 10)}{_cardinal(minute)}"
