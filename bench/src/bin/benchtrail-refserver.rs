//! An OpenAI-compatible server that simulates a model with exact timing. See `--help`.

fn main() {
    std::process::exit(bench::refserver::cli::main(std::env::args_os()));
}
