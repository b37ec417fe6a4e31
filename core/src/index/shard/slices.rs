//! Time slices: a shard divides its documents by the time at which they were inserted.
//!
//! With a window, the space of a time slice is given back at once, when all its entries are older than
//! the window. An entry that is renewed in a later time slice moves there: its document gets another
//! number. An entry may be later than now by up to a window, so a time slice notes its latest entry's
//! time.

/// More give space back sooner, and move a document that is renewed all the time more often.
const SLICES_A_WINDOW: i64 = 8;
const STEPS_A_WINDOW: i64 = 64;
/// In place of a time that isn't known.
pub const NO_TIME: i64 = i64::MIN;

/// A time slice: its number, its first document, and what was now at its beginning, in ms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeSlice {
    pub number: u32,
    pub first: u64,
    /// None until there is a now.
    pub since: Option<i64>,
    /// No entry is later, in ms.
    pub latest: i64,
}

/// The time slices that are kept, oldest first; the last is the current one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimeSlices(Vec<TimeSlice>);

impl Default for TimeSlices {
    fn default() -> Self {
        Self(vec![TimeSlice { number: 0, first: 0, since: None, latest: NO_TIME }])
    }
}

impl TimeSlices {
    /// None unless there is one, and their numbers and first documents ascend.
    pub fn of(slices: Vec<TimeSlice>) -> Option<Self> {
        let follow = |pair: &[TimeSlice]| {
            pair[0].number.checked_add(1) == Some(pair[1].number) && pair[0].first < pair[1].first
        };
        (!slices.is_empty() && slices.windows(2).all(follow)).then_some(Self(slices))
    }

    pub fn kept(&self) -> &[TimeSlice] {
        &self.0
    }

    /// The time slice that new documents belong to.
    pub fn current(&self) -> TimeSlice {
        self.0[self.0.len() - 1]
    }

    /// The number of the first document that is kept.
    pub fn first(&self) -> u64 {
        self.0[0].first
    }

    /// The time slice of a document; of one that is not kept any more, the oldest.
    pub fn of_document(&self, number: u64) -> u32 {
        let place = self.0.partition_point(|slice| slice.first <= number);
        self.0[place.saturating_sub(1)].number
    }

    /// Whether the current time slice has lasted long enough.
    pub fn is_due(&self, now: Option<i64>, window: Option<i64>) -> bool {
        match (now, self.current().since, window) {
            (Some(now), Some(since), Some(window)) => {
                let least = window / SLICES_A_WINDOW + i64::from(window % SLICES_A_WINDOW > 0);
                now.saturating_sub(since) >= least
            }
            _ => false,
        }
    }

    /// Note what was inserted into the current time slice: what is now after it, and the latest time
    /// of an entry that was inserted or renewed (`NO_TIME`: there is none).
    ///
    /// Its latest time is rounded up, so that time slices seldom change.
    pub fn note(&mut self, now: Option<i64>, latest: i64, window: Option<i64>) {
        let place = self.0.len() - 1;
        let slice = &mut self.0[place];
        slice.since = slice.since.or(now);
        if let (Some(_), Some(window)) = (now, window)
            && latest != NO_TIME
        {
            let step = (window / STEPS_A_WINDOW).max(1);
            let up = match latest.rem_euclid(step) {
                0 => 0,
                over => step - over,
            };
            slice.latest = slice.latest.max(latest.saturating_add(up));
        }
    }

    /// Begin a time slice. An empty time slice begins anew.
    pub fn begin(&mut self, first: u64, now: Option<i64>) {
        let TimeSlice { number, first: before, .. } = self.current();
        let empty = before == first;
        let number = if empty { number } else { number + 1 };
        if empty {
            self.0.pop();
        }
        self.0.push(TimeSlice { number, first, since: now, latest: NO_TIME });
    }

    /// Drop the oldest time slices, as far as all their entries are too old; return how many.
    pub fn drop(&mut self, now: Option<i64>, window: Option<i64>) -> usize {
        let (Some(now), Some(window)) = (now, window) else { return 0 };
        let ended = &self.0[..self.0.len() - 1];
        let oldest = now.saturating_sub(window);
        let dead = ended.iter().take_while(|slice| slice.latest < oldest).count();
        self.0.drain(..dead);
        dead
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Option<i64> = Some(800);

    #[test]
    fn eras_follow_the_time_and_are_dropped_a_window_later() {
        let mut slices = TimeSlices::default();
        slices.note(None, NO_TIME, WINDOW);
        assert!(!slices.is_due(Some(10_000), WINDOW));
        slices.note(Some(1000), 1005, WINDOW);
        assert!(!slices.is_due(Some(1099), WINDOW));
        assert!(slices.is_due(Some(1100), WINDOW));
        slices.begin(5, Some(1100));
        slices.begin(5, Some(1150));
        assert_eq!(slices.kept().len(), 2);
        assert_eq!(slices.current().since, Some(1150));
        let documents = [0, 4, 5, 9].map(|number| slices.of_document(number));
        assert_eq!(documents, [0, 0, 1, 1]);
        assert_eq!(slices.drop(Some(1808), WINDOW), 0); // 1005 is rounded up to 1008.
        assert_eq!(slices.drop(Some(1809), WINDOW), 1);
        assert_eq!((slices.first(), slices.of_document(2)), (5, 1));
        assert_eq!(slices.drop(Some(i64::MAX), WINDOW), 0);
    }

    #[test]
    fn without_a_window_there_is_one_era() {
        let mut slices = TimeSlices::default();
        slices.note(Some(5), i64::MAX, None);
        assert!(!slices.is_due(Some(i64::MAX), None));
        assert_eq!(slices.drop(Some(i64::MAX), None), 0);
    }

    #[test]
    fn eras_that_do_not_follow_are_refused() {
        let slice = |number, first| TimeSlice { number, first, since: None, latest: 0 };
        assert!(TimeSlices::of(vec![]).is_none());
        assert!(TimeSlices::of(vec![slice(1, 5), slice(2, 5)]).is_none());
        assert!(TimeSlices::of(vec![slice(1, 5), slice(3, 6)]).is_none());
        assert!(TimeSlices::of(vec![slice(1, 5), slice(2, 6)]).is_some());
    }
}
