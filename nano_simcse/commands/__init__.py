"""What each command does, between the parsed arguments and the package: one function a command, named like it."""

from .diagnosing import diagnose
from .exchanging import download, export, info
from .measuring import encode, evaluate, probe
from .searching import search
from .studying import study
from .training import train
from .transforming import whiten

__all__ = [
    "diagnose",
    "download",
    "encode",
    "evaluate",
    "export",
    "info",
    "probe",
    "search",
    "study",
    "train",
    "whiten",
]
