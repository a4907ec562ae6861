"""Speaking and transcribing, whatever engine does it."""
