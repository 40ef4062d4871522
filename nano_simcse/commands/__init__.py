"""What each command does, between the parsed arguments and the package: one function a command, named like it."""

from .diagnosing import diagnose
from .exchanging import download, export, info
from .measuring import encode, evaluate
from .searching import search
from .training import train

__all__ = ["diagnose", "download", "encode", "evaluate", "export", "info", "search", "train"]
