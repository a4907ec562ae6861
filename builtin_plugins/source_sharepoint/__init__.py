"""SharePoint and OneDrive as sources of knowledge bases."""
