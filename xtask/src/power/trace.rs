//! Reading the record that strace makes of a process.
//!
//! One file holds the calls of all threads in one total order. A call that no other event interrupts is
//! one line; otherwise there are two, and both moments matter: what a call *does* has happened by the
//! time it returns, and what it *says* to the outside may be known from the time it begins.
//!
//! ```text
//! 812 openat(AT_FDCWD, "/data/a#1", O_WRONLY|O_CREAT|O_EXCL, 0666) = 9
//! 812 write(9, "\1\0hello", 7 <unfinished ...>
//! 813 fsync(8)                = 0
//! 812 <... write resumed>)    = 7
//! ```
//!
//! Bytes in strings are C escapes; strings cut short by strace are refused, since the record would
//! then lack data.

use std::collections::{BTreeMap, HashMap};
use std::io::BufRead;

use anyhow::{Context, Result, anyhow, bail};

/// The calls that are recorded: all that change files or file descriptors, and those that could answer
/// a client. Kinds of writing that the model does not know are recorded so that they can be refused.
pub(super) const CALLS: &str = "open,openat,openat2,creat,close,dup,dup2,dup3,fcntl,lseek,\
    write,pwrite64,writev,pwritev,pwritev2,sendto,sendmsg,sendmmsg,\
    truncate,ftruncate,fallocate,rename,renameat,renameat2,link,linkat,symlink,symlinkat,\
    unlink,unlinkat,mkdir,mkdirat,rmdir,fsync,fdatasync,sync,syncfs,sync_file_range,\
    copy_file_range,sendfile,splice,io_uring_setup,io_submit,mmap";

/// One argument of a call.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Argument {
    /// As written, without the contents of strings.
    pub(super) text: String,
    /// The contents of all strings in it, joined: a path, or the bytes of a (scattered) write.
    pub(super) bytes: Vec<u8>,
}

/// One call, as far as it is known.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Call {
    pub(super) name: String,
    pub(super) arguments: Vec<Argument>,
}

impl Call {
    /// The number in an argument, such as a file descriptor or an offset.
    pub(super) fn number(&self, index: usize) -> Result<i64> {
        let text = &self.argument(index)?.text;
        text.trim()
            .parse()
            .with_context(|| format!("argument {index} of {} is {text:?}, no number", self.name))
    }

    /// Which arguments are paths. Empty for calls about descriptors.
    pub(super) fn path_arguments(&self) -> &'static [usize] {
        match self.name.as_str() {
            "open" | "creat" | "mkdir" | "unlink" | "rmdir" => &[0],
            "openat" | "openat2" | "mkdirat" | "unlinkat" => &[1],
            "rename" | "link" => &[0, 1],
            "renameat" | "renameat2" | "linkat" => &[1, 3],
            _ => &[],
        }
    }

    /// Whether the descriptor of a directory stands before each path.
    pub(super) fn is_relative(&self) -> bool {
        matches!(self.path_arguments(), [1, ..] | [_, 3])
    }

    /// Whether it opens a file by its path.
    pub(super) fn opens(&self) -> bool {
        matches!(self.name.as_str(), "open" | "openat" | "openat2" | "creat")
    }

    /// Whether it makes the file that it opens, if there is none.
    pub(super) fn creates(&self) -> bool {
        self.opens() && self.open_flags().is_ok_and(|flags| flags.contains("O_CREAT"))
    }

    /// The flags of a call that opens a file.
    pub(super) fn open_flags(&self) -> Result<&str> {
        match self.name.as_str() {
            "creat" => Ok("O_CREAT|O_TRUNC"),
            _ => Ok(&self.argument(usize::from(self.is_relative()) + 1)?.text),
        }
    }

    pub(super) fn argument(&self, index: usize) -> Result<&Argument> {
        self.arguments.get(index).ok_or_else(|| anyhow!("{} has no argument {index}", self.name))
    }
}

/// A moment of the record.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Moment {
    /// A thread (named by its id) begins a call.
    Begin(u32, Call),
    /// A call returned this; failed calls return a negative number.
    End(u32, Call, i64),
    /// The end of the process cut this call off: it may have taken effect or not.
    CutOff(Call),
}

/// Reads a record line by line, and hands each moment to `take`.
pub(super) fn read(record: impl BufRead, mut take: impl FnMut(Moment) -> Result<()>) -> Result<()> {
    let mut begun: HashMap<u32, String> = HashMap::new();
    for (number, line) in record.lines().enumerate() {
        let line = line?;
        read_line(&line, &mut begun, &mut take).with_context(|| {
            let start: String = line.chars().take(200).collect();
            format!("in line {} of the record: {start}", number + 1)
        })?;
    }
    let cut_off: BTreeMap<u32, String> = begun.into_iter().collect();
    cut_off.values().try_for_each(|start| take(Moment::CutOff(parse(start)?.0)))
}

fn read_line(
    line: &str,
    begun: &mut HashMap<u32, String>,
    take: &mut impl FnMut(Moment) -> Result<()>,
) -> Result<()> {
    let (thread, rest) = line.split_once(' ').ok_or_else(|| anyhow!("no thread id"))?;
    let thread: u32 = thread.parse().context("no thread id")?;
    let rest = rest.trim_start();
    if rest.starts_with("+++") || rest.starts_with("---") {
        return Ok(()); // ends of threads, signals
    }
    if let Some(rest) = rest.strip_prefix("<... ") {
        let (_name, rest) = rest.split_once(" resumed>").ok_or_else(|| anyhow!("not a resumed call"))?;
        let Some(start) = begun.remove(&thread) else {
            return Ok(()); // begun before the record did
        };
        let (call, result) = parse(&format!("{start}{rest}"))?;
        return take(ended(thread, call, result));
    }
    if let Some(start) = rest.strip_suffix("<unfinished ...>") {
        begun.insert(thread, start.trim_end().to_owned());
        let (call, _) = parse(start)?;
        return take(Moment::Begin(thread, call));
    }
    let (call, result) = parse(rest)?;
    take(Moment::Begin(thread, call.clone()))?;
    take(ended(thread, call, result))
}

fn ended(thread: u32, call: Call, result: Option<i64>) -> Moment {
    match result {
        Some(result) => Moment::End(thread, call, result),
        None => Moment::CutOff(call),
    }
}

/// Parses `name(arguments) = result`, or the beginning of that.
fn parse(text: &str) -> Result<(Call, Option<i64>)> {
    let (name, rest) = text.split_once('(').ok_or_else(|| anyhow!("not a call"))?;
    let bytes = rest.as_bytes();
    let mut arguments = vec![Argument::default()];
    let (mut depth, mut at) = (0_usize, 0);
    let mut closed = false;
    while at < bytes.len() {
        let argument = arguments.last_mut().expect("there is always one");
        match bytes[at] {
            b'"' => {
                at = unescape(bytes, at + 1, &mut argument.bytes)?;
                continue;
            }
            b')' if depth == 0 => {
                closed = true;
                break;
            }
            b',' if depth == 0 => arguments.push(Argument::default()),
            byte => {
                match byte {
                    b'(' | b'[' | b'{' => depth += 1,
                    b')' | b']' | b'}' => depth = depth.saturating_sub(1),
                    _ => {}
                }
                if byte != b' ' || !argument.text.is_empty() {
                    argument.text.push(byte as char);
                }
            }
        }
        at += 1;
    }
    arguments.iter_mut().for_each(|argument| argument.text.truncate(argument.text.trim_end().len()));
    let result = closed.then(|| result(&rest[at + 1..])).transpose()?.flatten();
    Ok((Call { name: name.to_owned(), arguments }, result))
}

/// The number after `=`; `?` when the call never returned.
fn result(text: &str) -> Result<Option<i64>> {
    let text = text.trim_start().strip_prefix('=').ok_or_else(|| anyhow!("no result"))?.trim_start();
    let word = text.split_whitespace().next().unwrap_or_default();
    if word == "?" {
        return Ok(None);
    }
    let value = match word.strip_prefix("0x") {
        // Addresses, of mmap; only the sign matters, and they are not negative.
        Some(digits) => i64::from_str_radix(digits, 16).unwrap_or(i64::MAX),
        None => word.parse().with_context(|| format!("the result {word:?} is not a number"))?,
    };
    Ok(Some(value))
}

/// Reads a string up to its closing quote; returns where the text goes on.
fn unescape(text: &[u8], mut at: usize, into: &mut Vec<u8>) -> Result<usize> {
    loop {
        match text.get(at) {
            None => bail!("a string without an end"),
            Some(b'"') => break,
            Some(b'\\') => at = unescape_one(text, at + 1, into)?,
            Some(byte) => {
                into.push(*byte);
                at += 1;
            }
        }
    }
    if text[at + 1..].starts_with(b"...") {
        bail!("strace cut a string short: the record is not complete");
    }
    Ok(at + 1)
}

/// Reads what follows a backslash: a letter, or one to three octal digits.
fn unescape_one(text: &[u8], at: usize, into: &mut Vec<u8>) -> Result<usize> {
    let letter = *text.get(at).ok_or_else(|| anyhow!("a string ends in a backslash"))?;
    if !letter.is_ascii_digit() {
        into.push(match letter {
            b'n' => b'\n',
            b't' => b'\t',
            b'r' => b'\r',
            b'v' => 0x0B,
            b'f' => 0x0C,
            b'"' | b'\\' => letter,
            _ => bail!("an unknown escape \\{}", letter as char),
        });
        return Ok(at + 1);
    }
    let digits = text[at..].iter().take(3).take_while(|byte| (b'0'..=b'7').contains(byte)).count();
    let value = text[at..at + digits].iter().fold(0_u32, |value, digit| value * 8 + u32::from(digit - b'0'));
    into.push(u8::try_from(value).context("an escape beyond one byte")?);
    Ok(at + digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moments(record: &str) -> Vec<Moment> {
        let mut all = Vec::new();
        read(record.as_bytes(), |moment| {
            all.push(moment);
            Ok(())
        })
        .expect("the record is well-formed");
        all
    }

    #[test]
    fn whole_and_interrupted_calls() {
        let all = moments(concat!(
            "812 write(9, \"\\1\\0hello\\377\\\"\\\\\\n\" <unfinished ...>\n",
            "813 fsync(8)                = 0\n",
            "812 <... write resumed>, 11)    = 11\n",
            "813 close(8)                = -1 EBADF (Bad file descriptor)\n",
            "813 exit_group(0)           = ?\n",
            "813 +++ exited with 0 +++\n",
            "814 mkdir(\"/d/w\", 0777 <unfinished ...>\n",
        ));
        let [
            Moment::Begin(812, begun),
            _,
            Moment::End(813, _, 0),
            Moment::End(812, ended, 11),
            _,
            close,
            exit,
            Moment::CutOff(_),
            Moment::Begin(814, _),
            Moment::CutOff(cut_off),
        ] = all.as_slice()
        else {
            panic!("{all:?}")
        };
        assert_eq!(begun.arguments[1].bytes, b"\x01\0hello\xff\"\\\n");
        assert_eq!(ended.number(2).ok(), Some(11));
        assert!(matches!(close, Moment::End(813, _, -1)));
        assert!(matches!(exit, Moment::Begin(813, _)));
        assert_eq!((cut_off.name.as_str(), cut_off.arguments[0].bytes.as_slice()), ("mkdir", &b"/d/w"[..]));
    }

    #[test]
    fn scattered_writes_are_joined() {
        let all = moments(
            "1 writev(7, [{iov_base=\"HTTP/1.1 \", iov_len=9}, {iov_base=\"204,)\", iov_len=5}], 2) = 14\n",
        );
        let Moment::End(1, call, 14) = &all[1] else { panic!("{all:?}") };
        assert_eq!(call.arguments[1].bytes, b"HTTP/1.1 204,)");
        assert_eq!(call.arguments.len(), 3);
    }

    #[test]
    fn strings_cut_short_are_refused() {
        assert!(read("1 write(3, \"abc\"..., 900) = 900\n".as_bytes(), |_| Ok(())).is_err());
    }
}
