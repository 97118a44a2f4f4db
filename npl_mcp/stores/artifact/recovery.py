"""Recovery of artifact files: after any crash there are no rows without files and no files without rows.

Files cannot take part in a transaction of the database. So a write leaves a note of the files it is about to
make. All of this happens while it holds the database's write lock, which only one process can hold:

1. insert the row of the revision
2. make the note
3. write the files, and wait until they are on the disk
4. commit
5. remove the note (the lock is free by now)

The system frees the lock of a process that dies. Whoever then holds it knows that no write is going on, and
what it finds is one of these states:

====  ===  ===============  ==========================================  ======================================
note  row  files            how it came about                           what is done
====  ===  ===============  ==========================================  ======================================
no    no   none             not begun, or recovered                     nothing
yes   no   none, one, part  died in 2 or 3                              remove files, then note (see below)
yes   no   both             died before 4, or in 4: the commit may be   remove files, then note (see below)
                            in the database's log, not yet visible
yes   yes  both             died before 5                               remove the note
no    yes  both             the normal state of a revision              nothing
no    no   some             not ours: put back from a backup, say       nothing; a revision that gets the
                                                                        number replaces them
any   yes  gone or changed  damaged by other programs                   nothing; reading reports it
====  ===  ===============  ==========================================  ======================================

**Why "note, no row" takes two transactions.** A commit that is in the log (the file ``npl.db-wal``) becomes
visible when a process reads the log again after all others have ended. Were the files removed at once, such
a row would come back without its files. So a first transaction commits something else, which overwrites the
lost commit in the log; only then can it never come back, and a second one removes the files.

**Why recoveries are counted.** Between the two transactions another process may recover as well, and then
store a revision of the same number, whose files must not be removed. Nothing is stored while there is a note
without a row, so a recovery must have come first, and then the count is higher than the one we committed.
"""

from __future__ import annotations

from collections.abc import Sequence

from npl_mcp.stores.artifact.files import RevisionFiles
from npl_mcp.stores.base.database import Database, Transaction
from npl_mcp.stores.base.totals import add_total, read_total

_RECOVERIES = "recoveries"


class Recovery:
    """Removes the files of unfinished writes.

    :param database: where the rows are.
    :param files: where the files are.
    """

    def __init__(self, database: Database, files: RevisionFiles) -> None:
        self._database = database
        self._files = files

    def run(self) -> None:
        """Bring every revision into a state in which nothing is to be done.

        :raises StoreError: the rows or the files cannot be read or changed.
        """
        if not self._files.notes():
            return
        with self._database.write() as tx:
            lost = self.unfinished(tx)
            if not lost:
                return
            add_total(tx, _RECOVERIES, 1)
            ours = read_total(tx, _RECOVERIES)
        with self._database.write() as tx:
            if read_total(tx, _RECOVERIES) == ours:
                for owner, number in lost:
                    self._files.remove(owner, number)

    def unfinished(self, tx: Transaction) -> Sequence[tuple[int, int]]:
        """Return artifact and revision number of each note without a row; remove notes that have one.

        :param tx: holds the write lock, so that no write is going on.
        """
        found = "SELECT 1 FROM revision WHERE artifact_id = :owner AND revision_num = :number"
        lost = []
        for owner, number in self._files.notes():
            if tx.value(found, owner=owner, number=number) is None:
                lost.append((owner, number))
            else:
                self._files.end(owner, number)
        return lost
