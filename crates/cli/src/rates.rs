//! How fast commands write that write many entities.

use anyhow::Result;
use clap::Args;
use rangehold_client::bulk::{TableGate, TablePace};
use rangehold_client::limits::BULK_RETRY;
use rangehold_client::{Account, Options, Service};

/// The limits that a user gives to a command. A service that answers 408, 429 or 5xx, or slower than before, is given time in any
/// case.
#[derive(Debug, Clone, Args)]
pub(crate) struct Rates {
    /// Entities that are written in a second, or none for no limit [default: at Azure 20000, its target for an account; elsewhere none]
    #[arg(long, value_name = "N", value_parser = read)]
    account_rate: Option<f64>,
    /// Entities that are written in a second in one partition, or none for no limit [default: at Azure 2000, its target for a
    /// partition; elsewhere none]
    #[arg(long, value_name = "N", value_parser = read)]
    partition_rate: Option<f64>,
}

/// Reads a rate: a number from 1 on, or `none`.
fn read(text: &str) -> Result<f64, String> {
    if text == "none" {
        return Ok(f64::INFINITY);
    }
    match text.parse::<u32>() {
        Ok(rate) if rate > 0 => Ok(f64::from(rate)),
        _ => Err("give a whole number from 1 on, or none".to_owned()),
    }
}

impl Rates {
    /// The service of an account, and the gate that writes have to pass.
    pub(crate) fn open(&self, account: Account) -> Result<(Service, TableGate)> {
        let gate = TableGate::new(self.pace(account.endpoint().is_azure()));
        let options = Options { retry: BULK_RETRY, watch: Some(gate.watch()), ..Options::default() };
        Ok((Service::new(account, options)?, gate))
    }

    fn pace(&self, is_azure: bool) -> TablePace {
        let usual = if is_azure { TablePace::DOCUMENTED } else { TablePace::FREE };
        TablePace {
            account: self.account_rate.unwrap_or(usual.account),
            partition: self.partition_rate.unwrap_or(usual.partition),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn azure_has_its_documented_rates_unless_others_are_asked_for() {
        let pace = |account: Option<&str>, is_azure| {
            let rate = |text| read(text).expect("it is a rate");
            let rates = Rates { account_rate: account.map(rate), partition_rate: None };
            let pace = rates.pace(is_azure);
            (pace.account, pace.partition)
        };
        assert_eq!(pace(None, true), (20_000.0, 2_000.0));
        assert_eq!(pace(Some("none"), true), (f64::INFINITY, 2_000.0));
        assert_eq!(pace(None, false), (f64::INFINITY, f64::INFINITY));
        assert_eq!(pace(Some("500"), false), (500.0, f64::INFINITY));
        for wrong in ["0", "-1", "1.5", "fast", ""] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
