//! The load generators of Benchtrail: one work loop, one HTTP client made for measuring, one summary line.
//!
//! A run goes [`tools`] → [`setup`] → [`session`] → [`run`], which sends what a [`workload::Workload`] prepares through
//! [`http::pool`], reads answers with [`sse`] and [`answer`], and condenses [`record`]s in [`collect`].

pub mod accuracy;
pub mod answer;
pub mod balance;
pub mod body;
pub mod certify;
pub mod cli;
pub mod collect;
pub mod config;
pub mod endpoints;
pub mod extra;
pub mod failure;
pub mod finish;
pub mod host;
pub mod http;
pub mod images;
pub mod jsonl;
pub mod links;
pub mod live;
pub mod modality;
pub mod openai;
pub mod pacing;
pub mod perform;
pub mod preflight;
pub mod progress;
pub mod prompts;
pub mod record;
pub mod refserver;
pub mod report;
pub mod request_log;
pub mod run;
pub mod session;
pub mod setup;
pub mod signals;
pub mod sse;
pub mod stats;
pub mod template;
pub mod tools;
pub mod wake;
pub mod workload;
