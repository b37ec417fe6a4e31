//! Functions that are compiled for each kind of vectors that a processor may have.
//!
//! They are plain loops without branches, which compilers turn into vector instructions.

/// Compile a function for the widest vectors that the processor may have, and pick among these.
macro_rules! vectorised {
    ($(#[$doc:meta])* $visible:vis fn $name:ident($($given:ident: $kind:ty),* $(,)?) $body:block) => {
        $(#[$doc])*
        $visible fn $name($($given: $kind),*) {
            #[inline(always)]
            fn plain($($given: $kind),*) $body

            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw")]
                fn avx512($($given: $kind),*) { plain($($given),*) }
                #[target_feature(enable = "avx2")]
                fn avx2($($given: $kind),*) { plain($($given),*) }

                let vectors = $crate::vectors::vectors();
                if vectors == $crate::vectors::Vectors::Avx512 {
                    // SAFETY: `vectors` has found the features.
                    return unsafe { avx512($($given),*) };
                }
                if vectors == $crate::vectors::Vectors::Avx2 {
                    // SAFETY: `vectors` has found the feature.
                    return unsafe { avx2($($given),*) };
                }
            }
            plain($($given),*);
        }
    };
}
pub(crate) use vectorised;

/// The vectors that functions are compiled for.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vectors {
    Plain,
    Avx2,
    Avx512,
}

/// Return the widest vectors that the processor has, or the ones that a test wants.
#[cfg(target_arch = "x86_64")]
#[inline]
pub fn vectors() -> Vectors {
    #[cfg(test)]
    if let Some(wanted) = tests::WANTED.get() {
        return wanted;
    }
    let wide = is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512bw");
    if wide {
        Vectors::Avx512
    } else if is_x86_feature_detected!("avx2") {
        Vectors::Avx2
    } else {
        Vectors::Plain
    }
}

#[cfg(test)]
pub mod tests {
    #[cfg(target_arch = "x86_64")]
    use super::{Vectors, vectors};

    #[cfg(target_arch = "x86_64")]
    thread_local! {
        pub static WANTED: std::cell::Cell<Option<Vectors>> = const { std::cell::Cell::new(None) };
    }

    /// Return what `work` returns with each kind of vectors that the processor has.
    pub fn with_each_vectors<T>(work: impl Fn() -> T) -> Vec<T> {
        #[cfg(target_arch = "x86_64")]
        {
            let widest = vectors() as u8;
            let kinds = [Vectors::Plain, Vectors::Avx2, Vectors::Avx512];
            let results = kinds.into_iter().filter(|&one| one as u8 <= widest).map(|one| {
                WANTED.set(Some(one));
                work()
            });
            let results = results.collect();
            WANTED.set(None);
            results
        }
        #[cfg(not(target_arch = "x86_64"))]
        vec![work()]
    }
}
