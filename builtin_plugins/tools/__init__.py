"""Tools: everything that people, programs and models may call, in one catalog with one entrance."""
