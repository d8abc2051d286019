//! Counts what a piece of code allocates, so that a test can claim that it allocates nothing.
//!
//! A test binary installs the allocator itself:
//!
//! ```
//! #[global_allocator]
//! static ALLOCATOR: test_fixture::CountingAllocator = test_fixture::CountingAllocator;
//!
//! let counted = test_fixture::allocations(|| drop(vec![0_u8; 100]));
//! assert_eq!((counted.count, counted.bytes), (1, 100));
//! ```

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::hint::black_box;

/// The system's allocator, with a count for each thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct CountingAllocator;

/// What was allocated. Growing a block counts as an allocation of its new size; freeing counts nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allocations {
    /// Calls of the allocator.
    pub count: u64,
    /// Bytes asked for.
    pub bytes: u64,
}

thread_local! {
    static HELD: Cell<i64> = const { Cell::new(0) };
    static COUNTED: Cell<Allocations> = const { Cell::new(Allocations { count: 0, bytes: 0 }) };
}

/// Counts the allocations of this thread while `work` runs.
///
/// # Panics
///
/// If [`CountingAllocator`] is not this binary's global allocator.
pub fn allocations(work: impl FnOnce()) -> Allocations {
    let before = COUNTED.get();
    drop(black_box(Box::new(0_u8)));
    let start = COUNTED.get();
    assert_ne!(before, start, "the counting allocator is not installed");
    work();
    let end = COUNTED.get();
    Allocations {
        count: end.count - start.count,
        bytes: end.bytes - start.bytes,
    }
}

/// Bytes that this thread holds: allocated and not freed since it began. Differences are what matters.
#[must_use]
pub fn held_bytes() -> i64 {
    HELD.get()
}

/// Books that so many bytes are held instead of so many.
fn hold(bytes: usize, instead_of: usize) {
    let add = |held: &Cell<i64>| {
        let signed = |bytes| i64::try_from(bytes).unwrap_or(i64::MAX);
        held.set(held.get() + signed(bytes) - signed(instead_of));
    };
    HELD.try_with(add).unwrap_or_default();
}

fn count(bytes: usize) {
    let add = |counted: &Cell<Allocations>| {
        let Allocations {
            count,
            bytes: total,
        } = counted.get();
        counted.set(Allocations {
            count: count + 1,
            bytes: total + u64::try_from(bytes).unwrap_or(u64::MAX),
        });
    };
    // A thread that is ending has no counter any more.
    COUNTED.try_with(add).unwrap_or_default();
}

#[expect(unsafe_code, reason = "the trait of an allocator is unsafe")]
// SAFETY: every call goes to the system's allocator unchanged; counting neither allocates nor panics.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        hold(layout.size(), 0);
        // SAFETY: the caller keeps the contract of `alloc`, which is that of the system's allocator.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        hold(layout.size(), 0);
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size);
        hold(size, layout.size());
        // SAFETY: the block came from the system's allocator, with this layout.
        unsafe { System.realloc(block, layout, size) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        hold(0, layout.size());
        // SAFETY: the block came from the system's allocator, with this layout.
        unsafe { System.dealloc(block, layout) }
    }
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;

    use super::{CountingAllocator, allocations, held_bytes};

    #[global_allocator]
    static ALLOCATOR: CountingAllocator = CountingAllocator;

    #[test]
    fn allocations_of_this_thread_are_counted() {
        let mut kept = Vec::new();
        let counted = allocations(|| {
            kept.reserve_exact(100);
            kept.push(1_u8);
            kept.reserve_exact(1000);
        });
        black_box(&kept);
        assert!(counted.count >= 2 && counted.bytes >= 1101);
    }

    #[test]
    fn what_is_freed_is_not_held() {
        let start = held_bytes();
        let mut kept = vec![1_u8; 1000];
        assert_eq!(held_bytes() - start, 1000);
        kept.reserve_exact(1000);
        assert_eq!(held_bytes() - start, 2000);
        drop(black_box(kept));
        assert_eq!(held_bytes(), start);
    }

    #[test]
    fn nothing_is_counted_where_nothing_is_allocated() {
        let mut kept = vec![1_u8; 1000];
        let counted = allocations(|| {
            kept.clear();
            kept.resize(1000, 2);
            black_box(&kept);
        });
        assert_eq!((counted.count, counted.bytes), (0, 0));
    }
}
