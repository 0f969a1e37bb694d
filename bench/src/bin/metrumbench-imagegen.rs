//! Measures how fast an endpoint generates images. See `--help`.

fn main() {
    // Fails only when a provider is installed already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    std::process::exit(bench::tools::imagegen::main(std::env::args_os()));
}
