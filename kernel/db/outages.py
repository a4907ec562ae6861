"""Telling a database that is out of service from an error of ours."""

from __future__ import annotations

from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError

# Classes of PostgreSQL's error codes (its manual, appendix A) that speak of the server's state, not of the
# statement: connection, authorization, unknown database, rolled back, out of resources, not in the state that
# is needed, operator intervention, failure of the system. SQLAlchemy hands them on as a plain DBAPIError.
_STATES = ("08", "28", "3D", "40", "53", "55", "57", "58")
_READ_ONLY = "25006"


class DatabaseUnreachable(ConnectionError):
    """No connection to the database's server; what the driver says of it could be any socket's error."""


def is_outage(error: BaseException) -> bool:
    """Whether trying again later, without a change of ours, may help."""
    return isinstance(error, ConnectionError) or is_database_outage(error)


def is_database_outage(error: BaseException) -> bool:
    """Whether it is the database that is out of service."""
    if isinstance(error, OperationalError | InterfaceError | DatabaseUnreachable):
        return True
    if not isinstance(error, DBAPIError):
        return False
    code = getattr(error.orig, "sqlstate", None) or ""
    return error.connection_invalidated or code.startswith(_STATES) or code == _READ_ONLY
