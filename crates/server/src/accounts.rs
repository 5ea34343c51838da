//! The accounts of a server: names and keys.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use arc_swap::{ArcSwap, Guard};
use rangehold_protocol::auth::AccountKey;

/// The account that every Azure SDK and emulator knows.
pub const WELL_KNOWN_ACCOUNT: &str = "devstoreaccount1";
/// The key of that account. Everybody knows it, so it protects nothing.
pub const WELL_KNOWN_KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// One account: its name and up to two keys, so that one can be replaced while clients use the other.
#[derive(Clone)]
pub struct Account {
    /// 3 to 24 lower-case letters and digits.
    pub name: String,
    /// One or two keys. A signature by either of them is accepted.
    pub keys: Vec<AccountKey>,
}

/// All accounts, by name.
#[derive(Clone, Default)]
pub struct Accounts(BTreeMap<String, Account>);

/// Why a list of accounts was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AccountsError {
    /// An entry is not `name:key` or `name:key:key`. It is named by its number, since its text may be a key.
    #[error("account number {0}: write it as name:key or name:key1:key2, and several with ';' between them")]
    Form(usize),
    /// A name that Azure would refuse. The entry is named by its number.
    #[error("account number {0}: a name has 3 to 24 lower-case letters and digits")]
    Name(usize),
    /// A key that is not base64. The key itself is not shown.
    #[error("account {0:?}: a key is not valid base64")]
    Key(String),
    /// The same name twice.
    #[error("account {0:?} is given twice")]
    Twice(String),
    /// No account at all.
    #[error("no account is given")]
    None,
}

impl Accounts {
    /// The one well-known development account.
    pub fn well_known() -> Self {
        Self::parse(&format!("{WELL_KNOWN_ACCOUNT}:{WELL_KNOWN_KEY}")).expect("the well-known key is valid")
    }

    /// Reads `name:key1[:key2];...`, the form of the variable `AZURITE_ACCOUNTS`.
    pub fn parse(text: &str) -> Result<Self, AccountsError> {
        let mut accounts = BTreeMap::new();
        let items = text.split(';').map(str::trim).filter(|item| !item.is_empty());
        for (number, item) in items.enumerate().map(|(index, item)| (index + 1, item)) {
            let mut parts = item.split(':');
            let name = parts.next().unwrap_or_default();
            let keys: Vec<&str> = parts.collect();
            if keys.is_empty() || keys.len() > 2 {
                return Err(AccountsError::Form(number));
            }
            let account = Account::new(number, name, &keys)?;
            if accounts.insert(name.to_owned(), account).is_some() {
                return Err(AccountsError::Twice(name.to_owned()));
            }
        }
        if accounts.is_empty() {
            return Err(AccountsError::None);
        }
        Ok(Self(accounts))
    }

    /// The account of this name.
    pub fn get(&self, name: &str) -> Option<&Account> {
        self.0.get(name)
    }

    /// Whether any account has the key that everybody knows.
    pub fn have_well_known_key(&self) -> bool {
        self.0.values().any(Account::has_well_known_key)
    }

    /// All accounts in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = &Account> {
        self.0.values()
    }
}

impl Account {
    /// Whether one of its keys is the one that everybody knows.
    pub fn has_well_known_key(&self) -> bool {
        let well_known = AccountKey::from_base64(WELL_KNOWN_KEY).expect("the well-known key is valid");
        self.keys.iter().any(|key| key.is_same(&well_known))
    }

    /// Whether both have the same keys, in any order.
    pub fn has_same_keys(&self, other: &Self) -> bool {
        let has = |account: &Self, key: &AccountKey| account.keys.iter().any(|other| other.is_same(key));
        self.keys.iter().all(|key| has(other, key)) && other.keys.iter().all(|key| has(self, key))
    }

    fn new(number: usize, name: &str, keys: &[&str]) -> Result<Self, AccountsError> {
        let well_formed = (3..=24).contains(&name.len())
            && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
        if !well_formed {
            return Err(AccountsError::Name(number));
        }
        let keys = keys
            .iter()
            .map(|key| AccountKey::from_base64(key).ok_or_else(|| AccountsError::Key(name.to_owned())))
            .collect::<Result<_, _>>()?;
        Ok(Self { name: name.to_owned(), keys })
    }
}

/// The accounts of a running server, which are replaced when its settings change.
#[derive(Debug, Clone)]
pub struct SharedAccounts(Arc<ArcSwap<Accounts>>);

impl SharedAccounts {
    /// Begins with `accounts`, which can be replaced later.
    pub fn new(accounts: Accounts) -> Self {
        Self(Arc::new(ArcSwap::from_pointee(accounts)))
    }

    /// The accounts now.
    pub fn load(&self) -> Guard<Arc<Accounts>> {
        self.0.load()
    }

    /// The accounts now, to keep.
    pub fn load_full(&self) -> Arc<Accounts> {
        self.0.load_full()
    }

    /// Replaces all accounts.
    pub fn replace(&self, accounts: Accounts) {
        self.0.store(Arc::new(accounts));
    }
}

impl fmt::Debug for Accounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.keys()).finish()
    }
}
