"""The report of what documents of a knowledge base say differently about the same thing."""
