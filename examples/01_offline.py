# SPDX-License-Identifier: Apache-2.0
"""One sequence of codes to a sound file, with the voice that ships in the package. No download, no GPU."""

from blockwave import Token2Wav
from blockwave.embedded import held_out

sentence = held_out()[3]
model = Token2Wav.from_pretrained()  # or a folder, or "Qwen/Qwen2.5-Omni-7B"
speech = model(sentence.codes, seed=0)
path = speech.save("offline.wav")
print(f"{path}: {sentence.text}")
print(f"{speech.duration_s:.2f} s, voice {speech.voice}, RTF {speech.timings.rtf:.2f} (compute / audio)")
