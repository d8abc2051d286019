//! Address validation tokens.
