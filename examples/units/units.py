"""Converts quantities with the table in units.csv.

A quantity in the base unit of its kind is (value + offset) * factor, so temperatures, whose scales
start at different points, need no special case. Fractions keep the arithmetic exact; only the printed
result is rounded.
"""

import csv
import json
import sys
from fractions import Fraction
from pathlib import Path

LARGEST = 10**12


def read_table():
    with open(Path(__file__).with_name("units.csv"), encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def find(table, name):
    wanted = " ".join(name.casefold().replace(".", "").split())
    for row in table:
        if wanted in [row["unit"].casefold(), *row["also"].split(";")]:
            return row
    known = ", ".join(row["unit"] for row in table)
    sys.exit(f"unknown unit: {name!r}. Known are {known}")


def shown(number):
    return f"{float(number):,.6g}" if abs(number) < 100_000 else f"{float(number):,.0f}"


def convert(table, arguments):
    value = arguments["value"]
    if abs(value) > LARGEST:
        sys.exit(f"the value is too large: at most {LARGEST:,} can be converted")
    source = find(table, arguments["from_unit"])
    target = find(table, arguments["to_unit"])
    if source["kind"] != target["kind"]:
        sys.exit(
            f"{source['unit']} measure {source['kind']} and {target['unit']} measure "
            f"{target['kind']}: one cannot be converted to the other"
        )
    base = (Fraction(str(value)) + Fraction(source["offset"])) * Fraction(source["factor"])
    if base < 0 and source["kind"] == "temperature":
        sys.exit(f"{shown(value)} {source['unit']} is below absolute zero")
    result = base / Fraction(target["factor"]) - Fraction(target["offset"])
    print(f"{shown(value)} {source['unit']} = {shown(result)} {target['unit']}")


def list_units(table, arguments):
    kind = arguments["kind"]
    print(json.dumps([row["unit"] for row in table if row["kind"] == kind]))


if __name__ == "__main__":
    {"convert": convert, "list": list_units}[sys.argv[1]](read_table(), json.load(sys.stdin.buffer))
