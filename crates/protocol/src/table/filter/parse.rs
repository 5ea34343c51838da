//! From text to tree.
//!
//! This is an operator-precedence parser. It uses two stacks of its own instead of recursion, so no filter
//! can exhaust the thread's stack: `((((...` only fills a list, whose length the limit on bytes bounds. The
//! limits on depth and on the number of nodes count the *tree*. Parentheses have no node in it, and chains of
//! `and` and `or` are flat, whichever way they were nested. Some SDKs join a hundred conditions two by two,
//! each time within new parentheses; their tree has depth one.
//!
//! Precedence, from the strongest: `not`, comparison, `and`, `or`. So `not A eq 1` means `(not A) eq 1`, as
//! in OData, and is refused, because a comparison needs a property on one side and a constant on the other.
//!
//! ```text
//!   State eq 'on' and not (Age lt 5 or Age gt 9)
//!
//!   operands   State 'on'  ->  [State eq 'on']  ...  [State eq 'on'] [Age lt 5] [Age gt 9]
//!   operators  eq              and                   and not ( or            ^ reduced at `)`
//! ```

use super::lexer::{Kind, Lexer, Token};
use super::literal;
use super::syntax::{Comparison, Expr, Field, Literal, Operator};
use crate::error::{ErrorCode, TableError};
use crate::table::limits::{FILTER_BYTES_MAX, FILTER_DEPTH_MAX, FILTER_NODES_MAX};
use crate::table::value::{EdmType, Value};

/// The tree of `text`.
pub(super) fn parse(text: &str) -> Result<Expr, TableError> {
    if text.len() > FILTER_BYTES_MAX {
        return Err(TableError::invalid_input(format!(
            "The $filter expression has {} bytes; at most {FILTER_BYTES_MAX} are allowed.",
            text.len()
        )));
    }
    let mut lexer = Lexer::new(text);
    let token = lexer.next()?;
    let mut parser = Parser { lexer, token, operands: Vec::new(), operators: Vec::new(), nodes: 0 };
    loop {
        parser.operand()?;
        if !parser.operator()? {
            return parser.finish();
        }
    }
}

/// One side of an operator.
enum Operand {
    Null,
    Literal(Value),
    Field(Field),
    /// A condition, and the depth of its tree.
    Condition(Expr, usize),
}

impl Operand {
    /// The operand's type, for error texts. A property without a fixed type counts as a Boolean.
    fn type_name(&self) -> &'static str {
        let edm_type = match self {
            Self::Literal(value) => value.as_ref().edm_type(),
            Self::Field(field) => field.edm_type().unwrap_or(EdmType::Boolean),
            Self::Condition(..) | Self::Null => EdmType::Boolean,
        };
        edm_type.name()
    }

    fn is_boolean(&self) -> bool {
        self.type_name() == EdmType::Boolean.name()
    }
}

/// An operator that waits for its right side.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pending {
    Open,
    Or,
    And,
    Compare(Operator),
    Not,
}

impl Pending {
    /// How strongly the operator binds. An open parenthesis binds weakest, so it stays until it is closed.
    fn strength(self) -> u8 {
        match self {
            Self::Open => 0,
            Self::Or => 1,
            Self::And => 2,
            Self::Compare(_) => 3,
            Self::Not => 4,
        }
    }
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    token: Token<'a>,
    operands: Vec<Operand>,
    operators: Vec<Pending>,
    /// The number of nodes in all trees among the operands.
    nodes: usize,
}

impl Parser<'_> {
    fn advance(&mut self) -> Result<(), TableError> {
        self.token = self.lexer.next()?;
        Ok(())
    }

    /// Reads one operand, with each `not` and parenthesis before it.
    fn operand(&mut self) -> Result<(), TableError> {
        loop {
            match (self.token.kind, self.token.text) {
                (Kind::Open, _) => self.operators.push(Pending::Open),
                (Kind::Word, "not") => self.operators.push(Pending::Not),
                // A function. The service has none.
                (Kind::Word, _) if self.lexer.is_before_parenthesis() => {
                    return Err(ErrorCode::NotImplemented.into());
                }
                (Kind::Word, name) => {
                    self.operands.push(Operand::Field(Field::named(name)));
                    return self.advance();
                }
                (Kind::Null, _) => {
                    self.operands.push(Operand::Null);
                    return self.advance();
                }
                _ => match literal::read(&self.lexer, &self.token)? {
                    Some(value) => {
                        self.operands.push(Operand::Literal(value));
                        return self.advance();
                    }
                    None => return Err(self.lexer.fault("Expression expected", self.token.start)),
                },
            }
            self.advance()?;
        }
    }

    /// Reads closing parentheses and then an operator. Returns false at the end of the text.
    fn operator(&mut self) -> Result<bool, TableError> {
        while self.token.kind == Kind::Close {
            self.reduce(Pending::Open.strength() + 1)?;
            if self.operators.pop().is_none() {
                return Err(self.lexer.fault("Syntax error", self.token.end));
            }
            self.advance()?;
        }
        let pending = match (self.token.kind, self.token.text) {
            (Kind::End, _) => return Ok(false),
            (Kind::Word, "and") => Pending::And,
            (Kind::Word, "or") => Pending::Or,
            // OData has arithmetic, but the service does not.
            (Kind::Word, "add" | "sub" | "mul" | "div" | "mod") => {
                return Err(ErrorCode::NotImplemented.into());
            }
            (Kind::Word, word) => match word.parse() {
                Ok(operator) => Pending::Compare(operator),
                Err(_) => return Err(self.no_operator()),
            },
            _ => return Err(self.no_operator()),
        };
        self.reduce(pending.strength())?;
        self.operators.push(pending);
        self.advance()?;
        Ok(true)
    }

    /// The error for a word that is neither an operator nor the end.
    fn no_operator(&self) -> TableError {
        if self.operators.contains(&Pending::Open) {
            self.lexer.fault("')' or operator expected", self.token.start)
        } else {
            self.lexer.fault("Syntax error", self.token.end)
        }
    }

    fn finish(mut self) -> Result<Expr, TableError> {
        self.reduce(Pending::Open.strength() + 1)?;
        if !self.operators.is_empty() {
            return Err(self.no_operator());
        }
        let operand = self.pop();
        if !operand.is_boolean() {
            return Err(TableError::invalid_input(
                "The $filter expression must evaluate to a single boolean value.",
            ));
        }
        Ok(self.condition(operand)?.0)
    }

    /// Applies the waiting operators that bind at least as strongly as `strength`, the latest first.
    fn reduce(&mut self, strength: u8) -> Result<(), TableError> {
        while let Some(&pending) = self.operators.last()
            && pending.strength() >= strength
        {
            self.operators.pop();
            let right = self.pop();
            let result = match pending {
                Pending::Not => self.not(right)?,
                Pending::Compare(operator) => {
                    let left = self.pop();
                    self.compare(left, operator, right)?
                }
                Pending::And | Pending::Or => {
                    let left = self.pop();
                    self.join(left, pending == Pending::And, right)?
                }
                Pending::Open => {
                    unreachable!("every caller gives a greater strength than that of a parenthesis")
                }
            };
            self.operands.push(result);
        }
        Ok(())
    }

    fn pop(&mut self) -> Operand {
        self.operands.pop().expect("an operand was read on each side of every operator")
    }

    fn not(&mut self, operand: Operand) -> Result<Operand, TableError> {
        if !operand.is_boolean() {
            return Err(TableError::invalid_input(format!(
                "A unary operator with an incompatible type was detected. Found operand type '{}' for operator kind 'Not'.",
                operand.type_name()
            )));
        }
        let (expr, depth) = self.condition(operand)?;
        self.node(Expr::Not(Box::new(expr)), depth + 1)
    }

    fn compare(&mut self, left: Operand, operator: Operator, right: Operand) -> Result<Operand, TableError> {
        let mismatch = incompatible(&left, &right, operator.kind());
        let (field, operator, value) = match (left, right) {
            (Operand::Null, _) | (_, Operand::Null) => return Err(compared_with_null(operator)),
            (Operand::Field(field), Operand::Literal(value)) => (field, operator, value),
            (Operand::Literal(value), Operand::Field(field)) => (field, operator.mirrored(), value),
            // Two properties, two constants, or a condition.
            _ => return Err(ErrorCode::NotImplemented.into()),
        };
        let literal = Literal(value);
        if field.edm_type().is_some_and(|fixed| fixed != literal.edm_type()) {
            return Err(mismatch);
        }
        self.node(Expr::Compare(Comparison { field, operator, literal }), 0)
    }

    /// `left and right` or `left or right`, as one flat list.
    fn join(&mut self, left: Operand, is_and: bool, right: Operand) -> Result<Operand, TableError> {
        if !left.is_boolean() || !right.is_boolean() {
            return Err(incompatible(&left, &right, if is_and { "And" } else { "Or" }));
        }
        let (left, left_depth) = self.condition(left)?;
        let (right, right_depth) = self.condition(right)?;
        let (mut list, left_depth) = self.unlist(left, left_depth, is_and);
        let (more, right_depth) = self.unlist(right, right_depth, is_and);
        list.extend(more);
        let expr = if is_and { Expr::And(list) } else { Expr::Or(list) };
        self.node(expr, left_depth.max(right_depth) + 1)
    }

    /// The members of `expr` if it is a list of this kind, else `expr` as the only member; and their depth.
    fn unlist(&mut self, expr: Expr, depth: usize, is_and: bool) -> (Vec<Expr>, usize) {
        match (expr, is_and) {
            (Expr::And(list), true) | (Expr::Or(list), false) => {
                self.nodes -= 1;
                (list, depth - 1)
            }
            (other, _) => (vec![other], depth),
        }
    }

    /// `operand`, whose type is Boolean, as a condition.
    fn condition(&mut self, operand: Operand) -> Result<(Expr, usize), TableError> {
        let expr = match operand {
            Operand::Condition(expr, depth) => return Ok((expr, depth)),
            Operand::Null => return Err(ErrorCode::InvalidInput.into()),
            Operand::Field(field) => Expr::Flag(field),
            Operand::Literal(value) => Expr::Always(value == Value::Boolean(true)),
        };
        match self.node(expr, 0)? {
            Operand::Condition(expr, depth) => Ok((expr, depth)),
            Operand::Null | Operand::Field(_) | Operand::Literal(_) => unreachable!("a node is a condition"),
        }
    }

    /// Makes a node. Fails with `InvalidInput` above the limits on depth and number.
    fn node(&mut self, expr: Expr, depth: usize) -> Result<Operand, TableError> {
        self.nodes += 1;
        if depth > FILTER_DEPTH_MAX {
            return Err(TableError::invalid_input(format!(
                "Recursion depth exceeded allowed limit. The $filter expression nests 'and', 'or' and 'not' deeper than {FILTER_DEPTH_MAX}."
            )));
        }
        if self.nodes > FILTER_NODES_MAX {
            return Err(TableError::invalid_input(format!(
                "The $filter expression has more than {FILTER_NODES_MAX} conditions; split it into several queries."
            )));
        }
        Ok(Operand::Condition(expr, depth))
    }
}

/// The error for a comparison with null, which the service words differently for equality and for order.
fn compared_with_null(operator: Operator) -> TableError {
    match operator {
        Operator::Equal | Operator::NotEqual => ErrorCode::InvalidInput.into(),
        order => TableError::invalid_input(format!(
            "The operator '{}' is not supported for the 'null' literal; only equality checks are supported.",
            order.kind()
        )),
    }
}

fn incompatible(left: &Operand, right: &Operand, kind: &str) -> TableError {
    TableError::invalid_input(format!(
        "A binary operator with incompatible types was detected. Found operand types '{}' and '{}' for operator kind '{kind}'.",
        left.type_name(),
        right.type_name()
    ))
}
