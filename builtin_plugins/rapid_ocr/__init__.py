"""Recognition of text in pictures by RapidOCR, whose models come with it."""
