"""Errors of the stores and of change requests; the tree continues that of :mod:`npl_index.errors`.

::

    NPLError
    ├── NotFoundError
    │   ├── SessionNotFoundError        a session, also of worklogs
    │   ├── ArtifactNotFoundError
    │   ├── RoomNotFoundError
    │   ├── ReviewNotFoundError
    │   ├── ProjectNotFoundError       of change requests
    │   ├── ChangeNotFoundError        a change request
    │   └── RecordNotFoundError        a revision, an event, a notification, a worklog session
    └── StoreError                     the store refuses, or cannot
        ├── AlreadyExistsError         the name is taken, or the folder is not empty
        ├── NotAllowedError            the caller lacks the permission
        ├── ConflictError              another writer changed the same record in between
        ├── ClosedError                a completed or closed record accepts no additions
        ├── TooLargeError              larger than a limit
        ├── DatabaseError              the database cannot be used
        │   ├── BusyError              for a moment
        │   │   └── FullError
        │   ├── RefusedError           a row contradicts others
        │   └── MigratedError          since its schema changed
        └── StorageError               a file cannot be written or read
"""

from __future__ import annotations

from npl_index.errors import NotFoundError, NPLError

RESTORE = "stop all servers and replace the whole data folder (npl.db, npl.db-wal, npl.db-shm) with a backup"
"""Remedy for damage. A restored database file must not keep its old log, which would damage it again."""


class SessionNotFoundError(NotFoundError):
    """No session has the given id."""


class ArtifactNotFoundError(NotFoundError):
    """No artifact has the given id."""


class RoomNotFoundError(NotFoundError):
    """No room has the given id."""


class ReviewNotFoundError(NotFoundError):
    """No review has the given id."""


class ProjectNotFoundError(NotFoundError):
    """No project with change requests has the given code, or the code is ambiguous."""


class ChangeNotFoundError(NotFoundError):
    """No change request has the given key."""


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
    """A completed, closed or archived record accepts no additions."""


class TooLargeError(StoreError):
    """A content exceeds the maximum bytes of the settings."""


class DatabaseError(StoreError):
    """The database cannot be used: full, read-only, locked for too long, damaged, or another program's."""


class BusyError(DatabaseError):
    """Other programs held the database for too long; the connections are sound."""


class FullError(BusyError):
    """The server accepts no further connection; the open ones are sound."""


class RefusedError(DatabaseError):
    """A constraint refused a row; the connections are sound."""


class MigratedError(DatabaseError):
    """The schema changed since the database was opened; no transaction was begun."""


class StorageError(StoreError):
    """A file of an artifact, a worklog, a change request or a backup cannot be written or read."""
