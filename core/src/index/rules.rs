//! The rules that decide which entries a bucket keeps, and which candidates match.

/// What a document is whose id the index already has; see `ids`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SameId {
    /// A document like any other.
    Duplicate,
    /// The earlier one is forgotten just before.
    Replace,
    /// It was sent again: it has the matches of the first one, and changes nothing.
    Ignore,
}

/// The settings of an index. An index is valid only for the rules that it was made with.
#[derive(Debug, Clone, PartialEq)]
pub struct Rules {
    /// Least estimated similarity at which a candidate is a match.
    pub threshold: f64,
    /// Least estimated similarity to an entry at which that stands for a document.
    pub absorb: f64,
    /// Most entries in a bucket; later ones go to overflow buckets.
    pub capacity: usize,
    /// Most matches that are reported for a document.
    pub max_matches: usize,
    /// How long an entry lives after its time, in ms; none: for ever.
    pub window: Option<i64>,
    pub same_id: SameId,
    /// Least estimated share of a document in a candidate at which that is a match, too.
    pub containment: Option<f64>,
    /// Largest standard error of an estimated share that counts.
    pub containment_error: f64,
    /// The keys of each column below `bands` follow from `rows` slots of the sketch.
    pub bands: usize,
    /// 0: keys don't follow from sketches. Then records don't say which buckets were new.
    pub rows: usize,
    /// How many entries make a bucket hot; a full one always is.
    pub crowded: usize,
    /// Now is the `now_rank`-th latest of the last `now_of` times, once there are `now_least`.
    pub now_rank: usize,
    pub now_of: usize,
    pub now_least: usize,
}

/// The similarity of two texts of which each has eight ninths of the other.
const MOSTLY: f64 = 0.8;
/// A mark of the clock has a bit for each time before the first now.
const MOST_MARKED: usize = 63;

impl Rules {
    /// Return what is wrong with the rules, if anything is.
    pub fn check(&self) -> Result<(), String> {
        let Self { now_rank, now_of, now_least, .. } = *self;
        if !(1 <= now_rank && now_rank <= now_least && now_least <= now_of.min(MOST_MARKED)) {
            return Err(format!(
                "got now_rank {now_rank}, now_least {now_least}, now_of {now_of}: \
                 takes 1 <= now_rank <= now_least <= now_of, 63"
            ));
        }
        if self.capacity == 0 || self.crowded == 0 {
            return Err("capacity, crowded: take integers of at least 1".into());
        }
        if self.window.is_some_and(|window| window < 0) {
            return Err("window: takes at least 0 ms".into());
        }
        Ok(())
    }

    /// The least estimated similarity at which an entry of a hot bucket stands for a document.
    ///
    /// Such an entry matches, and most of its text is that of the document. With a containment,
    /// only what is all but identical stands, because a document may match by its share alone.
    pub fn absorbs_similar(&self) -> f64 {
        match self.containment {
            Some(_) => self.absorb,
            None => self.absorb.min(self.threshold.max(MOSTLY)),
        }
    }

    /// How many first entries of a hot bucket a document is compared with at first.
    ///
    /// With a containment, it is compared with all of them: no bucket counts as hot.
    pub fn leaders(&self) -> usize {
        match self.containment {
            Some(_) => self.capacity.saturating_add(1),
            None => self.crowded.min(self.capacity),
        }
    }
}
