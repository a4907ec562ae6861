"""Text made ready to be spoken."""
