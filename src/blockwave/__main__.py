# SPDX-License-Identifier: Apache-2.0
"""``python -m blockwave``: the command line where its script is not on the path."""

from __future__ import annotations

import sys

from .cli import main

if __name__ == "__main__":
    sys.exit(main())
