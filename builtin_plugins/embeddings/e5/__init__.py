"""multilingual-e5-small (Wang et al. 2024): its file, its tokenizer and its vectors."""
