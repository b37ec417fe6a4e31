//! The index's time: as of when a document counts, and since when entries are too old.
//!
//! Now is the 16th latest of the last 64 documents' times, in their order, and never goes back.
//! Until 32 have come there is no now, and nothing expires; those documents count as of the first
//! now. A document counts as of now, or at its own time if that is later by at most one window. One
//! without a time counts as of now, too, and has no vote. An entry lives while its time is at most
//! a window before now. The numbers are `Rules::now_rank`, `now_of` and `now_least`.
//!
//! So no single date decides anything, copies of documents that are all old meet, and whatever
//! follows is a function of the documents in their order, wherever batches are cut.
//!
//! Until there is a now, nobody knows as of when a document counts, and an entry may stand for
//! several of them. So an entry has a *mark* meanwhile: which of the first times are those of its
//! documents, as bits. It stays in storage, and is read as a time as soon as there is a now; see
//! `Clock::settled`.

use super::bytes::Cursor;
use super::reader::Damaged;
use super::rules::Rules;

/// The time of a document that has none. It is also the mark of an entry of such documents.
pub const NO_TIME: i64 = i64::MIN;
/// Marks are below, and times aren't.
const MARKS_END: i64 = NO_TIME + (1 << 62);

/// Whether a document may have this time. Others would be read as marks.
pub fn is_time(time: i64) -> bool {
    time >= MARKS_END || time == NO_TIME
}

/// Now went forward by more than a window at one document, in ms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Leap {
    pub before: i64,
    pub after: i64,
}

/// What the documents so far say about the time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Clock {
    /// In ms; none: there is none yet.
    pub now: Option<i64>,
    /// The times of the last documents that have one: one fewer than have a vote.
    pub recent: Vec<i64>,
    /// The first now, and as of when each of the documents counts that had a vote before it; empty
    /// until there is a now.
    pub opening: Vec<i64>,
}

impl Clock {
    /// The time of an entry that stands for two documents.
    pub fn later(&self, one: i64, other: i64) -> i64 {
        if self.now.is_none() { one | other } else { one.max(other) }
    }

    /// The time of a stored entry. Until there is a now, marks stay marks.
    pub fn settled(&self, time: i64) -> i64 {
        let Some((&first, others)) = self.opening.split_first() else { return time };
        if time >= MARKS_END {
            return time;
        }
        let bits = time.wrapping_sub(NO_TIME);
        let marked = others.iter().take(62).enumerate().filter(|(place, _)| bits >> place & 1 == 1);
        marked.fold(first, |latest, (_, &time)| latest.max(time))
    }

    /// The least time of an entry if a document with a time, or `NO_TIME`, came next.
    pub fn oldest_alone(&self, time: i64, rules: &Rules) -> i64 {
        let (Some(now), Some(window)) = (self.now, rules.window) else { return NO_TIME };
        let mut votes = self.recent.clone();
        let voted = if time == NO_TIME {
            now
        } else {
            votes.push(time);
            ranked(&votes, rules).max(now)
        };
        voted.saturating_sub(window)
    }

    /// The bytes: now, how many times `opening` has, these, and `recent`.
    pub fn packed(&self) -> Vec<u8> {
        let mut packed = self.now.unwrap_or(NO_TIME).to_le_bytes().to_vec();
        packed.push(u8::try_from(self.opening.len()).expect("at most 63 documents open a clock"));
        for time in self.opening.iter().chain(&self.recent) {
            packed.extend_from_slice(&time.to_le_bytes());
        }
        packed
    }

    /// The clock of these bytes.
    pub fn unpacked(packed: &[u8]) -> Result<Self, Damaged> {
        let mut left = Cursor(packed);
        let mut read = || {
            let (now, count) = (left.i64()?, usize::from(left.u8()?));
            let mut times = Vec::with_capacity(packed.len() / size_of::<i64>());
            while !left.is_empty() {
                times.push(left.i64()?);
            }
            Some((now, count, times))
        };
        let Some((now, count, mut opening)) = read() else {
            return Err(Damaged(format!("{} bytes are not a clock", packed.len())));
        };
        if count > opening.len() || (now == NO_TIME) == (count > 0) {
            let times = opening.len();
            return Err(Damaged(format!("a clock can't have {count} of {times} times")));
        }
        let recent = opening.split_off(count);
        Ok(Self { now: (now != NO_TIME).then_some(now), recent, opening })
    }
}

/// The now that the last of these votes give, or the least number if fewer than a rank have come.
fn ranked(votes: &[i64], rules: &Rules) -> i64 {
    let last = &votes[votes.len().saturating_sub(rules.now_of)..];
    if last.len() < rules.now_rank {
        return NO_TIME;
    }
    if last.is_sorted() {
        return last[last.len() - rules.now_rank];
    }
    let mut last = last.to_vec();
    let place = last.len() - rules.now_rank;
    *last.select_nth_unstable(place).1
}

/// The times of n documents.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dated {
    /// As of when each counts, in ms; marks if there is no now after all of them.
    pub times: Vec<i64>,
    /// The least time of an entry when each comes; none: any.
    pub oldest: Option<Vec<i64>>,
    /// The clock after them.
    pub clock: Clock,
    /// The latest of `times`, and of those that are known only now; `NO_TIME` if none is.
    pub latest: i64,
    /// How many came more than a window older than now.
    pub older: u64,
    /// The last one, if there is any.
    pub leap: Option<Leap>,
}

impl Dated {
    /// Return as of when documents count; `times` are their own, in ms, or `NO_TIME`.
    pub fn of(clock: &Clock, times: &[i64], rules: &Rules) -> Self {
        if times.is_empty() {
            return Self { clock: clock.clone(), latest: NO_TIME, ..Self::default() };
        }
        let mut votes = clock.recent.clone();
        let before = votes.len();
        let mut now = clock.now.unwrap_or(NO_TIME);
        let mut nows = Vec::with_capacity(times.len());
        for &time in times {
            if time != NO_TIME {
                votes.push(time);
                // What isn't later than now doesn't move it on.
                if time > now && votes.len() >= rules.now_least {
                    now = now.max(ranked(&votes, rules));
                }
            }
            nows.push(now);
        }
        let recent = votes[votes.len().saturating_sub(rules.now_of - 1)..].to_vec();
        if now == NO_TIME {
            let oldest = rules.window.map(|_| nows);
            let clock = Clock { now: None, recent, opening: Vec::new() };
            let times = marks(times, before);
            return Self { times, oldest, clock, latest: NO_TIME, older: 0, leap: None };
        }
        let without = nows.iter().take_while(|&&now| now == NO_TIME).count();
        let first = nows[without];
        let opening = if clock.now.is_some() {
            clock.opening.clone()
        } else {
            let early = &votes[..votes.len().min(rules.now_least - 1)];
            let counting = early.iter().map(|&time| counting(time, first, rules));
            std::iter::once(first).chain(counting).collect()
        };
        let counted: Vec<i64> = times
            .iter()
            .zip(&nows)
            .map(|(&time, &now)| counting(time, now.max(first), rules))
            .collect();
        let news = if clock.now.is_none() { &opening[..] } else { &[] };
        let latest = counted.iter().chain(news).copied().max().unwrap_or(NO_TIME);
        let mut made = Self {
            times: counted,
            oldest: None,
            clock: Clock { now: Some(now), recent, opening },
            latest,
            older: 0,
            leap: None,
        };
        if let Some(window) = rules.window {
            made.leap = leap(clock.now.unwrap_or(first), &nows[without..], window);
            let oldest = nows
                .into_iter()
                .map(|now| if now == NO_TIME { NO_TIME } else { now.saturating_sub(window) });
            let oldest: Vec<i64> = oldest.collect();
            let old = |&(&time, &least): &(&i64, &i64)| time < least && time != NO_TIME;
            made.older = times.iter().zip(&oldest).filter(old).count() as u64;
            made.oldest = Some(oldest);
        }
        made
    }
}

/// The marks of documents before the first now; `before` is how many times came earlier.
fn marks(times: &[i64], before: usize) -> Vec<i64> {
    let mut place = before;
    let mut mark = |&time: &i64| {
        if time == NO_TIME {
            return NO_TIME;
        }
        place += 1;
        NO_TIME | u32::try_from(place - 1).ok().and_then(|bit| 1_i64.checked_shl(bit)).unwrap_or(0)
    };
    times.iter().map(&mut mark).collect()
}

/// As of when a document counts that comes at a now.
fn counting(time: i64, now: i64, rules: &Rules) -> i64 {
    let soon = rules.window.is_none_or(|window| time <= now.saturating_add(window));
    if time > now && soon { time } else { now }
}

/// The last leap, if there is one; `nows` are those at each document.
fn leap(before: i64, nows: &[i64], window: i64) -> Option<Leap> {
    let earlier = std::iter::once(&before).chain(nows);
    let pairs = earlier.zip(nows).map(|(&before, &after)| Leap { before, after });
    pairs.filter(|leap| leap.after.saturating_sub(leap.before) > window).last()
}
