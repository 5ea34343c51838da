//! The user, the password and the TLS settings for PostgreSQL servers. They come from the address, the
//! environment and the password file, as for `psql`.

use std::env::VarError;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use rangehold_shardmap::Location;
use rangehold_shardmap::postgres::{Credentials, PostgresAccess, Roots, Tls};

/// The location of the global map, and how to connect to databases.
pub(super) fn reach(url: &str) -> Result<(Location, PostgresAccess)> {
    let user =
        from_environment("PGUSER")?.or(from_environment("USER")?).unwrap_or_else(|| "postgres".to_owned());
    let mode = from_environment("PGSSLMODE")?;
    let roots = from_environment("PGSSLROOTCERT")?.map(|name| Roots::named(&name));
    // The address counts before the environment. As in `psql`, the environment is then not even checked.
    let mode = mode.filter(|_| !url.split_once('?').is_some_and(|(_, query)| query.contains("sslmode=")));
    let tls = Tls::of_settings(mode.as_deref(), roots.clone()).context("PGSSLMODE in the environment")?;
    let (location, access, given) =
        match url.strip_prefix("postgres://").or(url.strip_prefix("postgresql://")) {
            Some(rest) => {
                let with_user =
                    if rest.contains('@') { url.to_owned() } else { format!("postgres://{user}@{rest}") };
                let (location, access) = PostgresAccess::from_url_or(&with_user, mode.as_deref(), roots)?;
                let given = access.credentials(&location);
                (location, access, given)
            }
            None => {
                let given = Credentials { user, password: None };
                (Location::parse(url)?, PostgresAccess::new(given.clone(), &tls)?, given)
            }
        };
    let password = given.password.or(from_environment("PGPASSWORD")?);
    let passwords = password_file().and_then(|file| read_private(&file)).unwrap_or_default();
    let access = access.with_credentials(move |place| Credentials {
        user: given.user.clone(),
        password: password.clone().or_else(|| password_for(&passwords, place, &given.user)),
    });
    Ok((location, access.named("rangehold shards")))
}

/// A variable of the environment; `None` if it is not set, or empty.
fn from_environment(name: &str) -> Result<Option<String>> {
    match std::env::var(name) {
        Ok(value) => Ok(Some(value).filter(|value| !value.is_empty())),
        Err(VarError::NotPresent) => Ok(None),
        Err(VarError::NotUnicode(_)) => bail!("{name} in the environment is not UTF-8"),
    }
}

fn password_file() -> Option<PathBuf> {
    let named = std::env::var_os("PGPASSFILE").map(PathBuf::from);
    named.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".pgpass")))
}

/// Reads the password file. A file that other users may read is ignored, as `psql` does.
fn read_private(file: &Path) -> Option<String> {
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::metadata(file).ok()?.permissions().mode();
    if mode & 0o077 != 0 {
        eprintln!("{} is ignored, because other users may read it: run chmod 0600 on it", file.display());
        return None;
    }
    std::fs::read_to_string(file).ok()
}

/// The password of the first line `server:port:database:user:password` that fits; `*` fits everything.
fn password_for(lines: &str, place: &Location, user: &str) -> Option<String> {
    let Location::Postgres { server, port, database } = place else { return None };
    let wanted = [server.as_ref(), &port.to_string(), database, user];
    let fits = |line: &str| {
        let fields = fields(line);
        let [.., password] = fields.as_slice() else { return None };
        let fits = fields.len() == 5
            && wanted.iter().zip(&fields).all(|(wanted, field)| field == "*" || field == wanted);
        fits.then(|| password.clone())
    };
    lines.lines().filter(|line| !line.starts_with('#')).find_map(fits)
}

/// The fields between colons. The character after a backslash is taken as it is.
fn fields(line: &str) -> Vec<String> {
    let (mut fields, mut characters) = (vec![String::new()], line.chars());
    while let Some(character) = characters.next() {
        let last = fields.len() - 1;
        match character {
            ':' => fields.push(String::new()),
            '\\' => fields[last].extend(characters.next()),
            other => fields[last].push(other),
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_that_fits_has_the_password() {
        let lines = "# comment\nother:5432:*:me:no\ndb1:*:shop:me:a\\:b\\\\\n*:*:*:*:last\n";
        let place = Location::postgres("db1", 5432, "shop").unwrap();
        assert_eq!(password_for(lines, &place, "me").unwrap(), "a:b\\");
        assert_eq!(password_for(lines, &place, "you").unwrap(), "last");
        assert_eq!(password_for("db1:5432:shop", &place, "me"), None);
    }
}
