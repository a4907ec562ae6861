"""Errors of the plugin."""

from __future__ import annotations

from kernel.sdk import NotFound


class FileNotKnown(NotFound):
    code = "file_not_found"
    default_detail = "There is no such file"


class BatchNotKnown(NotFound):
    code = "file_batch_not_found"
    default_detail = "There is no such batch of files in this vector store"
