"""Server processes with wrong clocks."""

from pathlib import Path

_SHIFTED = """
import datetime
import time

SECONDS = {seconds!r}
_time, _time_ns = time.time, time.time_ns
time.time = lambda: _time() + SECONDS
time.time_ns = lambda: _time_ns() + int(SECONDS * 1_000_000_000)

class Shifted(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return super().now(tz) + datetime.timedelta(seconds=SECONDS)

    @classmethod
    def utcnow(cls):
        return super().utcnow() + datetime.timedelta(seconds=SECONDS)

datetime.datetime = Shifted
"""


def shifted(folder: Path, minutes: float) -> dict[str, str]:
    """Return the variables that shift the clock of a Python process.

    Python imports a module named ``sitecustomize`` before the program.

    :param folder: folder for that module.
    :param minutes: minutes by which the clock is ahead; negative for a clock that is behind.
    """
    folder.mkdir(parents=True, exist_ok=True)
    text = _SHIFTED.format(seconds=minutes * 60.0)
    (folder / "sitecustomize.py").write_text(text, encoding="utf-8")
    return {"PYTHONPATH": str(folder)}
