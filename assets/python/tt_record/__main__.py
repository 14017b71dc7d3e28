"""`python -m tt_record`."""
from .cli import console

console()
