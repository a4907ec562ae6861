"""The S3 server of the tests of uploads."""

from tests.builtin_plugins.s3_blobs.conftest import s3 as s3
