"""The loop that programs write: one file after the other, up and then down. Prints the seconds of both ways."""

import sys
import tempfile
import time
from pathlib import Path

from google.auth.credentials import AnonymousCredentials
from google.cloud import storage

folder, count = Path(sys.argv[1]), int(sys.argv[2])
files = sorted(path for path in folder.rglob("*") if path.is_file())[:count]
client = storage.Client(project="lab", credentials=AnonymousCredentials())
bucket = client.create_bucket("loop")
began = time.monotonic()
for file in files:
    bucket.blob(str(file.relative_to(folder))).upload_from_filename(file)
print(time.monotonic() - began)
with tempfile.TemporaryDirectory() as target:
    began = time.monotonic()
    for number, file in enumerate(files):
        bucket.blob(str(file.relative_to(folder))).download_to_filename(f"{target}/{number}")
    print(time.monotonic() - began)
    for number, file in enumerate(files):
        assert Path(f"{target}/{number}").read_bytes() == file.read_bytes(), file
