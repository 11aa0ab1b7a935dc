# SPDX-License-Identifier: Apache-2.0
"""A sound to codes with the embedded voice's codebook, kept as JSON, and back to sound."""

import sys

from blockwave import CodesFile, Token2Wav, load_codes
from blockwave.embedded import FOLDER, held_out
from blockwave.encoder import Codebook, read_sound

model = Token2Wav.from_pretrained()
if len(sys.argv) > 1:
    source = sys.argv[1]
else:
    source = "spoken.wav"
    model(held_out()[3].codes[:60], seed=0).save(source)

codebook = Codebook.of_checkpoint(FOLDER, model.config)
codes = codebook.encode_sound(read_sound(source))
CodesFile(codes, model.config.family.name, 50, codebook.hash).save("codes.json")

again = load_codes("codes.json")
again.check_fits(model.config)  # codes of another family or codebook are refused here
model(again.codes, seed=1).save("again.wav")
print(f"{source}: {len(codes)} codes, spoken again as again.wav")
