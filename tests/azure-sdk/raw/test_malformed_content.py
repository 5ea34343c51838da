"""Malformed filters, entities, transactions and XML documents."""

import unittest
from urllib.parse import quote

import rest
from malformed import LONG, Malformed

BATCH_TYPE = {"Content-Type": "multipart/mixed; boundary=batch_b"}
XML_TYPE = {"Content-Type": "application/xml", "Accept": "application/xml"}


class MalformedContent(Malformed):
    def test_filters(self):
        for filter in (
            "aaa bbb ccc", "v", "v eq", "eq 5", "v eq 'x", "v eq x'", "v eq 5 and", "and v eq 5",
            "v eq 5 or or v eq 6", "(v eq 5", "v eq 5)", "()", "not", "not not",
            "v eq 5 v eq 6", "v === 5", "v = 5", "v eq 5;", "v EQ 5", "v eq TRUE", "v add 1 eq 2",
            "startswith(v,'a')", "v eq datetime'x'", "v eq datetime'2020-13-01T00:00:00Z'",
            "v eq guid'x'", "v eq X'0'", "v eq X'zz'", "v eq binary'", "v eq 99999999999999999999L",
            "v eq 99999999999", "v eq 1e999", "v eq 1.2.3", "v eq -", "v eq 0x1f",
            "v eq null", "null", "1 eq 2", "a eq b", "'a'", "5", "v eq 'a' 'b'", "v eq \u0000", "v eq '\u0000'",
            "v/w eq 5", "v.w eq 5", "v[0] eq 5", "--v", "v eq ''''",
            "(" * 5000, "(" * 5000 + "v eq 5" + ")" * 5000, "not " * 3000 + "(v eq 5)",
            " or ".join(["v eq 5"] * 1500), "v eq '" + LONG[:30_000], "v eq " + "9" * 8000,
        ):
            encoded = quote(filter, safe="")
            self.survives("GET", f"/{self.table}()", f"$filter={encoded}", refused=False)
            self.survives("GET", "/Tables", f"$filter={encoded}", refused=False)

    def test_entity_bodies(self):
        def entity(more):
            return '{"PartitionKey":"p","RowKey":"new",' + more + "}"

        refused = [
            "", " ", "{", "}", "null", "true", "5", '"x"', "[]", "[{}]", "{}", '{"PartitionKey":"p"}',
            '{"RowKey":"new"}', '{"PartitionKey":null,"RowKey":"new"}',
            '{"PartitionKey":5,"RowKey":"new"}', '{"PartitionKey":"p","RowKey":true}',
            '{"PartitionKey":"p","RowKey":["new"]}', '{"PartitionKey":{},"RowKey":"new"}',
            '{"PartitionKey":"a/b","RowKey":"new"}', '{"PartitionKey":"p","RowKey":"a\\u0000b"}',
            '{"PartitionKey":"p","RowKey":"a\\nb"}', '{"PartitionKey":"p","RowKey":"new"',
            '{"PartitionKey":"p","RowKey":"new"},', '{"PartitionKey":"p","RowKey":"new"}{}',
            "{'PartitionKey':'p','RowKey':'new'}", '{"PartitionKey":"p","RowKey":"\\ud800"}',
            entity('"v":'), entity('"v":undefined'), entity('"v":NaN'), entity('"v":01'), entity('"v":+1'),
            entity('"v":.5'), entity('"v":1.'), entity('"v":"\\x"'), entity('"v":"\\u12"'),
            entity('"v":"a\nb"'), entity('"v":{}'), entity('"v":{"a":1}'), entity('"v":[]'), entity('"v":[1]'),
            entity('"v":' + "[" * 50_000), entity('"v":' + '{"a":' * 50_000),
            entity('"a b":1'), entity('"a-b":1'), entity('"":1'), entity('"1a":1'), entity('"v":1,"v":2'),
            entity('"v":"x","v@odata.type":"Edm.Nonsense"'),
            entity('"v":"x","v@odata.type":5'), entity('"v":"x","v@odata.type":"Edm.Int32"'),
            entity('"v":"x","v@odata.type":"Edm.Int64"'), entity('"v":"","v@odata.type":"Edm.Guid"'),
            entity('"v":"","v@odata.type":"Edm.DateTime"'), entity('"v":5,"v@odata.type":"Edm.Binary"'),
            entity('"v":"x","v@odata.type":"Edm.Double"'),
            entity('"v":"maybe","v@odata.type":"Edm.Boolean"'),
            entity('"v":"0001-01-01T00:00:00Z","v@odata.type":"Edm.DateTime"'),
            entity('"v":"9999-12-31T23:59:59-14:00","v@odata.type":"Edm.DateTime"'),
            entity('"v":"2020-02-30T00:00:00Z","v@odata.type":"Edm.DateTime"'), entity('"v":"' + LONG + '"'),
        ]
        for body in refused:
            self.survives("POST", f"/{self.table}", "", body)
        harmless = [
            entity('"v":1e999'), entity('"v":-0'), entity('"v":1e-999'), entity('"v":' + "9" * 5000),
            entity('"v":"\\ud800"'), entity('"v":"\\udc00\\ud800"'), entity('"odata.etag":5'),
            entity('"odata.type":"x"'), entity('"Timestamp":5'), entity('"Timestamp":"x"'),
            entity('"v@odata.type":"Edm.Int32"'), entity('"@":1'), entity('"a@b":1'),
            entity('"PartitionKey":"q"'), entity('"partitionkey":"q"'), "\ufeff" + entity('"v":1'),
        ]
        for body in harmless:
            self.survives("POST", f"/{self.table}", "", body, refused=False)
            self.survives("DELETE", rest.entity_path(self.table, "p", "new"), headers={"If-Match": "*"},
                refused=False)
        for body in (b"\xff\xfe{\x00}\x00", b'{"PartitionKey":"\xff","RowKey":"new"}',
            b'{"PartitionKey":"\xed\xa0\x80","RowKey":"new"}', b"\x00" * 100, b"\x1f\x8b\x08" + bytes(50)):
            self.survives("POST", f"/{self.table}", "", body)
        self.survives("POST", f"/{self.table}", "", b" " * (5 << 20))
        for body in ("", "{", "[]", '{"TableName":5}', '{"TableName":null}', "{}", '{"TableName":""}',
            '{"Other":"x"}', '{"TableName":"tables"}', '{"TableName":"' + LONG + '"}', '{"TableName":"a\\u0000b"}'):
            self.survives("POST", "/Tables", "", body)

    def test_batches(self):
        change = (
            "--changeset_c\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"
            f"POST {rest.ENDPOINT}/{self.table} HTTP/1.1\r\n"
            "Content-Type: application/json\r\nPrefer: return-no-content\r\n\r\n"
            '{"PartitionKey":"p","RowKey":"r"}\r\n'
        )
        query = (
            "--changeset_c\r\nContent-Type: application/http\r\n\r\n"
            f"GET {rest.ENDPOINT}/{self.table}() HTTP/1.1\r\n\r\n\r\n"
        )
        begin = "--batch_b\r\nContent-Type: multipart/mixed; boundary=changeset_c\r\n\r\n"
        end = "--changeset_c--\r\n--batch_b--\r\n"
        good = begin + change + end  # fails, as the row exists
        for body in (
            "", " ", "x", "--batch_b", "--batch_b--", "--batch_b\r\n", "--batch_b\r\n\r\n", begin,
            begin + "--changeset_c", begin + "--changeset_c\r\n\r\n", begin + change, begin + change + change + end,
            good[:-30], good.replace("\r\n\r\n", "\r\n"), good.replace("HTTP/1.1", ""),
            good.replace("HTTP/1.1", "HTTP/9.9"), good.replace("POST ", "FOO "), good.replace("POST ", ""),
            good.replace("POST ", "POST POST "), good.replace(rest.ENDPOINT, ""),
            good.replace(rest.ENDPOINT, "http://"), good.replace(rest.ENDPOINT, "ftp://x"),
            good.replace(rest.ENDPOINT, "%"),
            good.replace(self.table, "nosuchtable"), good.replace(self.table, "$batch"),
            good.replace(self.table, "Tables"), good.replace("/" + self.table, "/other/" + self.table),
            good.replace("application/http", "text/plain"), good.replace("binary", "base64"),
            good.replace('"p"', "5"), good.replace("{", "["), good.replace('{"PartitionKey":"p","RowKey":"r"}', ""),
            good.replace("boundary=changeset_c", ""), good.replace("boundary=changeset_c", "boundary="),
            good.replace("boundary=changeset_c", "boundary=batch_b"), begin * 50 + end,
            begin + change * 101 + end, begin + "\r\n" * 20_000 + end, good.replace("Prefer:", "X" * 20_000 + ":"),
            good.replace("Prefer: return-no-content\r\n", "X-Y: z\r\n" * 5000), "\x00" * 1000,
            begin + query + end,
            begin + begin.replace("batch_b", "changeset_c") + change + end, good.replace("POST", "DELETE"),
            good.replace("POST", "GET"),
        ):
            self.survives("POST", "/$batch", "", body, BATCH_TYPE, refused=False)
        for kind in ("", "multipart/mixed", "multipart/mixed; boundary=", "multipart/mixed; boundary=other",
            'multipart/mixed; boundary="batch_b', "text/plain; boundary=batch_b",
                     "multipart/mixed; boundary=" + "b" * 5000, "application/json",
                     "multipart/mixed; boundary=batch_b; boundary=x"):
            self.survives("POST", "/$batch", "", good, {"Content-Type": kind}, refused=False)
        self.survives("POST", "/$batch", "", b"x" * (5 << 20), BATCH_TYPE)

    def test_xml(self):
        laughs = '<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;">]>'
        policy = (
            "<SignedIdentifiers><SignedIdentifier><Id>x</Id><AccessPolicy>{}</AccessPolicy>"
            "</SignedIdentifier></SignedIdentifiers>"
        )
        for body in (
            "", "x", "<", "<a", "<a>", "</a>", "<a/>", "<a></b>", "{}", "<SignedIdentifiers>",
            "<SignedIdentifiers><x/></SignedIdentifiers>", laughs + "<SignedIdentifiers>&b;</SignedIdentifiers>",
            '<!DOCTYPE x SYSTEM "file:///etc/passwd"><SignedIdentifiers/>',
            "<SignedIdentifiers>&undefined;</SignedIdentifiers>", "<a>" * 20_000,
            "<SignedIdentifiers><SignedIdentifier/></SignedIdentifiers>",
            policy.format("<Start>x</Start>"), policy.format("<Expiry>yesterday</Expiry>"),
            policy.format("<Permission>z</Permission>"), policy.format("<Permission>rrrr</Permission>"),
            policy.format("<Start>" + LONG + "</Start>"), policy.replace("<Id>x</Id>", "<Id>" + "x" * 65 + "</Id>"),
            policy.replace("<Id>x</Id>", "<Id></Id>"), policy.replace("<Id>x</Id>", ""),
            policy.replace("<Id>x</Id>", "<Id>x</Id><Id>y</Id>"), "<SignedIdentifiers a='1' a='2'/>",
            "<?xml version='9.9'?><SignedIdentifiers/>",
        ):
            self.survives("PUT", f"/{self.table}", "comp=acl", body, XML_TYPE, refused=False)
        rest.send("PUT", f"/{self.table}", "comp=acl", "<SignedIdentifiers />", XML_TYPE)
        rule = "<StorageServiceProperties><Cors><CorsRule>{}</CorsRule></Cors></StorageServiceProperties>"
        days = (
            "<StorageServiceProperties><Logging><Version>1.0</Version><Read>true</Read><Write>true</Write>"
            "<Delete>true</Delete><RetentionPolicy><Enabled>true</Enabled>{}</RetentionPolicy></Logging>"
            "</StorageServiceProperties>"
        )
        anyone = "<AllowedOrigins>*</AllowedOrigins><AllowedMethods>GET</AllowedMethods>"
        for body in (
            "", "x", "<StorageServiceProperties>", "<Wrong/>",
            laughs + "<StorageServiceProperties>&b;</StorageServiceProperties>", days.format("<Days>-1</Days>"),
            days.format("<Days>x</Days>"),
            days.format("<Days>99999999999999999999</Days>"), days.format(""),
            days.replace("true", "maybe").format("<Days>5</Days>"), rule.format(""),
            rule.format("<AllowedOrigins>*</AllowedOrigins>"),
            rule.format("<AllowedMethods>FOO</AllowedMethods>"),
            rule.format(anyone + "<MaxAgeInSeconds>-1</MaxAgeInSeconds>"),
            rule.format(anyone.replace("*", "x," * 500) + "<MaxAgeInSeconds>5</MaxAgeInSeconds>"),
        ):
            self.survives("PUT", "/", "restype=service&comp=properties", body, XML_TYPE,
                refused=body != "<StorageServiceProperties/>")


if __name__ == "__main__":
    unittest.main()
