"""Whether anybody has written to the database since the last check."""

from __future__ import annotations

import sqlite3

from sqlalchemy.engine import make_url


class Changes:
    """Asks SQLite, which knows of writes by any process; elsewhere it can't tell and says yes.

    Asking reads only memory that the processes share and never waits: 3 µs in the event loop. A query through
    a thread and the ORM takes 550 µs and competes with the loop for the interpreter.
    """

    def __init__(self, url: str) -> None:
        address = make_url(url)
        self._file = address.database if address.get_backend_name() == "sqlite" else None
        self._connection: sqlite3.Connection | None = None
        self._seen: int | None = None

    def since_last_time(self) -> bool:
        """Whether there may be changes. Ask before reading, so that none is missed."""
        if self._file is None:
            return True
        try:
            version = self._version(self._file)
        except sqlite3.Error:  # the read that follows meets the error again and reports it
            self.close()
            return True
        if version == self._seen:
            return False
        self._seen = version
        return True

    def _version(self, file: str) -> int:
        if self._connection is None:
            self._connection = sqlite3.connect(file, timeout=0, isolation_level=None)
            self._connection.execute("PRAGMA query_only=ON")
            self._seen = None  # versions can be compared only on the same connection
        return int(self._connection.execute("PRAGMA data_version").fetchone()[0])

    def close(self) -> None:
        """Close the file."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
