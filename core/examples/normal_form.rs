//! Measures the normal form: nanoseconds a character, for texts of several scripts and hostile ones.
//!
//! ```text
//! cargo run --release --no-default-features --example normal_form [PART OF A NAME]
//! ```

use std::hint::black_box;
use std::time::{Duration, Instant};

use _core::text::{Normaliser, Scratch, Switches};

const DEFAULT: Switches = Switches {
    nfkc: true,
    casefold: true,
    collapse_whitespace: true,
    drop_invisible: true,
    drop_overlays: true,
    fold_confusables: false,
    fold_digits: false,
    fold_accents: false,
    fold_turkish_i: false,
    drop_symbols: false,
    join_letters: false,
    strip_html: false,
    reduce_urls: false,
};

/// What is repeated up to so many characters.
const CHARACTERS: usize = 2_000;
const FOR: Duration = Duration::from_millis(30);
const ROUNDS: usize = 15;
const TEXTS: usize = 20;

const PLAIN: [(&str, &str); 14] = [
    ("ascii", "The quick brown fox, 42 of them, jumps over the lazy dog near Berlin. "),
    (
        "ascii with one quote in 60",
        "The quick brown fox jumps over the lazy dog\u{2019}s tail near Berlin. ",
    ),
    ("German", "Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich. "),
    ("Russian", "Съешь же ещё этих мягких французских булок, да выпей чаю. "),
    (
        "Chinese",
        "人人生而自由,在尊严和权利上一律平等。他们赋有理性和良心,并应以兄弟关系的精神相对待。",
    ),
    (
        "Japanese",
        "すべての人間は、生まれながらにして自由であり、かつ、尊厳と権利とについて平等である。",
    ),
    ("Korean", "모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다. "),
    ("Hindi", "सभी मनुष्यों को गौरव और अधिकारों के मामले में जन्मजात स्वतन्त्रता और समानता प्राप्त है। "),
    ("Thai", "มนุษย์ทั้งหลายเกิดมามีอิสระและเสมอภาคกันในเกียรติศักดิ์และสิทธิต่างมีเหตุผลและมโนธรรม "),
    ("Arabic with vowels", "السَّلامُ عَلَيْكُمْ وَرَحْمَةُ اللَّهِ وَبَرَكاتُهُ "),
    ("Persian with joiners", "می\u{200C}خواهم کتاب\u{200C}های تازه را بخوانم "),
    ("Hebrew with points", "בְּרֵאשִׁית בָּרָא אֱלֹהִים אֵת הַשָּׁמַיִם וְאֵת הָאָרֶץ "),
    ("Vietnamese", "Tất cả mọi người sinh ra đều được tự do và bình đẳng về nhân phẩm và quyền. "),
    (
        "Vietnamese apart",
        "Ta\u{302}\u{301}t ca\u{309} mo\u{323}i ngu\u{31B}o\u{31B}\u{300}i sinh ra d\u{323}e\u{302}u binh da\u{306}\u{309}ng. ",
    ),
];

const HOSTILE: [(&str, &str); 12] = [
    ("letters with two marks", "a\u{301}\u{323}"),
    ("letters with two marks in order", "a\u{323}\u{301}"),
    ("heaps of marks", "a\u{301}\u{301}\u{301}\u{301}"),
    ("nothing but marks", "\u{301}"),
    ("marks that sort apart", "\u{301}\u{323}"),
    ("iota below", "\u{3B1}\u{345}"),
    ("one with three marks", "\u{1F82}"),
    ("U+3316", "\u{3316}"),
    ("U+3316 with a mark", "\u{3316}\u{301}"),
    ("joiners that stay", "\u{915}\u{94D}\u{200D}"),
    ("joiners that go", "a\u{200D}"),
    ("jamo", "\u{1100}\u{1161}\u{11A8}"),
];

const MARKUP: [(&str, &str); 12] = [
    (
        "page",
        "<p class=\"a\">The quick <b>brown</b> fox &amp; <a href='http://a.b/c'>more</a>.</p>\n",
    ),
    ("<a-b>", "<a-b>"),
    ("<a-b></a-b>", "<a-b></a-b>"),
    ("<b>", "<b>"),
    ("<", "<"),
    ("<!--", "<!--"),
    ("<script>", "<script>"),
    ("<a b=\"'", "<a b=\"'"),
    ("<a b c d", "<a b-c d-e "),
    ("&lt;", "&lt;"),
    ("&notanentity;", "&notanentity;"),
    ("http://a@", "http://a@"),
];

fn main() {
    let normaliser = Normaliser::new::<&str>(DEFAULT, &[]);
    for (name, piece) in PLAIN.iter().chain(&HOSTILE) {
        show(name, piece, &normaliser);
    }
    let unwrapping = Switches { strip_html: true, reduce_urls: true, ..DEFAULT };
    let normaliser = Normaliser::new::<&str>(unwrapping, &[]);
    for (name, piece) in PLAIN[..1].iter().chain(&MARKUP) {
        show(&format!("markup: {name}"), piece, &normaliser);
    }
    let listing = Normaliser::new(DEFAULT, &["Share this", "All rights reserved"]);
    show(
        "listed lines",
        "A line of some text\nShare this\nAnother line with more text\n",
        &listing,
    );
}

/// Print the least time that a character took, of several rounds.
fn show(name: &str, piece: &str, normaliser: &Normaliser) {
    if !name.contains(&std::env::args().nth(1).unwrap_or_default()) {
        return;
    }
    let text: String = piece.chars().cycle().take(CHARACTERS).collect();
    let mut scratch = Scratch::default();
    let mut least = f64::INFINITY;
    for _ in 0..ROUNDS {
        let (begin, used) = (Instant::now(), processor_time());
        let mut count = 0.0;
        while begin.elapsed() < FOR {
            for _ in 0..TEXTS {
                black_box(normaliser.form(black_box(text.as_bytes()), &mut scratch));
            }
            count += (TEXTS * CHARACTERS) as f64;
        }
        least = least.min((processor_time() - used) / count);
    }
    println!("{name:34} {least:8.2} ns");
}

/// Return the processor time of this thread in nanoseconds, as Linux counts it.
fn processor_time() -> f64 {
    let counters = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let first = counters.split_whitespace().next();
    first.and_then(|time| time.parse().ok()).unwrap_or_default()
}
