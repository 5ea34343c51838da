"""What users of Google's Python client do most, against a running object service."""

import gzip
import io
import os
import unittest
import uuid

from google.api_core import exceptions
from google.auth.credentials import AnonymousCredentials
from google.cloud import storage

KIB = 1024
MIB = 1024 * KIB


class ServiceTest(unittest.TestCase):
    """A test with a client and buckets of its own."""

    def setUp(self):
        self.client = storage.Client(project="test-project", credentials=AnonymousCredentials())
        self.addCleanup(self.client.close)

    def bucket(self, **properties):
        """A new bucket, which is deleted with its objects after the test."""
        bucket = self.client.bucket(f"rangehold-{uuid.uuid4().hex}")
        for name, value in properties.items():
            setattr(bucket, name, value)
        bucket.create()
        self.addCleanup(self.remove, bucket)
        return bucket

    def remove(self, bucket):
        for blob in self.client.list_blobs(bucket, versions=True):
            blob.delete()
        bucket.delete()


class Buckets(ServiceTest):
    def test_a_bucket_is_made_found_changed_and_deleted(self):
        bucket = self.bucket()
        self.assertEqual(self.client.get_bucket(bucket.name).metageneration, 1)
        bucket.labels = {"team": "red"}
        bucket.patch()
        self.assertEqual(self.client.get_bucket(bucket.name).labels, {"team": "red"})
        self.assertIn(bucket.name, [found.name for found in self.client.list_buckets(prefix="rangehold-")])
        with self.assertRaises(exceptions.Conflict):
            self.client.create_bucket(bucket.name)
        bucket.blob("a").upload_from_string(b"x")
        with self.assertRaises(exceptions.Conflict):
            bucket.delete()
        with self.assertRaises(exceptions.NotFound):
            self.client.get_bucket(f"rangehold-{uuid.uuid4().hex}")

    def test_pages_and_folders_of_a_listing(self):
        bucket = self.bucket()
        names = [f"{folder}/{number}" for folder in ("a", "b") for number in range(5)] + ["top"]
        for name in names:
            bucket.blob(name).upload_from_string(b"")
        self.assertEqual([blob.name for blob in bucket.list_blobs(page_size=3)], sorted(names))
        listing = bucket.list_blobs(delimiter="/")
        self.assertEqual([blob.name for blob in listing], ["top"])
        self.assertEqual(listing.prefixes, {"a/", "b/"})
        some = bucket.list_blobs(start_offset="a/3", end_offset="b/1")
        self.assertEqual([blob.name for blob in some], ["a/3", "a/4", "b/0"])
        matched = bucket.list_blobs(match_glob="*/[0-1]")
        self.assertEqual([blob.name for blob in matched], ["a/0", "a/1", "b/0", "b/1"])

    def test_a_folder_of_a_hierarchical_namespace_is_renamed_with_what_lies_in_it(self):
        bucket = self.client.bucket(f"rangehold-{uuid.uuid4().hex}")
        bucket.hierarchical_namespace_enabled = True
        bucket.iam_configuration.uniform_bucket_level_access_enabled = True
        bucket.create()
        self.assertTrue(self.client.get_bucket(bucket.name).hierarchical_namespace_enabled)
        for name in ("a-b/x", "a/1", "a/b/2", "top"):
            bucket.blob(name).upload_from_string(name)
        folders = f"/b/{bucket.name}/folders"
        call = self.client._connection.api_request
        done = call(method="POST", path=f"{folders}/a%2F/renameTo/folders/z%2F")
        self.assertTrue(done["done"])
        names = ["a-b/x", "top", "z/1", "z/b/2"]
        self.assertEqual([blob.name for blob in bucket.list_blobs()], names)
        self.assertEqual(bucket.blob("z/b/2").download_as_bytes(), b"a/b/2")
        for name in names:
            bucket.blob(name).delete()
        listing = bucket.list_blobs(delimiter="/", include_folders_as_prefixes=True)
        self.assertEqual(list(listing), [])
        self.assertEqual(listing.prefixes, {"a-b/", "z/"})
        for folder in reversed(call(method="GET", path=folders)["items"]):
            name = folder["name"].replace("/", "%2F")
            call(method="DELETE", path=f"{folders}/{name}")
        bucket.delete()

    def test_versions_are_kept_if_the_bucket_says_so(self):
        bucket = self.bucket(versioning_enabled=True)
        generations = []
        for text in ("one", "two"):
            blob = bucket.blob("name")
            blob.upload_from_string(text)
            generations.append(blob.generation)
        self.assertLess(*generations)
        older = bucket.blob("name", generation=generations[0])
        self.assertEqual(older.download_as_text(), "one")
        self.assertEqual(len(list(bucket.list_blobs(versions=True))), 2)

    def test_a_batch_deletes_many(self):
        bucket = self.bucket()
        blobs = [bucket.blob(f"{number}") for number in range(5)]
        for blob in blobs:
            blob.upload_from_string(b"x")
        with self.client.batch():
            for blob in blobs:
                blob.delete()
        self.assertEqual(list(bucket.list_blobs()), [])


class Objects(ServiceTest):
    def test_payloads_of_every_size_come_back_as_they_were(self):
        bucket = self.bucket()
        for size in (0, 1, 64 * KIB, 64 * KIB + 1, 3 * MIB):
            payload = os.urandom(size)
            blob = bucket.blob(f"size/{size}")
            blob.upload_from_string(payload, content_type="application/x-test", checksum="crc32c")
            found = bucket.get_blob(blob.name)
            self.assertEqual((found.size, found.content_type), (size, "application/x-test"))
            self.assertEqual(found.download_as_bytes(), payload)
            if size > 10:
                self.assertEqual(found.download_as_bytes(start=5, end=9), payload[5:10])

    def test_an_upload_in_chunks_becomes_one_object(self):
        payload = os.urandom(2 * MIB + 17)
        blob = self.bucket().blob("chunks", chunk_size=256 * KIB)
        blob.upload_from_file(io.BytesIO(payload))
        self.assertEqual(blob.download_as_bytes(), payload)

    def test_conditions_guard_against_a_lost_update(self):
        blob = self.bucket().blob("guarded")
        blob.upload_from_string("first", if_generation_match=0)
        with self.assertRaises(exceptions.PreconditionFailed):
            blob.upload_from_string("second", if_generation_match=0)
        blob.upload_from_string("second", if_generation_match=blob.generation)
        with self.assertRaises(exceptions.PreconditionFailed):
            blob.delete(if_generation_match=1)
        self.assertEqual(blob.download_as_text(), "second")

    def test_metadata_is_kept_and_changed(self):
        bucket = self.bucket()
        blob = bucket.blob("described")
        blob.metadata = {"colour": "red"}
        blob.cache_control = "no-store"
        blob.upload_from_string("x")
        blob.metadata = {"colour": None, "shape": "round"}
        blob.patch()
        found = bucket.get_blob("described")
        self.assertEqual((found.metadata, found.cache_control), ({"shape": "round"}, "no-store"))
        self.assertEqual(found.metageneration, 2)

    def test_objects_are_composed_copied_and_renamed(self):
        bucket = self.bucket()
        parts = [bucket.blob(f"part{number}") for number in range(2)]
        for part in parts:
            part.upload_from_string(part.name)
        whole = bucket.blob("whole")
        whole.compose(parts)
        self.assertEqual((whole.download_as_text(), whole.component_count), ("part0part1", 2))
        bucket.copy_blob(whole, bucket, "copy")
        bucket.rename_blob(whole, "renamed")
        names = [blob.name for blob in bucket.list_blobs()]
        self.assertEqual(names, ["copy", "part0", "part1", "renamed"])
        self.assertEqual(bucket.blob("renamed").download_as_text(), "part0part1")

    def test_gzip_is_decompressed_for_a_client_that_asks_for_the_text(self):
        blob = self.bucket().blob("packed")
        blob.content_encoding = "gzip"
        blob.upload_from_string(gzip.compress(b"text" * 1000), content_type="text/plain")
        self.assertEqual(blob.download_as_bytes(), b"text" * 1000)
        raw = blob.download_as_bytes(raw_download=True)
        self.assertEqual(gzip.decompress(raw), b"text" * 1000)


if __name__ == "__main__":
    unittest.main()
