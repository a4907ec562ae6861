"""Lines of logs: each is a separate record, whatever its length and ending."""

from __future__ import annotations

import re

_BEGINNING = re.compile(
    r"""[\[(<"']*
    (?: \d+(?:[-/.:T]\d+){2,}                                  # dates, times, addresses
      | (?:[A-Z][a-z]{2},?\ +){1,2}\d{1,2}\ +(?:\d{4}\ +)?\d\d:\d\d | \d\d?/[A-Z][a-z]{2}/\d{4}
      | \d\d?:\d\d\b
      | \d{10,13}\b | \ *\d+\.\d{3,}\b                        # seconds since 1970, or since the start
      | (?:TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|CRIT(?:ICAL)?|ALERT|FATAL|EMERG|SEVERE)\b
      | (?:trace|debug|info|notice|warn(?:ing)?|error|crit(?:ical)?|alert|fatal|emerg)[\]>:]
      | [IWEFD]\d{4}\ \d\d:\d\d                               # as Kubernetes writes them
      | \{"
      | (?:ts|time|timestamp|level|msg|date)=
    )""",
    re.VERBOSE,
)


def is_record(line: str) -> bool:
    """Whether a line begins with a time, an address or a level."""
    return _BEGINNING.match(line) is not None


def are_records(line: str, following: str) -> bool:
    """Whether both lines are records: a single one may be a wrapped line of prose."""
    return is_record(line) and is_record(following)
