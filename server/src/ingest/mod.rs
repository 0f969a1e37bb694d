//! The one door for agents: what they claim is judged here, and only what is accepted becomes events.

pub mod http;
mod rejections;

pub use rejections::Rejections;
