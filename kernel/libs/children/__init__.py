"""Child processes with limits, forked from a prepared one. Imports nothing: the children load it, too."""
