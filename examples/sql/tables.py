"""Runs SQL queries on the CSV files in this folder. Each file is a table with the name of the file.

The tables are copied into a database in memory, so a query cannot change the files. In addition, an
authorizer permits only reading, so a query that would change, attach or configure something fails with
an error instead of having no visible effect.
"""

import csv
import json
import sqlite3
import sys
from pathlib import Path

FOLDER = Path(__file__).parent
MOST_ROWS = 100
READING = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION}


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


def number_or_text(value):
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            pass
    return value


def authorize(action, *details):
    return sqlite3.SQLITE_OK if action in READING else sqlite3.SQLITE_DENY


def open_tables():
    database = sqlite3.connect(":memory:")
    database.row_factory = sqlite3.Row
    for path in sorted(FOLDER.glob("*.csv")):
        with open(path, encoding="utf-8", newline="") as file:
            header, *rows = csv.reader(file)
        database.execute(f"CREATE TABLE {quoted(path.stem)} ({', '.join(map(quoted, header))})")
        places = ", ".join("?" * len(header))
        database.executemany(
            f"INSERT INTO {quoted(path.stem)} VALUES ({places})",
            ([number_or_text(value) for value in row] for row in rows),
        )
    database.commit()
    database.set_authorizer(authorize)
    return database


def list_tables(database, arguments):
    names = [row["name"] for row in database.execute("SELECT name FROM sqlite_master ORDER BY name")]
    columns = {
        name: [column[0] for column in database.execute(f"SELECT * FROM {quoted(name)}").description]
        for name in names
    }
    return [f"{name} ({', '.join(columns[name])})" for name in names]


def total_sales(database, arguments):
    row = database.execute(
        "SELECT region, sum(units) AS units, round(sum(units * price), 2) AS revenue"
        " FROM sales JOIN products USING (product) WHERE region = ? COLLATE NOCASE GROUP BY region",
        [arguments["region"]],
    ).fetchone()
    if row is None:
        sys.exit(f"there are no sales in the region {arguments['region']!r}")
    return dict(row)


def run_query(database, arguments):
    cursor = database.execute(arguments["sql"])
    if cursor.description is None:
        sys.exit("this is not a SELECT statement")
    columns = [column[0] for column in cursor.description]
    if len(set(columns)) < len(columns):
        sys.exit("two columns of the result have the same name; rename one with AS")
    rows = cursor.fetchmany(MOST_ROWS + 1)
    if len(rows) > MOST_ROWS:
        sys.exit(f"the query gives more than {MOST_ROWS} rows; add a LIMIT or count them")
    return [dict(row) for row in rows]


if __name__ == "__main__":
    action = {"tables": list_tables, "total": total_sales, "query": run_query}[sys.argv[1]]
    try:
        result = action(open_tables(), json.load(sys.stdin.buffer))
        print(json.dumps(result, allow_nan=False))
    except (sqlite3.Error, sqlite3.Warning) as error:
        sys.exit(f"the query was refused: {error} (one SELECT statement on the tables is allowed)")
    except (TypeError, ValueError) as error:
        sys.exit(f"the result has a value that is no number and no text: {error}")
