"""Speech: text to speech and speech to text."""
