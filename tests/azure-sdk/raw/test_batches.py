"""Transactions: requests that Azurite answers wrongly (numbers 7, 8 and 16)."""

import unittest

import rest


class Batches(unittest.TestCase):
    def setUp(self):
        self.table = rest.new_table()
        self.addCleanup(rest.drop_table, self.table)

    def rows(self):
        return [entity["RowKey"] for entity in rest.query(self.table).json["value"]]

    def test_07_two_partitions_in_one_batch_are_refused(self):
        reply = rest.batch(self.table, [("POST", "p1", "a", {}), ("POST", "p2", "b", {})])
        self.assertEqual(reply.status, 202)
        wanted = (
            400,
            "CommandsInBatchActOnDifferentPartitions",
            "1:All commands in a batch must operate on same entity group.",
        )
        self.assertEqual(rest.part_error(reply), wanted)
        self.assertEqual(self.rows(), [])

    def test_08_one_row_twice_in_a_batch_is_refused(self):
        operations = [("POST", "p", "a", {}), ("POST", "p", "b", {}), ("MERGE", "p", "a", {"v": 1})]
        reply = rest.batch(self.table, operations)
        self.assertEqual(reply.status, 202)
        text = (
            "2:The batch request contains multiple changes with same row key. "
            "An entity can appear only once in a batch request."
        )
        self.assertEqual(rest.part_error(reply), (400, "InvalidDuplicateRow", text))
        self.assertEqual(self.rows(), [])

    def test_16_a_batch_in_host_style_is_applied(self):
        host = f"{rest.ACCOUNT}.table.localhost:{rest.PORT}"
        operations = [("POST", "p", "a", {"v": 1}), ("PUT", "p", "b", {"v": 2})]
        reply = rest.batch(self.table, operations, prefix="", host=host)
        self.assertEqual(reply.status, 202, reply)
        self.assertEqual([status for status, _ in rest.parts(reply)], [204, 204])
        self.assertIn(f"Location: http://{host}/{self.table}(PartitionKey='p',RowKey='a')", reply.text)
        self.assertEqual(self.rows(), ["a", "b"])


if __name__ == "__main__":
    unittest.main()
