//! Content-addressed storage of what is too large for an event.
