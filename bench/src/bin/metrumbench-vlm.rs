//! Measures how fast an endpoint answers questions about images. See `--help`.

fn main() {
    // Fails only when a provider is installed already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    std::process::exit(bench::tools::vlm::main(std::env::args_os()));
}
