//! What a client has exported of the servers that it remembers.

use crate::limits::REMEMBERED_SERVERS;
use crate::tls::SessionStore;

/// Imports the bytes, exports what that gave, and imports that; then cuts it anywhere.
pub fn session_store(bytes: &[u8]) {
    let store = SessionStore::new();
    if !store.import(bytes) {
        assert!(store.is_empty(), "nothing is added by half");
        return;
    }
    assert!(store.len() <= REMEMBERED_SERVERS);
    let exported = store.export();
    let again = SessionStore::new();
    assert!(again.import(&exported));
    assert_eq!(again.export(), exported);
    // The same once more changes nothing but how many tokens there are, up to their bound.
    assert!(store.import(&exported));
    assert_eq!(store.len(), again.len());
    let cut = bytes.len() % (exported.len() + 1);
    let _is_whole = SessionStore::new().import(&exported[..cut]);
}
