//! Measures how fast a language model endpoint generates text. See `--help`.

fn main() {
    // Fails only when a provider is installed already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    std::process::exit(bench::tools::llm::main(std::env::args_os()));
}
