"""llama.cpp's HTTP server (through the package xllamacpp) under the flags of llama.cpp's own `llama-server`.

Serves /v1/chat/completions, /v1/completions, /v1/models, /health and /metrics. Says on standard output when it
listens, logs requests on standard error, stops with status 0 on SIGINT or SIGTERM.
"""

import argparse
import os
import signal
import sys
import threading

CACHE_TYPES = ("f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "iq4_nl", "q5_0", "q5_1")
STOP = {signal.SIGINT, signal.SIGTERM}


def exit_on_signal() -> None:
    received = signal.sigwait(STOP)
    print(f"llama-server: {signal.Signals(received).name}, stopping", file=sys.stderr, flush=True)
    # llama.cpp's own tear-down can take seconds, and nothing is left to save.
    os._exit(0)


def arguments() -> argparse.Namespace:
    cache = os.environ.get("BENCHTRAIL_CACHE") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "benchtrail"
    )
    cli = argparse.ArgumentParser(prog="llama-server", description=__doc__)
    cli.add_argument("-m", "--model", default=os.path.join(cache, "models", "gemma-3-270m-q4_k_m.gguf"), help="a .gguf file")
    cli.add_argument("-a", "--alias", help="the model name to serve (default: the file's name)")
    cli.add_argument("-c", "--ctx-size", type=int, default=0, help="context tokens, shared among the slots (0: the model's)")
    cli.add_argument("-np", "--parallel", type=int, default=4, help="slots: requests served at once")
    cli.add_argument("-t", "--threads", type=int, default=-1, help="threads of a generation (-1: all cores but one)")
    cli.add_argument("-b", "--batch-size", type=int)
    cli.add_argument("-ub", "--ubatch-size", type=int)
    cli.add_argument("-ngl", "--gpu-layers", "--n-gpu-layers", default="auto", help="layers kept on a GPU (a number, auto or all)")
    cli.add_argument("-fa", "--flash-attn", choices=("on", "off", "auto"), default="auto")
    cli.add_argument("-ctk", "--cache-type-k", choices=CACHE_TYPES, default="f16")
    cli.add_argument("-ctv", "--cache-type-v", choices=CACHE_TYPES, default="f16")
    cli.add_argument("--fit", choices=("on", "off"), default="on", help="adjust unset arguments to the memory")
    cli.add_argument("--host", default="127.0.0.1")
    cli.add_argument("--port", type=int, default=8080)
    cli.add_argument("--api-key", help="the key that requests must carry (or the environment variable LLAMA_API_KEY)")
    cli.add_argument("--metrics", action="store_true", help="serve /metrics")
    cli.add_argument("--seed", type=int)
    cli.add_argument("--version", action="store_true")
    return cli.parse_args()


def main() -> int:
    args = arguments()

    import xllamacpp

    if args.version:
        from importlib.metadata import version

        print(f"llama-server (xllamacpp {version('xllamacpp')})")
        return 0
    if not os.path.isfile(args.model):
        print(f"llama-server: no such model file: {args.model}", file=sys.stderr)
        return 1

    params = xllamacpp.CommonParams()
    params.model.path = args.model
    params.model_alias = {args.alias or os.path.basename(args.model)}
    params.hostnames = [args.host]
    params.port = args.port
    params.n_ctx = args.ctx_size
    params.n_parallel = args.parallel
    # llama.cpp's threads spin while they wait for each other: with as many as cores, whatever else the machine does (the
    # load generator, for one) makes every token wait for a whole time slice.
    params.cpuparams.n_threads = args.threads if args.threads > 0 else max(1, len(os.sched_getaffinity(0)) - 1)
    params.flash_attn_type = {"auto": -1, "off": 0, "on": 1}[args.flash_attn]
    params.cache_type_k = getattr(xllamacpp.ggml_type, f"GGML_TYPE_{args.cache_type_k.upper()}")
    params.cache_type_v = getattr(xllamacpp.ggml_type, f"GGML_TYPE_{args.cache_type_v.upper()}")
    params.fit_params = args.fit == "on"
    params.endpoint_metrics = args.metrics
    params.ui = False
    if args.batch_size:
        params.n_batch = args.batch_size
    if args.ubatch_size:
        params.n_ubatch = args.ubatch_size
    if args.gpu_layers not in ("auto", "all"):
        params.n_gpu_layers = int(args.gpu_layers)
    if args.seed is not None:
        params.sampling.seed = args.seed
    key = args.api_key or os.environ.get("LLAMA_API_KEY")
    if key:
        params.api_keys = [key]

    # A thread waits for the signals, so that they also stop a server that is still loading its model.
    signal.pthread_sigmask(signal.SIG_BLOCK, STOP)
    waiter = threading.Thread(target=exit_on_signal)
    waiter.start()
    try:
        server = xllamacpp.Server(params)
    except Exception as error:
        print(f"llama-server: the server did not start: {error}", file=sys.stderr, flush=True)
        os._exit(1)
    print(f"llama-server: listening on {server.listening_address}", flush=True)
    waiter.join()
    return 0


if __name__ == "__main__":
    sys.exit(main())
