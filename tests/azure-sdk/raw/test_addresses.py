"""The account in an address: in the path, or in the host's name."""

import unittest

import rest

IN_THE_PATH = (
    "localhost",
    "127.0.0.1",
    "[::1]",
    "tables",
    "host.docker.internal",
    "tables.default.svc.cluster.local",
    "LOCALHOST",
)
IN_THE_HOST = ("table.localhost", "table.core.windows.net", "localhost", "table.example.org")


class Addresses(unittest.TestCase):
    def tables(self, **where):
        reply = rest.send("GET", "/Tables", **where)
        self.assertEqual(reply.status, 200, (where, reply))
        return reply.json["odata.metadata"]

    def test_the_account_in_the_path(self):
        for name in IN_THE_PATH:
            host = f"{name}:{rest.PORT}"
            self.assertEqual(self.tables(host=host), f"http://{host}/{rest.ACCOUNT}/$metadata#Tables")

    def test_the_account_in_the_name_of_the_host(self):
        for suffix in IN_THE_HOST:
            host = f"{rest.ACCOUNT}.{suffix}:{rest.PORT}"
            self.assertEqual(self.tables(host=host, prefix=""), f"http://{host}/$metadata#Tables")

    def test_the_secondary_in_the_name_of_the_host(self):
        self.tables(host=f"{rest.ACCOUNT}-secondary.table.localhost:{rest.PORT}", prefix="")
        self.tables(prefix=f"/{rest.ACCOUNT}-secondary")

    def test_an_account_that_does_not_exist_looks_like_a_wrong_key(self):
        stranger = {"Authorization": f"SharedKey stranger:{'A' * 43}="}
        for where in ({"prefix": "/stranger"}, {"prefix": "", "host": f"stranger.table.localhost:{rest.PORT}"}):
            reply = rest.send("GET", "/Tables", headers=stranger, **where)
            wrong_key = rest.send("GET", "/Tables", key="d3Jvbmc=")
            self.assertEqual((reply.status, reply.error), (wrong_key.status, wrong_key.error))

    def test_a_batch_in_host_style_is_applied(self):
        table = rest.new_table()
        self.addCleanup(rest.drop_table, table)
        host = f"{rest.ACCOUNT}.table.localhost:{rest.PORT}"
        reply = rest.batch(table, [("POST", "p", "a", {"v": 1}), ("PUT", "p", "b", {"v": 2})], prefix="", host=host)
        self.assertEqual((reply.status, rest.statuses(reply)), (202, [204, 204]), reply)
        self.assertIn(f"Location: http://{host}/{table}(PartitionKey='p',RowKey='a')", reply.text)
        for row in ("a", "b"):
            self.assertEqual(rest.send("GET", rest.entity_path(table, "p", row)).status, 200, row)


if __name__ == "__main__":
    unittest.main()
