//! Simulator, scripted peer, certificates and checkers for the tests of the stack.
