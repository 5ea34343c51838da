"""The loop that programs write: one upsert_entity after the other. Prints the seconds."""

import os
import sys
import time

from azure.data.tables import TableServiceClient

count = int(sys.argv[1])
service = TableServiceClient.from_connection_string(os.environ["AZURE_STORAGE_CONNECTION_STRING"])
table = service.create_table("pythonloop")
began = time.monotonic()
for number in range(count):
    table.upsert_entity(
        {
            "PartitionKey": f"shop-{number % 1000:04}",
            "RowKey": f"{number:09}",
            "Customer": f"customer {number * 7919 % 100003}",
            "Cents": number * 31 % 1_000_000,
            "Open": number % 10 == 0,
        }
    )
print(time.monotonic() - began)
