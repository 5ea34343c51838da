"""Malformed addresses, options, headers and signatures, and bytes that are not HTTP."""

import socket
import unittest
from urllib.parse import quote

import rest
from malformed import LONG, Malformed

OLD_DATE, FUTURE_DATE = "Sat, 21 Nov 2009 08:00:00 GMT", "Sat, 21 Nov 2099 08:00:00 GMT"


class MalformedRequests(Malformed):
    def test_paths(self):
        t = self.table
        for path in (
            "/%", "/%zz", "/%00", "/%c0%af", "/%ff%fe", "/Tables(", "/Tables('", "/Tables('x", "/Tables(x)",
            "/Tables('x'", "/Tables('x')('y')",
            "/Tables('a','b')", "/Tables(TableName='x')", f"/{t}(", f"/{t}(PartitionKey='p')",
            f"/{t}(PartitionKey='p',RowKey='r'", f"/{t}('p','r')",
            f"/{t}(PartitionKey=p,RowKey=r)", f"/{t}(PartitionKey='p',RowKey='r',Other='x')",
            f"/{t}(PartitionKey='p',PartitionKey='p')",
            f"/{t}(PartitionKey='p'RowKey='r')", f"/{t}(PartitionKey='p',RowKey='r''')extra", f"/{t}()()",
            f"/{t}/extra/deep", f"/{t}(PartitionKey='%',RowKey='r')",
            f"/{t}(PartitionKey='%00',RowKey='r')", f"/{t}(PartitionKey='%C0%AF',RowKey='r')",
            f"/{t}(PartitionKey='p',RowKey='{'r' * 9000}')",
            "/" + "x" * 5000, "/nosuchtable", "/a-b", "/ab", "/$batch", "/$metadata(1)",
        ):
            self.survives("GET", path)
            self.survives("DELETE", path, headers={"If-Match": "*"})
        for path in ("", "/", "//", "/..", "/../..", "/./Tables", "/tables", "/TABLES()", "/$metadata", f"/{t}/",
            f"/{t}()/", f"//{t}"):
            self.survives("GET", path, refused=False)

    def test_methods(self):
        t = self.table
        for path in ("/Tables", f"/Tables('{t}')", f"/{t}", f"/{t}()", "/$batch", "/"):
            for method in ("HEAD", "TRACE", "CONNECT", "FOO", "get", "M-SEARCH", "PATCH", "MERGE"):
                self.survives(method, path, refused=False)
        entity = rest.entity_path(t, "p", "r")
        for method in ("POST", "FOO", "TRACE", "get"):
            self.survives(method, entity, body={"v": 2})
        for override in ("", "FOO", "GET", "DELETE,MERGE", "merge merge", LONG[:3000]):
            self.survives("POST", entity, body={"v": 2}, headers={"X-HTTP-Method": override})

    def test_query_options(self):
        path = f"/{self.table}()"
        for top in ("abc", "-1", "1001", "99999999999999999999", "1.5", "0x10", "1e2", "1;2"):
            self.survives("GET", path, f"$top={top}")
        for token in ("x", "1!", "1!!", "1!5!abc", "1!4!!!!!", "1!4!/w--", "9!4!cGs-", "1!-4!cGs-",
            "1!99999999999999999999!cGs-", "%00", LONG[:8000]):
            self.survives("GET", path, f"NextPartitionKey={token}&NextRowKey=1!4!cg--", refused=False)
            self.survives("GET", path, f"NextPartitionKey=1!4!cA--&NextRowKey={token}", refused=False)
            self.survives("GET", "/Tables", f"NextTableName={token}", refused=False)
        for query in (
            "$top=", "$top=1&$top=2", "$select=", "$select=,", "$select=,,a,", "$select=a%20b", "$select=*,v",
            "$select=" + "v," * 2000, "$orderby=v", "$skip=1",
            "$expand=v", "$inlinecount=allpages", "$count=true", "$format=xml", "$format=atom", "$format=",
            "$unknown=1", "comp=bogus", "comp=", "restype=bogus",
            "restype=service", "comp=acl&comp=acl", "timeout=-1", "timeout=abc", "timeout=0", "NextRowKey=1!4!cg--",
            "NextTableName=x", "a", "=", "&&&", "a=%", "a=%zz",
            "%00=1", "a=%ff", "?", "$filter", "sv=2019-02-02",
        ):
            self.survives("GET", path, query, refused=False)

    def test_headers(self):
        t, entity = self.table, rest.entity_path(self.table, "p", "r")
        for etag in ("", "x", "W/", "W/\"", 'W/"x"', "\"", "*,*", "W/\"datetime'x'\"",
            "W/\"datetime'2020-01-01T00%3A00%3A00Z'", "null", LONG[:5000]):
            self.survives("PUT", entity, "", {"v": 2}, {"If-Match": etag})
            self.survives("DELETE", entity, headers={"If-Match": etag})
        self.survives("PUT", entity, "", {"v": 2}, {"If-Match": "*", "If-None-Match": "*"})
        for name, values in {
            "Accept": ("", "x", "/", "application/json;odata=x", "application/json;odata=", "application/atom+xml",
                "text/plain", ",,,", ";", LONG[:5000]),
            "Content-Type": ("", "x", "text/plain", "application/json;charset=utf-7", "multipart/mixed",
                "application/json; ; =", LONG[:5000]),
            "Prefer": ("", "x", "return-content,return-no-content", LONG[:5000]),
            "x-ms-version": ("", "x", "1999-01-01", "2019-13-45", "99999-01-01", LONG[:5000]),
            "DataServiceVersion": ("", "x", "99.0", "1.0;NetFx", "-1"),
            "MaxDataServiceVersion": ("", "x", "0.1", "3.0;NetFx"),
            "x-ms-client-request-id": ("", "é", LONG[:5000]),
            "Transfer-Encoding": ("x", "gzip"),
            "Content-MD5": ("x", "AAAA"),
            "Range": ("bytes=0-1", "x"),
            "Content-Encoding": ("gzip", "x"),
            "Origin": ("x", "null", LONG[:5000]),
        }.items():
            for value in values:
                if name in ("Content-Type", "Prefer"):
                    self.survives("POST", "/Tables", "", {"TableName": "a-b"}, {name: value})
                else:
                    self.survives("GET", f"/{t}()", headers={name: value}, refused=False)

    def test_authorization(self):
        for value in (
            "", "x", "SharedKey", "SharedKey ", "SharedKey :", "SharedKey a", f"SharedKey {rest.ACCOUNT}",
            f"SharedKey {rest.ACCOUNT}:", f"SharedKey {rest.ACCOUNT}:x",
            f"SharedKey {rest.ACCOUNT}:{'A' * 43}=", f"SharedKey other:{'A' * 43}=",
            f"SharedKeyLite {rest.ACCOUNT}:{'A' * 43}=", f"sharedkey {rest.ACCOUNT}:x", "Basic dXNlcjpwYXNz",
            "Bearer", "Bearer ", "Bearer x", "Bearer a.b.c", "Bearer ..", f"Bearer {'e30' * 1000}.e30.e30",
            "Negotiate x", LONG[:5000], "SharedKey \x00:\x00", "SharedKey é:ü",
        ):
            self.survives("GET", "/Tables", headers={"Authorization": value})
        self.survives("GET", "/Tables", signed=False)
        for date in (OLD_DATE, FUTURE_DATE, "", "x", "0", "2026-11-21T08:00:00Z", None):
            self.survives("GET", "/Tables", headers={"x-ms-date": date})
        for host in ("", "x", "other.table.localhost", "-secondary.table.localhost", "..", "é", "[::1", "a b",
            LONG[:300]):
            self.survives("GET", "/Tables", prefix="", host=host or None, headers={"Host": host})
        for prefix in ("", "/", "/other", "/other-secondary", "/-secondary", "/%",
            f"/{rest.ACCOUNT}-secondary-secondary", f"//{rest.ACCOUNT}"):
            self.survives("GET", "/Tables", prefix=prefix, refused=False)

    def test_shared_access_signatures(self):
        good = {"sv": "2019-02-02", "ss": "t", "srt": "sco", "sp": "rwdlacu", "se": "2099-01-01T00:00:00Z",
            "sig": "A" * 43 + "="}
        table = {"sv": "2019-02-02", "tn": self.table, "sp": "raud", "se": "2099-01-01T00:00:00Z",
            "sig": "A" * 43 + "="}
        for base in (good, table):
            for name in base:
                for value in (None, "", "x", "%", "%ff", "%00", "é", LONG[:2000]):
                    fields = {**base, name: value}
                    token = "&".join(f"{key}={text if '%' in text else quote(text, safe='')}" for key,
                        text in fields.items() if text is not None)
                    self.survives("GET", f"/{self.table}()", token, signed=False)
            token = "&".join(f"{key}={quote(text, safe='')}" for key, text in base.items())
            for more in ("sig=x", "sp=r", "st=x", "st=2098-01-01", "sip=x", "sip=1.2.3.4-1", "sip=::1", "spr=ftp",
                "si=none", "spk=a", "srk=a", "epk=a", "erk=a", "ses=x"):
                self.survives("GET", f"/{self.table}()", f"{token}&{more}", signed=False)

    def test_what_is_no_http(self):
        """Bytes that are not a request: the answer is any 4xx, or a closed connection."""
        prefix = f"/{rest.ACCOUNT}"
        for request in (
            b"", b"\r\n\r\n", b"x", b"\x00" * 1000, b"\xff" * 1000, b"GET", b"GET /", b"GET / HTTP/1.1",
            b"GET / HTTP/1.1\r\n", b"GET / HTTP/1.1\r\n\r\n", b"GET / HTTP/0.9\r\n\r\n",
            b"GET / HTTP/9.9\r\nHost: x\r\n\r\n", b"GET  /  HTTP/1.1\r\nHost: x\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost\r\n\r\n", b"GET / HTTP/1.1\r\n: x\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n",
            b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
            b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
            b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
            b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\nx",
            b"GET / HTTP/1.1\r\nHost: x\r\n" + b"a: b\r\n" * 5000 + b"\r\n",
            b"GET / HTTP/1.1\r\nHost: x\r\na: " + b"b" * 1_000_000 + b"\r\n\r\n",
            b"GET /" + b"a" * 1_000_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
            b"POST " + prefix.encode() + b"/Tables HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{",
            b"GET http://other.example/ HTTP/1.1\r\nHost: x\r\n\r\n", b"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n",
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500),
            b"CONNECT other.example:443 HTTP/1.1\r\nHost: x\r\n\r\n",
        ):
            with self.subTest(request=request[:80]):
                answer = rest.exchange_any(request)
                status = answer[9:12].decode("latin-1") if answer.startswith(b"HTTP/1.") else ""
                self.assertTrue(status == "" or status < "500" or status in ("501", "505"), answer[:300])

    def test_many_connections_that_say_nothing(self):
        idle = [socket.create_connection((rest.HOST, rest.PORT)) for _ in range(100)]
        try:
            for connection in idle[::2]:
                connection.sendall(b"GET /slow HTTP/1.1\r\nHo")
            self.assertEqual(rest.send("GET", "/Tables").status, 200)
        finally:
            for connection in idle:
                connection.close()


if __name__ == "__main__":
    unittest.main()
