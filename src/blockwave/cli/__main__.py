# SPDX-License-Identifier: Apache-2.0
"""``python -m blockwave.cli``, where the script is not on the path."""

import sys

from . import main

if __name__ == "__main__":
    sys.exit(main())
