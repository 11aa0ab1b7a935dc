# SPDX-License-Identifier: Apache-2.0
"""A voice is an x-vector and a reference mel: change a reference, keep the voice as a small file, speak with it."""

from blockwave import Token2Wav, Voice
from blockwave.embedded import held_out

model = Token2Wav.from_pretrained()
heart = model.voice("heart")
shorter = Voice("heart, shorter reference", heart.xvector, heart.reference_mel[:150], {"licence": "Apache-2.0"})
shorter.save("shorter.safetensors")

speech = model(held_out()[3].codes[:60], voice=Voice.load("shorter.safetensors"), seed=0)
speech.save("voice.wav")
print(f"voice.wav was spoken by: {speech.voice}")
