//! Why a connection ends, and what the API refuses.
