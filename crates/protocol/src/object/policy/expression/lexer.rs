//! From a text to words and signs.

use super::ExpressionError;

/// A word or sign of an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    /// `resource`, `true`.
    Word(String),
    /// A text in quotes, without them.
    Text(String),
    /// `&&`, `==`, `(`, `.` and others.
    Sign(&'static str),
    /// Nothing follows.
    End,
}

/// The signs, longer ones before their beginnings.
const SIGNS: [&str; 14] = ["&&", "||", "==", "!=", "<=", ">=", "<", ">", "!", "(", ")", ".", ",", "-"];

/// The words and signs of a text, each with the place of its first byte, counted from 1.
pub(super) fn tokens(text: &str) -> Result<Vec<(usize, Token)>, ExpressionError> {
    let mut out = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start();
        let at = text.len() - rest.len() + 1;
        let Some(first) = rest.chars().next() else {
            out.push((at.min(text.len() + 1), Token::End));
            return Ok(out);
        };
        if first == '"' || first == '\'' {
            let (value, after) = quoted(&rest[1..], first, at)?;
            out.push((at, Token::Text(value)));
            rest = after;
        } else if first.is_ascii_alphabetic() || first == '_' {
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
            out.push((at, Token::Word(rest[..end].to_owned())));
            rest = &rest[end..];
        } else if let Some(sign) = SIGNS.into_iter().find(|sign| rest.starts_with(sign)) {
            out.push((at, Token::Sign(sign)));
            rest = &rest[sign.len()..];
        } else {
            return Err(ExpressionError { reason: format!("{first:?} is not understood"), at });
        }
    }
}

/// A text up to its closing quote, and what follows it. `at` is the place of the opening quote.
fn quoted(text: &str, quote: char, at: usize) -> Result<(String, &str), ExpressionError> {
    let mut out = String::new();
    let mut characters = text.char_indices();
    while let Some((offset, character)) = characters.next() {
        match character {
            end if end == quote => return Ok((out, &text[offset + 1..])),
            '\\' => {
                let wrong = || {
                    let reason = "this escape in a text is not understood".to_owned();
                    ExpressionError { reason, at: at + 1 + offset }
                };
                let (_, escaped) = characters.next().ok_or_else(wrong)?;
                out.push(match escaped {
                    '\\' | '"' | '\'' | '`' | '?' => escaped,
                    'n' => '\n',
                    'r' => '\r',
                    't' => '\t',
                    'x' => code(&mut characters, 2).ok_or_else(wrong)?,
                    'u' => code(&mut characters, 4).ok_or_else(wrong)?,
                    _ => return Err(wrong()),
                });
            }
            other => out.push(other),
        }
    }
    Err(ExpressionError { reason: "a text has no closing quote".to_owned(), at })
}

/// The character of so many hexadecimal digits.
fn code(characters: &mut std::str::CharIndices<'_>, digits: usize) -> Option<char> {
    let mut code = 0;
    for _ in 0..digits {
        code = code * 16 + characters.next()?.1.to_digit(16)?;
    }
    char::from_u32(code)
}
