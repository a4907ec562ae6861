"""Rows, files and caches, for plugins that store much of them or bring a store."""

from kernel.db.base import Among, Ids
from kernel.db.locks import installation_lock
from kernel.db.migrate import Owner, Pending, known_revisions, upgrade_within
from kernel.db.outages import is_database_outage
from kernel.db.pages import page_of, read_page
from kernel.db.startup import SCHEMA, Schema
from kernel.db.store_errors import store_error
from kernel.libs.prepared import Record, insert_new
from kernel.libs.storable import first_unfit
from kernel.stores.blobs import BlobsAway, StoredBlob, held_among, held_blobs, held_blobs_of
from kernel.stores.offers import BLOB_STORE, CACHE_STORE, StoreKind
from kernel.stores.protocols import BlobStore, Cache, CacheUnavailable, Staged

__all__ = [
    "BLOB_STORE",
    "CACHE_STORE",
    "SCHEMA",
    "Among",
    "BlobStore",
    "BlobsAway",
    "Cache",
    "CacheUnavailable",
    "Ids",
    "Owner",
    "Pending",
    "Record",
    "Schema",
    "Staged",
    "StoreKind",
    "StoredBlob",
    "first_unfit",
    "held_among",
    "held_blobs",
    "held_blobs_of",
    "insert_new",
    "installation_lock",
    "is_database_outage",
    "known_revisions",
    "page_of",
    "read_page",
    "store_error",
    "upgrade_within",
]
