//! The vocabulary of Benchtrail.
