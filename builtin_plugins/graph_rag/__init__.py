"""Graph-RAG: entities and their relations, built from documents without a language model."""
