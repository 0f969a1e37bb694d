//! The wasm entry: takes the placeholder away and mounts the page.

fn main() {
    app::mount();
}
