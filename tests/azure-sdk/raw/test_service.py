"""Tables, errors, authentication, policies and properties: the other requests that Azurite answers wrongly."""

import email.utils
import re
import time
import unittest
from urllib.parse import quote

import rest

XML = {"Content-Type": "application/xml", "Accept": "application/xml"}


class Tables(unittest.TestCase):
    def test_12_table_name_errors_have_a_code(self):
        characters = ("InvalidResourceName", "The specifed resource name contains invalid characters.")
        length = ("OutOfRangeInput", "The specified resource name length is not within the permissible limits.")
        names = {"a-b": characters, "1abc": characters, "ünicode": characters, "ab": length, "a" * 64: length}
        for name, error in names.items():
            reply = rest.send("POST", "/Tables", body={"TableName": name})
            self.assertEqual((reply.status, reply.error), (400, error), name)

    def test_15_one_table_is_itself_not_its_entities(self):
        table = rest.new_table()
        self.addCleanup(rest.drop_table, table)
        rest.insert(table, "p", "r")
        reply = rest.send("GET", f"/Tables('{table}')")
        self.assertEqual(reply.status, 200, reply)
        self.assertEqual(
            reply.json, {"odata.metadata": f"{rest.ENDPOINT}/$metadata#Tables/@Element", "TableName": table}
        )
        reply = rest.send("GET", "/Tables('missing')")
        self.assertEqual((reply.status, reply.error[0]), (404, "ResourceNotFound"))

    def test_13_the_secondary_takes_no_writes(self):
        table = rest.new_table()
        self.addCleanup(rest.drop_table, table)
        rest.insert(table, "p", "r")
        secondary = f"/{rest.ACCOUNT}-secondary"
        entity = {"PartitionKey": "p", "RowKey": "new"}
        path = rest.entity_path(table, "p", "r")
        writes = [
            ("POST", "/Tables", {"TableName": "never"}, {}),
            ("POST", f"/{table}", entity, {}),
            ("PUT", path, {"v": 1}, {}),
            ("DELETE", path, b"", {"If-Match": "*"}),
            ("DELETE", f"/Tables('{table}')", b"", {}),
        ]
        for method, target, body, headers in writes:
            reply = rest.send(method, target, body=body, headers=headers, prefix=secondary)
            self.assertEqual(
                (reply.status, reply.error),
                (403, ("InsufficientAccountPermissions", "Write operations are not allowed.")),
            )
        reply = rest.send("GET", f"/{table}()", prefix=secondary)
        self.assertEqual([entity["RowKey"] for entity in reply.json["value"]], ["r"])


class Errors(unittest.TestCase):
    def test_17_a_wrong_signature_is_authentication_failed(self):
        reply = rest.send("GET", "/Tables", key="d3Jvbmc=")
        self.assertEqual(reply.status, 403)
        self.assertEqual(reply.headers["x-ms-error-code"], "AuthenticationFailed")
        self.assertEqual(reply.headers["content-type"], "application/json")
        self.assertNotIn("x-ms-version", reply.headers)
        text = (
            "Server failed to authenticate the request. "
            "Make sure the value of Authorization header is formed correctly including the signature."
        )
        self.assertEqual(reply.error, ("AuthenticationFailed", text))

    def test_17_no_signature_at_all_gets_a_challenge(self):
        reply = rest.send("GET", "/Tables", headers={"x-ms-version": "2020-12-06"}, signed=False)
        self.assertEqual((reply.status, reply.error[0]), (401, "NoAuthenticationInformation"))
        self.assertTrue(reply.headers["www-authenticate"].startswith("Bearer authorization_uri="), reply.headers)

    def test_18_an_error_ends_with_a_time_of_seven_digits(self):
        message = rest.send("GET", "/nosuchtable()").json["odata.error"]["message"]
        self.assertEqual(message["lang"], "en-US")
        guid = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
        time = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{7}Z"
        form = rf"The table specified does not exist\.\nRequestId:{guid}\nTime:{time}"
        self.assertRegex(message["value"], rf"\A{form}\Z")

    def test_19_any_media_type_will_do(self):
        for accept in ("*/*", "application/json", "application/*", "text/html, application/json;q=0.5", None):
            reply = rest.send("GET", "/Tables", headers={"Accept": accept})
            self.assertEqual(reply.status, 200, (accept, reply))
            self.assertTrue(reply.headers["content-type"].startswith("application/json"), accept)

    def test_21_the_version_is_the_client_s(self):
        for version in ("2019-02-02", "2020-12-06", "2026-06-06"):
            reply = rest.send("GET", "/Tables", headers={"x-ms-version": version})
            self.assertEqual((reply.status, reply.headers["x-ms-version"]), (200, version))


class Policies(unittest.TestCase):
    def setUp(self):
        self.table = rest.new_table()
        self.addCleanup(rest.drop_table, self.table)

    def put(self, *policies):
        body = "".join(f"<SignedIdentifier><Id>{name}</Id>{policy}</SignedIdentifier>" for name, policy in policies)
        return rest.send("PUT", f"/{self.table}", "comp=acl", f"<SignedIdentifiers>{body}</SignedIdentifiers>", XML)

    def test_23_an_empty_policy_is_a_policy(self):
        reply = self.put(
            ("empty", ""),
            ("closed", "<AccessPolicy />"),
            ("full", "<AccessPolicy><Permission>r</Permission></AccessPolicy>"),
        )
        self.assertEqual((reply.status, reply.body), (204, b""), reply)
        reply = rest.send("GET", f"/{self.table}", "comp=acl", headers=XML)
        self.assertEqual(reply.status, 200, reply)
        self.assertTrue(reply.body.startswith(b"\xef\xbb\xbf<?xml"), reply)
        self.assertIn("<SignedIdentifier><Id>empty</Id></SignedIdentifier>", reply.text)
        self.assertEqual(re.findall("<Id>(.*?)</Id>", reply.text), ["empty", "closed", "full"])

    def test_23_six_policies_are_too_many(self):
        reply = self.put(*((f"id{i}", "") for i in range(6)))
        self.assertEqual((reply.status, reply.error[0]), (400, "InvalidXmlDocument"))
        self.assertTrue(reply.error[1].startswith("XML specified is not syntactically valid."), reply)
        self.assertEqual(reply.headers["x-ms-error-code"], "InvalidXmlDocument")

    def test_26_a_sas_with_a_key_range_holds_on_insert(self):
        expiry = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3600))
        fields = {
            "sp": "raud",
            "st": "",
            "se": expiry,
            "resource": f"/table/{rest.ACCOUNT}/{self.table.lower()}",
            "si": "",
            "sip": "",
            "spr": "",
            "sv": rest.VERSION,
            "spk": "b",
            "srk": "2",
            "epk": "c",
            "erk": "2",
        }
        signature = rest.hmac_sha256(rest.KEY, "\n".join(fields.values()))
        given = {name: value for name, value in fields.items() if value and name != "resource"} | {
            "tn": self.table,
            "sig": signature,
        }
        token = "&".join(f"{name}={quote(value, safe='')}" for name, value in given.items())
        statuses = {
            ("b", "2"): 201,
            ("b", "9"): 201,
            ("c", "2"): 201,
            ("b", "1"): 403,
            ("c", "3"): 403,
            ("a", "5"): 403,
        }
        for keys, status in statuses.items():
            entity = dict(zip(("PartitionKey", "RowKey"), keys))
            reply = rest.send("POST", f"/{self.table}", token, entity, signed=False)
            self.assertEqual(reply.status, status, (keys, reply))
            if status == 403:
                self.assertEqual(
                    reply.error, ("AuthorizationFailure", "This request is not authorized to perform this operation.")
                )
        reply = rest.send("GET", f"/{self.table}()", token, signed=False)
        self.assertEqual(
            [(entity["PartitionKey"], entity["RowKey"]) for entity in reply.json["value"]],
            [("b", "2"), ("b", "9"), ("c", "2")],
        )


class Properties(unittest.TestCase):
    QUERY = "restype=service&comp=properties"

    def put(self, inner):
        xml = f"<StorageServiceProperties>{inner}</StorageServiceProperties>"
        return rest.send("PUT", "/", self.QUERY, xml, XML)

    def test_23_a_cors_rule_may_have_empty_lists(self):
        rule = (
            "<CorsRule><AllowedOrigins>www.xyz.com</AllowedOrigins><AllowedMethods>GET</AllowedMethods>"
            "<AllowedHeaders /><ExposedHeaders></ExposedHeaders><MaxAgeInSeconds>0</MaxAgeInSeconds></CorsRule>"
        )
        self.addCleanup(self.put, "<Cors />")
        self.assertEqual(self.put(f"<Cors>{rule}</Cors>").status, 202)
        reply = rest.send("GET", "/", self.QUERY, headers=XML)
        self.assertEqual(reply.status, 200)
        self.assertIn("<AllowedOrigins>www.xyz.com</AllowedOrigins>", reply.text)

    def test_26_retention_is_365_days_at_most(self):
        def logging(days):
            return self.put(
                "<Logging><Version>1.0</Version><Read>true</Read><Write>true</Write><Delete>true</Delete>"
                f"<RetentionPolicy><Enabled>true</Enabled><Days>{days}</Days></RetentionPolicy></Logging>"
            )

        self.assertEqual(logging(365).status, 202)
        for days in (366, 0):
            reply = logging(days)
            self.assertEqual((reply.status, reply.error[0]), (400, "InvalidXmlDocument"), days)

    def test_26_statistics_are_signed_over_the_secondary_s_path(self):
        reply = rest.send("GET", "/", "restype=service&comp=stats", headers=XML, prefix=f"/{rest.ACCOUNT}-secondary")
        self.assertEqual(reply.status, 200, reply)
        status, synced = re.search("<Status>(.*?)</Status><LastSyncTime>(.*?)</LastSyncTime>", reply.text).groups()
        self.assertEqual(status, "live")
        self.assertLess(abs(email.utils.parsedate_to_datetime(synced).timestamp() - time.time()), 3600)

    def test_26_statistics_are_signed_over_the_primary_s_path(self):
        """Signs as clients do that sign before they change to the secondary endpoint."""
        date = email.utils.formatdate(usegmt=True)
        signed = f"GET\n\n\n{date}\n/{rest.ACCOUNT}/{rest.ACCOUNT}/?comp=stats"
        headers = XML | {
            "x-ms-date": date,
            "Content-Type": None,
            "Authorization": f"SharedKey {rest.ACCOUNT}:{rest.hmac_sha256(rest.KEY, signed)}",
        }
        reply = rest.send(
            "GET", "/", "restype=service&comp=stats", headers=headers, prefix=f"/{rest.ACCOUNT}-secondary"
        )
        self.assertEqual(reply.status, 200, reply)


if __name__ == "__main__":
    unittest.main()
