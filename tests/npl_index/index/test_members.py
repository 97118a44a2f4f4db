"""Updates of the index by two threads."""

import sys
import threading
from contextlib import closing

from npl_index.index.database import IndexDatabase
from npl_index.index.entries import IndexEntry, Indexer
from npl_index.index.members import Update
from npl_index.library.catalog import Root
from npl_index.library.documents import Document, DocumentFile, Fingerprint

FILES = 2_000


def test_the_files_to_read_are_listed_while_another_thread_indexes() -> None:
    """A call whose patience ends looks at a running update."""
    root = Root("/absent", "")
    files = [DocumentFile(root, f"{number}.md", "") for number in range(FILES)]
    states = [(file, Fingerprint(file.absolute, 1, 1)) for file in files]
    usual = sys.getswitchinterval()
    with closing(IndexDatabase(None)) as index:
        update = Update(index, states, None, whole=True)
        entries = [IndexEntry(*state, number, failure="unreadable") for number, state in enumerate(states)]

        def write() -> None:
            for entry in entries:
                update.put([entry])

        writer = threading.Thread(target=write)
        sys.setswitchinterval(1e-6)
        try:
            writer.start()
            while writer.is_alive():
                assert len(update.asked) <= FILES
        finally:
            sys.setswitchinterval(usual)
            writer.join()
        assert len(update.result().unreadable) == FILES
        assert update.asked == []


def test_two_updates_index_the_same_files() -> None:
    """The first result stays valid: the documents of equal contents are not replaced."""
    root = Root("/absent", "")
    file = DocumentFile(root, "page.md", "")
    state = Fingerprint(file.absolute, 1, 1)
    document = Document("page", file.path, state, b"# Page\n\nText.\n", "digest", False)
    entry = Indexer(60, "o200k_base").entry(IndexEntry(file, state, 0), lambda _: document)
    with closing(IndexDatabase(None)) as index:
        updates = [Update(index, [(file, state)], None, whole=True) for _ in range(2)]
        for update in updates:
            update.put([entry])
        first, second = (update.result() for update in updates)
        assert first.documents.tolist() == second.documents.tolist()
        assert first.version == second.version
