"""Tools: everything that people, programs and models may call, in one catalogue with one entrance."""
