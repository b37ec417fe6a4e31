//! Markup: tokens of any bytes are those of html5gum, which follows the HTML standard. A text of
//! which nothing is left but what it shows takes no more bytes than it had, or little more.

use _core::text::markup::tokens::{Start, Token, Tokens};
use _core::text::markup::{references, shown};
use html5gum::emitters::default::DefaultEmitter;
use html5gum::{State, Tokenizer, naive_next_state};

/// What both agree on.
#[derive(Debug, PartialEq, Eq)]
enum Piece {
    Text(Vec<u8>),
    Start { name: Vec<u8>, closes_itself: bool, hidden: bool, open: bool, style: Option<Vec<u8>> },
    End(Vec<u8>),
}

pub fn run(data: &[u8]) {
    // Browsers read these otherwise before there are tokens.
    let text: Vec<u8> =
        data.iter().copied().filter(|byte| !matches!(byte, b'\0' | b'\r')).collect();
    let text = String::from_utf8_lossy(&text).into_owned().into_bytes();
    assert_eq!(ours(&text), theirs(&text));
    let shown = shown::text_of(&text, b'\n');
    assert!(String::from_utf8(shown).is_ok_and(|shown| shown.len() <= 2 * text.len() + 2));
}

/// Append text to the last piece, if that is text.
fn append(text: &[u8], pieces: &mut Vec<Piece>) {
    match pieces.last_mut() {
        Some(Piece::Text(last)) => last.extend_from_slice(text),
        _ if text.is_empty() => {}
        _ => pieces.push(Piece::Text(text.to_vec())),
    }
}

fn resolved(text: &[u8], in_attribute: bool) -> Vec<u8> {
    let mut resolved = Vec::new();
    references::append(text, in_attribute, &mut resolved);
    resolved
}

fn ours(text: &[u8]) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut tokens = Tokens::new(text);
    while let Some(token) = tokens.next(false) {
        match token {
            Token::Text(text) => append(&resolved(text, false), &mut pieces),
            Token::Verbatim(text) => append(text, &mut pieces),
            Token::End(name) => pieces.push(Piece::End(name.to_ascii_lowercase())),
            Token::Start(tag) => {
                let Start { name, closes_itself, hidden, style, open } = tag;
                let name = name.to_ascii_lowercase();
                let style = style.map(|style| resolved(style, true));
                let next = naive_next_state(&name);
                let content = match next {
                    None => &[][..],
                    Some(State::PlainText) => tokens.rest(),
                    Some(state) => tokens.content(&name, state == State::ScriptData),
                };
                pieces.push(Piece::Start { name, closes_itself, hidden, open, style });
                match next {
                    Some(State::RcData) => append(&resolved(content, false), &mut pieces),
                    _ => append(content, &mut pieces),
                }
            }
        }
    }
    pieces
}

fn theirs(text: &[u8]) -> Vec<Piece> {
    let mut emitter = DefaultEmitter::default();
    emitter.naively_switch_states(true);
    let mut pieces = Vec::new();
    for token in Tokenizer::new_with_emitter(text, emitter).flatten() {
        match token {
            html5gum::Token::String(text) => append(&text.value, &mut pieces),
            html5gum::Token::EndTag(tag) => pieces.push(Piece::End(tag.name.to_vec())),
            html5gum::Token::StartTag(tag) => {
                let value = |name: &[u8]| tag.attributes.get(name).map(|value| value.to_vec());
                pieces.push(Piece::Start {
                    name: tag.name.to_vec(),
                    closes_itself: tag.self_closing,
                    hidden: value(b"hidden").is_some(),
                    open: value(b"open").is_some(),
                    style: value(b"style"),
                });
            }
            _ => {}
        }
    }
    pieces
}
