"""Permission keys of the plugin."""

from kernel.sdk import Permission

ADD = Permission("bookmarks.bookmark.add", "Add bookmarks.", granted_to="user")
