# SPDX-License-Identifier: Apache-2.0
"""Sentences for the synthetic corpus: templates, carrier phrases around lexicon words, and an optional text file.

All templates and word lists here were written for this project. The 50 sentences that the package holds out are never
generated.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence

from blockwave.embedded import held_out

HELD_OUT = [sentence.text or "" for sentence in held_out()]

NAMES = (
    "Alice Peter Maria Jonathan Susan Victor Emily George Charlotte Henry Olivia Frank Zoe Martin Julia Quentin Beth "
    "Thomas Irene Walter Grace Hugo Nancy Oscar Judith Arthur Vivian Keith Joyce Roger Fiona Shane Doris Ethan Paula "
    "Edgar Yvonne Leo Rachel Simon"
).split()
PLACES = (
    "London|Chicago|the old harbor|Paris|the valley|Dublin|the railway station|Oregon|the northern coast|the library|"
    "Vienna|the village square|Georgia|the city hall|New York|the lake|Scotland|the airport|Brazil|the north shore|"
    "the theater|the field behind the house|Sydney|the corner shop|the university|the hills|Tokyo|the courthouse"
).split("|")
NOUNS = (
    "table river engine garden window letter teacher mountain camera bottle market soldier bridge kettle blanket "
    "journal carpet lantern pillow hammer shadow whistle jacket feather orange button castle doctor farmer judge "
    "church beach fish horse cheese bowl voice storm cloud truth youth earth thumb vision measure treasure path chair "
    "shelf leaf wolf tower flower towel coin toy boy road boat coat phone thing ring song king box fox tax guitar "
    "picture question answer village kitchen elephant tomato piano hospital computer newspaper photograph umbrella"
).split()
PLURALS = (
    "apples stories houses dreams pages wishes bridges judges thoughts clouds voices wheels shoes gloves brushes "
    "matches roses branches colors numbers machines islands questions problems letters books farms months clothes"
).split()
ADJECTIVES = (
    "quiet brave yellow gentle narrow heavy strange useful frozen bitter clever dusty empty golden hollow joyful large "
    "modern noisy orange polite rough smooth thick thin urgent vague warm young zealous awful early green purple "
    "enormous mysterious fashionable comfortable dangerous ordinary careful cheap fresh huge rich thirsty usual"
).split()
ADVERBS = (
    "slowly quickly carefully loudly quietly suddenly usually rarely often gently finally proudly perhaps certainly "
    "almost always nearly boldly calmly eagerly"
).split()
PAST = (
    "found lost carried painted sold bought watched moved broke fixed caught pushed pulled threw brought chose "
    "described followed imagined judged kept lifted measured noticed opened praised questioned reached showed touched "
    "understood visited washed examined heard"
).split()
BASE = (
    "find lose carry paint sell buy watch move break fix catch push pull throw bring choose describe follow imagine "
    "judge keep lift measure notice open praise question reach show touch understand visit wash examine hear"
).split()
MONTHS = "January February March April May June July August September October November December".split()
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
ANIMALS = "dog cat sheep goat mouse owl snake bear tiger monkey goose rabbit frog bee cow duck zebra camel".split()
FOODS = (
    "soup|rice|fresh bread|boiled eggs|cheese|chocolate|fish and chips|salad|onions|orange juice|tea|mushrooms|honey|"
    "vegetables|cherry pie|a sandwich|black coffee|peaches|garlic|sugar"
).split("|")

TEMPLATES = """{Name} {past} the {adj} {noun} near {place}.
The {adj} {noun} {past} by {name} was {adj2} and {adj3}.
Why did {name} {base} the {noun} in {place}?
Did you {base} my {adj} {noun} on {day}?
On {day} morning, {name} {adverb} {past} {num} {plural}.
There are {num} {plural} in {place}, and {num2} of them are {adj}.
It costs {num} dollars and {num2} cents.
The train to {place} leaves at {hour} {minute}.
{Name} was born on {month} {ordinal}, {year}.
Please {base} the {noun}, then {base2} the {adj} {plural}.
I think that {name} should {base} a {adj} {noun}.
If the {noun} is {adj}, we will {base} it {adverb}.
We had {food} and {food2} for breakfast in {place}.
The {animal} and the {animal2} {adverb} {past} each other.
What a {adj} {noun}!
How {adj} the {noun} looked that {day}!
Neither the {noun} nor the {noun2} was {adj} enough.
"{Adverb}," said {name}, "I would {base} those {plural}."
She {past} it {adverb}, but he never {past2} the {noun}.
They {past} the {plural} because the {noun} was too {adj}.
Call {name} at {digits}, please.
Room {num} is on the left, behind the {adj} {noun}.
The {noun} has {num} {adj} {plural} and one {noun2}.
You cannot {base} a {noun} without a {noun2}.
In {month} the weather in {place} is usually {adj}.
{Name} and {name2} are going to {base} the {noun}.
Who {past} the {adj} {animal} at {place}?
The temperature fell to {num} degrees last {day}.
My {adj} {noun} was {past} in {year}.
Nothing is as {adj} as a {adj2} {noun}.
Yes, the {noun} is {adj}.
No, {name} does not {base} {plural}.
When will you {base} the {plural} for {name}?
Could {name} {base} the {noun} before {hour} o'clock?
The {adj}, {adj2} {noun} stood between the {noun2} and {place}.
Every {day}, {name} eats {food} with {food2}.
They were {adverb} {adj}, or so {name} said.
Chapter {num} describes the {adj} {plural} of {place}.
Between {year} and {year2}, the {noun} {adverb} {past} {num} {plural}.
Let us {base} the {noun} and go to {place}.
Although {name} was {adj}, the {animal} {past} the {noun}.
This {noun} belongs to {name}; that {noun2} belongs to {name2}.
Turn left at the {noun}, then walk {num} yards to the {noun2}.""".split("\n")

CARRIERS = """{a}, {b}, {c}.
The words are {a}, {b}, {c}, and {d}.
Say {a} again, then say {b}.
Is it {a} or {b}?
{a} and {b} are not the same as {c}.
A {a} {b} with a {c} {d}.""".split("\n")

UNITS = "zero one two three four five six seven eight nine".split()


def ordinal(n: int) -> str:
    return f"{n}{'th' if 10 <= n % 100 <= 20 else {1: 'st', 2: 'nd', 3: 'rd'}.get(n % 10, 'th')}"


def fill(template: str, rng: random.Random) -> str:
    """One sentence of a template. A key with a digit is a second word of the same kind, a capital asks for one."""
    words: dict[str, str] = {}

    def draw(match: re.Match[str]) -> str:
        key = match.group(1)
        kind = key.lower().rstrip("23")
        if kind == "num":
            return str(
                rng.choice([rng.randint(2, 20), rng.randint(21, 99), rng.randint(100, 999), rng.randint(1000, 9000)])
            )
        if kind == "year":
            return str(rng.randint(1850, 2029))
        if kind == "hour":
            return str(rng.randint(1, 12))
        if kind == "minute":
            return rng.choice(["fifteen", "thirty", "forty five", "ten", "twenty", "fifty five"])
        if kind == "digits":
            return ", ".join(rng.choice(UNITS) for _ in range(rng.randint(4, 7)))
        if kind == "ordinal":
            return ordinal(rng.randint(1, 30))
        pool = {
            "name": NAMES,
            "place": PLACES,
            "noun": NOUNS,
            "plural": PLURALS,
            "adj": ADJECTIVES,
            "adverb": ADVERBS,
            "past": PAST,
            "base": BASE,
            "month": MONTHS,
            "day": DAYS,
            "animal": ANIMALS,
            "food": FOODS,
        }[kind]
        word = rng.choice([w for w in pool if w not in words.values()])
        words[key] = word
        return word[0].upper() + word[1:] if key[0].isupper() else word

    sentence = re.sub(r"\{(\w+)\}", draw, template)
    sentence = re.sub(r"\b([Aa]) (?=[aeio])", r"\1n ", sentence)
    return sentence[0].upper() + sentence[1:]


def carrier(lexicon: Sequence[str], rng: random.Random) -> str:
    words = rng.sample(lexicon, 4)
    sentence = rng.choice(CARRIERS).format(**dict(zip("abcd", words, strict=True)))
    return sentence[0].upper() + sentence[1:]


def split_prose(text: str) -> list[str]:
    """Sentences of 15 to 220 characters of a plain text."""
    text = re.sub(r"[`\"()*_\[\]-]", " ", re.sub(r"\s+", " ", text))
    return [s for s in (re.sub(r"\s+", " ", p).strip() for p in re.split(r"(?<=[.!?;])\s+", text)) if 15 < len(s) < 220]


def sentences(lexicon: Sequence[str], prose: str = "", seed: int = 0) -> Iterator[str]:
    """Endless, none twice: first the prose, then 70 % templates and 30 % carriers."""
    rng = random.Random(seed)
    seen = {s.lower() for s in HELD_OUT}
    prose = split_prose(prose)
    rng.shuffle(prose)
    while True:
        sentence = (
            prose.pop() if prose else fill(rng.choice(TEMPLATES), rng) if rng.random() < 0.7 else carrier(lexicon, rng)
        )
        if sentence.lower() not in seen:
            seen.add(sentence.lower())
            yield sentence
