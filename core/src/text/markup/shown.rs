//! What a browser shows of a page, as text.
//!
//! Open elements are kept as a browser keeps them (HTML standard, section 13.2.6), as far as that
//! decides what is shown: which element a tag ends, and so where what is hidden ends. Simplified:
//! formatting elements go on behind the block that ends around them, and what is in a table but in
//! no cell is shown where it stands.
//!
//! A page costs no more than its size: of elements in each other, so many are kept, and one more
//! takes the place of the last.

use super::elements::{
    ABOVE, ALONE, BESIDE, BREAKS, BUTTON, CELL, DIALOG, DRAWN, ENDS_DRAWING, ENDS_PARAGRAPH,
    Element, FORMATTING, GROUP, HEADING, HIDES, ITEM, LOOSE, MATH, MATH_HIDES, MATH_HTML, OPTION,
    PAGE, PARAGRAPH, PARTS, PLAINTEXT, RAW, REFERENCES, ROW, RUBY, SCOPE, SCRIPT, SVG, SVG_HIDES,
    SVG_HTML, SVG_TEXT, TABLE, TERM, THIN, TITLE, VERBATIM, VOID,
};
use super::references;
use super::tokens::{Start, Token, Tokens};

const DEEPEST: usize = 128;

/// Return the text of a page.
///
/// between: what stands where a line or cell begins or ends.
pub fn text_of(page: &[u8], between: u8) -> Vec<u8> {
    let mut walk =
        Walk { out: Vec::with_capacity(page.len()), open: Vec::new(), between, has_title: false };
    let mut tokens = Tokens::new(page);
    while let Some(token) = tokens.next(walk.is_in(DRAWN)) {
        match token {
            Token::Text(text) => walk.text(text),
            Token::Verbatim(text) if walk.shows() => walk.out.extend_from_slice(text),
            Token::Verbatim(_) => {}
            Token::Start(tag) => walk.start(&tag, &mut tokens),
            Token::End(name) => walk.end(Element::named(name)),
        }
    }
    walk.out
}

/// What becomes of text in an element.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Shown,
    /// Nothing is shown but what is in the elements of a drawing that have text.
    Drawn,
    Hidden,
}

#[derive(Clone, Copy)]
struct Open {
    element: Element,
    state: State,
}

struct Walk {
    out: Vec<u8>,
    /// From the outside in.
    open: Vec<Open>,
    between: u8,
    has_title: bool,
}

impl Walk {
    fn state(&self) -> State {
        self.open.last().map_or(State::Shown, |last| last.state)
    }

    fn shows(&self) -> bool {
        self.state() == State::Shown
    }

    fn text(&mut self, text: &[u8]) {
        if self.shows() {
            references::append(text, false, &mut self.out);
        }
    }

    fn break_line(&mut self, element: Element) {
        if element.has(BREAKS) && self.shows() {
            self.out.push(self.between);
        }
    }

    /// Return whether the innermost element has one of these traits.
    fn is_in(&self, traits: u64) -> bool {
        self.open.last().is_some_and(|last| last.element.has(traits))
    }

    fn start(&mut self, tag: &Start<'_>, tokens: &mut Tokens<'_>) {
        let element = Element::named(tag.name);
        if self.is_in(DRAWN) {
            if !element.has(ENDS_DRAWING) {
                return self.draw(element, tag);
            }
            self.leave_drawing();
        }
        if element.has(PAGE) || element.has(PARTS) && !self.make_way_in_table(element) {
            return;
        }
        self.end_what_ends(element);
        if element.has(RAW | REFERENCES | VERBATIM | PLAINTEXT) {
            return self.content(element, tag, tokens);
        }
        let is_drawn = element.has(SVG | MATH);
        if element.has(VOID) || is_drawn && tag.closes_itself {
            if !tag.is_hidden() {
                self.break_line(element);
            }
            return;
        }
        let hides = element.has(HIDES)
            || tag.is_hidden()
            || element.has(DIALOG) && !tag.open
            || element.has(ABOVE) && self.open.iter().any(|open| open.element.has(RUBY));
        let hides = if hides { HIDES } else { 0 };
        let drawn = if is_drawn { DRAWN } else { 0 };
        self.push(element.with(element.traits() | hides | drawn));
        self.break_line(element);
    }

    /// Open an element within a drawing.
    fn draw(&mut self, element: Element, tag: &Start<'_>) {
        let (kind, html, hides) = match self.is_in(SVG) {
            true => (SVG, SVG_HTML, SVG_HIDES),
            false => (MATH, MATH_HTML, MATH_HIDES),
        };
        let hides = element.has(hides) || tag.is_hidden();
        let is_line = kind == SVG && element.has(SVG_TEXT);
        if is_line && !hides && self.state() != State::Hidden {
            self.out.push(self.between);
        }
        if tag.closes_itself {
            return;
        }
        let content = match () {
            () if element.has(html) => SCOPE | html,
            () if is_line => kind | DRAWN | SVG_TEXT,
            () => kind | DRAWN,
        };
        self.push(element.with(content | if hides { HIDES } else { 0 }));
    }

    fn leave_drawing(&mut self) {
        while self.is_in(DRAWN) {
            self.open.pop();
        }
    }

    /// Append an element, and find out whether it shows.
    fn push(&mut self, element: Element) {
        if self.open.len() == DEEPEST {
            self.open.pop();
        }
        let has_text = element.has(SVG_TEXT | SVG_HTML | MATH_HTML);
        let state = match self.state() {
            State::Hidden => State::Hidden,
            _ if element.has(HIDES) && !is_frame(element) => State::Hidden,
            _ if element.has(CELL) && self.is_in_hidden_table() => State::Hidden,
            State::Drawn if !has_text => State::Drawn,
            State::Shown if element.has(DRAWN) && !self.is_in(DRAWN) => State::Drawn,
            _ => State::Shown,
        };
        self.open.push(Open { element, state });
    }

    /// Return whether the innermost table, or a part of it that is open, is hidden.
    fn is_in_hidden_table(&self) -> bool {
        let inside_out = || self.open.iter().rev().filter(|open| is_frame(open.element));
        let table = inside_out().position(|open| open.element.has(TABLE));
        inside_out().take(table.map_or(0, |at| at + 1)).any(|open| open.element.has(HIDES))
    }

    /// Pass what is in an element that has no markup.
    fn content(&mut self, element: Element, tag: &Start<'_>, tokens: &mut Tokens<'_>) {
        let content = match element.has(PLAINTEXT) {
            true => tokens.rest(),
            false => tokens.content(tag.name, element.has(SCRIPT)),
        };
        // A page has one title. A browser shows others nowhere.
        let is_hidden = match element.has(TITLE) {
            true => std::mem::replace(&mut self.has_title, true),
            false => element.has(RAW) || tag.is_hidden(),
        };
        if is_hidden || !self.shows() {
            return;
        }
        self.break_line(element);
        match element.has(REFERENCES) {
            true => self.text(content),
            false => self.out.extend_from_slice(content),
        }
        self.break_line(element);
    }

    /// End what a part of a table ends; return whether it is in one. Elsewhere it is no tag.
    fn make_way_in_table(&mut self, part: Element) -> bool {
        let ended = match () {
            () if part.has(GROUP) => PARTS,
            () if part.has(ROW) => ROW | CELL,
            () => CELL,
        };
        let Some(table) = self.open.iter().rposition(|open| open.element.has(TABLE)) else {
            return false;
        };
        let inside = &self.open[table + 1..];
        if let Some(first) = inside.iter().position(|open| open.element.has(ended)) {
            self.close(table + 1 + first);
        }
        true
    }

    /// End the elements that the start of this one ends.
    fn end_what_ends(&mut self, element: Element) {
        for kind in [ITEM, TERM] {
            if element.has(kind) {
                let is_barrier = |open: Element| is_special(open) && !open.has(THIN);
                self.end_last(|open| open.has(kind), is_barrier);
            }
        }
        if element.has(BESIDE) {
            self.end_last(|open| open.has(BESIDE), is_special);
        }
        if element.has(ENDS_PARAGRAPH) {
            self.end_last(|open| open.has(PARAGRAPH), |open| open.has(SCOPE | BUTTON));
        }
        if element.has(ALONE) {
            self.end_last(|open| open.key == element.key, |open| open.has(SCOPE));
        }
        for kind in [OPTION, HEADING] {
            if element.has(kind) && self.is_in(kind) {
                self.close(self.open.len() - 1);
            }
        }
    }

    fn end(&mut self, element: Element) {
        if element.has(PAGE) {
            return;
        }
        // `</p>` and `</br>` are lines by themselves. Other ends of nothing are nothing.
        let is_line = element.has(PARAGRAPH)
            || element.has(BREAKS) && element.has(VOID) && !element.has(ENDS_PARAGRAPH);
        if is_line {
            self.leave_drawing();
        }
        let is_it =
            |open: Element| open.key == element.key || element.has(HEADING) && open.has(HEADING);
        let is_barrier = |open: Element| match () {
            () if element.has(TABLE | PARTS) => open.has(TABLE),
            () if element.has(BREAKS | SCOPE | FORMATTING | BUTTON) => open.has(SCOPE),
            () => is_special(open),
        };
        if !self.end_last(is_it, is_barrier) && is_line {
            self.break_line(element);
        }
    }

    /// End the innermost element of a kind that no barrier is in; return whether there is one.
    fn end_last(
        &mut self,
        is_it: impl Fn(Element) -> bool,
        is_barrier: impl Fn(Element) -> bool,
    ) -> bool {
        let last =
            self.open.iter().rposition(|open| is_it(open.element) || is_barrier(open.element));
        let Some(at) = last.filter(|&at| is_it(self.open[at].element)) else { return false };
        let is_around = self.open[at + 1..].iter().any(|open| is_special(open.element));
        if self.open[at].element.has(FORMATTING) && is_around {
            self.open.remove(at);
            self.find_states(at);
        } else {
            self.close(at);
        }
        true
    }

    /// End an element and all in it. Formatting elements go on behind it.
    fn close(&mut self, at: usize) {
        let is_line =
            |element: Element| element.has(BREAKS) || element.has(DRAWN) && element.has(SVG_TEXT);
        let ends_line = |open: &Open| open.state == State::Shown && is_line(open.element);
        if self.open[at..].iter().any(ends_line) {
            self.out.push(self.between);
        }
        let inside = &self.open[at..];
        let scope = inside.iter().position(|open| open.element.has(SCOPE));
        let end = at + scope.unwrap_or(inside.len());
        let mut kept = at;
        for from in at + 1..end {
            if self.open[from].element.has(FORMATTING) {
                self.open[kept] = self.open[from];
                kept += 1;
            }
        }
        self.open.truncate(kept);
        self.find_states(at);
    }

    /// Find out anew whether elements show, from one on.
    fn find_states(&mut self, from: usize) {
        if from < self.open.len() {
            for open in self.open.split_off(from) {
                self.push(open.element);
            }
        }
    }
}

/// Return whether only the cells in it have content: a browser moves other content out of it.
fn is_frame(element: Element) -> bool {
    element.has(TABLE | GROUP | ROW) && !element.has(CELL)
}

/// Return whether an end tag of a part of a line, within the element, ends nothing outside of it.
fn is_special(element: Element) -> bool {
    element.has(SCOPE) || element.has(BREAKS) && !element.has(LOOSE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(page: &str) -> String {
        String::from_utf8_lossy(&text_of(page.as_bytes(), b'|')).into_owned()
    }

    #[test]
    fn what_breaks_a_line() {
        for (page, expected) in [
            ("<p>a<b>b</b>c<p>d</p>e</p>f", "|abc||d|e|f"),
            ("w<x>o</x>r<my-tag>d<img><slot>s</slot>", "words"),
            ("wo</div>r<td>d</span></x>s</li>", "words"),
            ("a<br>b</br>c<hr/>d", "a|b|c|d"),
            ("<table><tr><td>a<td>b</table>c", "|||a||b|c"),
        ] {
            assert_eq!(shown(page), expected, "{page}");
        }
    }

    #[test]
    fn what_is_hidden() {
        for (page, expected) in [
            ("a<script>b</b></script>c<style>d</style>e", "ace"),
            ("a<noscript><b>b</noscript>c<iframe>d</iframe>e<script>f", "ace"),
            ("<title>&lt;a</title><title>b</title>c<textarea><b></textarea>d", "|<a|c<b>d"),
            ("a<xmp><b>&lt;</xmp>c<plaintext></plaintext>", "a|<b>&lt;|c|</plaintext>|"),
            ("a<span hidden>b<span>c</span>d</span>e", "ae"),
            ("a<p style='display:none'>b<p>c", "a|c"),
            ("a<p hidden style=display:block>b", "a|b"),
            ("<div>a<span hidden>b</div>c", "|a|c"),
            ("<div>a<b hidden>b</div>c</b>d", "|a|d"),
            ("<b hidden>a<div>b</b>c</div>d", "c|d"),
            ("<table hidden>a<tr>b<td>c<table><td>d</table>e</table>f", "|a|b|f"),
            ("<ul><li hidden>a<li>b</ul>", "||b|"),
            ("<table><td hidden>a</div>b<tr><td>c</table>", "|||c|"),
            ("a<br hidden>b<input hidden>c", "abc"),
            ("<ruby>a<rp>(<rt>b<rp>)</rp>c<rt>d</ruby>e", "ace"),
            ("<dialog>a</dialog><dialog open>b</dialog>", "|b|"),
            ("a<video>b</video><object>c</object>", "ac"),
        ] {
            assert_eq!(shown(page), expected, "{page}");
        }
    }

    #[test]
    fn texts_of_drawings() {
        for (page, expected) in [
            ("a<svg>b<text>c<tspan>d</tspan></text><title>e</title></svg>f", "a|cd|f"),
            ("a<svg><g/><script/><style>b</style><![CDATA[c]]></svg>d", "ad"),
            ("<svg><text>a<![CDATA[<b>]]></text><defs><text>b</text></defs></svg>", "|a<b>|"),
            ("a<svg>b<p>c</svg>d", "a|cd"),
            ("<svg><foreignObject><p>a</p>b</foreignObject>c</svg>d", "|a|bd"),
            ("<svg/>a<math/>b", "ab"),
            ("<math>a<mi>x</mi><mo>=</mo><mrow>b<mn>1</mn></math>c", "x=1c"),
            ("<svg><mi>a</mi></svg><math><text>b</text></math>", ""),
        ] {
            assert_eq!(shown(page), expected, "{page}");
        }
    }
}
