//! The vocabulary of Benchtrail: events, keys, subjects, the metric catalogue and the API's types.
//!
//! Pure: no I/O, no clock; native and wasm. Everything that happens is an event ([`catalog::Event`]) in a stream
//! named by a natural key ([`keys::StreamKey`]); what an agent may claim is a report ([`report::ReportBody`]).
#![warn(missing_docs)]

pub mod access;
pub mod api;
pub mod api_catalogue;
mod api_tools;
pub mod canonical;
pub mod catalog;
pub mod catalogue;
pub mod engine_args;
pub mod envelope;
pub mod external_columns;
pub mod external_figures;
pub mod first_page;
pub mod foreign;
pub mod hexadecimal;
pub mod job;
pub mod keys;
pub mod matrix;
pub mod merkle;
pub mod metrics;
mod metrics_external;
mod metrics_stems;
mod metrics_table;
pub mod networks;
pub mod parallelism;
pub mod project;
pub mod prompt_source;
pub mod proof_file;
pub mod proof_parts;
pub mod quality;
pub mod quota;
pub mod ranking;
pub mod report;
pub mod run;
pub mod saved_view;
pub mod server_host;
pub mod subjects;
pub mod summary;
pub mod summary_columns;
pub mod summary_modalities;
pub mod summary_requests;
pub mod system;
pub mod telemetry;
pub mod timestamp;
pub mod tool_args;
pub mod tool_output;
pub mod tools;
pub mod upcast;
pub mod workload;

pub use catalog::Event;
pub use keys::StreamKey;
pub use timestamp::Timestamp;
