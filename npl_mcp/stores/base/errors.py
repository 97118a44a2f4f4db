"""Errors of the stores and of change requests; the tree continues that of :mod:`npl_index.errors`.

::

    NPLError
    ├── NotFoundError
    │   ├── SessionNotFoundError        a session, of worklogs too
    │   ├── ArtifactNotFoundError
    │   ├── RoomNotFoundError
    │   ├── ReviewNotFoundError
    │   ├── ProjectNotFoundError       of change requests
    │   ├── ChangeNotFoundError        a change request
    │   └── RecordNotFoundError        a revision, an event, a notification, a worklog session
    └── StoreError                     the store refuses, or cannot
        ├── AlreadyExistsError         the name is taken, or the folder is not empty
        ├── NotAllowedError            the caller may not do that there
        ├── ConflictError              somebody else changed the same thing in between
        ├── ClosedError                nothing can be added: it is completed or closed
        ├── TooLargeError              larger than a limit
        ├── DatabaseError              the database cannot be used
        └── StorageError               a file cannot be written or read
"""

from __future__ import annotations

from npl_index.errors import NotFoundError, NPLError

RESTORE = "stop all servers and replace the whole data folder (npl.db, npl.db-wal, npl.db-shm) with a backup"
"""Remedy for damage: a log that belongs to another state damages a database file that is replaced alone."""


class SessionNotFoundError(NotFoundError):
    """No session has the id that was given."""


class ArtifactNotFoundError(NotFoundError):
    """No artifact has the id that was given."""


class RoomNotFoundError(NotFoundError):
    """No room has the id that was given."""


class ReviewNotFoundError(NotFoundError):
    """No review has the id that was given."""


class ProjectNotFoundError(NotFoundError):
    """No project with change requests has the given code, or the code is ambiguous."""


class ChangeNotFoundError(NotFoundError):
    """No change request has the key that was given."""


class RecordNotFoundError(NotFoundError):
    """A revision, event or notification does not exist."""


class StoreError(NPLError):
    """A store refuses a request, or fails to carry it out; nothing was changed."""


class AlreadyExistsError(StoreError):
    """The name or the id is taken, or a folder that should be empty is not."""


class NotAllowedError(StoreError):
    """The persona has no permission: it is not a member of the room."""


class ConflictError(StoreError):
    """The record changed between reading and writing, or two records claim one name."""


class ClosedError(StoreError):
    """Nothing can be added, because it was completed, closed or archived."""


class TooLargeError(StoreError):
    """A content has more bytes than the settings allow."""


class DatabaseError(StoreError):
    """The database cannot be used: full, read-only, locked for too long, damaged, or another program's."""


class StorageError(StoreError):
    """A file of an artifact, a worklog, a change request or a backup cannot be written or read."""
