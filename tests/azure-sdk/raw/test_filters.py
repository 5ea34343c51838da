"""Filters over rows of mixed types: requests that Azurite answers wrongly (numbers 1 to 6).

The rule, recorded from the real service: a value of another type than the literal counts as less than
the literal, so `ne`, `lt` and `le` are true, and the others are false. An Int32 literal is widened to
compare with Int64 and Double values, an Int64 literal to compare with Double values. A property that is
absent makes every comparison false.
"""

import unittest

import rest

VALUES = {
    "Boolean": {"v": True},
    "Int32": {"v": 5},
    "Int32b": {"v": 7},
    "Int64": {"v": "5", "v@odata.type": "Edm.Int64"},
    "Int64b": {"v": "12", "v@odata.type": "Edm.Int64"},
    "Double": {"v": "5.0", "v@odata.type": "Edm.Double"},
    "String": {"v": "5"},
    "StringEmpty": {"v": ""},
    "DateTime": {"v": "2020-01-01T00:00:00Z", "v@odata.type": "Edm.DateTime"},
    "Guid": {"v": "c9da6455-213d-42c9-9a79-3e9149a57833", "v@odata.type": "Edm.Guid"},
    "Binary": {"v": "Chs=", "v@odata.type": "Edm.Binary"},
    "Absent": {},
}
VALUED = set(VALUES) - {"Absent"}


class Filters(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.table = rest.new_table()
        for row, properties in VALUES.items():
            rest.insert(cls.table, "p", row, **properties)

    @classmethod
    def tearDownClass(cls):
        rest.drop_table(cls.table)

    def matches(self, filter):
        reply = rest.query(self.table, filter)
        self.assertEqual(reply.status, 200, reply)
        return {entity["RowKey"] for entity in reply.json["value"]}

    def test_01_an_int64_literal_over_mixed_types_is_answered(self):
        self.assertEqual(self.matches("v eq 5L"), {"Int64", "Double"})
        self.assertEqual(self.matches("v gt 5L"), {"Int64b"})

    def test_02_guid_and_binary_match_their_type_alone(self):
        self.assertEqual(self.matches("v eq guid'c9da6455-213d-42c9-9a79-3e9149a57833'"), {"Guid"})
        self.assertEqual(self.matches("v eq X'0a1b'"), {"Binary"})
        self.assertEqual(self.matches("v eq binary'0a1b'"), {"Binary"})

    def test_03_greater_and_less_keep_to_the_types(self):
        self.assertEqual(self.matches("v gt 4"), {"Int32", "Int32b", "Int64", "Int64b", "Double"})
        self.assertEqual(self.matches("v gt 10"), {"Int64b"})
        self.assertEqual(self.matches("v gt ''"), {"String"})
        self.assertEqual(self.matches("v ge ''"), {"String", "StringEmpty"})
        self.assertEqual(self.matches("v gt datetime'2019-01-01T00:00:00Z'"), {"DateTime"})
        # A value of another type is less than the literal. An absent value matches nothing.
        self.assertEqual(self.matches("v lt datetime'2019-01-01T00:00:00Z'"), VALUED - {"DateTime"})

    def test_04_not_equal_widens_like_equal(self):
        self.assertEqual(self.matches("v ne 5"), VALUED - {"Int32", "Int64", "Double"})
        self.assertEqual(self.matches("v eq 5"), {"Int32", "Int64", "Double"})

    def test_05_a_bare_property_is_true_where_it_is_true(self):
        self.assertEqual(self.matches("v"), {"Boolean"})
        self.assertEqual(self.matches("v and RowKey ge 'A'"), {"Boolean"})

    def test_06_null_cannot_be_compared(self):
        for filter in ("v eq null", "v ne null"):
            reply = rest.query(self.table, filter)
            self.assertEqual(reply.status, 400, filter)
            self.assertEqual(reply.error, ("InvalidInput", "One of the request inputs is not valid."), filter)
        reply = rest.query(self.table, "v lt null")
        text = "The operator 'LessThan' is not supported for the 'null' literal; only equality checks are supported."
        self.assertEqual((reply.status, reply.error), (400, ("InvalidInput", text)))


if __name__ == "__main__":
    unittest.main()
