//! The page in headless Chromium, on the real plant. Screenshots are kept under `docs/screens/`.

mod access;
mod audit;
mod catalogue;
mod crowd;
mod imports;
mod job_page;
mod keyboard;
mod kinds;
mod long_table;
mod measured;
mod pages;
mod people;
mod ranks;
mod recovery;
mod reporting;
mod requests;
mod team_sets;
mod user_path;
mod work;
