"""Searches vectors with FAISS IndexFlatIP on one thread, one query at a time.

    faiss_flat.py QUERIES VECTORS TRUTH ROUNDS

The files hold f32 in little endian, 256 per row. Writes the ten best rows of each query to TRUTH, as u32, and
prints one JSON object. The inner product of unit vectors is their cosine.
"""

import json
import resource
import sys
import time

import faiss
import numpy

DIMENSION = 256
TOP = 10


def main():
    queries, vectors, truth, rounds = sys.argv[1:]
    faiss.omp_set_num_threads(1)
    queries = numpy.fromfile(queries, dtype="<f4").reshape(-1, DIMENSION)
    index = faiss.IndexFlatIP(DIMENSION)
    index.add(numpy.fromfile(vectors, dtype="<f4").reshape(-1, DIMENSION))
    times, found = [], []
    for round in range(int(rounds)):
        for query in queries:
            begin = time.perf_counter()
            _, rows = index.search(query.reshape(1, -1), TOP)
            times.append((time.perf_counter() - begin) * 1e3)
            if round == 0:
                found.append(rows[0])
    numpy.array(found, dtype="<u4").tofile(truth)
    times.sort()
    at = lambda share: times[int((len(times) - 1) * share)]
    print(
        json.dumps(
            {
                "version": faiss.__version__,
                "rows": index.ntotal,
                "p50_ms": round_to(at(0.5)),
                "p99_ms": round_to(at(0.99)),
                "mean_ms": round_to(sum(times) / len(times)),
                "peak_mb": round_to(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
            }
        )
    )


def round_to(number):
    return round(number, 3)


main()
