//! Settings, validated once.
