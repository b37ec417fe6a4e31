//! Memory in huge pages, where the system has them: look-ups go to random places, and each would
//! miss the processor's small table of pages as well as its caches.

/// A huge page, and the least that is worth one.
const PAGE_BYTES: usize = 2 << 20;

/// Return zeros; their memory is not taken before it is used.
pub fn zeros<T: Zero>(count: usize) -> Vec<T> {
    let made = vec![T::ZERO; count];
    #[cfg(target_os = "linux")]
    advise(made.as_ptr().addr(), size_of::<T>() * count);
    made
}

/// Whether the system has memory for so many values. None of it is taken.
pub fn fits<T>(count: usize) -> bool {
    Vec::<T>::new().try_reserve_exact(count).is_ok()
}

/// What all bits zero is a value of.
pub trait Zero: Copy {
    const ZERO: Self;
}

impl Zero for u64 {
    const ZERO: Self = 0;
}

impl Zero for [u32; 3] {
    const ZERO: Self = [0; 3];
}

#[cfg(target_os = "linux")]
fn advise(start: usize, bytes: usize) {
    let (first, end) =
        (start.next_multiple_of(PAGE_BYTES), (start + bytes) / PAGE_BYTES * PAGE_BYTES);
    if first < end {
        // SAFETY: the range is part of an allocation that was made just now and that is no stack.
        // The advice changes how it is backed, never what it holds. If the system refuses, nothing
        // has changed, and look-ups are a bit slower.
        unsafe {
            libc::madvise(std::ptr::without_provenance_mut(first), end - first, libc::MADV_HUGEPAGE)
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_are_zero_and_can_be_changed() {
        // Miri has no advice to ask for, and takes a thousand times as long.
        let counts = if cfg!(miri) { &[0, 1][..] } else { &[0, 1, PAGE_BYTES / 8 - 1, PAGE_BYTES] };
        for &count in counts {
            let mut made = zeros::<u64>(count);
            assert!(made.len() == count && made.iter().all(|&word| word == 0));
            assert!(fits::<u64>(count) && !fits::<u64>(usize::MAX / 8));
            made.fill(u64::MAX);
            assert!(made.iter().all(|&word| word == u64::MAX));
        }
    }
}
