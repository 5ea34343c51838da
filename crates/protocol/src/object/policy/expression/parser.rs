//! From words and signs to an expression.
//!
//! ```text
//! or      = and { "||" and }
//! and     = unary { "&&" unary }
//! unary   = "!" unary | "(" or ")" | "true" | "false" | relation
//! relation = value ( "==" | "!=" | "<" | ... ) value | value "." ("startsWith" | "endsWith") "(" value ")"
//! ```

use rangehold_map::Timestamp;

use super::lexer::{Token, tokens};
use super::{Expression, ExpressionError, Text, TextRelation, Time, TimeRelation};
use crate::object::limits::{EXPRESSION_BYTES_MAX, EXPRESSION_DEPTH_MAX, EXPRESSION_OPERATORS_MAX};
use crate::time::parse_iso;

/// What stands on a side of a comparison.
enum Value {
    Text(Text),
    Time(Time),
}

struct Parser {
    tokens: Vec<(usize, Token)>,
    next: usize,
    operators: usize,
    depth: usize,
}

/// Reads an expression.
pub(super) fn parse(text: &str) -> Result<Expression, ExpressionError> {
    if text.len() > EXPRESSION_BYTES_MAX {
        let reason = format!("a condition has at most {EXPRESSION_BYTES_MAX} bytes");
        return Err(ExpressionError { reason, at: EXPRESSION_BYTES_MAX });
    }
    let mut parser = Parser { tokens: tokens(text)?, next: 0, operators: 0, depth: 0 };
    let expression = parser.or()?;
    match parser.peek() {
        Token::End => Ok(expression),
        _ => Err(parser.unexpected("the end, && or ||")),
    }
}

impl Parser {
    fn peek(&self) -> &Token {
        // The last token is the end, which is never passed.
        &self.tokens[self.next.min(self.tokens.len() - 1)].1
    }

    fn at(&self) -> usize {
        self.tokens[self.next.min(self.tokens.len() - 1)].0
    }

    fn unexpected(&self, expected: &str) -> ExpressionError {
        let found = match self.peek() {
            Token::Word(word) => format!("'{word}'"),
            Token::Text(_) => "a text".to_owned(),
            Token::Sign(sign) => format!("'{sign}'"),
            Token::End => "the end".to_owned(),
        };
        ExpressionError { reason: format!("{found} was found, and {expected} was expected"), at: self.at() }
    }

    fn takes(&mut self, sign: &str) -> bool {
        let is_there = matches!(self.peek(), Token::Sign(found) if *found == sign);
        self.next += usize::from(is_there);
        is_there
    }

    fn expect(&mut self, sign: &str) -> Result<(), ExpressionError> {
        match self.takes(sign) {
            true => Ok(()),
            false => Err(self.unexpected(&format!("'{sign}'"))),
        }
    }

    /// Counts an operator of truth.
    fn count(&mut self) -> Result<(), ExpressionError> {
        self.operators += 1;
        if self.operators > EXPRESSION_OPERATORS_MAX {
            let reason = format!("a condition has at most {EXPRESSION_OPERATORS_MAX} of &&, || and !");
            return Err(ExpressionError { reason, at: self.at() });
        }
        Ok(())
    }

    fn or(&mut self) -> Result<Expression, ExpressionError> {
        let mut left = self.and()?;
        while self.takes("||") {
            self.count()?;
            left = Expression::Or(Box::new(left), Box::new(self.and()?));
        }
        Ok(left)
    }

    fn and(&mut self) -> Result<Expression, ExpressionError> {
        let mut left = self.unary()?;
        while self.takes("&&") {
            self.count()?;
            left = Expression::And(Box::new(left), Box::new(self.unary()?));
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<Expression, ExpressionError> {
        if self.takes("!") {
            self.count()?;
            return Ok(Expression::Not(Box::new(self.unary()?)));
        }
        if self.takes("(") {
            self.depth += 1;
            if self.depth > EXPRESSION_DEPTH_MAX {
                let reason =
                    format!("a condition has at most {EXPRESSION_DEPTH_MAX} parentheses in each other");
                return Err(ExpressionError { reason, at: self.at() });
            }
            let inner = self.or()?;
            self.expect(")")?;
            self.depth -= 1;
            return Ok(inner);
        }
        let constant = match self.peek() {
            Token::Word(word) if word == "true" => true,
            Token::Word(word) if word == "false" => false,
            _ => return self.relation(),
        };
        self.next += 1;
        Ok(Expression::Constant(constant))
    }

    fn relation(&mut self) -> Result<Expression, ExpressionError> {
        match self.value()? {
            Value::Text(text) if self.takes(".") => self.method(text),
            Value::Text(text) => {
                let relation = match self.peek() {
                    Token::Sign("==") => TextRelation::Equal,
                    Token::Sign("!=") => TextRelation::Different,
                    _ => return Err(self.unexpected("==, != or a method of a text")),
                };
                self.next += 1;
                Ok(Expression::Texts(relation, text, self.text()?))
            }
            Value::Time(time) => {
                let relation = match self.peek() {
                    Token::Sign("==") => TimeRelation::Equal,
                    Token::Sign("!=") => TimeRelation::Different,
                    Token::Sign("<") => TimeRelation::Before,
                    Token::Sign("<=") => TimeRelation::BeforeOrAt,
                    Token::Sign(">") => TimeRelation::After,
                    Token::Sign(">=") => TimeRelation::AfterOrAt,
                    Token::Sign(".") => {
                        self.next += 1;
                        return Err(self.unexpected("a comparison; times have no methods here"));
                    }
                    _ => return Err(self.unexpected("a comparison of times")),
                };
                self.next += 1;
                Ok(Expression::Times(relation, time, self.time()?))
            }
        }
    }

    /// What follows the point behind a text.
    fn method(&mut self, text: Text) -> Result<Expression, ExpressionError> {
        let relation = match self.peek() {
            Token::Word(word) if word == "startsWith" => TextRelation::StartsWith,
            Token::Word(word) if word == "endsWith" => TextRelation::EndsWith,
            _ => return Err(self.unexpected("startsWith or endsWith")),
        };
        self.next += 1;
        self.expect("(")?;
        let other = self.text()?;
        self.expect(")")?;
        Ok(Expression::Texts(relation, text, other))
    }

    fn text(&mut self) -> Result<Text, ExpressionError> {
        let begun = self.next;
        match self.value()? {
            Value::Text(text) => Ok(text),
            Value::Time(_) => {
                self.next = begun;
                Err(self.unexpected("a text"))
            }
        }
    }

    fn time(&mut self) -> Result<Time, ExpressionError> {
        let begun = self.next;
        match self.value()? {
            Value::Time(time) => Ok(time),
            Value::Text(_) => {
                self.next = begun;
                Err(self.unexpected("a time"))
            }
        }
    }

    fn value(&mut self) -> Result<Value, ExpressionError> {
        const EXPECTED: &str = "resource.name, resource.type, resource.service, request.time, api.getAttribute, timestamp, \
                                a text, true, false, ! or (";
        let word = match self.peek() {
            Token::Text(text) => {
                let text = Text::Literal(text.clone());
                self.next += 1;
                return Ok(Value::Text(text));
            }
            Token::Word(word) => word.clone(),
            Token::Sign(_) | Token::End => return Err(self.unexpected(EXPECTED)),
        };
        match word.as_str() {
            "timestamp" => self.timestamp().map(|time| Value::Time(Time::Literal(time))),
            "resource" => {
                let member = self.member()?;
                let text = match member.as_str() {
                    "name" => Text::Name,
                    "type" => Text::Sort,
                    "service" => Text::Service,
                    _ => return Err(self.back("name, type or service")),
                };
                Ok(Value::Text(text))
            }
            "request" => match self.member()?.as_str() {
                "time" => Ok(Value::Time(Time::Now)),
                _ => Err(self.back("time")),
            },
            "api" => match self.member()?.as_str() {
                "getAttribute" => {
                    self.expect("(")?;
                    let key = self.literal()?;
                    self.expect(",")?;
                    let default = self.literal()?;
                    self.expect(")")?;
                    Ok(Value::Text(Text::Attribute { key, default }))
                }
                _ => Err(self.back("getAttribute")),
            },
            _ => Err(self.unexpected(EXPECTED)),
        }
    }

    /// Passes a word, a point and another word, and returns that.
    fn member(&mut self) -> Result<String, ExpressionError> {
        self.next += 1;
        self.expect(".")?;
        let Token::Word(word) = self.peek() else { return Err(self.unexpected("a name")) };
        let word = word.clone();
        self.next += 1;
        Ok(word)
    }

    /// The error that the token before was not expected.
    fn back(&mut self, expected: &str) -> ExpressionError {
        self.next -= 1;
        self.unexpected(expected)
    }

    fn literal(&mut self) -> Result<String, ExpressionError> {
        let Token::Text(text) = self.peek() else { return Err(self.unexpected("a text in quotes")) };
        let text = text.clone();
        self.next += 1;
        Ok(text)
    }

    fn timestamp(&mut self) -> Result<Timestamp, ExpressionError> {
        self.next += 1;
        self.expect("(")?;
        let at = self.at();
        let text = self.literal()?;
        let time = Some(text.as_str()).filter(|text| text.contains('T')).and_then(parse_iso);
        let time = time.ok_or_else(|| ExpressionError {
            reason: format!("{text:?} is not a time such as 2027-01-01T00:00:00Z"),
            at,
        })?;
        self.expect(")")?;
        Ok(time)
    }
}
