"""Serves a language model on loopback with llama.cpp, until standard input ends.

Usage: python llama_server.py MODEL.gguf

Prints the base URL of its OpenAI-style interface as the first line. It ends with its standard
input, so that it never outlives the program that started it.
"""

import os
import signal
import sys

import xllamacpp

# Ctrl-C reaches the whole process group; the parent process decides when this server ends.
signal.signal(signal.SIGINT, signal.SIG_IGN)

parameters = xllamacpp.CommonParams()
parameters.model.path = sys.argv[1]
parameters.model_alias = ["smollm2"]
parameters.hostnames = ["127.0.0.1"]
parameters.port = 0
# One request at a time, so that a test can detect whether the previous request was aborted.
parameters.n_parallel = 1
parameters.n_ctx = 2048
# More threads than free cores would wait for each other, which is ten times slower.
parameters.cpuparams.n_threads = 1
parameters.cpuparams_batch.n_threads = 1
parameters.warmup = False
parameters.verbosity = 0

server = xllamacpp.Server(parameters)
print(f"{server.listening_address}/v1", flush=True)
sys.stdin.buffer.read()
# Ends the server's threads without finishing their work.
os._exit(0)
