"""Entities: requests that Azurite answers wrongly (numbers 9, 10, 11, 14, 20, 22, 24 and 25)."""

import base64
import json
import re
import unittest

import rest

NOT_VALID = "One of the request inputs is not valid."
NOT_PROCESSED = "An error occurred while processing this request."


class Entities(unittest.TestCase):
    def setUp(self):
        self.table = rest.new_table()
        self.addCleanup(rest.drop_table, self.table)

    def post(self, body, **headers):
        """Inserts properties under the keys p and r; or the body as it is, if it is a text."""
        body = body if isinstance(body, str) else {"PartitionKey": "p", "RowKey": "r", **body}
        return rest.send(
            "POST",
            f"/{self.table}",
            body=body,
            headers={name.replace("_", "-"): value for name, value in headers.items()},
        )

    def refused(self, reply, status, code, text=None):
        self.assertEqual(reply.status, status, reply)
        self.assertEqual(reply.error[0], code, reply)
        if text is not None:
            self.assertEqual(reply.error[1], text)

    def stored(self, row="r"):
        reply = rest.send("GET", rest.entity_path(self.table, "p", row))
        self.assertEqual(reply.status, 200, reply)
        return reply.json

    def test_09_limits_hold(self):
        text = (
            "The entity contains more properties than allowed. Each entity can include up to 252 properties "
            "to store data. Each entity also has 3 system properties."
        )
        self.refused(self.post({f"p{i}": i for i in range(253)}), 400, "TooManyProperties", text)
        text = "The property name exceeds the maximum allowed length (255)."
        self.refused(self.post({"n" * 256: 1}), 400, "PropertyNameTooLong", text)
        text = "The entity is larger than the maximum allowed size (1MB)."
        self.refused(self.post({f"p{i}": "x" * 32_000 for i in range(17)}), 400, "EntityTooLarge", text)
        for name in ("a b", "a-b", "1a"):
            self.refused(self.post({name: 1}), 400, "PropertyNameInvalid", "The property name is invalid.")
        self.assertEqual(rest.query(self.table).json["value"], [])
        self.assertEqual(self.post({f"p{i}": i for i in range(251)} | {"n" * 255: 1}).status, 201)

    def test_10_values_fit_their_types(self):
        bad = [
            ("DateTime", "hello"),
            ("Guid", "hello"),
            ("Binary", "***"),
            ("Int32", "3000000000"),
            ("Int32", 3000000000),
            ("Int64", "9223372036854775808"),
            ("Double", "13e7705"),
            ("Boolean", "maybe"),
        ]
        for kind, value in bad:
            self.refused(self.post({"v": value, "v@odata.type": f"Edm.{kind}"}), 400, "InvalidInput", NOT_PROCESSED)
        text = "The 'v' parameter of value '01/01/1500 00:00:00' is out of range."
        self.refused(
            self.post({"v": "1500-01-01T00:00:00Z", "v@odata.type": "Edm.DateTime"}), 400, "OutOfRangeInput", text
        )
        self.assertEqual(rest.query(self.table).json["value"], [])

    def test_10_dates_become_utc(self):
        dates = {
            "2020-01-01T02:00:00+02:00": "2020-01-01T00:00:00Z",
            "2008-07-10": "2008-07-10T00:00:00Z",
            "2008-07-10T00:00:00.1200000Z": "2008-07-10T00:00:00.12Z",
            "2008-07-10T01:02:03": "2008-07-10T01:02:03Z",
        }
        for row, (given, kept) in enumerate(dates.items()):
            rest.insert(self.table, "p", str(row), **{"v": given, "v@odata.type": "Edm.DateTime"})
            self.assertEqual(self.stored(str(row))["v"], kept)

    def test_11_malformed_input_gets_an_error_body(self):
        self.refused(self.post({"RowKey": 5}), 400, "InvalidInput", NOT_VALID)
        self.refused(self.post({"v": "x", "v@odata.type": "Edm.Nonsense"}), 400, "InvalidInput", NOT_PROCESSED)
        for body in (
            "{",
            "",
            "[]",
            "5",
            '{"PartitionKey":"p","RowKey":"r","v":}',
            '{"PartitionKey":"p","RowKey":"r"} x',
        ):
            self.refused(self.post(body), 400, "InvalidInput", NOT_PROCESSED)
        self.assertEqual(self.post({}).status, 201)
        reply = rest.send("DELETE", rest.entity_path(self.table, "p", "r"))
        text = "An HTTP header that's mandatory for this request is not specified."
        self.refused(reply, 400, "MissingRequiredHeader", text)
        self.stored()

    def test_14_preference_applied_answers_prefer_alone(self):
        replies = [
            self.post({"RowKey": str(i)}, **({"Prefer": prefer} if prefer else {}))
            for i, prefer in enumerate((None, "return-content", "return-no-content"))
        ]
        self.assertEqual([reply.status for reply in replies], [201, 201, 204])
        applied = [reply.headers.get("preference-applied") for reply in replies]
        self.assertEqual(applied, [None, "return-content", "return-no-content"])
        self.assertEqual([bool(reply.body) for reply in replies], [True, True, False])

    def test_20_if_none_match_and_duplicate_names_are_refused(self):
        path = rest.entity_path(self.table, "p", "r")
        reply = rest.send("PUT", path, body={"v": 1}, headers={"If-None-Match": "*"})
        text = "If-None-Match HTTP header cannot be specified for PUT operations."
        self.refused(reply, 400, "InvalidInput", text)
        reply = self.post('{"PartitionKey":"p","RowKey":"r","v":1,"v":2}')
        self.refused(reply, 400, "DuplicatePropertiesSpecified", "A property is specified more than one time.")
        self.assertEqual(rest.query(self.table).json["value"], [])

    def test_22_a_null_with_a_type_is_no_property(self):
        reply = self.post({"v": None, "v@odata.type": "Edm.Int32", "w": 1})
        self.assertEqual(reply.status, 201, reply)
        self.assertNotIn("v", reply.json)
        self.assertNotIn("v", self.stored())
        self.assertEqual(self.stored()["w"], 1)

    def test_24_select_gives_null_for_what_is_missing(self):
        rest.insert(self.table, "p", "r", a=1, b=2)
        reply = rest.query(self.table, select="RowKey,a,nothing")
        (entity,) = reply.json["value"]
        self.assertEqual(
            reply.json["odata.metadata"], f"{rest.ENDPOINT}/$metadata#{self.table}&$select=RowKey,a,nothing"
        )
        entity.pop("odata.etag")
        self.assertEqual(entity, {"RowKey": "r", "a": 1, "nothing": None})

    def test_25_continuation_tokens_have_the_recorded_form(self):
        rest.insert(self.table, "one", "r")
        rest.insert(self.table, "two é", "the row")
        headers = rest.query(self.table, top="1").headers
        tokens = [headers["x-ms-continuation-nextpartitionkey"], headers["x-ms-continuation-nextrowkey"]]
        self.assertEqual([decoded_token(token) for token in tokens], ["two é", "the row"])
        reply = rest.send(
            "GET",
            f"/{self.table}()",
            "NextPartitionKey={}&NextRowKey={}".format(*(token.replace("!", "%21") for token in tokens)),
        )
        self.assertEqual([entity["PartitionKey"] for entity in reply.json["value"]], ["two é"])
        self.assertNotIn("x-ms-continuation-nextpartitionkey", reply.headers)


def decoded_token(token):
    """The key in a token `1!<length of the base64 text>!<base64 with '-' for '='>`."""
    form, length, text = re.fullmatch(r"(\d)!(\d+)!([A-Za-z0-9+/_-]*)", token).groups()
    assert form == "1" and int(length) == len(text), token
    return base64.b64decode(text.replace("-", "=")).decode()


if __name__ == "__main__":
    unittest.main()
