"""The vector store on Milvus."""
