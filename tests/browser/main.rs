//! The page in headless Chromium, on the real plant. Screenshots are kept under `docs/screens/`.

mod access;
mod crowd;
mod job_page;
mod measured;
mod pages;
mod recovery;
mod reporting;
mod user_path;
mod work;
