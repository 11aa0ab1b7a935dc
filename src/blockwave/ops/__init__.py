# SPDX-License-Identifier: Apache-2.0
"""Operators: a contract, a reference that is the definition, and fast forms that never import each other."""
