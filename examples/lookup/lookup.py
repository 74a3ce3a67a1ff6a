"""Finds customers by name, and orders by the id of the customer."""

import csv
import json
import sys
from pathlib import Path


def read_rows(name):
    with open(Path(__file__).with_name(name), encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def find_customer(arguments):
    """Accepts a full name, or a part of it that only one customer has, such as the last name."""
    wanted = arguments["name"].casefold().split()
    if not wanted:
        sys.exit("the name is empty")
    found = [
        row
        for row in read_rows("customers.csv")
        if all(word in row["name"].casefold().split() for word in wanted)
    ]
    if not found:
        sys.exit(f"no customer is called {arguments['name']!r}")
    if len(found) > 1:
        sys.exit(f"several customers are called so: {', '.join(row['name'] for row in found)}")
    print(json.dumps(found[0] | {"customer_id": int(found[0]["customer_id"])}))


def list_orders(arguments):
    wanted = str(arguments["customer_id"])
    if all(row["customer_id"] != wanted for row in read_rows("customers.csv")):
        sys.exit(f"no customer has the id {wanted}")
    orders = [
        {
            "order_id": int(row["order_id"]),
            "date": row["date"],
            "item": row["item"],
            "price": float(row["price"]),
        }
        for row in read_rows("orders.csv")
        if row["customer_id"] == wanted
    ]
    print(json.dumps(orders))


if __name__ == "__main__":
    {"customer": find_customer, "orders": list_orders}[sys.argv[1]](json.load(sys.stdin.buffer))
