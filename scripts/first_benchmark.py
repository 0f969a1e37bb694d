"""Runs a first small benchmark through the API, as a user would, and prints what came of it.

Needs BENCHTRAIL_TOKEN. Creates the project `first-benchmark`, executes its workload on this machine, follows the jobs,
and writes the run's key into the file named by --done, so that the next `make run` does not repeat it.
"""

import argparse
import json
import os
import sys
import time
import urllib.error
import urllib.request

PROJECT = "first-benchmark"
MODEL = "google/gemma-3-270m"
VERSIONS = {"llama-cpp": "0.7.0", "refserver": "0.1.0"}
PATIENCE_S = 600


class Refused(Exception):
    def __init__(self, status: int, body: dict):
        self.status, self.code = status, body.get("code", "")
        parts = [body.get("message"), body.get("details"), body.get("hint")]
        super().__init__(" ".join(part for part in parts if part) or f"HTTP {status}")


class Api:
    def __init__(self, url: str, token: str):
        self.url, self.token = url.rstrip("/"), token

    def _send(self, method: str, path: str, body: object = None, headers: dict | None = None) -> object:
        request = urllib.request.Request(
            self.url + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"authorization": f"Bearer {self.token}", "content-type": "application/json", **(headers or {})},
        )
        # No proxy: it is on this machine.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=30) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            try:
                raise Refused(error.code, json.load(error)) from None
            except ValueError:
                raise Refused(error.code, {}) from None

    def command(self, name: str, arguments: dict) -> dict:
        return self._send("POST", f"/api/rpc/{name}", arguments)

    def rows(self, query: str, at_least: int = 0) -> list:
        headers = {"prefer": f"at-least={at_least}"} if at_least else {}
        return self._send("GET", f"/api/{query}", headers=headers)


def workload(framework: str) -> dict:
    # What the file that `scripts/setup` brings is in: a file's precision is the workload's to say.
    quantization = {"p_quantization": "q4_k_m"} if framework == "llama-cpp" else {}
    return {
        **quantization,
        "p_workload_code": f"gemma-3-270m-{framework}",
        "p_name": f"Gemma 3 270M on {framework}",
        "p_model_code": MODEL,
        "p_framework_code": framework,
        "p_framework_version": VERSIONS[framework],
        "p_tool_code": "metrumbench-llm",
        "p_scenarios": {
            "p_concurrency": [1, 4],
            "p_input_sequence_length": [128],
            "p_output_sequence_length": [64],
            "p_num_requests": 16,
            "p_streaming": True,
        },
    }


def wait_until_online(api: Api, hostname: str) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        servers = api.rows(f"v_servers?hostname=eq.{hostname}")
        if any(server.get("state") == "online" for server in servers):
            return
        time.sleep(0.3)
    raise SystemExit(f"    the agent on {hostname} did not come online within a minute; the page shows its state under Hardware")


def start(api: Api, framework: str, hostname: str) -> tuple[str, dict]:
    asked = workload(framework)
    try:
        api.command("create_project", {"p_project_code": PROJECT, "p_name": "First benchmark", "p_workloads": [asked]})
    except Refused as refused:
        if refused.status != 409:
            raise
        try:
            api.command("create_workload", {"p_project_code": PROJECT, "p_workload": asked})
        except Refused as again:
            if again.status != 409:
                raise
    # One that was interrupted goes on by itself: the log knows it.
    query = f"v_runs?project_code=eq.{PROJECT}&workload_code=eq.{asked['p_workload_code']}&order=run_number.desc&limit=1"
    for earlier in api.rows(query):
        if earlier["status"] in ("pending", "queued", "running"):
            return asked["p_workload_code"], earlier
    run = api.command(
        "start_run",
        {
            "p_project_code": PROJECT,
            "p_workload_code": asked["p_workload_code"],
            "p_config_code": "local-cpu",
            "p_hostname": hostname,
        },
    )
    return asked["p_workload_code"], run


def follow(api: Api, code: str, run: dict) -> list:
    query = f"v_jobs?project_code=eq.{PROJECT}&workload_code=eq.{code}&run_number=eq.{run['run_number']}&order=ordinal"
    shown: dict = {}
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        jobs = api.rows(query, run["position"])
        for job in jobs:
            # Every change of state, and every quarter of the requests.
            state, done, total = job["phase"] or job["status"], job.get("progress_done"), job.get("progress_total")
            quarter = done * 4 // total if state == "running" and done and total else 0
            if shown.get(job["scenario_code"]) != (state, quarter):
                shown[job["scenario_code"]] = (state, quarter)
                progress = f"  {done} of {total} requests" if quarter else ""
                print(f"    {job['scenario_code']:24} {state}{progress}", flush=True)
        if jobs and all(job["status"] in ("completed", "failed", "cancelled", "lost") for job in jobs):
            return jobs
        time.sleep(0.5)
    raise SystemExit("    the first benchmark takes longer than ten minutes; it goes on, and the page shows it")


def show(api: Api, code: str, run: dict, jobs: list) -> None:
    for job in jobs:
        if job["status"] != "completed":
            print(f"    {job['scenario_code']}: {job['status']}. {job.get('error_message') or ''}")
    query = f"v_benchmark_results?project_code=eq.{PROJECT}&workload_code=eq.{code}&run_number=eq.{run['run_number']}&order=concurrency"
    results = api.rows(query)
    if results:
        print(f"    {'concurrency':>12} {'tokens/s':>10} {'TTFT p50':>10} {'TTFT p99':>10} {'TPOT avg':>10}")
    for row in results:
        number = lambda name, unit: "-" if row.get(name) is None else f"{row[name]:.1f}{unit}"  # noqa: E731
        print(
            f"    {row['concurrency']:>12} {number('output_tokens_per_second', ''):>10} {number('ttft_p50_ms', ' ms'):>10}"
            f" {number('ttft_p99_ms', ' ms'):>10} {number('tpot_avg_ms', ' ms'):>10}"
            f"{'  simulated' if row.get('simulated') else ''}"
        )


def main() -> int:
    cli = argparse.ArgumentParser(description=__doc__)
    cli.add_argument("--url", required=True)
    cli.add_argument("--hostname", required=True)
    cli.add_argument("--framework", required=True, choices=VERSIONS)
    cli.add_argument("--done", required=True, help="the file that says it was done")
    args = cli.parse_args()
    api = Api(args.url, os.environ["BENCHTRAIL_TOKEN"])
    try:
        wait_until_online(api, args.hostname)
        code, run = start(api, args.framework, args.hostname)
        org = run["run"].split("/")[1]
        page = f"{args.url.rstrip('/')}/projects/{org}/{PROJECT}/{code}/{run['run_number']}"
        print(f"    watch it  {page}", flush=True)
        jobs = follow(api, code, run)
        show(api, code, run, jobs)
    except (Refused, OSError, KeyError) as error:
        print(f"    the first benchmark did not work: {error}. Try it from the page: {args.url}", flush=True)
        return 1
    if all(job["status"] == "completed" for job in jobs):
        with open(args.done, "w", encoding="utf-8") as done:
            done.write(run["run"] + "\n")
    print(f"    the first benchmark is done. Ctrl-C stops everything; the page: {args.url}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
