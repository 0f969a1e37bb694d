//! The Benchtrail control plane.
