//! A small HTTP/1.1 client made for measuring.
//!
//! One task drives one exchange: it writes the request, reads what arrives, notes the moment of each read before
//! looking at the bytes, and hands them on without copying. No task or channel lies between the socket and the
//! consumer, so a timestamp waits for nobody, and whether a connection died before or after the first byte of
//! an answer is known exactly.

pub mod arrival;
pub mod chunked;
pub mod connect;
pub mod exchange;
mod http2;
pub mod pool;
pub mod proxy;
pub mod request;
pub mod response;
pub mod simple;
mod tls;
