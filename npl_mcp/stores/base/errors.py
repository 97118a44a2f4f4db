"""What can go wrong in a store; continues the tree of :mod:`npl_index.errors`.

::

    NPLError
    ├── NotFoundError
    │   ├── SessionNotFoundError
    │   ├── ArtifactNotFoundError
    │   ├── RoomNotFoundError
    │   ├── ReviewNotFoundError
    │   ├── ProjectNotFoundError       of change requests
    │   ├── ChangeNotFoundError        a change request
    │   └── RecordNotFoundError        a revision, an event, a notification, a worklog session
    └── StoreError                     the store refuses, or cannot
        ├── AlreadyExistsError         the name is taken
        ├── NotAllowedError            the caller may not do that there
        ├── ConflictError              somebody else changed the same thing meanwhile
        ├── ClosedError                what was completed or closed takes nothing more
        ├── TooLargeError              over a limit of size
        ├── DatabaseError              the database cannot be used
        └── StorageError               a file of the data folder cannot be written or read
"""

from __future__ import annotations

from npl_index.errors import NotFoundError, NPLError


class SessionNotFoundError(NotFoundError):
    """No session has the id that was given."""


class ArtifactNotFoundError(NotFoundError):
    """No artifact has the id that was given."""


class RoomNotFoundError(NotFoundError):
    """No room has the id that was given."""


class ReviewNotFoundError(NotFoundError):
    """No review has the id that was given."""


class ProjectNotFoundError(NotFoundError):
    """No project with change requests has the code that was given, or several might be meant."""


class ChangeNotFoundError(NotFoundError):
    """No change request has the key that was given."""


class RecordNotFoundError(NotFoundError):
    """No revision, event, notification or worklog session is where it was looked for."""


class StoreError(NPLError):
    """A store refuses a request, or cannot carry it out; nothing was changed."""


class AlreadyExistsError(StoreError):
    """The name or the id is taken."""


class NotAllowedError(StoreError):
    """The persona may not do that: it is not a member of the room."""


class ConflictError(StoreError):
    """Somebody else changed the same thing between reading and writing, or two things claim one name."""


class ClosedError(StoreError):
    """What was completed, closed or archived takes nothing more."""


class TooLargeError(StoreError):
    """Something has more bytes than the settings allow."""


class DatabaseError(StoreError):
    """The database cannot be used: full, read-only, locked for too long, damaged, or somebody else's."""


class StorageError(StoreError):
    """A file of the data folder cannot be written or read."""
