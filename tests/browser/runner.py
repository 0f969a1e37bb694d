#!/usr/bin/env python3
"""Stands where InferenceX's `benchmark_serving.py` does, for tests: takes its arguments, sends real requests one after
another and writes a result of its form. It is not InferenceX, and measures nothing that matters."""

import json
import sys
import time
import urllib.request
from pathlib import Path

if "--version" in sys.argv:
    print("a runner for tests")
    sys.exit()

args = dict((a[2:].split("=", 1) + ["true"])[:2] for a in sys.argv[1:])
count, lengths = int(args["num-prompts"]), [int(args["random-input-len"]), int(args["random-output-len"])]
body = {
    "model": args["model"],
    "messages": [{"role": "user", "content": "word " * lengths[0]}],
    "max_tokens": lengths[1],
}
request = urllib.request.Request(
    args["base-url"] + args["endpoint"], json.dumps(body).encode(), {"content-type": "application/json"}
)
taken, used = [], {"prompt_tokens": 0, "completion_tokens": 0}
start = time.perf_counter()
for _ in range(count):
    began = time.perf_counter()
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request) as answer:
        usage = json.load(answer)["usage"]
    taken.append((time.perf_counter() - began) * 1000)
    for key in used:
        used[key] += usage[key]
duration = time.perf_counter() - start
result = {
    "model_id": args["model"],
    "num_prompts": count,
    "max_concurrency": int(args["max-concurrency"]),
    "duration": duration,
    "completed": count,
    "total_input_tokens": used["prompt_tokens"],
    "total_output_tokens": used["completion_tokens"],
    "request_throughput": count / duration,
    "output_throughput": used["completion_tokens"] / duration,
    "total_token_throughput": sum(used.values()) / duration,
    "mean_e2el_ms": sum(taken) / count,
    "median_e2el_ms": sorted(taken)[count // 2],
}
(Path(args["result-dir"]) / args["result-filename"]).write_text(json.dumps(result))
