//! `benchtrail`: the control plane's program. Everything is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    // Every TLS connection uses ring; the choice has to be made once.
    let _ = rustls::crypto::ring::default_provider().install_default();
    match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime.block_on(server::cli::main()),
        Err(error) => {
            eprintln!("benchtrail: cannot start threads: {error}");
            ExitCode::FAILURE
        }
    }
}
