//! The page in headless Chromium, on the real plant. Screenshots are kept under `docs/screens/`.

mod access;
mod audit;
mod catalogue;
mod crowd;
mod job_page;
mod long_table;
mod measured;
mod pages;
mod ranks;
mod recovery;
mod reporting;
mod user_path;
mod work;
