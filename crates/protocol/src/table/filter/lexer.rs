//! The words of a filter, and the errors that point into it.
//!
//! The lexer is written by hand, because its errors must name the same positions as those of the real
//! service. There, a syntax error gives the position behind the wrong word, a missing expression gives the
//! position where it should begin, and positions count UTF-16 code units. The texts are those of
//! Microsoft's OData library, as recordings of the service show them.

use crate::error::TableError;

/// What kind of word a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Open,
    Close,
    /// A name or an operator.
    Word,
    True,
    False,
    Null,
    /// `'text'`
    Text,
    /// `datetime'...'` or `datetimeoffset'...'`
    DateTime,
    /// `guid'...'`
    Guid,
    /// `X'...'` or `binary'...'`
    Binary,
    /// `12`
    Integer,
    /// `12L`
    Long,
    /// `1.5`, `1e3`, `1d`, `1f`, `NaN`, `INF`
    Double,
    /// A literal of a type that tables do not have: `1.5m`, `time'...'`, `geography'...'`.
    Foreign,
    /// A character that has a meaning in OData, but not in this place.
    Stray,
    End,
}

/// One word: `text[start..end]`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Token<'a> {
    pub(super) kind: Kind,
    pub(super) text: &'a str,
    pub(super) start: usize,
    pub(super) end: usize,
}

/// Reads words from the front of a filter.
pub(super) struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// Moves over all characters that `wanted` accepts.
    fn skip(&mut self, wanted: impl Fn(char) -> bool) {
        let rest = self.rest();
        self.at += rest.find(|c| !wanted(c)).unwrap_or(rest.len());
    }

    /// Whether an opening parenthesis comes next, so that the word before it names a function.
    pub(super) fn is_before_parenthesis(&self) -> bool {
        self.rest().trim_start().starts_with('(')
    }

    /// The next word. At the end it returns `End`, any number of times.
    pub(super) fn next(&mut self) -> Result<Token<'a>, TableError> {
        self.skip(char::is_whitespace);
        let start = self.at;
        let kind = match self.peek() {
            None => Kind::End,
            Some('\'') => self.quoted_text()?,
            Some(c) if starts_name(c) => self.word()?,
            Some('0'..='9') => self.number()?,
            Some('-') => self.negative()?,
            Some(c @ ('(' | ')' | ',' | '=' | '/' | '?' | ':' | '.' | '*')) => {
                self.at += 1;
                match c {
                    '(' => Kind::Open,
                    ')' => Kind::Close,
                    _ => Kind::Stray,
                }
            }
            Some(c) => {
                let (at, text) = (self.position(start), self.text);
                return Err(TableError::invalid_input(format!(
                    "Syntax error: character '{c}' is not valid at position {at} in '{text}'."
                )));
            }
        };
        Ok(Token { kind, text: &self.text[start..self.at], start, end: self.at })
    }

    /// `'it''s'`: a doubled quote is a quote.
    fn quoted_text(&mut self) -> Result<Kind, TableError> {
        loop {
            self.at += 1;
            self.skip(|c| c != '\'');
            if self.peek().is_none() {
                return Err(self.fault("There is an unterminated string literal", self.at));
            }
            self.at += 1;
            if self.peek() != Some('\'') {
                return Ok(Kind::Text);
            }
        }
    }

    /// A name, a keyword, or a literal that begins with the name of its type.
    fn word(&mut self) -> Result<Kind, TableError> {
        let start = self.at;
        self.skip(continues_name);
        let word = &self.text[start..self.at];
        if self.peek() == Some('\'')
            && let Some(kind) = typed_literal(word)
        {
            self.at += 1;
            self.skip(|c| c != '\'');
            if self.peek().is_none() {
                return Err(self.fault("There is an unterminated literal", self.at));
            }
            self.at += 1;
            return Ok(kind);
        }
        Ok(match word {
            "true" => Kind::True,
            "false" => Kind::False,
            "null" => Kind::Null,
            "NaN" | "INF" | "NaNf" | "NaNF" | "INFf" | "INFF" => Kind::Double,
            _ => Kind::Word,
        })
    }

    /// A minus is part of the number after it, or of `-INF`. It has no other use in a filter.
    fn negative(&mut self) -> Result<Kind, TableError> {
        self.at += 1;
        match self.peek() {
            Some('0'..='9') => self.number(),
            Some('I') => match self.word()? {
                Kind::Double => Ok(Kind::Double),
                _ => Ok(Kind::Stray),
            },
            _ => Ok(Kind::Stray),
        }
    }

    fn number(&mut self) -> Result<Kind, TableError> {
        let mut kind = Kind::Integer;
        self.skip(|c| c.is_ascii_digit());
        if self.peek() == Some('.') {
            kind = Kind::Double;
            self.at += 1;
            self.digits()?;
        }
        if let Some('e' | 'E') = self.peek() {
            kind = Kind::Double;
            self.at += 1;
            if let Some('+' | '-') = self.peek() {
                self.at += 1;
            }
            self.digits()?;
        }
        let suffix = match self.peek() {
            Some('d' | 'D' | 'f' | 'F') => Kind::Double,
            Some('l' | 'L') => Kind::Long,
            Some('m' | 'M') => Kind::Foreign,
            _ => return Ok(kind),
        };
        self.at += 1;
        Ok(suffix)
    }

    /// At least one digit.
    fn digits(&mut self) -> Result<(), TableError> {
        let start = self.at;
        self.skip(|c| c.is_ascii_digit());
        if self.at == start {
            return Err(self.fault("A digit was expected", self.at));
        }
        Ok(())
    }

    /// The error with the text `what` and the position of the byte `at`.
    pub(super) fn fault(&self, what: &str, at: usize) -> TableError {
        TableError::invalid_input(format!("{what} at position {} in '{}'.", self.position(at), self.text))
    }

    /// The error for a literal that is malformed for its type.
    pub(super) fn unrecognized(&self, type_name: &str, token: &Token<'_>) -> TableError {
        TableError::invalid_input(format!(
            "Unrecognized '{type_name}' literal '{}' at '{}' in '{}'.",
            token.text,
            self.position(token.start),
            self.text
        ))
    }

    /// UTF-16 code units before the byte `at`.
    fn position(&self, at: usize) -> usize {
        self.text[..at].chars().map(char::len_utf16).sum()
    }
}

fn starts_name(c: char) -> bool {
    c.is_alphabetic() || c == '_' || c == '$'
}

fn continues_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$'
}

/// The kind of literal that begins with this word directly before a quote. The word may be in either case.
fn typed_literal(word: &str) -> Option<Kind> {
    const PREFIXES: [(&str, Kind); 8] = [
        ("datetime", Kind::DateTime),
        ("datetimeoffset", Kind::DateTime),
        ("guid", Kind::Guid),
        ("binary", Kind::Binary),
        ("X", Kind::Binary),
        ("time", Kind::Foreign),
        ("geography", Kind::Foreign),
        ("geometry", Kind::Foreign),
    ];
    PREFIXES.into_iter().find(|(prefix, _)| prefix.eq_ignore_ascii_case(word)).map(|(_, kind)| kind)
}
