"""The vector store on PostgreSQL with pgvector."""
