//! What arrived, and when to say so.
