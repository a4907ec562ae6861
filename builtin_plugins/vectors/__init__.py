"""Vector search: collections of points as rows, searched with FAISS and BM25."""
