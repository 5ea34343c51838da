//! A bank: no page of all accounts shows money made or lost, half of a transfer, or less than was acknowledged.
//!
//! Each account counts its transfers. It also names the other account of its last transfer, and the number that the
//! transfer has there.

/// An account as a page shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Account {
    /// The money in it.
    pub value: u64,
    /// How many transfers have changed it.
    pub number: u64,
    /// The other account of the last of them.
    pub partner: usize,
    /// The number of the last transfer in the other account.
    pub partner_number: u64,
}

/// What is wrong with a page of all accounts, in words. All accounts together hold `sum`. For each account, a transfer
/// with the number in `acknowledged` was acknowledged when the page was asked for.
pub fn check(accounts: &[Account], acknowledged: &[u64], sum: u64) -> Option<String> {
    let values: Vec<u64> = accounts.iter().map(|account| account.value).collect();
    let (shown, wanted) = (values.iter().sum::<u64>(), acknowledged.len());
    if values.len() != wanted || shown != sum {
        return Some(format!(
            "the bank holds {shown} in {} accounts, and should hold {sum} in {wanted}: {values:?}",
            values.len()
        ));
    }
    for (index, (account, acknowledged)) in accounts.iter().zip(acknowledged).enumerate() {
        if account.number < *acknowledged {
            return Some(format!(
                "transfer {acknowledged} of account {index} was acknowledged, and the bank shows {} transfers of it",
                account.number
            ));
        }
        let partner = accounts.get(account.partner);
        if account.number > 0 && partner.is_none_or(|partner| partner.number < account.partner_number) {
            return Some(format!(
                "the bank shows transfer {} of account {index} and not its other half",
                account.number
            ));
        }
    }
    None
}
