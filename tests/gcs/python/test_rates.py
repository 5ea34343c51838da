"""A job with Google's client that asks for more than a bucket bears. The server runs with `--profile cloud --rate-scale 0.01`:
ten writes a second."""

import os
import unittest
import uuid
from concurrent.futures import ThreadPoolExecutor

from test_objects import ServiceTest

OBJECTS = 60


@unittest.skipUnless(os.environ.get("RANGEHOLD_SCALED_RATES"), "needs a server with --profile cloud --rate-scale 0.01")
class Rates(ServiceTest):
    def test_the_default_retries_finish_a_job_that_is_too_fast(self):
        # Not deleted afterwards: that would be as slow as the job.
        bucket = self.client.create_bucket(f"rangehold-{uuid.uuid4().hex}")
        refused = []
        self.client._http.hooks["response"].append(lambda answer, **_: refused.append(answer.status_code))
        names = [f"{number:02}" for number in range(OBJECTS)]
        with ThreadPoolExecutor(40) as threads:
            list(threads.map(lambda name: bucket.blob(name).upload_from_string(name), names))
        self.assertEqual([blob.name for blob in self.client.list_blobs(bucket)], names)
        self.assertTrue({429, 503} & set(refused), set(refused))

    def test_a_name_that_is_written_again_at_once_is_written_later(self):
        blob = self.bucket().blob("counter")
        for number in range(2):
            blob.upload_from_string(str(number))
        self.assertEqual(blob.download_as_bytes(), b"1")
