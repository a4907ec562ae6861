"""Google Drive as a source of knowledge bases."""
