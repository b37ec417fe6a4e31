//! Reads choices and numbers from the bytes of a fuzzer.

/// What is left of the bytes. Behind the end, there are zeros.
pub struct Input<'a>(pub &'a [u8]);

impl<'a> Input<'a> {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn byte(&mut self) -> u8 {
        let Some((&byte, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        byte
    }

    /// A number below another one, of at most 256.
    pub fn below(&mut self, end: usize) -> usize {
        usize::from(self.byte()) % end
    }

    pub fn one_of<T: Copy, const N: usize>(&mut self, some: [T; N]) -> T {
        some[self.below(N)]
    }

    pub fn u16(&mut self) -> u16 {
        u16::from_le_bytes([self.byte(), self.byte()])
    }

    pub fn u32(&mut self) -> u32 {
        u32::from(self.u16()) | u32::from(self.u16()) << 16
    }

    pub fn u64(&mut self) -> u64 {
        u64::from(self.u32()) | u64::from(self.u32()) << 32
    }

    /// A number that is small, or close to a power of two, or any.
    pub fn number(&mut self) -> u64 {
        match self.below(4) {
            0 => u64::from(self.byte()),
            1 => u64::from(self.u16()),
            2 => {
                let power = 1u64 << self.below(64);
                power.wrapping_add(u64::from(self.byte())).wrapping_sub(128)
            }
            _ => self.u64(),
        }
    }

    /// The time of a document, in ms: any number that isn't read as a mark of the clock.
    pub fn time(&mut self) -> i64 {
        self.number() as i64 >> 1
    }

    /// Up to 255 of the next bytes.
    pub fn some(&mut self) -> &'a [u8] {
        let count = usize::from(self.byte());
        let (taken, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        taken
    }

    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }
}

/// Change bytes as the input says: some are replaced, or some are inserted, or the end is cut off.
pub fn spoil(bytes: &mut Vec<u8>, input: &mut Input) {
    for _ in 0..=input.below(4) {
        let at = usize::from(input.u16()) % (bytes.len() + 1);
        match input.below(5) {
            0 => bytes.truncate(at),
            1 => bytes.insert(at, input.byte()),
            2 => {
                let other = input.number().to_le_bytes();
                let end = bytes.len().min(at + other.len());
                bytes[at..end].copy_from_slice(&other[..end - at]);
            }
            3 => bytes.extend_from_within(at..),
            _ => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= input.byte();
                }
            }
        }
    }
}
