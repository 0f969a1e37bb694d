//! The Benchtrail control plane.

pub mod api;
pub mod app;
pub mod auth;
pub mod blobs;
pub mod cli;
pub mod clock;
pub mod commands;
pub mod config;
pub mod domain;
pub mod ingest;
pub mod live;
pub mod log;
pub mod notify;
pub mod outbound;
pub mod plant;
pub mod projections;
pub mod quality;
pub mod queries;
pub mod readiness;
pub mod relay;
pub mod resolve;
pub mod secrets;
pub mod seed;
pub mod state;
