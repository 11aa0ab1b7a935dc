# SPDX-License-Identifier: Apache-2.0
"""Several sequences of unequal length in one batch. Each sounds as it would alone."""

import numpy as np

from blockwave import Token2Wav
from blockwave.embedded import held_out

model = Token2Wav.from_pretrained()
codes = [sentence.codes[:length] for sentence, length in zip(held_out(), (30, 75, 50), strict=False)]
together = model(codes, seed=[1, 2, 3])
alone = model(codes[0], seed=1)
for i, speech in enumerate(together):
    speech.save(f"batch-{i}.wav")
difference = np.abs(together[0].samples - alone.samples).max() / np.abs(alone.samples).max()
print(f"{len(together)} sounds; the first differs from its lone run by {difference:.0e} of its maximum")
