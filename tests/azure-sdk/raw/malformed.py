"""The base of the tests with malformed requests.

Every reply has a status below 500 (or 501, for an operation that is not implemented), and every error in
JSON or XML has an error code. After each test the server still answers, and the one entity that was stored
before is unchanged.
"""

import unittest

import rest

LONG = "x" * 100_000


class Malformed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.table = rest.new_table()
        rest.insert(cls.table, "p", "r", v=1)
        cls.before = rest.send("GET", rest.entity_path(cls.table, "p", "r")).json

    @classmethod
    def tearDownClass(cls):
        rest.drop_table(cls.table)

    def tearDown(self):
        after = rest.send("GET", rest.entity_path(self.table, "p", "r"))
        self.assertEqual((after.status, after.json), (200, self.before), "the server goes on, and nothing was changed")

    def survives(self, *request, refused=True, **options):
        """Checks that the answer is not a server error; with `refused`, that its status is 400 or more."""
        with self.subTest(request=str(request)[:200]):
            reply = rest.send(*request, **options)
            self.assertTrue(reply.status < 500 or reply.status == 501, reply)
            if refused:
                self.assertGreaterEqual(reply.status, 400, reply)
            if (
                reply.status >= 400
                and request[0] != "HEAD"
                and reply.headers.get("content-type", "").split(";")[0] in ("application/json", "application/xml")
            ):
                self.assertTrue(reply.error[0], reply)
