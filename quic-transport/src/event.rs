//! What a connection tells its user.
