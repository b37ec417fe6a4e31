//! Work that may fail without taking the process with it.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Do work; if it panics, return what the panic says.
///
/// What the work was changing is half changed then: the caller must see that nobody uses it again.
pub fn unwound<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| text_of(&*panic))
}

fn text_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("of unknown cause").to_string()
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;
    use std::panic::panic_any;

    use super::*;

    #[test]
    fn a_panic_becomes_its_text() {
        assert_eq!(unwound(|| 7), Ok(7));
        assert_eq!(unwound(|| panic!("as it is")), Err::<(), _>("as it is".into()));
        assert_eq!(unwound(|| panic!("number {}", 8)), Err::<(), _>("number 8".into()));
        assert_eq!(unwound(|| panic_any(9)), Err::<(), _>("of unknown cause".into()));
    }

    #[test]
    fn so_do_overflows_and_places_outside() {
        let end = black_box(usize::MAX);
        let failed = unwound(|| end + 1);
        assert_eq!(failed, Err("attempt to add with overflow".into()));
        let failed = unwound(|| [1, 2][end]);
        assert!(failed.is_err_and(|text| text.starts_with("index out of bounds")));
    }
}
