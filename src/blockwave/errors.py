# SPDX-License-Identifier: Apache-2.0
"""The error tree. Every message says what, what was got, what was expected, and what to do."""


class BlockwaveError(Exception):
    """Base of every error that this package raises on purpose."""


class CodesError(BlockwaveError, ValueError):
    """Speech codes that cannot be decoded: wrong ids, shapes, types or lengths."""


class VoiceError(BlockwaveError, ValueError):
    """A voice that is unknown, malformed or does not fit the checkpoint."""


class OptionError(BlockwaveError, ValueError):
    """An argument outside its range, or two arguments that exclude each other."""


class ConfigError(BlockwaveError, ValueError):
    """A checkpoint's configuration that is incomplete or contradicts itself."""


class CheckpointError(BlockwaveError, RuntimeError):
    """A checkpoint that cannot be read, or whose tensors do not fit its configuration."""


class AudioError(BlockwaveError, RuntimeError):
    """Samples that must not become a file, or a format that cannot be written."""


class MissingExtraError(BlockwaveError, ImportError):
    """An optional dependency is not installed; the message names the extra that brings it."""
