//! The wasm entry: takes the placeholder away and mounts the page.

fn main() {
    // Says on the console what went wrong and where: a browser alone says "unreachable".
    console_error_panic_hook::set_once();
    app::mount();
}
