//! Criterion benches of the stack.
