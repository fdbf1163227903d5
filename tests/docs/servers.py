"""What the documentation's commands send to, on the lab's controller: `servers.py CERTIFICATE KEY LOG`. A webhook by TLS, Prometheus, a Pushgateway and
an application's health page say yes to everything; S3 keeps objects. Each request is a line of LOG."""

import hashlib
import http.server
import re
import ssl
import sys
import threading
import urllib.parse

CERTIFICATE, KEY, LOG = sys.argv[1:]
TLS_PORT, S3_PORT = 443, 9000
PLAIN_PORTS = [80, 9090, 9091]


class Yes(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, status=200, body=b"", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def body(self):
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def do_GET(self):
        self.body()
        self.answer()

    do_POST = do_PUT = do_HEAD = do_DELETE = do_GET

    def log_message(self, *_):
        with open(LOG, "a") as log:
            print(self.command, self.path, file=log)


class S3(Yes):
    """Path style, and as much as a run asks for."""

    objects, parts = {}, {}

    def asked(self):
        path, _, query = self.path.partition("?")
        return urllib.parse.unquote(path), urllib.parse.parse_qs(query, keep_blank_values=True)

    def do_GET(self):
        path, query = self.asked()
        if "list-type" in query:
            return self.answer(body=self.listing(path.strip("/"), query.get("prefix", [""])[0]))
        if path not in self.objects:
            return self.answer(404, b"<Error><Code>NoSuchKey</Code></Error>")
        found = self.objects[path]
        wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        facts = {"ETag": tag(found), "Last_Modified": "Thu, 01 Jan 2026 00:00:00 GMT"}
        if not wanted:
            return self.answer(200, found, **facts)
        start = int(wanted[1])
        end = min(int(wanted[2] or len(found)), len(found) - 1)
        self.answer(206, found[start : end + 1], Content_Range=f"bytes {start}-{end}/{len(found)}", **facts)

    do_HEAD = do_GET

    def do_PUT(self):
        (path, query), body = self.asked(), self.body()
        if "partNumber" in query:
            self.parts.setdefault(query["uploadId"][0], {})[int(query["partNumber"][0])] = body
        else:
            self.objects[path] = body
        self.answer(ETag=tag(body))

    def do_POST(self):
        (path, query), body = self.asked(), self.body()
        if "delete" in query:
            for name in re.findall(r"<Key>(.*?)</Key>", body.decode()):
                self.objects.pop(f"{path.rstrip('/')}/{name}", None)
            return self.answer(body=b"<DeleteResult></DeleteResult>")
        if "uploads" in query:
            begun = f"<InitiateMultipartUploadResult><UploadId>{tag(path.encode())}</UploadId></InitiateMultipartUploadResult>"
            return self.answer(body=begun.replace('"', "").encode())
        parts = self.parts.pop(query["uploadId"][0])
        self.objects[path] = b"".join(parts[number] for number in sorted(parts))
        self.answer(body=f"<CompleteMultipartUploadResult><ETag>{tag(b'')}</ETag></CompleteMultipartUploadResult>".encode())

    def do_DELETE(self):
        self.objects.pop(self.asked()[0], None)
        self.answer(204)

    def listing(self, bucket, prefix):
        names = sorted(path.removeprefix(f"/{bucket}/") for path in self.objects if path.startswith(f"/{bucket}/{prefix}"))
        facts = "<LastModified>2026-01-01T00:00:00.000Z</LastModified>"
        contents = [f"<Contents><Key>{name}</Key><Size>{len(self.objects[f'/{bucket}/{name}'])}</Size>{facts}<ETag>x</ETag></Contents>" for name in names]
        return f"<ListBucketResult><IsTruncated>false</IsTruncated>{''.join(contents)}</ListBucketResult>".encode()


def tag(body):
    return f'"{hashlib.md5(body).hexdigest()}"'


def serve(port, handler, context=None):
    server = http.server.ThreadingHTTPServer(("", port), handler)
    if context:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever).start()


context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(CERTIFICATE, KEY)
serve(TLS_PORT, Yes, context)
serve(S3_PORT, S3)
for port in PLAIN_PORTS:
    serve(port, Yes)
print("up", flush=True)
