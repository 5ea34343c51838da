//! Names: where the path of a call leads, and the calls that make, link, rename and remove names.

use anyhow::{Context, Result, bail};

use super::super::disk::{Inode, ROOT};
use super::super::trace::Call;
use super::{Event, Replay};

/// Where a path leads.
pub(super) enum Place {
    Outside,
    Root,
    Name {
        directory: Inode,
        name: Vec<u8>,
    },
    /// In a directory that was removed.
    Removed,
}

impl Replay {
    /// Makes, links, renames or removes a name.
    pub(super) fn change_names(&mut self, call: &Call) -> Result<Event> {
        let first = self.met_place_of(call, 0)?;
        if call.path_arguments().len() == 1 {
            let makes = call.name.starts_with("mkdir");
            let Place::Name { directory, name } = first else {
                // The ends of calls of two threads may be recorded in the other order. A directory is removed only when
                // it is empty, so this name went before it.
                return if matches!(first, Place::Removed) && !makes {
                    Ok(Event::Other)
                } else {
                    outside(&first)
                };
            };
            if makes {
                self.vacate(directory, &name)?;
                self.disk.make_directory(directory, &name);
            } else {
                self.find(directory, &name)?;
                self.disk.unlink(directory, &name)?;
                if call.name == "rmdir"
                    || call.arguments.last().is_some_and(|flags| flags.text == "AT_REMOVEDIR")
                {
                    self.removed.insert((directory, name));
                }
            }
            return Ok(Event::Disk);
        }
        match (first, self.met_place_of(call, 1)?) {
            (Place::Name { directory: from, name: old }, Place::Name { directory: to, name: new }) => {
                let inode = self.find(from, &old)?;
                if call.name.starts_with("rename") {
                    if call.arguments.last().is_some_and(|flags| flags.text.contains("RENAME_EXCHANGE")) {
                        bail!("exchanging two names is not modelled");
                    }
                    self.disk.rename((from, &old), (to, &new))?;
                } else {
                    self.vacate(to, &new)?;
                    let inode = inode.context("links an unknown name")?;
                    self.disk.link(to, &new, inode);
                }
                Ok(Event::Disk)
            }
            (Place::Outside, Place::Outside) => Ok(Event::Other),
            _ => bail!("{} across the border of the data directory is not modelled", call.name),
        }
    }

    /// Where the path of this number among the paths of a call leads, as the model is now.
    pub(super) fn place_of(&mut self, call: &Call, number: usize) -> Result<Place> {
        self.place(call, number, |replay, directory, name| Ok(replay.disk.lookup(directory, name)))
    }

    /// The same for a call that ended: it met each directory on the way.
    pub(super) fn met_place_of(&mut self, call: &Call, number: usize) -> Result<Place> {
        self.place(call, number, Self::find)
    }

    /// Where a path leads. `find` says what the names of directories stand for.
    fn place(
        &mut self,
        call: &Call,
        number: usize,
        find: impl Fn(&mut Self, Inode, &[u8]) -> Result<Option<Inode>>,
    ) -> Result<Place> {
        let index =
            *call.path_arguments().get(number).with_context(|| format!("{} names no path", call.name))?;
        let base = call.is_relative().then(|| call.argument(index - 1)).transpose()?;
        let base = base.map_or("AT_FDCWD", |base| base.text.as_str());
        let path = call.argument(index)?.bytes.as_slice();
        let mut directory = ROOT;
        let rest = if path.starts_with(b"/") {
            let Some(rest) = path.strip_prefix(self.root.as_slice()) else {
                return Ok(Place::Outside);
            };
            if !rest.is_empty() && !rest.starts_with(b"/") {
                return Ok(Place::Outside);
            }
            rest
        } else {
            // The server is given an absolute path; what is relative to its working directory is not ours.
            let Ok(descriptor) = base.parse() else {
                return Ok(Place::Outside);
            };
            let Some(open) = self.open_file(descriptor) else {
                return Ok(Place::Outside);
            };
            directory = open.inode;
            path
        };
        let mut parts =
            rest.split(|byte| *byte == b'/').filter(|part| !part.is_empty() && *part != b".").peekable();
        if parts.peek().is_none() {
            return Ok(Place::Root);
        }
        while let Some(part) = parts.next() {
            if part == b".." {
                bail!("a path that leads upwards is not modelled");
            }
            if parts.peek().is_none() {
                return Ok(Place::Name { directory, name: part.to_owned() });
            }
            directory = match find(self, directory, part)? {
                Some(inode) => inode,
                None if self.removed.contains(&(directory, part.to_owned())) => return Ok(Place::Removed),
                None => bail!("an unknown directory"),
            };
        }
        unreachable!("the loop ends at the last part")
    }
}
fn outside(place: &Place) -> Result<Event> {
    match place {
        Place::Outside => Ok(Event::Other),
        _ => bail!("the data directory itself is made or removed"),
    }
}
