//! From tree to text, with only the parentheses that the parser needs to read the same tree.

use std::fmt;

use super::syntax::Expr;

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Always(answer) => write!(f, "{answer}"),
            Self::Flag(field) => f.write_str(field.name()),
            Self::Compare(c) => write!(f, "{} {} {}", c.field.name(), c.operator.word(), c.literal),
            Self::Not(inner) => write!(f, "not ({inner})"),
            Self::And(list) => join(f, list, " and ", |one| matches!(one, Self::Or(_))),
            Self::Or(list) => join(f, list, " or ", |_| false),
        }
    }
}

fn join(
    f: &mut fmt::Formatter<'_>,
    list: &[Expr],
    word: &str,
    is_weaker: impl Fn(&Expr) -> bool,
) -> fmt::Result {
    for (at, one) in list.iter().enumerate() {
        if at > 0 {
            f.write_str(word)?;
        }
        if is_weaker(one) {
            write!(f, "({one})")?;
        } else {
            write!(f, "{one}")?;
        }
    }
    Ok(())
}
