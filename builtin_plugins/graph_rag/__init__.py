"""Graph-RAG: entities, their relations and what they join, built from documents without a model."""
