//! How a component puts a frame in a packet and learns its fate.
