"""What is asked of the graphs that a caller sees."""
