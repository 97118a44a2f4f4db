"""Files that git sees below a folder, tracked or untracked and not ignored.

git only lists and prints: without a shell, without programs, hooks and protocols that a repository may
configure, with few environment variables, and within limits of time and memory.
"""

# Lists of many files are handled as plain strings, as in npl_index.library.documents.
# ruff: noqa: PTH118

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import IO, Any

from npl_index import errors
from npl_index.library.roots import too_many, unusable
from npl_mcp.config.child_processes import child_environment, find_program

if sys.platform == "linux":
    import resource

logger = logging.getLogger(__name__)

MAX_LISTING_BYTES = 16 << 20
"""Bytes of git's output."""

MAX_MEMORY = 1 << 30
"""Bytes of git's memory, on systems with such a limit: a link to a device has no end."""

_WATCH_SECONDS = 0.5

_VALUES = ("core.fsmonitor=false", f"core.hooksPath={os.devnull}", "protocol.allow=never")
_OPTIONS = ("--no-pager", "--literal-pathspecs", *(word for value in _VALUES for word in ("-c", value)))
_ENVIRONMENT = {
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}
_LIST_VISIBLE = ("ls-files", "-z", "--cached", "--others", "--exclude-standard", "--")


def visible(folder: str, path: str, seconds: float, below: str = os.curdir) -> list[str]:
    """Return the paths below a folder of existing files that git sees, ordered by their segments.

    :param folder: real path of the folder.
    :param path: the caller's path, for messages.
    :param seconds: time limit for git.
    :param below: name in the folder to which the listing is limited.
    :raises InvalidRequestError: the folder is not in a repository.
    :raises UnreadableDocumentError: git refuses, or the folder cannot be entered.
    :raises DocumentNotFoundError: the folder does not exist any more.
    :raises DocumentError: git is not installed.
    :raises DocumentTimeoutError: git took longer than its limit.
    :raises DocumentTooLargeError: git printed more than :data:`MAX_LISTING_BYTES`.
    """
    listed = _run_git(folder, path, (*_LIST_VISIBLE, below), seconds)
    # A path under conflict is listed several times; another repository ends in a slash.
    names = {os.fsdecode(name).rstrip("/") for name in listed.split(b"\0") if name}
    # A check in case git prints a path outside of its folder.
    inside = (name for name in names if {"", os.pardir}.isdisjoint(name.split("/")))
    present = (name for name in inside if os.path.lexists(os.path.join(folder, name)))
    return sorted(present, key=lambda name: name.split("/"))


def _run_git(folder: str, path: str, arguments: Sequence[str], seconds: float) -> bytes:
    """Run git in a folder and return its output; after a failure git and its children are killed.

    :raises DocumentTimeoutError: it ran longer than its limit.
    :raises DocumentTooLargeError: it printed more than the maximum.
    """
    environment = child_environment(_ENVIRONMENT)
    program = find_program("git")
    if program is None:
        raise errors.DocumentError("git was not found", hint="install git, or add its folder to PATH")
    with tempfile.TemporaryFile() as complaints, tempfile.TemporaryFile() as printed:
        command = [program, *_OPTIONS, *arguments]
        streams: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": printed, "stderr": complaints}
        try:
            process: subprocess.Popen[bytes] = subprocess.Popen(
                command, cwd=folder, env=environment, start_new_session=True, **streams
            )
        except OSError as error:
            raise unusable(path, error) from None
        _watch(process, printed, seconds)
        complaints.seek(0)
        printed.seek(0)
        complaint = complaints.read(4096).decode("utf-8", "replace")
        output = printed.read(MAX_LISTING_BYTES + 1)
    if len(output) > MAX_LISTING_BYTES:
        raise too_many(f"{MAX_LISTING_BYTES:,} bytes of file names")
    if process.returncode != 0:
        raise _refusal(complaint, path, process.returncode)
    return output


def _watch(process: subprocess.Popen[bytes], printed: IO[bytes], seconds: float) -> None:
    """Wait for the end of git; kill it if it exceeds a limit.

    :param printed: file with its output.
    """
    end = time.monotonic() + seconds
    with process:
        try:
            if sys.platform == "linux":
                with suppress(OSError, ValueError):  # git has ended, or has a lower limit
                    resource.prlimit(process.pid, resource.RLIMIT_DATA, (MAX_MEMORY, MAX_MEMORY))
            while os.fstat(printed.fileno()).st_size <= MAX_LISTING_BYTES:
                with suppress(subprocess.TimeoutExpired):
                    process.wait(min(_WATCH_SECONDS, max(0, end - time.monotonic())))
                    return
                if time.monotonic() >= end:
                    problem = f"git took longer than {seconds:g} seconds"
                    hint = "name a smaller folder, and look for pipes among .gitignore files and files of git"
                    raise errors.DocumentTimeoutError(problem, hint=hint)
        finally:
            _stop(process)


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and all its children, unless its end was already collected."""
    if process.returncode is not None:
        return
    if hasattr(os, "killpg"):
        with suppress(ProcessLookupError, PermissionError):  # raised by some systems when all have ended
            os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()


def _refusal(complaint: str, path: str, code: int) -> errors.NPLError:
    """Return the error for git's complaint; the complaint itself, with absolute paths, goes to the log."""
    if "not a git repository" in complaint or "must be run in a work tree" in complaint:
        hint = "name a folder of a repository's working tree"
        return errors.InvalidRequestError(f"{path!r} is not in a git repository", parameter="path", hint=hint)
    if "dubious ownership" in complaint:
        hint = "its owner can run this server, or you can add it to git's safe.directory setting"
        return errors.UnreadableDocumentError(f"{path!r} lies in a git repository of another user", hint=hint)
    logger.warning("git ended with exit code %d: %s", code, complaint.strip())
    return errors.UnreadableDocumentError(f"git cannot list {path!r}", hint="the server's log has the reason")
